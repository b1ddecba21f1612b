/* SPDX-License-Identifier: MIT */
/* Decode the compact format of runs and names.  The bytes come from the network: each count is
 * checked against the bytes that are left before memory is allocated for it. */
#include "sha256.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char damaged[] = "the body is damaged or cut off: send the record again";
static const char too_many[] =
    "the record has more than 4,096 modules or 4,000,000 functions: count fewer modules";

void wire_format_image(char out[80], uint32_t id_kind, const uint8_t *id, uint32_t id_bytes)
{
    out[0] = 0;
    if (id_bytes > 0 && id_bytes <= 32) {
        int length = snprintf(out, 80, "%u-", id_kind);
        format_hex(out + length, id, id_bytes);
    }
}

/* Keep the last component, so that no folder is stored even if a client sends one. */
static bool store_file_name(wire_module *m, const uint8_t *text, uint64_t byte_count)
{
    uint64_t begin = 0;

    for (uint64_t i = 0; i < byte_count; i++) {
        begin = text[i] == '/' || text[i] == '\\' ? i + 1 : begin;
    }
    if (byte_count - begin >= sizeof m->file || memchr(text, 0, byte_count)) {
        return false;
    }
    memcpy(m->file, text + begin, byte_count - begin);
    m->file[byte_count - begin] = 0;
    return true;
}

static bool read_module(byte_cursor *c, wire_module *m)
{
    m->flags = (uint32_t)cursor_read_number(c);
    uint64_t kind = cursor_read_number(c), id_bytes = cursor_read_number(c);
    const uint8_t *id = cursor_read_bytes(c, id_bytes);
    uint64_t file_bytes = cursor_read_number(c);
    const uint8_t *file = cursor_read_bytes(c, file_bytes);
    uint64_t rows = cursor_read_number(c);

    if (c->failed || kind > 255 || id_bytes > 32 || !store_file_name(m, file, file_bytes) ||
        rows > (uint64_t)(c->end - c->at) / 2 || rows > UINT32_MAX) {
        return false;
    }
    wire_format_image(m->image, (uint32_t)kind, id, (uint32_t)id_bytes);
    m->row_count = (uint32_t)rows;
    return true;
}

/* Grow an array to hold count more elements. */
static bool reserve_rows(wire_run *run, void **array, uint32_t used, uint32_t count,
                         size_t element_bytes)
{
    if ((uint64_t)used + count > WIRE_MAX_ROWS) {
        run->too_many = true;
        return false;
    }
    if (count == 0) {
        return true;
    }
    void *more = realloc(*array, ((size_t)used + count) * element_bytes);
    *array = more ? more : *array;
    return more != NULL;
}

/* RVAs ascend strictly, so that no function appears twice. */
static bool read_rva(byte_cursor *c, uint64_t *rva, bool first)
{
    uint64_t step = cursor_read_number(c);

    if (c->failed || step > (uint64_t)INT64_MAX - *rva || (step == 0 && !first)) {
        return false;
    }
    *rva += step;
    return true;
}

static bool read_counts(byte_cursor *c, wire_run *run, const wire_module *m)
{
    uint64_t rva = 0;

    if (!reserve_rows(run, (void **)&run->rows, run->row_count, m->row_count, sizeof *run->rows)) {
        return false;
    }
    for (uint32_t i = 0; i < m->row_count; i++) {
        wire_row *row = &run->rows[run->row_count++];
        *row = (wire_row){ 0 };
        if (!read_rva(c, &rva, i == 0)) {
            return false;
        }
        row->rva = rva;
        row->calls = cursor_read_number(c);
        if (run->flags & WIRE_TIMED) {
            row->total_ns = cursor_read_number(c);
            row->self_ns = cursor_read_number(c);
            row->max_ns = cursor_read_number(c);
        }
    }
    return !c->failed;
}

static bool read_names(byte_cursor *c, wire_run *run, const wire_module *m)
{
    uint64_t rva = 0;

    if (!reserve_rows(run, (void **)&run->names, run->name_count, m->row_count,
                      sizeof *run->names)) {
        return false;
    }
    for (uint32_t i = 0; i < m->row_count; i++) {
        wire_name *name = &run->names[run->name_count++];
        *name = (wire_name){ 0 };
        if (!read_rva(c, &rva, i == 0)) {
            return false;
        }
        name->rva = rva;
        name->byte_count = cursor_read_number(c);
        uint64_t text_bytes = cursor_read_number(c);
        name->text = (const char *)cursor_read_bytes(c, text_bytes);
        name->text_bytes = (uint32_t)text_bytes;
        if (c->failed || text_bytes > WIRE_MAX_NAME || name->byte_count > INT64_MAX ||
            (text_bytes > 0 && memchr(name->text, 0, text_bytes))) {
            return false;
        }
    }
    return !c->failed;
}

