/* SPDX-License-Identifier: MIT */
/* Load a record: the header, then each section with its checksum.  The file is read and not mapped,
 * so that a later truncation cannot raise SIGBUS.  A live record is read in the same way: its
 * writer completes each entry before it makes the entry visible. */
#include "records/reader.h"
#include "records/methods.h"

#include "base/crc32c.h"
#include "base/status.h"
#include "os/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define HEAD_BYTES 8192u
#define MAX_FUNCTIONS (UINT32_C(1) << 27)
#define MAX_SLOTS (UINT32_C(1) << 26)
#define MAX_MODULES (UINT32_C(1) << 20)
#define MAX_STRING_BYTES UINT64_C(0xffffffff)

static const char *const section_names[HFN_SECTION_TYPES] = {
    "?",
    "texts about the run",
    "modules",
    "reasons",
    "slots",
    "states",
    "functions",
    "names",
    "threads",
    "rows",
    "counts",
    "clock of the times",
    "times",
    "times",
    "histograms",
    "nodes of the call tree",
    "blocks by call",
    "slow calls",
    "events",
    "timing states",
    "budget",
    "states of the budget",
    "sampling intervals of the budget",
};

hotfn_status hfn_record_report_damage(hotfn_record *r, uint64_t offset, hotfn_error *err,
                                      const char *format, ...)
{
    char text[400];
    va_list args;
    int n;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!r->tolerant) {
        return hfn_report_error(err, HOTFN_E_FORMAT, r->path, offset,
                                "%s (hotfn repair saves what can be read)", text);
    }
    if (r->lost_used < r->lost_bytes) {
        n = snprintf(r->lost + r->lost_used, r->lost_bytes - r->lost_used, "%s%s",
                     r->lost_used ? "; " : "", text);
        r->lost_used += n > 0 ? (uint64_t)n : 0;
    }
    return HOTFN_OK;
}

/* ---- Reading. */

/* Returns the number of bytes read: fewer than byte_count only at the end of the file or after an
 * error. */
static uint64_t read_some(const hfn_source *in, void *out, uint64_t byte_count, uint64_t at)
{
    uint64_t done;

    hfn_os_read_at(in->file, at, out, byte_count, &done);
    return done;
}

/* The size of the used part of a section, according to the counts in the header. */
static uint64_t get_used_bytes(const hotfn_record *r, uint32_t type)
{
    const hfn_section *s = &r->layout.sections[type];
    uint64_t count = 0;

    switch (type) {
    case HFN_SECTION_MODULES: count = r->module_count; break;
    case HFN_SECTION_REASONS: count = s->elements; break;
    case HFN_SECTION_SLOTS: /* a repair keeps the slots of lost functions */
        count = r->layout.kind == HFN_KIND_FINISHED ? s->elements : r->function_count;
        break;
    case HFN_SECTION_STATES:
    case HFN_SECTION_TIMING_STATES:
    case HFN_SECTION_BUDGET_STATES:
    case HFN_SECTION_FUNCTIONS: count = r->function_count; break;
    case HFN_SECTION_STRINGS: return hfn_read_le64(r->header + HFN_AT_STRINGS);
    default: return s->bytes;
    }
    return count * s->element_bytes;
}

/* The size of the part of a section that is inside the file. */
static uint64_t count_bytes_inside(const hfn_source *in, const hfn_section *s)
{
    if (s->offset > in->file_bytes) {
        return 0;
    }
    return s->bytes < in->file_bytes - s->offset ? s->bytes : in->file_bytes - s->offset;
}

/* The size of the part of a section that is used and inside the file. */
static hotfn_status get_readable_bytes(hotfn_record *r, const hfn_source *in, uint32_t type,
                                       uint64_t *out, hotfn_error *err)
{
    const hfn_section *s = &r->layout.sections[type];
    uint64_t wanted = get_used_bytes(r, type), available = count_bytes_inside(in, s);

    *out = wanted < available ? wanted : available;
    if (wanted <= available) {
        return HOTFN_OK;
    }
    return hfn_record_report_damage(r, s->offset + available, err,
                                    "%" PRIu64 " bytes of the %s are missing", wanted - available,
                                    section_names[type]);
}

