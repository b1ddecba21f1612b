/* SPDX-License-Identifier: MIT */
/* Unwind tables for unwinders in the process, in the agent only.  libgcc (shared or static) finds
 * the tables of a PC by _dl_find_object or dl_iterate_phdr of the dynamic linker.  The preloaded
 * agent interposes both, handles generated code, and passes everything else to the next
 * definition. */
#include "os/linux/stub_object.h"
#include "session/session.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*find_object_fn)(void *pc, struct dl_find_object *result);
typedef int (*phdr_fn)(struct dl_phdr_info *info, size_t size, void *data);
typedef int (*iterate_fn)(phdr_fn visit, void *data);

static find_object_fn next_find_object;
static iterate_fn next_iterate;

/* Look up the next definitions before any unwinder can run, which may be in a signal handler. */
__attribute__((constructor(101))) static void find_next_definitions(void)
{
    void *found = dlsym(RTLD_NEXT, "_dl_find_object");
    memcpy(&next_find_object, &found,
           sizeof found); /* ISO C has no cast from void * to a function */
    found = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    memcpy(&next_iterate, &found, sizeof found);
}

/* glibc >= 2.35, <dlfcn.h>: int _dl_find_object(void *pc, struct dl_find_object *result). */
EXPORT int _dl_find_object(void *pc, struct dl_find_object *result)
{
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    const hotfn_hooks *hooks = hfn_session_current_hooks();
    if (hooks && hotfn_hooks_find_region(hooks, (uint64_t)(uintptr_t)pc, &region)) {
        memset(result, 0, sizeof *result);
        result->dlfo_map_start = (void *)(uintptr_t)region.begin;
        result->dlfo_map_end = (void *)(uintptr_t)region.end;
        result->dlfo_eh_frame = (void *)(uintptr_t)region.eh_frame_hdr;
        return 0;
    }
    return next_find_object ? next_find_object(pc, result) : -1;
}

static int visit_region(const hotfn_stub_region *region, phdr_fn visit, void *data)
{
    hfn_stub_object object;

    memset(&object, 0, sizeof object);
    hfn_describe_stubs(&object, region->begin, region->end,
                       (uint64_t)(uintptr_t)region->eh_frame_hdr);
    return visit(&object.info, sizeof object.info, data);
}

/* ---- Modules are visited in the loader's order, except that the agent is last: AddressSanitizer
 * aborts if a library precedes its runtime (compiler-rt, 'runtime does not come first in initial
 * library list'). */

extern const char __ehdr_start[]
    __attribute__((visibility("hidden"))); /* defined by the linker: the agent's base */

typedef struct listing {
    phdr_fn visit;
    void *data;
    struct dl_phdr_info own;
    size_t own_bytes; /* 0: not seen */
} listing;

static int visit_all_but_own(struct dl_phdr_info *info, size_t size, void *data)
{
    listing *l = data;
    if (info->dlpi_addr != (ElfW(Addr))(uintptr_t)__ehdr_start || size > sizeof l->own) {
        return l->visit(info, size, l->data);
    }
    memcpy(&l->own, info, size);
    l->own_bytes = size;
    return 0;
}

EXPORT int dl_iterate_phdr(phdr_fn visit, void *data)
{
    listing l = { .visit = visit, .data = data };
    int answer = next_iterate ? next_iterate(visit_all_but_own, &l) : 0;
    if (answer == 0 && l.own_bytes > 0) {
        answer = visit(&l.own, l.own_bytes, data);
    }
    const hotfn_hooks *hooks = hfn_session_current_hooks();
    for (uint32_t i = 0; hooks && answer == 0 && i < hotfn_hooks_get_region_count(hooks); i++) {
        hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
        if (hotfn_hooks_get_region(hooks, i, &region) == HOTFN_OK) {
            answer = visit_region(&region, visit, data);
        }
    }
    return answer;
}
