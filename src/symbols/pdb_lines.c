/* SPDX-License-Identifier: MIT */
/*
 * C13 line tables (LLVM docs, PDB: "The Module Information Stream", C13 Line Information;
 * microsoft-pdb, include/cvinfo.h, CV_DebugSLinesHeader_t).  The first query builds an index of the
 * code ranges that have a line table and of the place of each table; it takes a few bytes a
 * function.  The line table of a function is decoded when an address in it is queried, and kept
 * until a query needs another table.
 */
#include "symbols/pdb_lines.h"

#include "base/search.h"
#include "base/sort.h"

#include <string.h>

enum {
    DEBUG_S_LINES = 0xf2,
    DEBUG_S_FILECHKSMS = 0xf4,
    LINES_HEADER_BYTES = 12,
    BLOCK_HEADER_BYTES = 12,
    LINE_BYTES = 8,
    COLUMN_BYTES = 4,
    HAS_COLUMNS = 1,
    NAMES_HEADER_BYTES = 12,
};
#define LINE_MASK 0xffffffu
#define NAMES_SIGNATURE 0xeffeeffeu
/* Line numbers with a special meaning to debuggers: "never step into" and "always step into". They
 * are not lines of a file (microsoft-pdb, cvinfo.h). */
#define LINE_NEVER_STEP 0xfeefeeu
#define LINE_ALWAYS_STEP 0xf00f00u

hfn_pdb_lines *hfn_pdb_lines_new(const hotfn_env *env)
{
    hfn_pdb_lines *lines = hfn_allocate_zeroed(env, sizeof *lines);

    if (lines) {
        lines->env = *env;
        lines->decoded = UINT32_MAX;
    }
    return lines;
}

/* Frees the index and the decoded lines, as before the first query. */
static void discard_lines(hfn_pdb_lines *lines)
{
    const hotfn_env *env = &lines->env;

    hfn_free_memory(env, lines->contributions,
                    lines->contribution_capacity * sizeof *lines->contributions);
    hfn_free_memory(env, lines->files, lines->pdb.module_count * sizeof *lines->files);
    hfn_free_memory(env, lines->lines, lines->line_capacity * sizeof *lines->lines);
    hfn_msf_stream_close(&lines->names_stream);
    lines->contributions = NULL;
    lines->files = NULL;
    lines->lines = NULL;
    lines->contribution_capacity = lines->line_capacity = 0;
    lines->contribution_count = lines->line_count = 0;
    lines->names = (hfn_span){ NULL, 0, false };
    lines->decoded = UINT32_MAX;
    lines->is_indexed = false;
}

void hfn_pdb_lines_destroy(void *state)
{
    hfn_pdb_lines *lines = state;
    hotfn_env env;

    if (!lines) {
        return;
    }
    env = lines->env;
    discard_lines(lines);
    hfn_pdb_close(&lines->pdb);
    hfn_free_memory(&env, lines, sizeof *lines);
}

static void warn_skipped_lines(const hfn_pdb_lines *lines, const hotfn_error *err)
{
    hfn_log_message(&lines->env, HOTFN_LOG_WARNING, "%s: offset %llu: its lines are skipped: %s",
                    err->file, (unsigned long long)err->offset, err->text);
}

/* Adds the code range of one DEBUG_S_LINES subsection to the index. */
static hotfn_status index_lines(hfn_pdb_lines *lines, hfn_msf_stream *stream, uint32_t module,
                                uint32_t at, uint32_t size, hotfn_error *err)
{
    hfn_pdb_contribution c = { .module = module, .at = at, .size = size };
    hfn_span header;
    hotfn_status status;

    if (size < LINES_HEADER_BYTES) {
        return hfn_pdb_fail(stream, at, err, "a line table is too short");
    }
    status = hfn_pdb_view(stream, at, LINES_HEADER_BYTES, &header, err, "line table");
    if (status != HOTFN_OK) {
        return status;
    }
    c.bytes = hfn_pdb_u32(header, 8);
    if (!hfn_pdb_source_rva(&lines->pdb.addresses, hfn_pdb_u16(header, 4), hfn_pdb_u32(header, 0),
                            &c.source)) {
        return HOTFN_OK; /* code that the linker discarded */
    }
    if (lines->contribution_count == UINT32_MAX - 1 ||
        !hfn_grow_array(&lines->env, (void **)&lines->contributions, &lines->contribution_capacity,
                        (size_t)lines->contribution_count + 1, sizeof *lines->contributions)) {
        return HOTFN_E_NO_MEMORY;
    }
    lines->contributions[lines->contribution_count++] = c;
    return HOTFN_OK;
}

