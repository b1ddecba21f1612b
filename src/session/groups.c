/* SPDX-License-Identifier: MIT */
/* Groups of functions that are switched on and off while their modules stay hooked.  A group is a
 * bit; a function that is in groups is off while all of them are off. */
#include "hooks/hookset.h"
#include "session/process.h"

static bool is_off(void *user, uint32_t hooks_module, uint32_t function_index)
{
    const hfn_process *p = user;

    for (size_t i = 0; i < p->loaded_count; i++) {
        const hfn_loaded_module *m = &p->loaded[i];

        if (m->hooks_module == hooks_module && m->groups) {
            uint64_t groups = m->groups[function_index];
            return groups != 0 && (groups & ~p->off_groups) == 0;
        }
    }
    return false;
}

void hfn_process_switch_new(hfn_process *p)
{
    if (p->off_groups != 0) {
        hfn_hooks_switch(p->hooks, is_off, p);
    }
}

/* Functions that are hooked now, without those that hotfn hooks for itself. */
static uint32_t count_hooked(const hfn_process *p)
{
    uint32_t count = hfn_hooks_count_patched(p->hooks), own = 0;

    for (size_t i = 0; i < p->loaded_count; i++) {
        own += p->loaded[i].own_count;
    }
    return count > own ? count - own : 0;
}

hotfn_status hfn_process_switch(hfn_process *p, uint64_t off_groups, hotfn_error *err)
{
    uint64_t before = p->off_groups;
    hotfn_status status;

    hfn_process_begin_change(p);
    p->off_groups = off_groups;
    hfn_hooks_switch(p->hooks, is_off, p);
    status = hfn_hooks_restore_off(p->hooks, err);
    if (status == HOTFN_E_STATE || status == HOTFN_E_NO_MEMORY) {
        p->off_groups = before;
        hfn_hooks_switch(p->hooks, is_off, p);
    } else {
        hotfn_status written = hfn_process_commit(p, status == HOTFN_OK ? err : NULL);
        status = status == HOTFN_OK ? written : status;
    }
    p->stats.hooked = count_hooked(p);
    hfn_process_end_change(p);
    return status;
}
