/* SPDX-License-Identifier: MIT */
/* Whether a function may be called from a frame that hotfn puts between it and its caller.  Its
 * plan has the proof, which was made for timing (docs/design/timing-proof.md). */
#include "os/threads.h"
#include "plan/plan.h"
#include "session/joined.h"
#include "session/session.h"

/* The plan's entry at the RVA; false if there is none. */
static bool find_hook(hfn_plan_hook *out, const hotfn_plan *plan, uint32_t rva)
{
    uint32_t low = 0, high = plan->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t at = hfn_plan_rva_at(plan, middle);

        if (at < rva) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == plan->entry_count) {
        return false;
    }
    hfn_plan_hook_at(plan, low, out);
    return out->rva == rva;
}

/* A function with a tail exit is proven only until it jumps. */
static bool is_proven(const hotfn_plan *plan, uint64_t rva, uint32_t max_words)
{
    hfn_plan_hook hook;

    return rva <= UINT32_MAX && find_hook(&hook, plan, (uint32_t)rva) &&
           (hook.flags & HOTFN_VERDICT_TIMED) && hook.arguments <= max_words &&
           hook.tail_target_rva == 0;
}

static bool find_proof(const hfn_process *p, uint64_t address, uint32_t max_words)
{
    for (size_t i = 0; i < p->loaded_count; i++) {
        const hfn_loaded_module *m = &p->loaded[i];

        if (address >= m->base && address < m->end) {
            return m->plan && is_proven(m->plan, address - m->base, max_words);
        }
    }
    return false;
}

/* Another thread may change the list of modules.  The caller may have interrupted that change, so
 * the time that this function waits for its end is limited. */
bool hfn_session_may_frame(uint64_t address, uint32_t max_words)
{
    enum { TRIES = 100, WAIT_NS = 200000 };
    hotfn_session *session = hfn_session_current();
    hfn_process *p = session ? &session->process : NULL;
    bool may_frame;

    if (!p || !hfn_live_time_header(session->live)) {
        return false;
    }
    for (int i = 0; atomic_exchange_explicit(&p->busy, 1, memory_order_acquire); i++) {
        if (i == TRIES) {
            return false;
        }
        hfn_os_wait_word(&p->busy, 1, WAIT_NS);
    }
    may_frame = find_proof(p, address, max_words);
    hfn_process_end_change(p);
    return may_frame;
}
