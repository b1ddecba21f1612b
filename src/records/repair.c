/* SPDX-License-Identifier: MIT */
/* Repair: load a damaged record, reduced to its valid part, and write that as a finished record. */
#include "base/status.h"
#include "records/reader.h"
#include "records/writer.h"

#include <stdio.h>

#define MAX_LOST_BYTES 4096 /* of the text about what was lost */

static void set_parts(hfn_parts *parts, const hotfn_record *r)
{
    static const uint8_t nothing[sizeof(hfn_cell_header)];

    for (uint32_t type = HFN_SECTION_META; type <= HFN_SECTION_CELLS; type++) {
        parts->bytes[type] = r->parts[type].bytes;
        parts->byte_counts[type] = r->parts[type].byte_count;
    }
    parts->byte_counts[HFN_SECTION_MODULES] = (uint64_t)r->module_count * HFN_MODULE_BYTES;
    parts->byte_counts[HFN_SECTION_REASONS] &= ~(uint64_t)(HFN_REASON_BYTES - 1);
    /* Rows may have slots of lost functions: a reader accepts as many slots as this section has
     * entries. */
    parts->byte_counts[HFN_SECTION_SLOTS] =
        (uint64_t)(r->function_count > r->slot_count ? r->function_count : r->slot_count) *
        sizeof(uint32_t);
    parts->byte_counts[HFN_SECTION_STATES] = (uint64_t)r->function_count * HFN_STATE_BYTES;
    parts->byte_counts[HFN_SECTION_FUNCTIONS] = (uint64_t)r->function_count * HFN_FUNCTION_BYTES;
    parts->byte_counts[HFN_SECTION_CELLS] =
        sizeof(hfn_cell_header) + (uint64_t)r->thread_count * sizeof(hfn_thread_cell);
    parts->byte_counts[HFN_SECTION_STRINGS] += 2; /* the NULs after the part */
    if (r->parts[HFN_SECTION_CELLS].byte_count < sizeof nothing) {
        parts->bytes[HFN_SECTION_CELLS] = nothing;
    }
    parts->module_count = r->module_count;
    parts->function_count = r->function_count;
    parts->slot_count = r->slot_count;
}

static void set_run(hfn_parts *parts, const hotfn_record *r)
{
    memcpy(parts->uuid, r->header + HFN_AT_UUID, sizeof parts->uuid);
    parts->start_ns = hfn_read_le64(r->header + HFN_AT_START_NS);
    parts->end_ns = hfn_read_le64(r->header + HFN_AT_END_NS);
    parts->window_start_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_START_NS);
    parts->window_end_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_END_NS);
    parts->pid = hfn_read_le32(r->header + HFN_AT_PID);
    parts->checked_ns = hfn_read_le64(r->header + HFN_AT_CHECKED_NS);
    parts->process_count = hfn_read_le32(r->header + HFN_AT_PROCESSES);
    parts->verified_count = hfn_read_le32(r->header + HFN_AT_VERIFIED);
    parts->exit_code = (int32_t)hfn_read_le32(r->header + HFN_AT_EXIT_CODE);
    parts->state = r->state == HOTFN_RECORD_FINISHED || r->state == HOTFN_RECORD_MERGED
                       ? r->state
                       : HOTFN_RECORD_KILLED;
}

/* The words that functions have in a section of states. */
static uint64_t count_state_bytes(const hotfn_record *r, uint32_t type)
{
    uint64_t there = r->parts[type].byte_count & ~UINT64_C(3);
    uint64_t used = (uint64_t)r->function_count * sizeof(uint32_t);

    return there < used ? there : used;
}

static void set_time_parts(hfn_parts *parts, const hotfn_record *r, const hfn_times_sections *times)
{
    if (!times->bytes[HFN_SECTION_TIME_HEADER]) {
        return;
    }
    for (uint32_t type = HFN_SECTION_TIME_HEADER; type < HFN_SECTION_TYPES; type++) {
        parts->bytes[type] = times->bytes[type];
        parts->byte_counts[type] = times->byte_counts[type];
    }
    parts->bytes[HFN_SECTION_TIMING_STATES] = r->parts[HFN_SECTION_TIMING_STATES].bytes;
    parts->byte_counts[HFN_SECTION_TIMING_STATES] = count_state_bytes(r, HFN_SECTION_TIMING_STATES);
}

static void set_budget_parts(hfn_parts *parts, const hotfn_record *r)
{
    const hfn_part *budget = &r->parts[HFN_SECTION_BUDGET];

    parts->bytes[HFN_SECTION_BUDGET] = budget->bytes;
    parts->byte_counts[HFN_SECTION_BUDGET] =
        hfn_budget_used_bytes(budget->bytes, budget->byte_count);
    parts->bytes[HFN_SECTION_BUDGET_STATES] = r->parts[HFN_SECTION_BUDGET_STATES].bytes;
    parts->byte_counts[HFN_SECTION_BUDGET_STATES] = count_state_bytes(r, HFN_SECTION_BUDGET_STATES);
}

