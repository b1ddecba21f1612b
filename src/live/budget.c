/* SPDX-License-Identifier: MIT */
/* The sections of the live record for the budget: a header followed by the list of level changes,
 * and one word for each function. */
#include "live/live.h"

_Static_assert(sizeof(hfn_budget_header) == 256 && sizeof(hfn_budget_change) == 48,
               "records have these sizes");

hfn_budget_header *hfn_live_get_budget(const hfn_live *live)
{
    return live->layout.sections[HFN_SECTION_BUDGET].type
               ? (void *)hfn_live_section(live, HFN_SECTION_BUDGET)
               : NULL;
}

void hfn_live_write_budget_header(hfn_live *live, const hfn_live_options *o)
{
    hfn_budget_header *h = hfn_live_get_budget(live);

    if (!h) {
        return;
    }
    h->share_ppm = o->budget_ppm;
    h->change_capacity = HFN_BUDGET_CHANGES;
}

uint8_t *hfn_live_get_budget_state(const hfn_live *live, uint32_t function)
{
    return hfn_live_section(live, HFN_SECTION_BUDGET_STATES) + function * sizeof(uint32_t);
}

uint32_t *hfn_live_get_means(const hfn_live *live)
{
    return live->layout.sections[HFN_SECTION_BUDGET_MEANS].type
               ? (void *)hfn_live_section(live, HFN_SECTION_BUDGET_MEANS)
               : NULL;
}

bool hfn_live_read_timed_calls(const hfn_live *live, uint32_t row, uint64_t *calls)
{
    uint64_t at = live->layout.sections[HFN_SECTION_TIME_ROWS].offset +
                  (uint64_t)row * live->layout.row_bytes;
    hfn_time_state state;
    uint64_t done;

    if (hfn_os_read_at(live->file, at, &state, sizeof state, &done) != 0 || done != sizeof state) {
        return false;
    }
    *calls = state.timed;
    return true;
}

bool hfn_live_is_timed(const hfn_live *live, uint32_t function)
{
    const uint8_t *states = hfn_live_section(live, HFN_SECTION_TIMING_STATES);

    return HFN_STATE_OF(hfn_shared_get32(states + (uint64_t)function * sizeof(uint32_t))) !=
           HOTFN_TIMING_COUNT_ONLY;
}

bool hfn_live_was_unhooked(const hfn_live *live, uint32_t module, uint32_t function_index)
{
    uint32_t first, count;
    uint8_t *entry;

    return hfn_live_find_module(live, module, &entry, &first, &count) && function_index < count &&
           hfn_shared_get32(hfn_live_get_budget_state(live, first + function_index)) &
               HOTFN_BUDGET_LOWER_BOUND;
}

void hfn_live_set_level(hfn_live *live, uint32_t function, uint32_t level)
{
    uint8_t *state = hfn_live_get_budget_state(live, function);
    uint32_t word = hfn_shared_get32(state) & ~HOTFN_BUDGET_LEVEL;

    hfn_shared_put32(state, word | level |
                                (level == HOTFN_BUDGET_UNHOOKED ? HOTFN_BUDGET_LOWER_BOUND : 0));
}

bool hfn_live_has_levels(const hfn_live *live)
{
    for (uint32_t i = 0; i < live->function_count; i++) {
        if (hfn_shared_get32(hfn_live_get_budget_state(live, i)) != 0) {
            return true;
        }
    }
    return false;
}

void hfn_live_add_change(hfn_live *live, const hfn_budget_change *change)
{
    hfn_budget_header *h = hfn_live_get_budget(live);
    hfn_budget_change *changes = (hfn_budget_change *)(h + 1);
    uint8_t *state = hfn_live_get_budget_state(live, change->function);
    uint32_t word = hfn_shared_get32(state) & ~HOTFN_BUDGET_LEVEL;

    word |= change->to | (change->to == HOTFN_BUDGET_UNHOOKED ? HOTFN_BUDGET_LOWER_BOUND : 0);
    if (change->from == HOTFN_BUDGET_TIMED) {
        word |= HOTFN_BUDGET_REDUCED;
    }
    hfn_shared_put32(state, word);
    if (h->change_count < h->change_capacity) {
        changes[h->change_count] = *change;
    }
    /* Stored last: a reader that sees the count sees the change.  Pairs with the load in
     * records/budget.c. */
    __atomic_store_n(&h->change_count, h->change_count + 1, __ATOMIC_RELEASE);
}

uint64_t hfn_budget_used_bytes(const uint8_t *section, uint64_t byte_count)
{
    hfn_budget_header h;
    uint64_t room, count;

    if (byte_count < sizeof h) {
        return 0;
    }
    memcpy(&h, section, sizeof h);
    room = (byte_count - sizeof h) / sizeof(hfn_budget_change);
    count = h.change_count < h.change_capacity ? h.change_count : h.change_capacity;
    return sizeof h + (count < room ? count : room) * sizeof(hfn_budget_change);
}