hotfn_status hfn_record_load_section(hotfn_record *r, const hfn_source *in, uint32_t type,
                                     hotfn_error *err)
{
    const hfn_section *s = &r->layout.sections[type];
    hfn_part *part = &r->parts[type];
    uint64_t wanted, got;
    hotfn_status status = get_readable_bytes(r, in, type, &wanted, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (wanted > SIZE_MAX - 2 || !(part->bytes = hfn_allocate_unset(&r->env, wanted + 2))) {
        return hfn_report_no_memory(err, r->path);
    }
    part->byte_count = wanted;
    got = read_some(in, part->bytes, wanted, s->offset);
    memset(part->bytes + got, 0, wanted + 2 - got);
    if (got < wanted) {
        return hfn_record_report_damage(r, s->offset + got, err, "the %s are truncated",
                                        section_names[type]);
    }
    if ((s->flags & HFN_SECTION_HAS_CRC) && type != HFN_SECTION_PACKED_ROWS &&
        hfn_compute_crc32c(0, part->bytes, wanted) != s->crc) {
        return hfn_record_report_damage(r, s->offset, err, "the %s are damaged (checksum)",
                                        section_names[type]);
    }
    return HOTFN_OK;
}

static hotfn_status load_counts(hotfn_record *r, hotfn_error *err)
{
    r->module_count = hfn_read_le32(r->header + HFN_AT_MODULES);
    r->function_count = hfn_read_le32(r->header + HFN_AT_FUNCTIONS);
    r->slot_count = hfn_read_le32(r->header + HFN_AT_SLOTS);
    if (r->module_count > MAX_MODULES || r->function_count > MAX_FUNCTIONS ||
        r->slot_count > MAX_SLOTS || hfn_read_le64(r->header + HFN_AT_STRINGS) > MAX_STRING_BYTES) {
        return hfn_report_error(err, HOTFN_E_FORMAT, r->path, HFN_AT_MODULES,
                                "the counts in the header exceed the limits of a record");
    }
    return HOTFN_OK;
}

/* ---- Rows. */

static hotfn_status load_live_rows(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    const hfn_section *s = &r->layout.sections[HFN_SECTION_ROWS];
    uint32_t row_bytes = r->layout.row_bytes, count = r->thread_count;
    uint64_t available = count_bytes_inside(in, s);

    if (row_bytes == 0 || row_bytes % sizeof(uint64_t) != 0 ||
        r->slot_count > row_bytes / sizeof(uint64_t)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, r->path, HFN_AT_ROW_BYTES,
                                "the record's rows are too short for its slots");
    }
    if (count > available / row_bytes) {
        hotfn_status status =
            hfn_record_report_damage(r, s->offset, err, "rows of %" PRIu64 " threads are missing",
                                     count - available / row_bytes);

        if (status != HOTFN_OK) {
            return status;
        }
        r->thread_count = count = (uint32_t)(available / row_bytes);
    }
    return hfn_packed_read(&r->rows, in->file, s->offset, row_bytes, count, r->slot_count, r->path,
                           err);
}

/* Split the section into the two arrays of r->rows. */
static hotfn_status split_packed(hotfn_record *r, const hfn_part *part, hotfn_error *err)
{
    const hfn_section *s = &r->layout.sections[HFN_SECTION_PACKED_ROWS];
    uint64_t ends_bytes = (uint64_t)r->thread_count * sizeof(uint64_t), before = 0;
    hfn_packed *rows = &r->rows;

    if (ends_bytes > part->byte_count) {
        r->thread_count = 0;
        return hfn_record_report_damage(r, s->offset, err, "all counts are missing");
    }
    rows->byte_count = rows->byte_capacity = part->byte_count - ends_bytes;
    rows->row_count = rows->row_capacity = r->thread_count;
    rows->bytes = hfn_allocate_zeroed(&r->env, rows->byte_count);
    rows->ends = hfn_allocate_zeroed(&r->env, ends_bytes);
    if (!rows->bytes || !rows->ends) {
        return hfn_report_no_memory(err, r->path);
    }
    memcpy(rows->bytes, part->bytes + ends_bytes, rows->byte_count);
    for (uint32_t i = 0; i < r->thread_count; i++) {
        rows->ends[i] = hfn_read_le64(part->bytes + (uint64_t)i * 8);
        if (rows->ends[i] < before || rows->ends[i] > rows->byte_count) {
            rows->row_count = r->thread_count = i;
            return hfn_record_report_damage(
                r, s->offset + (uint64_t)i * 8, err,
                "the counts of thread %u and of the threads after it are damaged", i);
        }
        before = rows->ends[i];
    }
    return HOTFN_OK;
}

