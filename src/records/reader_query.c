/* SPDX-License-Identifier: MIT */
/* Look-ups in a loaded record.  hfn_record_check has made every index and offset valid. */
#include "base/status.h"
#include "records/reader.h"

#include <stdlib.h>

const char *hfn_record_get_text(const hotfn_record *r, uint32_t offset)
{
    const hfn_part *strings = &r->parts[HFN_SECTION_STRINGS];
    return offset < strings->byte_count ? (const char *)strings->bytes + offset : "";
}

const uint8_t *hfn_record_get_element(const hotfn_record *r, uint32_t type, uint64_t index)
{
    return r->parts[type].bytes + index * hfn_section_element_bytes(type);
}

/* The value of a key in the texts about the run: the first, or after `skip` others; "" if there is
 * none. */
static const char *get_run_text_at(const hotfn_record *r, const char *key, uint32_t skip)
{
    const hfn_part *part = &r->parts[HFN_SECTION_META];
    const char *at = (const char *)part->bytes, *end = at + part->byte_count;

    while (at && at < end) {
        const char *value = at + strlen(at) + 1;

        if (value >= end) {
            break;
        }
        if (strcmp(at, key) == 0 && skip-- == 0) {
            return value;
        }
        at = value + strlen(value) + 1;
    }
    return "";
}

static const char *get_run_text(const hotfn_record *r, const char *key)
{
    return get_run_text_at(r, key, 0);
}

static uint32_t count_children(const hotfn_record *r)
{
    uint32_t count = 0;

    while (get_run_text_at(r, HFN_META_CHILD, count)[0]) {
        count++;
    }
    return count;
}

hotfn_status hotfn_record_get_child(const hotfn_record *r, uint32_t index, hotfn_record_child *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_child child = HOTFN_RECORD_CHILD_INIT;
    const char *text = get_run_text_at(r, HFN_META_CHILD, index);
    char *at;

    if (!text[0]) {
        return HOTFN_E_NOT_FOUND;
    }
    child.cpu_ns = strtoull(text, &at, 10);
    child.process_count = (uint32_t)strtoul(at, &at, 10);
    child.path = *at == ' ' ? at + 1 : at;
    const char *slash = strrchr(child.path, '/');
    child.file = slash ? slash + 1 : child.path;
    return hfn_copy_result(out, &child, sizeof child);
}

const char *hotfn_record_get_state_name(uint32_t state)
{
    switch (state) {
    case HOTFN_RECORD_LIVE: return "live";
    case HOTFN_RECORD_FINISHED: return "finished";
    case HOTFN_RECORD_KILLED: return "killed";
    case HOTFN_RECORD_MERGED: return "merged";
    default: return "broken";
    }
}

static uint32_t count_unverified(const hotfn_record *r)
{
    uint32_t processes = hfn_read_le32(r->header + HFN_AT_PROCESSES);
    uint32_t verified = hfn_read_le32(r->header + HFN_AT_VERIFIED);

    return verified < processes ? processes - verified : 0;
}

static bool is_overwritten(const hotfn_record *r, uint32_t index)
{
    const uint8_t *state = hfn_record_get_element(r, HFN_SECTION_STATES, index);

    return HFN_REASON_OF(hfn_read_le32(state + HFN_STATE_WORD)) == HOTFN_REASON_OVERWRITTEN;
}

static uint32_t count_overwritten(const hotfn_record *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->function_count; i++) {
        count += is_overwritten(r, i);
    }
    return count;
}

