/* SPDX-License-Identifier: MIT */
/* The finished record is written to a temporary file: the sections with their checksums in order,
 * then the header.  It replaces path only when it is complete; a failure leaves no file behind. */
#include "records/writer.h"

#include "base/crc32c.h"
#include "base/status.h"

#include <stdio.h>

#define CHUNK_BYTES 65536u
#define MAX_HEADER_BYTES (HFN_HEADER_BYTES + HFN_SECTION_TYPES * HFN_ENTRY_BYTES)

typedef struct writer {
    const char *path; /* for errors; the file is still a temporary one */
    hfn_os_file file;
    hfn_os_error error;
    uint64_t at;
    hfn_layout layout;
    uint8_t chunk[CHUNK_BYTES]; /* a copy: shared memory may change between the checksum and the
                                   write */
} writer;

static hotfn_status report_write_failure(const writer *w, hotfn_error *err)
{
    return hfn_report_error(
        err, HOTFN_E_IO, w->path, w->at,
        "the record cannot be written: %s; free some space or choose another file (-o)",
        hfn_os_get_error_text(w->error));
}

static bool write_at(writer *w, const void *bytes, uint64_t byte_count, uint64_t at)
{
    w->error = hfn_os_write_at(w->file, at, bytes, byte_count);
    return w->error == 0;
}

void hfn_refuse_unloaded_functions(uint8_t *states, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *word = states + (uint64_t)i * HFN_STATE_BYTES + HFN_STATE_WORD;

        if (HFN_STATE_OF(hfn_read_le32(word)) == HOTFN_STATE_WAITING) {
            hfn_write_le32(word,
                           HFN_STATE_AND_REASON(HOTFN_STATE_REFUSED, HOTFN_REASON_NOT_LOADED));
        }
    }
}

/* ---- Sections. */

static bool append_bytes(writer *w, hfn_section *s, const uint8_t *bytes, uint64_t byte_count)
{
    for (uint64_t done = 0; done < byte_count;) {
        size_t n = byte_count - done < CHUNK_BYTES ? (size_t)(byte_count - done) : CHUNK_BYTES;

        memcpy(w->chunk, bytes + done, n);
        s->crc = hfn_compute_crc32c(s->crc, w->chunk, n);
        if (!write_at(w, w->chunk, n, w->at)) {
            return false;
        }
        w->at += n;
        done += n;
    }
    s->bytes += byte_count;
    return true;
}

static hfn_section *begin_section(writer *w, uint32_t type)
{
    hfn_section *s = &w->layout.sections[type];

    w->at = (w->at + 7) & ~7ull;
    s->type = type;
    s->flags = HFN_SECTION_HAS_CRC | hfn_section_critical(type);
    s->offset = w->at;
    s->element_bytes = hfn_section_element_bytes(type);
    return s;
}

static bool write_rows(writer *w, const hfn_packed *rows)
{
    hfn_section *s = begin_section(w, HFN_SECTION_PACKED_ROWS);

    s->elements = rows->row_count;
    return append_bytes(w, s, (const uint8_t *)rows->ends, rows->row_count * sizeof *rows->ends) &&
           append_bytes(w, s, rows->bytes, rows->byte_count);
}

/* The most valuable sections come first: a truncated file loses names before it loses counts. */
static const uint8_t section_order[] = {
    HFN_SECTION_META,          HFN_SECTION_MODULES,     HFN_SECTION_CELLS,
    HFN_SECTION_PACKED_ROWS,   HFN_SECTION_TIME_HEADER, HFN_SECTION_PACKED_TIMES,
    HFN_SECTION_SLOTS,         HFN_SECTION_STATES,      HFN_SECTION_TIMING_STATES,
    HFN_SECTION_FUNCTIONS,     HFN_SECTION_REASONS,     HFN_SECTION_STRINGS,
    HFN_SECTION_HISTOGRAMS,    HFN_SECTION_NODES,       HFN_SECTION_NODE_ALLOCS,
    HFN_SECTION_SLOW_CALLS,    HFN_SECTION_EVENTS,      HFN_SECTION_BUDGET,
    HFN_SECTION_BUDGET_STATES,
};

/* Sections of times and of the budget are written only if the record has them. */
static bool is_written(const hfn_parts *parts, uint32_t type)
{
    return type < HFN_SECTION_TIME_HEADER || parts->byte_counts[type] > 0;
}

static uint64_t get_first_section_offset(const hfn_parts *parts)
{
    uint64_t count = 0;

    for (size_t i = 0; i < sizeof section_order; i++) {
        count += is_written(parts, section_order[i]);
    }
    return HFN_HEADER_BYTES + count * HFN_ENTRY_BYTES;
}

