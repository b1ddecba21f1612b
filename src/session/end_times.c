/* SPDX-License-Identifier: MIT */
/* The end of times in a process that goes on.  Calls that are open return to their stubs whenever they do, and find that
 * nothing is timed (counters/call_stack.c).  A thread that is just at one of the two ends of a call works in memory
 * that is about to go: it is waited for. */
#include "base/status.h"
#include "counters/timing/timing.h"
#include "live/live.h"
#include "session/process.h"

enum { LOOKS = 100, LOOK_STOP_NS = 50000000, LOOK_AGAIN_NS = 1000000 };

/* A thread did not leave, perhaps for ever: no other engine may come into its place. */
static bool left_behind;

typedef struct look {
    const hotfn_hooks *hooks;
    uint64_t own_begin, own_end;
    bool found;
} look;

/* The hooks' ends lie in the module that we lie in. */
static bool note_own_module(void *user, const hfn_os_module *m)
{
    look *l = user;
    uint64_t here = (uint64_t)(uintptr_t)&hfn_process_end_times;
    if (here >= m->base && here < m->end) {
        l->own_begin = m->base;
        l->own_end = m->end;
    }
    return l->own_end == 0;
}

/* HOT PATH: other threads may hold any lock.  Of a thread in a signal handler, where it goes on behind that, too. */
static uint64_t look_at(void *user, uint64_t pc)
{
    look *l = user;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    l->found |= (pc >= l->own_begin && pc < l->own_end) ||
                hotfn_hooks_find_region(l->hooks, pc, &region) != 0;
    return pc;
}

static void do_nothing(void *user)
{
    (void)user;
}

static bool wait_for_ends(const hotfn_hooks *hooks)
{
    look l = { .hooks = hooks };
    hfn_os_each_module(note_own_module, &l);
    for (int i = 0; i < LOOKS && !hfn_os_is_single_threaded(); i++) {
        l.found = false;
        if (hfn_os_with_threads_stopped(LOOK_STOP_NS, look_at, do_nothing, &l) && !l.found) {
            return true;
        }
        hfn_os_sleep(LOOK_AGAIN_NS);
    }
    return hfn_os_is_single_threaded();
}

void hfn_process_end_times(const hfn_process *p)
{
    uint64_t now = hfn_timing_stop();
    if (wait_for_ends(p->hooks)) {
        hfn_process_forget_code(p);
    } else {
        left_behind = true;
        p->live->keeps_times = true;
    }
    hfn_timing_end_rows(now);
}

bool hfn_process_may_time(void)
{
    return !left_behind;
}