static hotfn_status load_packed_rows(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    const hfn_section *s = &r->layout.sections[HFN_SECTION_PACKED_ROWS];
    hfn_part *part = &r->parts[HFN_SECTION_PACKED_ROWS];
    hotfn_status status = hfn_record_load_section(r, in, HFN_SECTION_PACKED_ROWS, err);

    if (status == HOTFN_OK && (s->flags & HFN_SECTION_HAS_CRC) &&
        hfn_compute_crc32c(0, part->bytes, part->byte_count) != s->crc) {
        status = hfn_record_report_damage(r, s->offset, err,
                                          "the counts are damaged (checksum): each may "
                                          "be wrong");
    }
    if (status == HOTFN_OK) {
        status = split_packed(r, part, err);
    }
    hfn_free_memory(&r->env, part->bytes, part->byte_count + 2);
    *part = (hfn_part){ NULL, 0 };
    return status;
}

static void count_threads(hotfn_record *r)
{
    const hfn_part *cells = &r->parts[HFN_SECTION_CELLS];
    uint64_t room = cells->byte_count < sizeof(hfn_cell_header)
                        ? 0
                        : (cells->byte_count - sizeof(hfn_cell_header)) / sizeof(hfn_thread_cell);
    uint32_t used = cells->byte_count < sizeof used ? 0 : hfn_read_le32(cells->bytes);

    r->thread_count = used < room ? used : (uint32_t)room;
}

/* A function has at most one slot, so there are at most as many slots as entries in the slot
 * section.  The header may have a larger number: a module that is being added to a live record has
 * its slots before its functions, and a damaged header may have any number. */
static void clamp_slots(hotfn_record *r)
{
    uint64_t available = r->parts[HFN_SECTION_SLOTS].byte_count / sizeof(uint32_t);

    r->slot_count = r->slot_count < available ? r->slot_count : (uint32_t)available;
}

/* ---- The whole record. */

/* A record that is not finished is live while its writer holds the lock on the file.  A sealed
 * memfd has no lock: it can be opened only while its writer lives. */
static void detect_state(hotfn_record *r, const hfn_source *in)
{
    r->state = hfn_read_le32(r->header + HFN_AT_STATE);
    if (r->layout.kind == HFN_KIND_FINISHED) {
        return;
    }
    r->state = HOTFN_RECORD_LIVE;
    if (!hfn_os_is_sealed(in->file) && hfn_os_try_lock_file(in->file, HFN_OS_SHARED_LOCK)) {
        hfn_os_unlock_file(in->file);
        r->state = HOTFN_RECORD_BROKEN;
    }
}

static hotfn_status load_header(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    uint8_t head[HEAD_BYTES];
    uint64_t n = read_some(in, head, sizeof head, 0);
    hotfn_status status = hfn_header_read(&r->layout, (hfn_span){ head, n, false }, in->file_bytes,
                                          r->tolerant, r->path, err);

    if (status != HOTFN_OK) {
        return status;
    }
    memcpy(r->header, head, sizeof r->header);
    detect_state(r, in);
    return load_counts(r, err);
}