hotfn_status hotfn_record_get_info(const hotfn_record *r, hotfn_record_info *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    const hfn_part *cells = &r->parts[HFN_SECTION_CELLS];

    info.state = r->state;
    info.version_major = hfn_read_le32(r->header + HFN_AT_MAJOR);
    info.version_minor = hfn_read_le32(r->header + HFN_AT_MINOR);
    info.pid = hfn_read_le32(r->header + HFN_AT_PID);
    info.exit_code = (int32_t)hfn_read_le32(r->header + HFN_AT_EXIT_CODE);
    info.module_count = r->module_count;
    info.function_count = r->function_count;
    info.thread_count = hfn_record_shown_count(r);
    info.threads_lost = cells->byte_count >= 8 ? hfn_read_le32(cells->bytes + 4) : 0;
    info.start_ns = hfn_read_le64(r->header + HFN_AT_START_NS);
    info.end_ns = hfn_read_le64(r->header + HFN_AT_END_NS);
    info.window_start_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_START_NS);
    info.window_end_ns = hfn_read_le64(r->header + HFN_AT_WINDOW_END_NS);
    info.checked_ns = hfn_read_le64(r->header + HFN_AT_CHECKED_NS);
    info.unverified_count = count_unverified(r);
    info.overwritten_count = count_overwritten(r);
    memcpy(info.uuid, r->header + HFN_AT_UUID, sizeof info.uuid);
    info.command = get_run_text(r, "command");
    info.directory = get_run_text(r, "directory");
    info.tool = get_run_text(r, "tool");
    info.path = r->path;
    info.repaired = get_run_text(r, HFN_META_REPAIRED);
    info.script = get_run_text(r, HFN_META_SCRIPT);
    info.became = get_run_text(r, HFN_META_BECAME);
    info.cpu_ns = strtoull(get_run_text(r, HFN_META_CPU), NULL, 10);
    info.child_count = count_children(r);
    info.preparation_ns = strtoull(get_run_text(r, HFN_META_PREPARATION), NULL, 10);
    return hfn_copy_result(out, &info, sizeof info);
}

hotfn_status hotfn_record_get_module(const hotfn_record *r, uint32_t index,
                                     hotfn_record_module *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    const uint8_t *at;
    const char *slash;

    if (index >= r->module_count) {
        return HOTFN_E_NOT_FOUND;
    }
    at = hfn_record_get_element(r, HFN_SECTION_MODULES, index);
    hfn_module_read(at, &m);
    m.flags = hfn_read_le32(at + HFN_MODULE_FLAGS);
    m.first_function = hfn_read_le32(at + HFN_MODULE_FIRST_FUNCTION);
    m.function_count = hfn_read_le32(at + HFN_MODULE_FUNCTIONS);
    m.load_base = hfn_read_le64(at + HFN_MODULE_LOAD_BASE);
    m.path = hfn_record_get_text(r, hfn_read_le32(at + HFN_MODULE_PATH));
    slash = strrchr(m.path, '/');
    m.file = slash ? slash + 1 : m.path;
    return hfn_copy_result(out, &m, sizeof m);
}

/* The last module whose first function is not after the function: modules before it may be empty.
 */
