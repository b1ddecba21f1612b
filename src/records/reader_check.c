/* SPDX-License-Identifier: MIT */
/* Check a loaded record: every index and offset in it is checked here, once.  A repair reduces the
 * record to its valid part. */
#include "base/status.h"
#include "records/reader.h"

#include <hotfn/machine.h>
#include <inttypes.h>

static uint8_t *get_element(hotfn_record *r, uint32_t type, uint64_t index)
{
    return r->parts[type].bytes + index * hfn_section_element_bytes(type);
}

static bool is_text(const hotfn_record *r, uint32_t offset)
{
    return offset < r->parts[HFN_SECTION_STRINGS].byte_count;
}

static uint64_t get_file_offset(const hotfn_record *r, uint32_t type, uint64_t index)
{
    return r->layout.sections[type].offset + index * hfn_section_element_bytes(type);
}

/* ---- Tables. */

static hotfn_status check_tables(hotfn_record *r, hotfn_error *err)
{
    static const uint32_t per_function[] = { HFN_SECTION_SLOTS, HFN_SECTION_STATES,
                                             HFN_SECTION_FUNCTIONS };
    uint64_t modules = r->parts[HFN_SECTION_MODULES].byte_count / HFN_MODULE_BYTES;

    for (uint32_t type = HFN_SECTION_MODULES; type <= HFN_SECTION_CELLS; type++) {
        if (r->layout.sections[type].type == 0 && !r->tolerant) {
            return hfn_report_error(err, HOTFN_E_FORMAT, r->path, HFN_HEADER_BYTES,
                                    "the record has no section %u", type);
        }
    }
    for (size_t i = 0; i < HFN_COUNT_OF(per_function); i++) {
        uint32_t type = per_function[i];
        uint64_t there = r->parts[type].byte_count / hfn_section_element_bytes(type);

        r->function_count = there < r->function_count ? (uint32_t)there : r->function_count;
    }
    r->module_count = modules < r->module_count ? (uint32_t)modules : r->module_count;
    return HOTFN_OK;
}

static hotfn_status check_reasons(hotfn_record *r, hotfn_error *err)
{
    uint64_t count = r->parts[HFN_SECTION_REASONS].byte_count / HFN_REASON_BYTES;
    hotfn_status status = HOTFN_OK;

    for (uint64_t i = 0; status == HOTFN_OK && i < count; i++) {
        uint8_t *at = get_element(r, HFN_SECTION_REASONS, i);

        if (is_text(r, hfn_read_le32(at + HFN_REASON_NAME)) &&
            is_text(r, hfn_read_le32(at + HFN_REASON_TEXT))) {
            continue;
        }
        memset(at, 0, HFN_REASON_BYTES);
        status = hfn_record_report_damage(r, get_file_offset(r, HFN_SECTION_REASONS, i), err,
                                          "the text of reason %" PRIu64 " is lost", i);
    }
    return status;
}

/* ---- Modules: the functions of a module directly follow those of the module before. */

static bool module_is_sound(const hotfn_record *r, const uint8_t *at, uint32_t next_function)
{
    return hfn_read_le32(at + HFN_MODULE_FIRST_FUNCTION) == next_function &&
           hfn_read_le32(at + HFN_MODULE_FUNCTIONS) <= r->function_count - next_function &&
           is_text(r, hfn_read_le32(at + HFN_MODULE_PATH)) &&
           hfn_read_le32(at + HFN_MODULE_ID_BYTES) <= 32 &&
           hfn_read_le32(at + HFN_MODULE_MACHINE) <= HOTFN_MACHINE_ARM64;
}

/* Make a damaged module valid; its valid fields are kept. */
static void repair_module(const hotfn_record *r, uint8_t *at, uint32_t next_function)
{
    uint32_t room = r->function_count - next_function;

    hfn_write_le32(at + HFN_MODULE_FIRST_FUNCTION, next_function);
    if (hfn_read_le32(at + HFN_MODULE_FUNCTIONS) > room) {
        hfn_write_le32(at + HFN_MODULE_FUNCTIONS, room);
    }
    if (!is_text(r, hfn_read_le32(at + HFN_MODULE_PATH))) {
        hfn_write_le32(at + HFN_MODULE_PATH, 0);
    }
    if (hfn_read_le32(at + HFN_MODULE_ID_BYTES) > 32) {
        hfn_write_le32(at + HFN_MODULE_ID_BYTES, 0);
    }
    if (hfn_read_le32(at + HFN_MODULE_MACHINE) > HOTFN_MACHINE_ARM64) {
        hfn_write_le32(at + HFN_MODULE_MACHINE, HOTFN_MACHINE_OTHER);
    }
}

static hotfn_status check_modules(hotfn_record *r, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    uint32_t next = 0;

    for (uint32_t m = 0; status == HOTFN_OK && m < r->module_count; m++) {
        uint8_t *at = get_element(r, HFN_SECTION_MODULES, m);

        if (!module_is_sound(r, at, next)) {
            status = hfn_record_report_damage(
                r, get_file_offset(r, HFN_SECTION_MODULES, m), err,
                hfn_read_le32(at + HFN_MODULE_MACHINE) <= HOTFN_MACHINE_ARM64
                    ? "module %u is damaged"
                    : "module %u is for a machine that this version of hotfn does not know",
                m);
            repair_module(r, at, next);
        }
        next += hfn_read_le32(at + HFN_MODULE_FUNCTIONS);
        at[HFN_MODULE_NOTE + HFN_MODULE_NOTE_BYTES - 1] = 0;
    }
    if (status == HOTFN_OK && next != r->function_count) {
        status =
            hfn_record_report_damage(r, get_file_offset(r, HFN_SECTION_MODULES, 0), err,
                                     "%u functions belong to no module", r->function_count - next);
    }
    r->function_count = next;
    return status;
}