/* A section of states has a word for each function, or is missing: add zero words to a truncated
 * one. */
static bool pad_states(hotfn_record *r, uint32_t type)
{
    hfn_part *part = &r->parts[type];
    uint64_t bytes = (uint64_t)r->function_count * sizeof(uint32_t);
    uint8_t *whole;

    if (part->byte_count == 0 || part->byte_count >= bytes) {
        return true;
    }
    whole = hfn_allocate_zeroed(&r->env, bytes + 2); /* a part has two NULs after it */
    if (!whole) {
        return false;
    }
    memcpy(whole, part->bytes, part->byte_count);
    hfn_free_memory(&r->env, part->bytes, part->byte_count + 2);
    part->bytes = whole;
    part->byte_count = bytes;
    return true;
}

/* Copy the valid texts about the run, except the one about an earlier repair, to out if it is not
 * NULL. Returns their size. */
static uint64_t copy_run_texts(const hfn_part *texts, uint8_t *out)
{
    const char *at = (const char *)texts->bytes, *end = at + texts->byte_count;
    uint64_t used = 0;

    while (at && at < end) {
        const char *value = at + strlen(at) + 1, *next;

        if (value >= end) {
            break;
        }
        next = value + strlen(value) + 1;
        if (strcmp(at, HFN_META_REPAIRED) != 0) {
            if (out) {
                memcpy(out + used, at, (size_t)(next - at));
            }
            used += (uint64_t)(next - at);
        }
        at = next;
    }
    return used;
}

bool hfn_record_note_repair(hotfn_record *r, const char *lost)
{
    static const char key[] = HFN_META_REPAIRED, nothing[] = HFN_LOST_NOTHING;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hfn_part *texts = &r->parts[HFN_SECTION_META], noted;
    const char *before;
    uint64_t kept_bytes = copy_run_texts(texts, NULL);
    bool both;

    hotfn_record_get_info(r, &info);
    before = strcmp(info.repaired, nothing) == 0 ? "" : info.repaired;
    if (before[0] && strcmp(lost, nothing) == 0) {
        lost = "";
    }
    both = before[0] && lost[0];
    noted.byte_count = kept_bytes + sizeof key + strlen(before) + (both ? 2 : 0) + strlen(lost) + 1;
    noted.bytes =
        hfn_allocate_zeroed(&r->env, noted.byte_count + 2); /* a part has two NULs after it */
    if (!noted.bytes) {
        return false;
    }
    copy_run_texts(texts, noted.bytes);
    memcpy(noted.bytes + kept_bytes, key, sizeof key);
    snprintf((char *)noted.bytes + kept_bytes + sizeof key,
             noted.byte_count - kept_bytes - sizeof key, "%s%s%s", before, both ? "; " : "", lost);
    hfn_free_memory(&r->env, texts->bytes, texts->byte_count + 2);
    *texts = noted;
    return true;
}

hotfn_status hfn_record_write(hotfn_record *r, const char *to, hotfn_error *err)
{
    static const hfn_packed nothing;
    hfn_times_sections times = { .env = r->env };
    hfn_parts parts = { 0 };
    hotfn_status status;
    hfn_packed rows;

    hfn_packed_init(&rows, &r->env);
    if (pad_states(r, HFN_SECTION_TIMING_STATES) && pad_states(r, HFN_SECTION_BUDGET_STATES) &&
        hfn_packed_subtract(&rows, &r->rows, &nothing, r->slot_count) &&
        hfn_times_pack(&times, &r->times)) {
        set_parts(&parts, r);
        set_run(&parts, r);
        set_time_parts(&parts, r, &times);
        set_budget_parts(&parts, r);
        parts.rows = &rows;
        hfn_refuse_unloaded_functions(r->parts[HFN_SECTION_STATES].bytes, r->function_count);
        status = hfn_parts_write(&parts, to, true, &r->env, err);
    } else {
        status = hfn_report_no_memory(err, to);
    }
    hfn_packed_finish(&rows);
    hfn_times_sections_finish(&times);
    return status;
}

hotfn_status hotfn_record_repair(const char *from, const char *to, char *lost, size_t lost_bytes,
                                 const hotfn_env *env, hotfn_error *err)
{
    char described[MAX_LOST_BYTES] = "";
    hotfn_record *r;
    hotfn_status status = hfn_record_load(&r, from, described, sizeof described, env, err);

    if (lost && lost_bytes > 0) {
        snprintf(lost, lost_bytes, "%s", described);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (r->module_count == 0 && described[0]) {
        status = hfn_report_error(err, HOTFN_E_FORMAT, from, HOTFN_NO_OFFSET,
                                  "nothing of the record can be saved: %.400s", described);
    } else if (!hfn_record_note_repair(r, described[0] ? described : HFN_LOST_NOTHING)) {
        status = hfn_report_no_memory(err, to);
    } else {
        status = hfn_record_write(r, to, err);
    }
    hfn_record_free(r);
    return status;
}
