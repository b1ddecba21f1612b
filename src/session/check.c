/* SPDX-License-Identifier: MIT */
/* Compares the patches with memory.  A check never waits: while the hooks or the list of modules
 * change, it is skipped, and the record is not marked as checked.  The dynamic linker reports an
 * incomplete list before it unmaps a module, so a difference counts only if the list is still
 * complete after the memory was read. */
#include "hooks/check.h"
#include "os/clock.h"
#include "os/hot_path.h"
#include "session/session.h"

/* A thread that waits for the end of a check is not woken; a check lasts milliseconds. */
enum { LONGEST_WAIT_NS = 1000000 };

void hfn_process_begin_change(hfn_process *p)
{
    /* Pairs with the release stores in hfn_process_end_change and hfn_process_check. */
    while (atomic_exchange_explicit(&p->busy, 1, memory_order_acquire)) {
        hfn_os_wait_word(&p->busy, 1, LONGEST_WAIT_NS);
    }
}

void hfn_process_end_change(hfn_process *p)
{
    atomic_store_explicit(&p->busy, 0, memory_order_release);
}

/* Is the patch compared?  Not the hook on the dynamic linker, which counts nothing, nor a hook that
 * the launcher removed to keep the budget, whose count is a lower bound. */
static bool is_compared(const hfn_process *p, const hfn_loaded_module *m, uint32_t function_index)
{
    return !hfn_process_owns(m, function_index) &&
           !hfn_live_was_unhooked(p->live, m->live_module, function_index);
}

typedef struct check {
    hfn_process *process;
    bool is_complete;
} check;

static void mark_overwritten(void *user, uint32_t hooks_module, uint32_t function_index,
                             uint32_t reason, uint32_t offset)
{
    check *c = user;
    const hfn_process *p = c->process;

    if (__atomic_load_n(&p->list_changes, __ATOMIC_ACQUIRE)) {
        c->is_complete = false;
        return;
    }
    for (size_t i = 0; i < p->loaded_count; i++) {
        const hfn_loaded_module *m = &p->loaded[i];
        if (m->hooks_module == hooks_module && is_compared(p, m, function_index)) {
            hfn_live_set_function(p->live, m->live_module, function_index, HOTFN_STATE_REFUSED,
                                  reason, offset);
        }
    }
}

bool hfn_process_check(hfn_process *p)
{
    check c = { p, true };

    if (!p->hooks || p->forbids_checks || p->id != hfn_os_hot_process_id() ||
        atomic_exchange_explicit(&p->busy, 1, memory_order_acquire)) {
        return false;
    }
    c.is_complete = !__atomic_load_n(&p->list_changes, __ATOMIC_ACQUIRE) &&
                    hfn_hooks_check(p->hooks, mark_overwritten, &c) && c.is_complete;
    atomic_store_explicit(&p->busy, 0, memory_order_release);
    if (c.is_complete) {
        hfn_live_set_checked(p->live, hfn_os_hot_wall_ns());
    }
    return c.is_complete;
}
