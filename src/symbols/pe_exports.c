/* SPDX-License-Identifier: MIT */
/*
 * The export directory (PE Format, 'The .edata Section'): functions by number, most of them with a
 * name.  An RVA inside the directory itself is a forwarder: the text there names the library that
 * has the function.  The tables are checked against the size of the file before any of their
 * entries is used.
 */
#include "symbols/pe_exports.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES_MAX = 65536, /* names lead to ordinals of 16 bits */
    NAME_BYTES_MAX = 4096,
};

static uint64_t offset_of(const hotfn_image *image, hfn_span s)
{
    return s.data ? (uint64_t)(s.data - hfn_image_file(image).data) : HOTFN_NO_OFFSET;
}

/* Finds the table whose RVA is in the directory at `at`. */
static bool find_table(const hfn_exports *e, hfn_span directory, uint64_t at, uint64_t bytes,
                       hfn_span *out)
{
    uint32_t rva = 0;

    if (bytes == 0) {
        return true;
    }
    if (!hfn_span_u32(directory, at, &rva)) {
        return false;
    }
    *out = hfn_span_sub(hfn_image_span(e->image, rva), 0, bytes);
    return out->data != NULL;
}

hotfn_status hfn_exports_open(hfn_exports *out, const hotfn_image *image, hotfn_error *err)
{
    uint64_t rva;
    hfn_span directory = hfn_pe_directory(image, HFN_PE_EXPORTS, &rva);
    const char *path = hfn_image_path(image);

    memset(out, 0, sizeof *out);
    out->image = image;
    if (directory.size == 0) {
        return HOTFN_OK;
    }
    if (!hfn_span_u32(directory, 16, &out->ordinal_base) ||
        !hfn_span_u32(directory, 20, &out->function_count) ||
        !hfn_span_u32(directory, 24, &out->name_count) || !hfn_span_has(directory, 0, 40)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, offset_of(image, directory),
                                "its export directory is truncated");
    }
    if (!find_table(out, directory, 28, (uint64_t)out->function_count * 4, &out->functions)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, offset_of(image, directory) + 20,
                                "its table of %u exports lies outside the file",
                                out->function_count);
    }
    if (out->name_count > NAMES_MAX ||
        !find_table(out, directory, 32, (uint64_t)out->name_count * 4, &out->names) ||
        !find_table(out, directory, 36, (uint64_t)out->name_count * 2, &out->name_indices)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, offset_of(image, directory) + 24,
                                "its table of %u names of exports lies outside the file",
                                out->name_count);
    }
    return HOTFN_OK;
}

/* The text at rva if its length is bounded, so that a million names of one endless text stay
 * cheap. */
static const char *text_at(const hotfn_image *image, uint64_t rva)
{
    hfn_span s = hfn_image_span(image, rva);
    const char *text =
        hfn_span_string(hfn_span_sub(s, 0, s.size < NAME_BYTES_MAX ? s.size : NAME_BYTES_MAX), 0);

    return text && text[0] ? text : NULL;
}

bool hfn_exports_at(const hfn_exports *e, uint32_t index, hfn_export *out)
{
    uint32_t rva = 0;

    if (!hfn_span_u32(e->functions, (uint64_t)index * 4, &rva) || rva == 0) {
        return false;
    }
    *out = (hfn_export){ .index = index, .rva = rva };
    if (hfn_pe_directory_has(e->image, HFN_PE_EXPORTS, rva)) {
        out->rva = 0;
        out->forward = text_at(e->image, rva);
        return out->forward != NULL;
    }
    return true;
}

static const char *name_at(const hfn_exports *e, uint32_t n)
{
    uint32_t rva;

    return hfn_span_u32(e->names, (uint64_t)n * 4, &rva) ? text_at(e->image, rva) : NULL;
}

bool hfn_exports_named(const hfn_exports *e, uint32_t n, hfn_export *out)
{
    const char *name = name_at(e, n);
    uint16_t index;

    if (!name || !hfn_span_u16(e->name_indices, (uint64_t)n * 2, &index) ||
        !hfn_exports_at(e, index, out)) {
        return false;
    }
    out->name = name;
    return true;
}

bool hfn_exports_find(const hfn_exports *e, const char *name, hfn_export *out)
{
    uint32_t low = 0, high = e->name_count;

    if (name[0] == '#') {
        unsigned long ordinal = strtoul(name + 1, NULL, 10);
        return ordinal >= e->ordinal_base && ordinal - e->ordinal_base < e->function_count &&
               hfn_exports_at(e, (uint32_t)(ordinal - e->ordinal_base), out);
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *there = name_at(e, middle);
        int order = there ? strcmp(there, name) : -1;
        if (order == 0) {
            return hfn_exports_named(e, middle, out);
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* The rows being added, and a bit for each function that has had a name. */
typedef struct reader {
    hfn_symbol_table *table;
    const hfn_exports *exports;
    uint8_t *named; /* one bit a function */
    bool want_data;
} reader;

static bool add_export(const reader *r, const hfn_export *e, const char *name)
{
    bool is_code = hfn_image_is_code(r->exports->image, e->rva);
    hfn_symbol symbol = { .rva = e->rva,
                          .name = name,
                          .source = HOTFN_SOURCE_EXPORTS,
                          .kind = is_code ? HOTFN_SYMBOL_FUNCTION : HOTFN_SYMBOL_DATA,
                          .flags = HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_EXPORTED };

    if (e->forward || (!is_code && !r->want_data) ||
        hfn_image_section_of(r->exports->image, e->rva) == UINT32_MAX) {
        return true;
    }
    return hfn_symbol_table_add(r->table, &symbol);
}

static bool add_named(const reader *r)
{
    hfn_export e;

    for (uint32_t n = 0; n < r->exports->name_count; n++) {
        if (!hfn_exports_named(r->exports, n, &e)) {
            continue;
        }
        r->named[e.index / 8] |= (uint8_t)(1u << e.index % 8);
        if (!add_export(r, &e, e.name)) {
            return false;
        }
    }
    return true;
}

/* Adds the functions without a name, as "#12": forwarders name them in the same way. */
static bool add_nameless(const reader *r)
{
    hfn_export e;
    char name[16];

    for (uint32_t i = 0; i < r->exports->function_count; i++) {
        if ((r->named[i / 8] >> i % 8 & 1) || !hfn_exports_at(r->exports, i, &e) || e.forward) {
            continue;
        }
        int length = snprintf(name, sizeof name, "#%u", r->exports->ordinal_base + i);
        const char *copy = hfn_arena_copy(&r->table->names, name, (size_t)length);
        if (!copy || !add_export(r, &e, copy)) {
            return false;
        }
    }
    return true;
}

hotfn_status hfn_exports_read(hfn_symbol_table *table, const hotfn_image *image, bool want_data,
                              hotfn_error *err)
{
    hfn_exports exports;
    reader r = { .table = table, .exports = &exports, .want_data = want_data };
    hotfn_status status = hfn_exports_open(&exports, image, err);

    if (status != HOTFN_OK || exports.function_count == 0) {
        return status;
    }
    r.named = hfn_allocate_zeroed(&table->env, exports.function_count / 8 + 1);
    bool good = r.named && add_named(&r) && add_nameless(&r);
    hfn_free_memory(&table->env, r.named, exports.function_count / 8 + 1);
    return good ? HOTFN_OK : hfn_report_no_memory(err, hfn_image_path(image));
}
