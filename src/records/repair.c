/* SPDX-License-Identifier: MIT */
/* Repair: load what can be loaded, cut down to what makes sense, and write it as a clean record. */
#include "base/status.h"
#include "records/reader.h"
#include "records/writer.h"

#include <stdio.h>

#define MOST_TOLD 4096 /* bytes of what was lost */

static void take_parts(hfn_parts *parts, const hotfn_record *r)
{
    static const uint8_t nothing[sizeof(hfn_cell_header)];

    for (uint32_t type = HFN_SECTION_META; type <= HFN_SECTION_CELLS; type++) {
        parts->bytes[type] = r->parts[type].bytes;
        parts->byte_counts[type] = r->parts[type].byte_count;
    }
    parts->byte_counts[HFN_SECTION_MODULES] = (uint64_t)r->module_count * HFN_MODULE_BYTES;
    parts->byte_counts[HFN_SECTION_REASONS] &= ~(uint64_t)(HFN_REASON_BYTES - 1);
    /* of lost functions too: so many slots the rows have, and no reader believes in more than stand there */
    parts->byte_counts[HFN_SECTION_SLOTS] =
        (uint64_t)(r->function_count > r->slot_count ? r->function_count : r->slot_count) *
        sizeof(uint32_t);
    parts->byte_counts[HFN_SECTION_STATES] = (uint64_t)r->function_count * HFN_STATE_BYTES;
    parts->byte_counts[HFN_SECTION_FUNCTIONS] = (uint64_t)r->function_count * HFN_FUNCTION_BYTES;
    parts->byte_counts[HFN_SECTION_CELLS] =
        sizeof(hfn_cell_header) + (uint64_t)r->thread_count * sizeof(hfn_thread_cell);
    parts->byte_counts[HFN_SECTION_STRINGS] += 2; /* the NULs that loading put behind them */
    if (r->parts[HFN_SECTION_CELLS].byte_count < sizeof nothing) {
        parts->bytes[HFN_SECTION_CELLS] = nothing;
    }
    parts->module_count = r->module_count;
    parts->function_count = r->function_count;
    parts->slot_count = r->slot_count;
}

static void take_facts(hfn_parts *parts, const hotfn_record *r)
{
    memcpy(parts->uuid, r->header + HFN_AT_UUID, sizeof parts->uuid);
    parts->start_ns = hfn_read_le64(r->header + HFN_AT_START_NS);
    parts->end_ns = hfn_read_le64(r->header + HFN_AT_END_NS);
    parts->window_start_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_START_NS);
    parts->window_end_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_END_NS);
    parts->pid = hfn_read_le32(r->header + HFN_AT_PID);
    parts->exit_code = (int32_t)hfn_read_le32(r->header + HFN_AT_EXIT_CODE);
    parts->state = r->state == HOTFN_RECORD_FINISHED || r->state == HOTFN_RECORD_MERGED
                       ? r->state
                       : HOTFN_RECORD_KILLED;
}

static void take_times(hfn_parts *parts, const hotfn_record *r, const hfn_times_sections *times)
{
    const hfn_part *states = &r->parts[HFN_SECTION_TIMING_STATES];

    if (!times->bytes[HFN_SECTION_TIME_HEADER]) {
        return;
    }
    for (uint32_t type = HFN_SECTION_TIME_HEADER; type < HFN_SECTION_TYPES; type++) {
        parts->bytes[type] = times->bytes[type];
        parts->byte_counts[type] = times->byte_counts[type];
    }
    parts->bytes[HFN_SECTION_TIMING_STATES] = states->bytes;
    parts->byte_counts[HFN_SECTION_TIMING_STATES] = states->byte_count & ~UINT64_C(3);
}

static void take_budget(hfn_parts *parts, const hotfn_record *r)
{
    const hfn_part *budget = &r->parts[HFN_SECTION_BUDGET];
    const hfn_part *states = &r->parts[HFN_SECTION_BUDGET_STATES];

    parts->bytes[HFN_SECTION_BUDGET] = budget->bytes;
    parts->byte_counts[HFN_SECTION_BUDGET] =
        hfn_budget_used_bytes(budget->bytes, budget->byte_count);
    parts->bytes[HFN_SECTION_BUDGET_STATES] = states->bytes;
    parts->byte_counts[HFN_SECTION_BUDGET_STATES] = states->byte_count & ~UINT64_C(3);
}

