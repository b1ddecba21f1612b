/* SPDX-License-Identifier: MIT */
/* The budgets of a merge: a count that is a lower bound in any run is a lower bound in the new
 * record. */
#include "profile/merge.h"

#include <hotfn/lowlevel/budget.h>

static bool any_budget(const hfn_merge *m)
{
    for (uint32_t run = 0; run < m->record_count; run++) {
        if (m->records[run]->parts[HFN_SECTION_BUDGET_STATES].byte_count > 0) {
            return true;
        }
    }
    return false;
}

bool hfn_merge_budgets(const hfn_merge *m, hotfn_record *out)
{
    hfn_part *part = &out->parts[HFN_SECTION_BUDGET_STATES];

    if (!any_budget(m)) {
        return true;
    }
    part->byte_count = (uint64_t)out->function_count * sizeof(uint32_t);
    part->bytes = hfn_allocate_zeroed(&out->env, part->byte_count + 2);
    if (!part->bytes) {
        part->byte_count = 0;
        return false;
    }
    for (uint32_t run = 0; run < m->record_count; run++) {
        for (uint32_t i = 0; i < m->records[run]->function_count; i++) {
            uint8_t *at = part->bytes + (uint64_t)m->places[run][i] * sizeof(uint32_t);
            uint32_t state = hotfn_record_get_budget_state(m->records[run], i);

            hfn_write_le32(at, hfn_read_le32(at) | (state & ~HOTFN_BUDGET_LEVEL));
        }
    }
    return true;
}