/* ---- Functions. */

/* The size of a function's list of names; 0 if its length is not the recorded one. */
static uint64_t measure_names(const hotfn_record *r, const uint8_t *at)
{
    const char *begin = hfn_record_get_text(r, hfn_read_le32(at + HFN_FUNCTION_NAME));
    const char *name = begin + strlen(begin) + 1;
    uint32_t count = 1;

    if (!is_text(r, (uint32_t)(name - (const char *)r->parts[HFN_SECTION_STRINGS].bytes))) {
        return 0; /* the list would begin past the end */
    }
    for (; name[0]; count++) {
        name += strlen(name) + 1;
    }
    return count == hfn_read_le32(at + HFN_FUNCTION_NAMES) ? (uint64_t)(name - begin) + 1 : 0;
}

static bool function_is_sound(const hotfn_record *r, const uint8_t *at, uint32_t slot,
                              uint32_t word, uint64_t *unused_bytes)
{
    uint64_t names_bytes;

    if (!is_text(r, hfn_read_le32(at + HFN_FUNCTION_NAME)) ||
        !is_text(r, hfn_read_le32(at + HFN_FUNCTION_STRATEGY)) ||
        (slot != HOTFN_NO_SLOT && slot >= r->slot_count) ||
        HFN_STATE_OF(word) < HOTFN_STATE_HOOKED || HFN_STATE_OF(word) > HOTFN_STATE_WAITING) {
        return false;
    }
    if (hfn_read_le32(at + HFN_FUNCTION_NAME) == 0) {
        /* All functions without a name share the empty text. */
        return hfn_read_le32(at + HFN_FUNCTION_NAMES) == 1;
    }
    names_bytes = measure_names(r, at);
    if (names_bytes == 0 || names_bytes > *unused_bytes) {
        return false;
    }
    /* Lists of names do not overlap, so their sizes add up to at most the size of the strings. */
    *unused_bytes -= names_bytes;
    return true;
}

static void empty_function(uint8_t *at, uint8_t *slot, uint8_t *state)
{
    hfn_write_le32(at + HFN_FUNCTION_NAME, 0);
    hfn_write_le32(at + HFN_FUNCTION_NAMES, 1);
    hfn_write_le32(at + HFN_FUNCTION_STRATEGY, 0);
    hfn_write_le32(slot, HOTFN_NO_SLOT);
    hfn_write_le32(state + HFN_STATE_WORD, HFN_STATE_AND_REASON(HOTFN_STATE_REFUSED, 0));
}

static hotfn_status check_functions(hotfn_record *r, hotfn_error *err)
{
    uint64_t unused_bytes = r->parts[HFN_SECTION_STRINGS].byte_count;
    uint32_t damaged = 0, first = 0;

    for (uint32_t i = 0; i < r->function_count; i++) {
        uint8_t *at = get_element(r, HFN_SECTION_FUNCTIONS, i);
        uint8_t *slot = get_element(r, HFN_SECTION_SLOTS, i);
        uint8_t *state = get_element(r, HFN_SECTION_STATES, i);

        if (function_is_sound(r, at, hfn_read_le32(slot), hfn_read_le32(state + HFN_STATE_WORD),
                              &unused_bytes)) {
            continue;
        }
        first = damaged++ == 0 ? i : first;
        if (!r->tolerant) {
            break;
        }
        empty_function(at, slot, state);
    }
    return damaged == 0
               ? HOTFN_OK
               : hfn_record_report_damage(r, get_file_offset(r, HFN_SECTION_FUNCTIONS, first), err,
                                          "function %u%s damaged", first,
                                          damaged > 1 ? " and others are" : " is");
}

/* ---- Rows. */

static hotfn_status check_rows(hotfn_record *r, hotfn_error *err)
{
    for (uint32_t row = 0; row < r->thread_count; row++) {
        hfn_unpacker u = { hfn_packed_row(&r->rows, row), 0, 0 };
        uint64_t slot, count;

        while (hfn_unpack_next(&u, r->slot_count, &slot, &count)) {
            ;
        }
        if (u.offset != u.row.size) {
            hotfn_status status =
                hfn_record_report_damage(r, r->layout.sections[HFN_SECTION_PACKED_ROWS].offset, err,
                                         "some counts of thread %u are damaged", row);

            if (status != HOTFN_OK) {
                return status;
            }
        }
    }
    return HOTFN_OK;
}

hotfn_status hfn_record_check(hotfn_record *r, hotfn_error *err)
{
    hotfn_status status = check_tables(r, err);

    if (status == HOTFN_OK) {
        status = check_reasons(r, err);
    }
    if (status == HOTFN_OK) {
        status = check_modules(r, err);
    }
    if (status == HOTFN_OK) {
        status = check_functions(r, err);
    }
    return status == HOTFN_OK ? check_rows(r, err) : status;
}
