/* SPDX-License-Identifier: MIT */
/* Reads the budget of a record (hotfn/lowlevel/budget.h): the cost of the hooks, the changes that
 * enforced the budget, and the state of each function. */
#include "base/status.h"
#include "records/reader.h"

hotfn_status hfn_record_load_budget(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    const hfn_part *part = &r->parts[HFN_SECTION_BUDGET];
    hotfn_status status = HOTFN_OK;

    if (r->layout.sections[HFN_SECTION_BUDGET_STATES].type) {
        status = hfn_record_load_section(r, in, HFN_SECTION_BUDGET_STATES, err);
    }
    if (status != HOTFN_OK || r->layout.sections[HFN_SECTION_BUDGET].type == 0) {
        return status;
    }
    status = hfn_record_load_section(r, in, HFN_SECTION_BUDGET, err);
    if (status == HOTFN_OK && part->byte_count < sizeof(hfn_budget_header)) {
        status = hfn_record_report_damage(r, r->layout.sections[HFN_SECTION_BUDGET].offset, err,
                                          "the budget is damaged");
    }
    return status;
}

static hfn_budget_header get_header(const hotfn_record *r)
{
    const hfn_part *part = &r->parts[HFN_SECTION_BUDGET];
    hfn_budget_header h = { 0 };

    if (part->byte_count >= sizeof h) {
        memcpy(&h, part->bytes, sizeof h);
    }
    h.note[sizeof h.note - 1] = 0;
    return h;
}

static uint32_t count_changes(const hotfn_record *r)
{
    const hfn_part *part = &r->parts[HFN_SECTION_BUDGET];
    uint64_t used = hfn_budget_used_bytes(part->bytes, part->byte_count);

    return used == 0 ? 0
                     : (uint32_t)((used - sizeof(hfn_budget_header)) / sizeof(hfn_budget_change));
}

hotfn_status hotfn_record_get_budget(const hotfn_record *r, hotfn_record_budget *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hfn_budget_header h = get_header(r);
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;

    b.share_ppm = h.share_ppm;
    b.change_count = count_changes(r);
    b.changes_lost = h.change_count > b.change_count ? h.change_count - b.change_count : 0;
    b.stops = h.stops;
    b.failed_stops = h.failed_stops;
    b.cpu_ns = h.cpu_ns;
    b.cost_ns = h.cost_ns;
    b.stopped_ns = h.stopped_ns;
    b.longest_stop_ns = h.longest_stop_ns;
    b.count_cost_ns = (double)h.count_cost_ps / 1e3;
    b.sample_cost_ns = (double)h.sample_cost_ps / 1e3;
    b.time_cost_ns = (double)h.time_cost_ps / 1e3;
    b.timing_ns = h.timing_ns;
    b.start_ns = h.start_ns;
    b.note = "";
    if (h.note[0]) {
        b.note =
            (const char *)r->parts[HFN_SECTION_BUDGET].bytes + offsetof(hfn_budget_header, note);
    }
    return hfn_copy_result(out, &b, sizeof b);
}

hotfn_status hotfn_record_get_change(const hotfn_record *r, uint32_t index,
                                     hotfn_record_change *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_change c = HOTFN_RECORD_CHANGE_INIT;
    hfn_budget_change from;

    if (index >= count_changes(r)) {
        return HOTFN_E_NOT_FOUND;
    }
    memcpy(&from,
           r->parts[HFN_SECTION_BUDGET].bytes + sizeof(hfn_budget_header) +
               (uint64_t)index * sizeof from,
           sizeof from);
    c.function = from.function < r->function_count ? from.function : HOTFN_NO_FUNCTION;
    c.from = from.from;
    c.to = from.to;
    c.why = from.why;
    c.cost_ppm = from.cost_ppm;
    c.at_ns = from.at_ns;
    c.calls_per_second = from.calls_per_second;
    return hfn_copy_result(out, &c, sizeof c);
}

uint32_t hotfn_record_get_budget_state(const hotfn_record *r, uint32_t function)
{
    if (!r) {
        return 0;
    }

    const hfn_part *part = &r->parts[HFN_SECTION_BUDGET_STATES];

    if ((uint64_t)function * sizeof(uint32_t) + sizeof(uint32_t) > part->byte_count) {
        return 0;
    }
    return hfn_read_le32(part->bytes + (uint64_t)function * sizeof(uint32_t));
}
