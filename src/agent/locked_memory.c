/* SPDX-License-Identifier: MIT */
/* Interposes mlockall, in the agent only.  MCL_CURRENT would populate and lock the record's
 * hundreds of megabytes of mostly unused address space.  So pages are locked on first use
 * (MCL_ONFAULT), the record is unlocked, and each other mapping is populated.  Other calls are
 * passed to the next mlockall. */
#include "counters/thread_row.h"
#include "live/live.h"
#include "os/linux/maps.h"
#include "os/linux/raw.h"
#include "session/session.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*mlockall_fn)(int flags);

static mlockall_fn next_mlockall;

/* Runs before any call of mlockall. */
__attribute__((constructor(101))) static void find_next_definitions(void)
{
    void *found = dlsym(RTLD_NEXT, "mlockall");
    memcpy(&next_mlockall, &found, sizeof found); /* ISO C has no cast from void * to a function */
}

/* Memory that stays unlocked: the three parts of the record, and the discard row. */
typedef struct own_memory {
    uint64_t begin, bytes;
} own_memory;

enum { OWN_COUNT = 4 };

static void find_own_memory(const hfn_live *live, own_memory own[OWN_COUNT])
{
    own[0] = (own_memory){ hfn_raw_pointer(live->base), live->base_bytes };
    own[1] = (own_memory){ hfn_raw_pointer(live->rows), live->rows_bytes };
    own[2] = (own_memory){ hfn_raw_pointer(live->tail), live->tail_bytes };
    own[3] = (own_memory){ hfn_raw_pointer(hfn_rows.discard), hfn_rows.discard_bytes };
}

/* Errors are ignored, as mlockall ignores mappings that cannot be populated. */
static bool populate_map(void *user, const hfn_map *map)
{
    const own_memory *own = user;
    for (int i = 0; i < OWN_COUNT; i++) {
        if (map->begin < own[i].begin + own[i].bytes && own[i].begin < map->end) {
            return true;
        }
    }
    hfn_raw_syscall3(SYS_mlock, map->begin, map->end - map->begin, 0);
    return true;
}

EXPORT int mlockall(int flags)
{
    const hfn_live *live = hfn_session_current_live();
    if (!live || !(flags & MCL_CURRENT) || (flags & MCL_ONFAULT)) {
        return next_mlockall(flags);
    }
    int answer = next_mlockall(flags | MCL_ONFAULT);
    if (answer == 0) {
        if (flags & MCL_FUTURE) {
            hfn_raw_syscall3(SYS_mlockall, MCL_FUTURE, 0,
                             0); /* later mappings are locked without MCL_ONFAULT */
        }
        own_memory own[OWN_COUNT];
        find_own_memory(live, own);
        for (int i = 0; i < OWN_COUNT; i++) {
            hfn_raw_syscall3(SYS_munlock, own[i].begin, own[i].bytes, 0);
        }
        hfn_linux_each_map(populate_map, own);
    }
    return answer;
}
