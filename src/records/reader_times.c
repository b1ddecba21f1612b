/* SPDX-License-Identifier: MIT */
/* The timing of a record that is being opened: read in the form that it has, without values
 * that are impossible.  A record without times has counts only. */
#include "base/status.h"
#include "records/reader.h"

#include <stdio.h>

static const uint32_t packed_types[] = {
    HFN_SECTION_TIME_HEADER, HFN_SECTION_PACKED_TIMES, HFN_SECTION_HISTOGRAMS, HFN_SECTION_NODES,
    HFN_SECTION_NODE_ALLOCS, HFN_SECTION_SLOW_CALLS,   HFN_SECTION_EVENTS,
};

static hotfn_status no_memory(const hotfn_record *r, hotfn_error *err)
{
    return hfn_report_no_memory(err, r->path);
}

static void forget_part(hotfn_record *r, uint32_t type)
{
    hfn_free_memory(&r->env, r->parts[type].bytes, r->parts[type].byte_count + 2);
    r->parts[type] = (hfn_part){ NULL, 0 };
}

static void empty_times(hotfn_record *r)
{
    hfn_times_finish(&r->times);
    hfn_times_init(&r->times, &r->env);
}

static hotfn_status unpack_times(hotfn_record *r, hotfn_error *err)
{
    hfn_span sections[HFN_SECTION_TYPES] = { 0 };
    uint32_t damaged = 0;
    hotfn_status status;

    for (size_t i = 0; i < HFN_COUNT_OF(packed_types); i++) {
        const hfn_part *part = &r->parts[packed_types[i]];

        sections[packed_types[i]] = (hfn_span){ part->bytes, part->byte_count, false };
    }
    status = hfn_times_unpack(&r->times, sections, r->thread_count, &damaged);
    if (status == HOTFN_E_NO_MEMORY) {
        return no_memory(r, err);
    }
    if (status == HOTFN_OK) {
        return status;
    }
    empty_times(r);
    return hfn_record_report_damage(r, r->layout.sections[damaged].offset, err,
                                    "the times are damaged (section %u)", damaged);
}

static hotfn_status load_packed(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    for (size_t i = 0; status == HOTFN_OK && i < HFN_COUNT_OF(packed_types); i++) {
        if (r->layout.sections[packed_types[i]].type) {
            status = hfn_record_load_section(r, in, packed_types[i], err);
        }
    }
    if (status == HOTFN_OK) {
        status = unpack_times(r, err);
    }
    for (size_t i = 0; i < HFN_COUNT_OF(packed_types); i++) {
        forget_part(r, packed_types[i]);
    }
    return status;
}

static hotfn_status load_live(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    hotfn_status status = hfn_times_read_live(&r->times, in->file, &r->layout, in->file_bytes,
                                              r->thread_count, r->slot_count, 0, r->path, err);

    if (status == HOTFN_E_FORMAT && r->tolerant) {
        empty_times(r);
        return hfn_record_report_damage(r, 0, err, "the times are lost");
    }
    return status;
}

/* ---- Versions. */

/* Times of another version are not read; the counts remain. */
static hotfn_status check_version(hotfn_record *r, hotfn_error *err)
{
    uint32_t version = r->times.header.version;

    if (!r->times.present || version == HFN_TIMES_VERSION) {
        return HOTFN_OK;
    }
    snprintf(r->times_note, sizeof r->times_note,
             "the times have version %u and are not read: this hotfn reads version %u", version,
             HFN_TIMES_VERSION);
    empty_times(r);
    return r->tolerant
               ? hfn_record_report_damage(r, r->layout.sections[HFN_SECTION_TIME_HEADER].offset,
                                          err, "%s", r->times_note)
               : HOTFN_OK;
}

/* ---- The whole. */

static bool make_slot_functions(hotfn_record *r)
{
    r->slot_functions = hfn_allocate_zeroed(&r->env, r->slot_count * sizeof *r->slot_functions);
    if (!r->slot_functions) {
        return false;
    }
    memset(r->slot_functions, 0xff, r->slot_count * sizeof *r->slot_functions);
    for (uint32_t i = 0; i < r->function_count; i++) {
        uint32_t slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, i));

        if (slot < r->slot_count) {
            r->slot_functions[slot] = i;
        }
    }
    return true;
}

hotfn_status hfn_record_load_times(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    if (r->layout.sections[HFN_SECTION_TIME_HEADER].type == 0) {
        return HOTFN_OK;
    }
    if (r->layout.sections[HFN_SECTION_TIMING_STATES].type) {
        status = hfn_record_load_section(r, in, HFN_SECTION_TIMING_STATES, err);
    }
    if (status == HOTFN_OK) {
        status =
            r->layout.kind == HFN_KIND_FINISHED ? load_packed(r, in, err) : load_live(r, in, err);
    }
    if (status == HOTFN_OK) {
        status = check_version(r, err);
    }
    if (status != HOTFN_OK || !r->times.present) {
        return status;
    }
    if (!make_slot_functions(r) || !hfn_times_validate(&r->times, r->slot_count, r->thread_count)) {
        return no_memory(r, err);
    }
    return HOTFN_OK;
}

void hfn_record_drop_times(hotfn_record *r)
{
    hfn_free_memory(&r->env, r->slot_functions, r->slot_count * sizeof *r->slot_functions);
    r->slot_functions = NULL;
    hfn_times_finish(&r->times);
}
