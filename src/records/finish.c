/* SPDX-License-Identifier: MIT */
/* From a live record to a finished one: snapshots of its counts and times, the difference of two
 * snapshots, and the finished file. */
#include "records/finish.h"

#include "base/status.h"
#include "os/os.h"
#include "records/reader.h"
#include "records/times.h"
#include "records/writer.h"

struct hfn_snapshot {
    hotfn_env env;
    uint64_t time_ns;
    hfn_packed rows;
    hfn_times times;
};

/* ---- Snapshots. */

static hotfn_status read_rows(const hfn_live *live, hfn_packed *rows, hotfn_error *err)
{
    const hfn_section *s = &live->layout.sections[HFN_SECTION_ROWS];

    return hfn_packed_read(rows, live->file, s->offset, live->layout.row_bytes,
                           hfn_live_rows_used(live), live->slot_count, live->path, err);
}

static hotfn_status read_times(const hfn_live *live, hfn_times *times, hotfn_error *err)
{
    hfn_times_init(times, &live->env);
    return hfn_times_read_live(
        times, live->file, &live->layout, live->layout.file_bytes, hfn_live_rows_used(live),
        live->slot_count, live->clock.kind ? hfn_clock_read(live->clock.kind) : 0, live->path, err);
}

hotfn_status hfn_live_snapshot(hfn_snapshot **out, const hfn_live *live, hotfn_error *err)
{
    if (!out || !live) {
        return hfn_report_null(err, __func__);
    }

    hfn_snapshot *s;
    hotfn_status status;

    if (!hfn_os_is_open(live->file)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "only the process that created a record can take snapshots of it");
    }
    s = hfn_allocate_zeroed(&live->env, sizeof *s);
    if (!s) {
        return hfn_report_no_memory(err, NULL);
    }
    s->env = live->env;
    s->time_ns = hfn_os_wall_ns();
    hfn_packed_init(&s->rows, &s->env);
    hfn_times_init(&s->times, &s->env);
    status = read_rows(live, &s->rows, err);
    if (status == HOTFN_OK) {
        status = read_times(live, &s->times, err);
    }
    if (status != HOTFN_OK) {
        hfn_snapshot_destroy(s);
        return status;
    }
    *out = s;
    return HOTFN_OK;
}

void hfn_snapshot_destroy(hfn_snapshot *s)
{
    hotfn_env env;

    if (!s) {
        return;
    }
    env = s->env;
    hfn_packed_finish(&s->rows);
    hfn_times_finish(&s->times);
    hfn_free_memory(&env, s, sizeof *s);
}

uint64_t hfn_snapshot_get_time_ns(const hfn_snapshot *s)
{
    return s ? s->time_ns : 0;
}

bool hfn_snapshot_subtract_times(hfn_times *times, const hfn_snapshot *from, const hfn_snapshot *to,
                                 uint32_t slot_count)
{
    return hfn_times_copy(times, &to->times) && hfn_times_subtract(times, &from->times) &&
           hfn_times_validate(times, slot_count, to->rows.row_count);
}

/* The counts of the finished record: all of them, or those between the snapshots. */
static hotfn_status choose_rows(const hfn_live *live, hfn_packed *out, const hfn_snapshot *from,
                                const hfn_snapshot *to, hotfn_error *err)
{
    hfn_packed now;
    hotfn_status status = HOTFN_OK;
    static const hfn_packed nothing;

    if (!from && !to) {
        return read_rows(live, out, err);
    }
    hfn_packed_init(&now, &live->env);
    if (!to) {
        status = read_rows(live, &now, err);
    }
    if (status == HOTFN_OK &&
        !hfn_packed_subtract(out, to ? &to->rows : &now, from ? &from->rows : &nothing,
                             live->slot_count)) {
        status = hfn_report_no_memory(err, live->path);
    }
    hfn_packed_finish(&now);
    return status;
}