static hotfn_status load_record(hotfn_record *r, const hfn_source *in, hotfn_error *err)
{
    const hfn_section *sections = r->layout.sections;
    hotfn_status status = load_header(r, in, err);

    for (uint32_t type = HFN_SECTION_META; status == HOTFN_OK && type <= HFN_SECTION_CELLS;
         type++) {
        status = hfn_record_load_section(r, in, type, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    clamp_slots(r);
    count_threads(r);
    hfn_packed_init(&r->rows, &r->env);
    status = sections[HFN_SECTION_PACKED_ROWS].type ? load_packed_rows(r, in, err)
                                                    : load_live_rows(r, in, err);
    if (status == HOTFN_OK) {
        status = hfn_record_check(r, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    r->totals = hfn_allocate_zeroed(&r->env, (uint64_t)r->slot_count * sizeof *r->totals);
    if (!r->totals) {
        return hfn_report_no_memory(err, r->path);
    }
    hfn_record_sum_rows(r);
    status = hfn_record_load_times(r, in, err);
    if (status == HOTFN_OK) {
        status = hfn_record_load_budget(r, in, err);
    }
    return status == HOTFN_OK ? hfn_record_drop_unused_methods(r, err) : status;
}

/* True if path is a link to the memory of a process that has ended. */
static bool is_dangling_link(const char *path, hfn_os_error error)
{
    hfn_os_file_info link;

    return hfn_os_is_missing(error) && hfn_os_get_link_info(path, &link) == 0 &&
           link.kind == HFN_OS_LINK;
}

static hotfn_status open_source(hfn_source *out, const char *path, hotfn_error *err)
{
    hfn_os_file_info info;
    hfn_os_error error = hfn_os_open_file(&out->file, path, HFN_OS_READ | HFN_OS_NO_WAIT);

    if (error != 0 && is_dangling_link(path, error)) {
        return hfn_report_error(
            err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
            "the link leads to a live record that no longer exists, because hotfn was killed: hotfn "
            "detach PID saves the counts of an attached process that still runs; with --durable, "
            "hotfn run keeps the record");
    }
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "the record cannot be opened: %s", hfn_os_get_error_text(error));
    }
    if (hfn_os_get_file_info(out->file, &info) != 0 || info.kind != HFN_OS_REGULAR_FILE) {
        hfn_os_close_file(out->file);
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "the record is not a regular file");
    }
    out->file_bytes = info.byte_count;
    return HOTFN_OK;
}

hotfn_status hfn_record_load(hotfn_record **out, const char *path, char *lost, uint64_t lost_bytes,
                             const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_record *r;
    hfn_source in;
    hotfn_status status = open_source(&in, path, err);

    if (status != HOTFN_OK) {
        return status;
    }
    r = hfn_allocate_zeroed(&filled, sizeof *r);
    if (r) {
        r->env = filled;
        hfn_times_init(&r->times, &r->env);
        r->tolerant = lost != NULL;
        r->lost = lost;
        r->lost_bytes = lost_bytes;
        r->path = hfn_allocate_zeroed(&filled, strlen(path) + 1);
    }
    if (r && r->path) {
        memcpy(r->path, path, strlen(path) + 1);
        status = load_record(r, &in, err);
    } else {
        status = hfn_report_no_memory(err, path);
    }
    hfn_os_close_file(in.file);
    if (status != HOTFN_OK) {
        hfn_record_free(r);
        return status;
    }
    *out = r;
    return HOTFN_OK;
}

void hfn_record_free(hotfn_record *r)
{
    hotfn_env env;

    if (!r) {
        return;
    }
    env = r->env;
    for (uint32_t type = 0; type < HFN_SECTION_TYPES; type++) {
        hfn_free_memory(&env, r->parts[type].bytes, r->parts[type].byte_count + 2);
    }
    hfn_packed_finish(&r->rows);
    hfn_record_drop_times(r);
    hfn_free_memory(&env, r->totals, (uint64_t)r->slot_count * sizeof *r->totals);
    if (r->path) {
        hfn_free_memory(&env, r->path, strlen(r->path) + 1);
    }
    hfn_free_memory(&env, r, sizeof *r);
}