static hotfn_status index_subsections(hfn_pdb_lines *lines, hfn_msf_stream *stream, uint32_t module,
                                      uint32_t at, uint32_t end, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    while (status == HOTFN_OK && end - at >= 8) {
        uint32_t kind, size;
        hfn_span head;
        status = hfn_pdb_view(stream, at, 8, &head, err, "line information");
        if (status != HOTFN_OK) {
            return status;
        }
        kind = hfn_pdb_u32(head, 0);
        size = hfn_pdb_u32(head, 4);
        at += 8;
        if (size > end - at) {
            return hfn_pdb_fail(stream, at - 4, err, "line information claims too many bytes");
        }
        if (kind == DEBUG_S_FILECHKSMS) {
            lines->files[module] = (hfn_pdb_files){ at, size };
        } else if (kind == DEBUG_S_LINES) {
            status = index_lines(lines, stream, module, at, size, err);
        }
        size = (size + 3) & ~3u;
        at += size < end - at ? size : end - at;
    }
    return status;
}

static hotfn_status index_module(hfn_pdb_lines *lines, uint32_t index, hotfn_error *err)
{
    const hfn_pdb_module *module = &lines->pdb.modules[index];
    uint64_t at = (uint64_t)module->symbol_bytes + module->c11_bytes;
    hfn_msf_stream stream;
    hotfn_status status;

    if (module->stream == HFN_MSF_NO_STREAM || module->c13_bytes == 0) {
        return HOTFN_OK;
    }
    status = hfn_msf_stream_open(&stream, &lines->pdb.msf, module->stream, err);
    if (status != HOTFN_OK) {
        return status;
    }
    if (at > stream.size || module->c13_bytes > stream.size - at) {
        status =
            hfn_pdb_fail(&stream, at, err, "a module claims more line information than it has");
    } else {
        status = index_subsections(lines, &stream, index, (uint32_t)at,
                                   (uint32_t)at + module->c13_bytes, err);
    }
    hfn_msf_stream_close(&stream);
    return status;
}

static bool comes_before(const void *left, const void *right)
{
    const hfn_pdb_contribution *a = left, *b = right;

    return a->source < b->source;
}

/* "/names": a signature, a version, the size of the texts in bytes, the texts (LLVM docs, PDB: the
 * string table). */
static hotfn_status open_names(hfn_pdb_lines *lines, hotfn_error *err)
{
    hfn_msf_stream *stream = &lines->names_stream;
    hfn_span whole;
    hotfn_status status;

    if (!hfn_msf_has(&lines->pdb.msf, lines->pdb.names_stream)) {
        return HOTFN_OK;
    }
    status = hfn_msf_stream_open(stream, &lines->pdb.msf, lines->pdb.names_stream, err);
    if (status == HOTFN_OK) {
        status = hfn_pdb_view(stream, 0, stream->size, &whole, err, "file names");
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (hfn_pdb_u32(whole, 0) != NAMES_SIGNATURE ||
        hfn_pdb_u32(whole, 8) > whole.size - NAMES_HEADER_BYTES) {
        return hfn_pdb_fail(stream, 0, err, "the table of file names is damaged");
    }
    lines->names =
        hfn_span_string_table(hfn_span_sub(whole, NAMES_HEADER_BYTES, hfn_pdb_u32(whole, 8)));
    return HOTFN_OK;
}

static hotfn_status make_index(hfn_pdb_lines *lines)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status status = open_names(lines, &err);

    if (status != HOTFN_OK && status != HOTFN_E_NO_MEMORY) {
        warn_skipped_lines(lines, &err);
    }
    lines->files = hfn_allocate_zeroed(&lines->env, lines->pdb.module_count * sizeof *lines->files);
    if (!lines->files) {
        status = HOTFN_E_NO_MEMORY;
    }
    for (uint32_t i = 0; status != HOTFN_E_NO_MEMORY && i < lines->pdb.module_count; i++) {
        status = index_module(lines, i, &err);
        if (status != HOTFN_OK && status != HOTFN_E_NO_MEMORY) {
            warn_skipped_lines(lines, &err);
        }
    }
    if (status == HOTFN_E_NO_MEMORY ||
        !hfn_sort_array(&lines->env, (void **)&lines->contributions, lines->contribution_capacity,
                        lines->contribution_count, sizeof *lines->contributions, comes_before)) {
        discard_lines(lines);
        return HOTFN_E_NO_MEMORY;
    }
    lines->is_indexed = true;
    return HOTFN_OK;
}