/* The times of the finished record, for the same period, packed as sections. */
static hotfn_status choose_times(const hfn_live *live, hfn_times_sections *out,
                                 const hfn_snapshot *from, const hfn_snapshot *to,
                                 uint32_t thread_count, hotfn_error *err)
{
    hfn_times now;
    hotfn_status status;
    bool ok;

    hfn_times_init(&now, &live->env);
    status = to ? hfn_times_copy(&now, &to->times) ? HOTFN_OK : HOTFN_E_NO_MEMORY
                : read_times(live, &now, err);
    if (status == HOTFN_OK) {
        ok = (!from || hfn_times_subtract(&now, &from->times)) &&
             hfn_times_validate(&now, live->slot_count, thread_count) && hfn_times_pack(out, &now);
        status = ok ? HOTFN_OK : HOTFN_E_NO_MEMORY;
    }
    hfn_times_finish(&now);
    return status == HOTFN_E_NO_MEMORY
               ? hfn_report_error(err, status, live->path, HOTFN_NO_OFFSET, "not enough memory")
               : status;
}

/* ---- The finished file. */

static void set_part(hfn_parts *parts, const hfn_live *live, uint32_t type, uint64_t byte_count)
{
    parts->bytes[type] = hfn_live_section(live, type);
    parts->byte_counts[type] = byte_count;
}

static void set_parts(hfn_parts *parts, const hfn_live *live, const hfn_packed *rows)
{
    parts->module_count = live->module_count;
    parts->function_count = live->function_count;
    parts->slot_count = live->slot_count;
    parts->rows = rows;
    parts->pid = hfn_shared_get32(live->base + HFN_AT_PID);
    parts->checked_ns = hfn_shared_get64(live->base + HFN_AT_CHECKED_NS);
    parts->process_count = hfn_shared_get32(live->base + HFN_AT_PROCESSES);
    parts->verified_count = hfn_shared_get32(live->base + HFN_AT_VERIFIED);
    memcpy(parts->uuid, live->base + HFN_AT_UUID, sizeof parts->uuid);
    parts->start_ns = hfn_read_le64(live->base + HFN_AT_START_NS);
    parts->end_ns = hfn_os_wall_ns();
    set_part(parts, live, HFN_SECTION_MODULES, (uint64_t)live->module_count * HFN_MODULE_BYTES);
    set_part(parts, live, HFN_SECTION_REASONS, HFN_REASON_CAPACITY * HFN_REASON_BYTES);
    set_part(parts, live, HFN_SECTION_SLOTS, (uint64_t)live->function_count * sizeof(uint32_t));
    set_part(parts, live, HFN_SECTION_STATES, (uint64_t)live->function_count * HFN_STATE_BYTES);
    set_part(parts, live, HFN_SECTION_FUNCTIONS,
             (uint64_t)live->function_count * HFN_FUNCTION_BYTES);
    set_part(parts, live, HFN_SECTION_STRINGS, live->string_bytes);
    set_part(parts, live, HFN_SECTION_CELLS,
             sizeof(hfn_cell_header) + rows->row_count * sizeof(hfn_thread_cell));
}

static void set_time_parts(hfn_parts *parts, const hfn_live *live, const hfn_times_sections *times)
{
    for (uint32_t type = HFN_SECTION_TIME_HEADER; type < HFN_SECTION_TYPES; type++) {
        parts->bytes[type] = times->bytes[type];
        parts->byte_counts[type] = times->byte_counts[type];
    }
    if (times->bytes[HFN_SECTION_TIME_HEADER] &&
        live->layout.sections[HFN_SECTION_TIMING_STATES].type) {
        set_part(parts, live, HFN_SECTION_TIMING_STATES,
                 (uint64_t)live->function_count * sizeof(uint32_t));
    }
}

static void set_budget_parts(hfn_parts *parts, const hfn_live *live)
{
    if (hfn_live_get_budget(live)) {
        set_part(parts, live, HFN_SECTION_BUDGET,
                 hfn_budget_used_bytes(hfn_live_section(live, HFN_SECTION_BUDGET),
                                       hfn_live_section_bytes(live, HFN_SECTION_BUDGET)));
    }
    if (hfn_live_get_budget(live) || hfn_live_has_levels(live)) {
        set_part(parts, live, HFN_SECTION_BUDGET_STATES,
                 (uint64_t)live->function_count * sizeof(uint32_t));
    }
}

/* The texts that were known when the record was created, and those that were added since. */
static uint8_t *join_meta(const hfn_live *live, uint64_t *byte_count)
{
    uint64_t first = hfn_live_section_bytes(live, HFN_SECTION_META);
    uint8_t *meta = hfn_allocate_zeroed(&live->env, first + live->run_text_bytes + 1);

    *byte_count = first + live->run_text_bytes;
    if (meta) {
        memcpy(meta, hfn_live_section(live, HFN_SECTION_META), first);
        memcpy(meta + first, live->run_texts ? live->run_texts : "", live->run_text_bytes);
    }
    return meta;
}