static uint32_t find_module(const hotfn_record *r, uint32_t function)
{
    uint32_t low = 0, high = r->module_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const uint8_t *at = hfn_record_get_element(r, HFN_SECTION_MODULES, middle);

        if (hfn_read_le32(at + HFN_MODULE_FIRST_FUNCTION) <= function) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void fill_state(const hotfn_record *r, uint32_t index, hotfn_record_function *f)
{
    const uint8_t *state = hfn_record_get_element(r, HFN_SECTION_STATES, index);
    uint32_t word = hfn_read_le32(state + HFN_STATE_WORD), reason = HFN_REASON_OF(word);
    uint64_t known = r->parts[HFN_SECTION_REASONS].byte_count / HFN_REASON_BYTES;

    f->state = HFN_STATE_OF(word);
    f->reason_offset = hfn_read_le32(state + HFN_STATE_OFFSET);
    f->reason = f->reason_text = "";
    if (reason != 0 && reason < known) {
        const uint8_t *at = hfn_record_get_element(r, HFN_SECTION_REASONS, reason);

        f->reason = hfn_record_get_text(r, hfn_read_le32(at + HFN_REASON_NAME));
        f->reason_text = hfn_record_get_text(r, hfn_read_le32(at + HFN_REASON_TEXT));
    }
}

hotfn_status hotfn_record_get_function(const hotfn_record *r, uint32_t index,
                                       hotfn_record_function *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    const uint8_t *at;

    if (index >= r->function_count) {
        return HOTFN_E_NOT_FOUND;
    }
    at = hfn_record_get_element(r, HFN_SECTION_FUNCTIONS, index);
    f.module = find_module(r, index);
    f.slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, index));
    f.rva = hfn_read_le64(at + HFN_FUNCTION_RVA);
    f.byte_count = hfn_read_le64(at + HFN_FUNCTION_SIZE);
    f.flags = hfn_read_le32(at + HFN_FUNCTION_FLAGS);
    f.name_count = hfn_read_le32(at + HFN_FUNCTION_NAMES);
    f.name = hfn_record_get_text(r, hfn_read_le32(at + HFN_FUNCTION_NAME));
    f.names = f.name + strlen(f.name) + 1;
    f.strategy = hfn_record_get_text(r, hfn_read_le32(at + HFN_FUNCTION_STRATEGY));
    fill_state(r, index, &f);
    f.calls = f.slot == HOTFN_NO_SLOT ? 0 : r->totals[f.slot];
    if (is_overwritten(r, index)) {
        f.calls = 0; /* the count covers only a part of the calls */
    }
    /* counts stay valid if the function was unhooked later */
    f.counted = f.slot != HOTFN_NO_SLOT && (f.state == HOTFN_STATE_HOOKED || f.calls > 0);
    return hfn_copy_result(out, &f, sizeof f);
}

/* ---- Threads. */

hfn_thread_cell hfn_record_get_cell(const hotfn_record *r, uint32_t row)
{
    hfn_thread_cell cell;

    memcpy(&cell,
           r->parts[HFN_SECTION_CELLS].bytes + sizeof(hfn_cell_header) +
               (uint64_t)row * sizeof cell,
           sizeof cell);
    return cell;
}

bool hfn_record_row_is_shown(const hotfn_record *r, uint32_t row)
{
    hfn_thread_cell cell;

    if (hfn_record_shows_all(r) || row >= r->thread_count) {
        return hfn_record_shows_all(r);
    }
    cell = hfn_record_get_cell(r, row);
    return (r->process == 0 || cell.pid == r->process) && (r->thread == 0 || cell.tid == r->thread);
}

uint32_t hfn_record_shown_row(const hotfn_record *r, uint32_t index)
{
    if (hfn_record_shows_all(r)) {
        return index;
    }
    for (uint32_t row = 0; row < r->thread_count; row++) {
        if (hfn_record_row_is_shown(r, row) && index-- == 0) {
            return row;
        }
    }
    return r->thread_count;
}

uint32_t hfn_record_row_shown_as(const hotfn_record *r, uint32_t row)
{
    uint32_t index = 0;

    if (hfn_record_shows_all(r)) {
        return row;
    }
    for (uint32_t i = 0; i < row && i < r->thread_count; i++) {
        index += hfn_record_row_is_shown(r, i);
    }
    return hfn_record_row_is_shown(r, row) ? index : UINT32_MAX;
}

uint32_t hfn_record_shown_count(const hotfn_record *r)
{
    uint32_t count = 0;

    for (uint32_t row = 0; row < r->thread_count; row++) {
        count += hfn_record_row_is_shown(r, row);
    }
    return count;
}

void hfn_record_sum_rows(hotfn_record *r)
{
    memset(r->totals, 0, (size_t)r->slot_count * sizeof *r->totals);
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (hfn_record_row_is_shown(r, i)) {
            hfn_unpack_add(hfn_packed_row(&r->rows, i), r->totals, r->slot_count);
        }
    }
}