/* The number of contributions that begin before source. */
static uint32_t count_before(const hfn_pdb_lines *lines, uint64_t source)
{
    return (uint32_t)hfn_count_below(lines->contributions, lines->contribution_count,
                                     sizeof *lines->contributions,
                                     offsetof(hfn_pdb_contribution, source), source);
}

/* The index of the contribution that contains source, UINT32_MAX if there is none.  Folded
 * functions have several contributions at one address: then the first one. */
static uint32_t find_contribution(const hfn_pdb_lines *lines, uint64_t source)
{
    uint32_t count = count_before(lines, source + 1);
    const hfn_pdb_contribution *all = lines->contributions;

    if (count == 0) {
        return UINT32_MAX;
    }
    source -= all[count - 1].source;
    if (source < all[count_before(lines, all[count - 1].source)].bytes) {
        return count_before(lines, all[count - 1].source);
    }
    return source < all[count - 1].bytes ? count - 1 : UINT32_MAX;
}

static bool line_before(const void *left, const void *right)
{
    const hfn_pdb_line *a = left, *b = right;

    return a->offset < b->offset;
}

/* Each block holds the lines of one file: the offset of the file in the module's list of files, the
 * count of lines, the size of the block in bytes, then all lines, then all columns. */
static hotfn_status decode_blocks(hfn_pdb_lines *lines, hfn_span table)
{
    uint64_t entry_bytes = LINE_BYTES + (hfn_pdb_u16(table, 6) & HAS_COLUMNS ? COLUMN_BYTES : 0);
    uint64_t at = LINES_HEADER_BYTES;

    lines->line_count = 0;
    while (table.size - at >= BLOCK_HEADER_BYTES) {
        uint32_t file = hfn_pdb_u32(table, at), count = hfn_pdb_u32(table, at + 4),
                 bytes = hfn_pdb_u32(table, at + 8);
        if (bytes < BLOCK_HEADER_BYTES || bytes > table.size - at ||
            count > (bytes - BLOCK_HEADER_BYTES) / entry_bytes) {
            return HOTFN_E_FORMAT;
        }
        if (!hfn_grow_array(&lines->env, (void **)&lines->lines, &lines->line_capacity,
                            (size_t)lines->line_count + count, sizeof *lines->lines)) {
            return HOTFN_E_NO_MEMORY;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint64_t entry = at + BLOCK_HEADER_BYTES + (uint64_t)i * LINE_BYTES;
            lines->lines[lines->line_count++] =
                (hfn_pdb_line){ hfn_pdb_u32(table, entry),
                                hfn_pdb_u32(table, entry + 4) & LINE_MASK, file };
        }
        at += bytes;
    }
    return HOTFN_OK;
}

static hotfn_status decode_contribution(hfn_pdb_lines *lines, uint32_t index)
{
    const hfn_pdb_contribution *c = &lines->contributions[index];
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_msf_stream stream;
    hfn_span table;
    hotfn_status status;

    if (lines->decoded == index) {
        return HOTFN_OK;
    }
    lines->decoded = UINT32_MAX;
    status =
        hfn_msf_stream_open(&stream, &lines->pdb.msf, lines->pdb.modules[c->module].stream, &err);
    if (status == HOTFN_OK) {
        status = hfn_pdb_view(&stream, c->at, c->size, &table, &err, "line table");
    }
    if (status == HOTFN_OK) {
        status = decode_blocks(lines, table);
        if (status == HOTFN_E_FORMAT) {
            lines->line_count = 0;
            hfn_pdb_fail(&stream, c->at, &err, "a line table's block is damaged");
            warn_skipped_lines(lines, &err);
            status = HOTFN_OK; /* kept as decoded, with no lines */
        }
    }
    if (status == HOTFN_OK &&
        !hfn_sort_array(&lines->env, (void **)&lines->lines, lines->line_capacity,
                        lines->line_count, sizeof *lines->lines, line_before)) {
        status = HOTFN_E_NO_MEMORY;
    }
    if (status == HOTFN_OK) {
        lines->decoded = index;
    }
    hfn_msf_stream_close(&stream);
    return status;
}

