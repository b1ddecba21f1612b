/* SPDX-License-Identifier: MIT */
/* Stop counting and timing in a process that continues.  Open calls return to their stubs later and
 * find that timing has ended (counters/timing/timing.c).  A thread that is in an entry or exit
 * probe, or that claims a row, uses memory that will be unmapped, so this file waits until no
 * thread is in one. */
#include "base/status.h"
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "live/live.h"
#include "session/process.h"

enum { MAX_ATTEMPTS = 40, STOP_NS = 50000000, MIN_PAUSE_NS = 1000000, MAX_PAUSE_NS = 64000000 };

/* A thread did not leave its probe in time.  It may still be in the probe, so timing must not start
 * again. */
static bool thread_remains;

typedef struct probe_search {
    const hotfn_hooks *hooks;
    uint64_t own_begin, own_end;
    bool found;
} probe_search;

/* The probes lie in the same module as this code. */
static bool note_own_module(void *user, const hfn_os_module *m)
{
    probe_search *s = user;
    uint64_t here = (uint64_t)(uintptr_t)&hfn_process_end_times;
    if (here >= m->base && here < m->end) {
        s->own_begin = m->base;
        s->own_end = m->end;
    }
    return s->own_end == 0;
}

/* HOT PATH: stopped threads may hold any lock.  For a thread in a signal handler, this function is
 * called with the interrupted address too. */
static uint64_t find_probe(void *user, uint64_t pc)
{
    probe_search *s = user;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    s->found |= (pc >= s->own_begin && pc < s->own_end) ||
                hotfn_hooks_find_region(s->hooks, pc, &region) != 0;
    return pc;
}

/* A claim of a row may be in a system call. */
static void find_claim(void *user)
{
    probe_search *s = user;

    s->found |= __atomic_load_n(&hfn_rows.claimers, __ATOMIC_SEQ_CST) > 0;
}

/* The pause grows: on a busy machine a thread may be stopped again before it has executed any of
 * its own instructions. */
bool hfn_process_wait_outside(const hotfn_hooks *hooks)
{
    probe_search s = { .hooks = hooks };
    uint32_t pause = MIN_PAUSE_NS;

    hfn_os_each_module(note_own_module, &s);
    for (int i = 0; i < MAX_ATTEMPTS && !hfn_os_is_single_threaded(); i++) {
        s.found = false;
        if (hfn_os_with_threads_stopped(STOP_NS, find_probe, find_claim, &s) && !s.found) {
            return true;
        }
        hfn_os_sleep(pause);
        pause = pause < MAX_PAUSE_NS ? 2 * pause : pause;
    }
    return hfn_os_is_single_threaded();
}

void hfn_process_end_times(const hfn_process *p)
{
    uint64_t now = hfn_timing_stop();
    if (!hfn_process_wait_outside(p->hooks)) {
        thread_remains = true;
        p->live->keeps_times = true;
    }
    hfn_timing_end_rows(now);
}

bool hfn_process_may_time(void)
{
    return !thread_remains;
}