static bool read_modules(byte_cursor *c, wire_run *run, bool names)
{
    uint64_t count = cursor_read_number(c);

    run->too_many = !c->failed && count > WIRE_MAX_MODULES;
    if (c->failed || count == 0 || run->too_many) {
        return false;
    }
    run->modules = calloc(count, sizeof *run->modules);
    if (!run->modules) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        wire_module *m = &run->modules[run->module_count++];
        if (!read_module(c, m)) {
            return false;
        }
        m->first_row = names ? run->name_count : run->row_count;
        if (!(names ? read_names(c, run, m) : read_counts(c, run, m))) {
            return false;
        }
    }
    return true;
}

static bool read_callers(byte_cursor *c, wire_run *run)
{
    uint64_t count = cursor_read_number(c);

    if (c->failed || count > (uint64_t)(c->end - c->at) / 3) {
        return false;
    }
    run->callers = calloc(count ? count : 1, sizeof *run->callers);
    if (!run->callers) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t caller = cursor_read_number(c), callee = cursor_read_number(c);
        uint64_t calls = cursor_read_number(c);
        if (c->failed || caller > run->row_count || callee >= run->row_count) {
            return false;
        }
        run->callers[run->caller_count++] =
            (wire_caller){ caller ? (uint32_t)caller - 1 : WIRE_NO_ROW, (uint32_t)callee, calls };
    }
    return true;
}

static bool check_magic(byte_cursor *c, const char *magic)
{
    const uint8_t *begin = cursor_read_bytes(c, 4);
    return begin && memcmp(begin, magic, 4) == 0;
}

const char *wire_decode_run(wire_run *out, const uint8_t *bytes, size_t byte_count)
{
    byte_cursor c = cursor_begin(bytes, byte_count);

    *out = (wire_run){ 0 };
    if (!check_magic(&c, "HFC1")) {
        return "the body is neither a record (.hfr) nor the compact form of this version: use hotfn "
               "push of the collector's version";
    }
    out->flags = (uint32_t)cursor_read_number(&c);
    const uint8_t *uuid = cursor_read_bytes(&c, sizeof out->uuid);
    out->start_ns = cursor_read_number(&c);
    out->end_ns = cursor_read_number(&c);
    uint64_t state = cursor_read_number(&c);
    uint64_t hooked = cursor_read_number(&c), unhooked = cursor_read_number(&c);
    if (c.failed || state > 255 || hooked > UINT32_MAX || unhooked > UINT32_MAX ||
        out->start_ns > INT64_MAX || out->end_ns > INT64_MAX) {
        return damaged;
    }
    memcpy(out->uuid, uuid, sizeof out->uuid);
    out->state = (uint32_t)state;
    out->hooked = (uint32_t)hooked;
    out->unhooked = (uint32_t)unhooked;
    if (!read_modules(&c, out, false) || !read_callers(&c, out) || c.failed || c.at != c.end) {
        return out->too_many ? too_many : damaged;
    }
    return NULL;
}

const char *wire_decode_names(wire_run *out, const uint8_t *bytes, size_t byte_count)
{
    byte_cursor c = cursor_begin(bytes, byte_count);

    *out = (wire_run){ 0 };
    if (!check_magic(&c, "HFN1")) {
        return "the body is not a list of names (HFN1): use hotfn push of the collector's version";
    }
    bool ok = read_modules(&c, out, true) && c.at == c.end;

    return ok ? NULL : out->too_many ? too_many : damaged;
}

const wire_module *wire_find_main(const wire_run *run)
{
    for (uint32_t i = 0; i < run->module_count; i++) {
        if (run->modules[i].flags & WIRE_MAIN) {
            return &run->modules[i];
        }
    }
    return NULL;
}

void wire_free(wire_run *run)
{
    free(run->modules);
    free(run->rows);
    free(run->names);
    free(run->callers);
    *run = (wire_run){ 0 };
}