/* A word for each function, or none at all: those that were cut off say nothing. */
static bool complete_states(hotfn_record *r, uint32_t type)
{
    hfn_part *part = &r->parts[type];
    uint64_t bytes = (uint64_t)r->function_count * sizeof(uint32_t);
    uint8_t *whole;

    if (part->byte_count == 0 || part->byte_count >= bytes) {
        return true;
    }
    whole = hfn_alloc(&r->env, bytes + 2); /* as loading does */
    if (!whole) {
        return false;
    }
    memcpy(whole, part->bytes, part->byte_count);
    hfn_free(&r->env, part->bytes, part->byte_count + 2);
    part->bytes = whole;
    part->byte_count = bytes;
    return true;
}

/* The texts about the run as far as they make sense, without what an earlier repair said.  out NULL: how long they are. */
static uint64_t keep_texts(const hfn_part *texts, uint8_t *out)
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
    uint64_t kept = keep_texts(texts, NULL);
    bool both;

    hotfn_record_get_info(r, &info);
    before = strcmp(info.repaired, nothing) == 0 ? "" : info.repaired;
    if (before[0] && strcmp(lost, nothing) == 0) {
        lost = "";
    }
    both = before[0] && lost[0];
    noted.byte_count = kept + sizeof key + strlen(before) + (both ? 2 : 0) + strlen(lost) + 1;
    noted.bytes = hfn_alloc(&r->env, noted.byte_count + 2); /* as loading does */
    if (!noted.bytes) {
        return false;
    }
    keep_texts(texts, noted.bytes);
    memcpy(noted.bytes + kept, key, sizeof key);
    snprintf((char *)noted.bytes + kept + sizeof key, noted.byte_count - kept - sizeof key,
             "%s%s%s", before, both ? "; " : "", lost);
    hfn_free(&r->env, texts->bytes, texts->byte_count + 2);
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
    if (complete_states(r, HFN_SECTION_TIMING_STATES) &&
        complete_states(r, HFN_SECTION_BUDGET_STATES) &&
        hfn_packed_difference(&rows, &r->rows, &nothing, r->slot_count) &&
        hfn_times_pack(&times, &r->times)) {
        take_parts(&parts, r);
        take_facts(&parts, r);
        take_times(&parts, r, &times);
        take_budget(&parts, r);
        parts.rows = &rows;
        hfn_settle_states(r->parts[HFN_SECTION_STATES].bytes, r->function_count);
        status = hfn_parts_write(&parts, to, true, &r->env, err);
    } else {
        status = hfn_fail(err, HOTFN_E_NO_MEMORY, to, HOTFN_NO_OFFSET, "no memory for counts");
    }
    hfn_packed_finish(&rows);
    hfn_times_sections_finish(&times);
    return status;
}

hotfn_status hotfn_record_repair(const char *from, const char *to, char *lost, size_t lost_bytes,
                                 const hotfn_env *env, hotfn_error *err)
{
    char told[MOST_TOLD] = "";
    hotfn_record *r;
    hotfn_status status = hfn_record_load(&r, from, told, sizeof told, env, err);

    if (lost && lost_bytes > 0) {
        snprintf(lost, lost_bytes, "%s", told);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (r->module_count == 0 && told[0]) {
        status = hfn_fail(err, HOTFN_E_FORMAT, from, HOTFN_NO_OFFSET,
                          "nothing of the record can be saved: %.400s", told);
    } else if (!hfn_record_note_repair(r, told[0] ? told : HFN_LOST_NOTHING)) {
        status = hfn_fail(err, HOTFN_E_NO_MEMORY, to, HOTFN_NO_OFFSET, "no memory");
    } else {
        status = hfn_record_write(r, to, err);
    }
    hfn_record_free(r);
    return status;
}