/* The name of the file at this offset of the module's list of files; NULL if there is none. */
static const char *file_name(hfn_pdb_lines *lines, uint32_t module, uint32_t offset)
{
    hfn_pdb_files files = lines->files[module];
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *name = NULL;
    hfn_msf_stream stream;
    hfn_span entry;

    if (offset >= files.bytes ||
        hfn_msf_stream_open(&stream, &lines->pdb.msf, lines->pdb.modules[module].stream, &err) !=
            HOTFN_OK) {
        return NULL;
    }
    if (hfn_msf_view(&stream, (uint64_t)files.at + offset, 4, &entry) == HOTFN_OK) {
        name = hfn_span_name(lines->names, hfn_pdb_u32(entry, 0));
    }
    hfn_msf_stream_close(&stream);
    return name;
}

static size_t lines_before(const hfn_pdb_lines *lines, uint64_t offset)
{
    return hfn_count_below_u32(lines->lines, lines->line_count, sizeof *lines->lines,
                               offsetof(hfn_pdb_line, offset), offset);
}

/* Finds the line of offset in the decoded contribution; [begin, end) are offsets in that too.
 * Where several lines begin at one offset, the first is used. */
static bool find_in_decoded(const hfn_pdb_lines *lines, uint32_t offset, uint32_t *begin,
                            uint32_t *end, const hfn_pdb_line **out)
{
    size_t count = lines_before(lines, (uint64_t)offset + 1);

    if (count == 0) {
        return false;
    }
    *begin = lines->lines[count - 1].offset;
    *end = count < lines->line_count ? lines->lines[count].offset
                                     : lines->contributions[lines->decoded].bytes;
    *out = &lines->lines[lines_before(lines, *begin)];
    return *end > offset && (*out)->line != LINE_NEVER_STEP && (*out)->line != LINE_ALWAYS_STEP;
}

hotfn_status hfn_pdb_lines_find(void *state, uint64_t rva, hotfn_source_line *out)
{
    hfn_pdb_lines *lines = state;
    const hfn_pdb_line *line = NULL;
    uint32_t index, begin, end;
    hotfn_status status = HOTFN_OK;
    hfn_pdb_piece piece;
    uint64_t source, end_source;

    if (!lines->is_indexed) {
        status = make_index(lines);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_pdb_to_source(&lines->pdb.addresses, rva, &source)) {
        return HOTFN_E_NOT_FOUND;
    }
    index = find_contribution(lines, source);
    if (index == UINT32_MAX) {
        return HOTFN_E_NOT_FOUND;
    }
    status = decode_contribution(lines, index);
    if (status != HOTFN_OK) {
        return status;
    }
    source -= lines->contributions[index].source;
    if (!find_in_decoded(lines, (uint32_t)source, &begin, &end, &line)) {
        return HOTFN_E_NOT_FOUND;
    }
    out->file = file_name(lines, lines->contributions[index].module, line->file);
    out->line = line->line;
    out->rva = rva - (source - begin);
    out->byte_count = end - begin;
    if (lines->pdb.addresses.from_source.size) { /* with OMAP: only the piece that contains rva */
        source += lines->contributions[index].source;
        end_source = lines->contributions[index].source + end;
        out->rva = rva;
        out->byte_count = 1;
        if (hfn_pdb_piece_at(&lines->pdb.addresses, source, end_source, &piece) &&
            piece.source == source) {
            out->byte_count = piece.bytes;
        }
    }
    return out->file ? HOTFN_OK : HOTFN_E_NOT_FOUND;
}