static bool write_sections(writer *w, const hfn_parts *parts)
{
    w->at = get_first_section_offset(parts);
    for (size_t i = 0; i < sizeof section_order; i++) {
        uint32_t type = section_order[i];
        hfn_section *s;

        if (type == HFN_SECTION_PACKED_ROWS) {
            if (!write_rows(w, parts->rows)) {
                return false;
            }
            continue;
        }
        if (!is_written(parts, type)) {
            continue;
        }
        s = begin_section(w, type);
        if (!append_bytes(w, s, parts->bytes[type], parts->byte_counts[type])) {
            return false;
        }
        s->elements = s->element_bytes ? s->bytes / s->element_bytes : 0;
    }
    return true;
}

static bool write_header(writer *w, const hfn_parts *parts)
{
    uint8_t header[MAX_HEADER_BYTES] = { 0 };

    w->layout.kind = HFN_KIND_FINISHED;
    w->layout.file_bytes = w->at;
    hfn_write_le32(header + HFN_AT_STATE, parts->state);
    hfn_write_le32(header + HFN_AT_EXIT_CODE, (uint32_t)parts->exit_code);
    hfn_write_le32(header + HFN_AT_PID, parts->pid);
    hfn_write_le32(header + HFN_AT_MODULES, parts->module_count);
    hfn_write_le32(header + HFN_AT_FUNCTIONS, parts->function_count);
    hfn_write_le32(header + HFN_AT_SLOTS, parts->slot_count);
    hfn_write_le64(header + HFN_AT_STRINGS, parts->byte_counts[HFN_SECTION_STRINGS]);
    hfn_write_le64(header + HFN_AT_END_NS, parts->end_ns);
    hfn_write_le64(header + HFN_AT_WINDOW_START_NS, parts->window_start_ns);
    hfn_write_le64(header + HFN_AT_WINDOW_END_NS, parts->window_end_ns);
    hfn_write_le64(header + HFN_AT_CHECKED_NS, parts->checked_ns);
    hfn_write_le32(header + HFN_AT_PROCESSES, parts->process_count);
    hfn_write_le32(header + HFN_AT_VERIFIED, parts->verified_count);
    hfn_header_seal(header);
    hfn_header_write(header, &w->layout, parts->uuid, parts->start_ns);
    return write_at(w, header, hfn_header_bytes(&w->layout), 0);
}

/* ---- The file. */

static bool sync_file(writer *w)
{
    w->error = hfn_os_sync_file(w->file);
    return w->error == 0;
}

static bool write_file(writer *w, const hfn_parts *parts, bool sync)
{
    hfn_os_size_limit held;
    bool ok;

    hfn_os_hold_size_limit(&held);
    ok = write_sections(w, parts) && write_header(w, parts) && (!sync || sync_file(w));
    hfn_os_release_size_limit(&held);
    return ok;
}

static hotfn_status replace_file(writer *w, const hfn_parts *parts, char *temporary,
                                 size_t name_bytes, bool sync, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    hfn_os_error error = hfn_os_create_temporary(&w->file, w->path, 0, temporary, name_bytes);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, w->path, HOTFN_NO_OFFSET,
                                "the record cannot be created there: %s; choose another file (-o)",
                                hfn_os_get_error_text(error));
    }
    if (!write_file(w, parts, sync)) {
        status = report_write_failure(w, err);
    }
    error = hfn_os_close_file(w->file);
    if (error != 0 && status == HOTFN_OK) {
        w->error = error;
        status = report_write_failure(w, err);
    }
    if (status == HOTFN_OK) {
        error = hfn_os_replace_file(temporary, w->path);
        if (error != 0) {
            status =
                hfn_report_error(err, HOTFN_E_IO, w->path, HOTFN_NO_OFFSET,
                                 "the file cannot be replaced: %s", hfn_os_get_error_text(error));
        }
    }
    if (status != HOTFN_OK) {
        hfn_os_remove_file(temporary);
    }
    return status;
}

hotfn_status hfn_parts_write(const hfn_parts *parts, const char *path, bool sync,
                             const hotfn_env *env, hotfn_error *err)
{
    size_t name_bytes = strlen(path) + 32;
    hfn_os_file_info info;
    char *temporary;
    hotfn_status status;
    writer *w;

    if (hfn_os_get_link_info(path, &info) == 0 && info.kind != HFN_OS_REGULAR_FILE &&
        info.kind != HFN_OS_LINK) {
        return info.kind == HFN_OS_NULL_DEVICE
                   ? HOTFN_OK
                   : hfn_report_error(
                         err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                         "the record must be a regular file: choose another file (-o)");
    }
    w = hfn_allocate_zeroed(env, sizeof *w);
    temporary = hfn_allocate_zeroed(env, name_bytes);
    if (w && temporary) {
        w->path = path;
        status = replace_file(w, parts, temporary, name_bytes, sync, err);
    } else {
        status = hfn_report_no_memory(err, path);
    }
    hfn_free_memory(env, temporary, name_bytes);
    hfn_free_memory(env, w, sizeof *w);
    return status;
}