/* A module of runtime methods has functions in reserve.  The reader drops the unused ones, so the
 * file is loaded and written again. */
static hotfn_status drop_unused_methods(const hfn_live *live, const char *path, hotfn_error *err)
{
    hotfn_record *r;
    hotfn_status status = HOTFN_OK;
    bool is_needed = false;

    for (uint32_t i = 0; i < live->module_count; i++) {
        const uint8_t *at =
            hfn_live_section(live, HFN_SECTION_MODULES) + (uint64_t)i * HFN_MODULE_BYTES;

        is_needed |= (hfn_read_le32(at + HFN_MODULE_FLAGS) & HOTFN_MODULE_METHODS) != 0;
    }
    if (!is_needed || strcmp(path, "/dev/null") == 0) {
        return HOTFN_OK;
    }
    status = hfn_record_load(&r, path, NULL, 0, &live->env, err);
    if (status == HOTFN_OK) {
        status = hfn_record_write(r, path, err);
        hfn_record_free(r);
    }
    return status;
}

static hotfn_status write_parts(hfn_live *live, hfn_parts *parts, const char *path,
                                hotfn_error *err)
{
    uint64_t meta_bytes;
    uint8_t *meta = join_meta(live, &meta_bytes);
    uint64_t bytes = parts->byte_counts[HFN_SECTION_STATES];
    bool sync = live->is_durable && strcmp(path, live->path) == 0;
    uint8_t *states = hfn_allocate_zeroed(&live->env, bytes);
    hotfn_status status;

    if (!states || !meta) {
        hfn_free_memory(&live->env, states, bytes);
        hfn_free_memory(&live->env, meta, meta_bytes + 1);
        return hfn_report_no_memory(err, path);
    }
    parts->bytes[HFN_SECTION_META] = meta;
    parts->byte_counts[HFN_SECTION_META] = meta_bytes;
    memcpy(states, parts->bytes[HFN_SECTION_STATES], bytes);
    hfn_refuse_unloaded_functions(states, parts->function_count);
    parts->bytes[HFN_SECTION_STATES] = states;
    status = hfn_parts_write(parts, path, sync, &live->env, err);
    if (status == HOTFN_OK) {
        status = drop_unused_methods(live, path, err);
    }
    hfn_free_memory(&live->env, states, bytes);
    hfn_free_memory(&live->env, meta, meta_bytes + 1);
    return status;
}

hotfn_status hfn_live_finish(hfn_live *live, const char *path, uint32_t state, int32_t exit_code,
                             const hfn_snapshot *from, const hfn_snapshot *to, hotfn_error *err)
{
    if (!live || !path) {
        return hfn_report_null(err, __func__);
    }

    hfn_parts parts = { .state = state, .exit_code = exit_code };
    hfn_times_sections times = { .env = live->env };
    hotfn_status status;
    hfn_packed rows;

    if (!hfn_os_is_open(live->file)) {
        return hfn_report_error(err, HOTFN_E_STATE, path, HOTFN_NO_OFFSET,
                                "only the process that created a record can finish it");
    }
    if (state != HOTFN_RECORD_FINISHED && state != HOTFN_RECORD_KILLED &&
        state != HOTFN_RECORD_MERGED) {
        return hfn_report_error(err, HOTFN_E_OPTION, path, HOTFN_NO_OFFSET,
                                "the final state of a record must be FINISHED, KILLED or MERGED");
    }
    hfn_live_measure_clock(live);
    hfn_packed_init(&rows, &live->env);
    status = choose_rows(live, &rows, from, to, err);
    if (status == HOTFN_OK) {
        status = choose_times(live, &times, from, to, (uint32_t)rows.row_count, err);
    }
    if (status == HOTFN_OK) {
        set_parts(&parts, live, &rows);
        set_time_parts(&parts, live, &times);
        set_budget_parts(&parts, live);
        if (from || to) {
            parts.window_start_ns = from ? from->time_ns : parts.start_ns;
            parts.window_end_ns = to ? to->time_ns : parts.end_ns;
        }
        status = write_parts(live, &parts, path, err);
    }
    hfn_packed_finish(&rows);
    hfn_times_sections_finish(&times);
    return status;
}
