/* SPDX-License-Identifier: MIT */
/*
 * CodeView symbol records (LLVM docs, PDB: "CodeView Symbol Records"; structs in microsoft-pdb,
 * include/cvinfo.h).  Each module has a stream with its procedures and their sizes.  Public symbols
 * and global variables share one stream.  Only the records that a hash table refers to are valid
 * there (GSI, LLVM docs, PDB: "The PDB Global Symbol Stream"), because an incremental link leaves
 * stale records.  Streams are read in order, record by record; a name is a view into the file
 * unless it crosses from one block to another.
 */
#include "symbols/pdb_symbols.h"

#include "base/progress.h"
#include "symbols/pdb_trampolines.h"

#include <string.h>

enum {
    SIGNATURE_C13 = 4, /* of a module's stream */
    GSI_HEADER_BYTES = 16,
    GSI_RECORD_BYTES = 8,
    PUBLICS_HEADER_BYTES = 28,
    MAX_PARENTS = 2, /* times the file size; procedures do not overlap in a valid file */
};
#define GSI_SIGNATURE 0xffffffffu
#define GSI_VERSION (0xeffe0000u + 19990810u)
#define PUBLIC_FUNCTION 2u /* CV_PUBSYMFLAGS.fFunction */

enum {
    S_THUNK32 = 0x1102,
    S_LDATA32 = 0x110c,
    S_GDATA32 = 0x110d,
    S_PUB32 = 0x110e,
    S_LPROC32 = 0x110f,
    S_GPROC32 = 0x1110,
    S_TRAMPOLINE = 0x112c,
    S_SEPCODE = 0x1132,
    S_LPROC32_ID = 0x1146,
    S_GPROC32_ID = 0x1147,
    S_LPROC32_DPC = 0x1155,
    S_LPROC32_DPC_ID = 0x1156,
};

typedef struct symbol_reader {
    hfn_pdb *pdb;
    hfn_symbol_table *table;
    hotfn_error *err;
    bool want_data;
    uint32_t module; /* the module of the stream that is being read; 0 for the shared stream */
    hfn_pdb_trampolines *trampolines;
    const uint8_t
        *live; /* one bit for each 4 bytes of the shared stream: a valid record begins there */
    uint64_t live_left;    /* bits of `live` whose records have not been read yet */
    uint64_t parent_bytes; /* bytes of records read to find the procedures of separated code */
} symbol_reader;

/* A record: its kind, and the bytes after the kind; `at` is its offset in the stream. */
typedef struct record {
    hfn_msf_stream *stream;
    uint32_t at, kind;
    hfn_span body;
} record;

/* The address, size and name of a symbol of any kind. */
typedef struct symbol_location {
    uint32_t section, offset;
    uint64_t bytes;
    const char *name;
    uint8_t kind, flags;
} symbol_location;

static hotfn_status report_no_memory(const symbol_reader *r)
{
    return hfn_report_no_memory(r->err, r->pdb->msf.path);
}

/* The name at offset of the record's body, as a view into the file or a copy. */
static hotfn_status get_name(const symbol_reader *r, const record *rec, uint64_t offset,
                             const char **out)
{
    const char *name = hfn_span_string(rec->body, offset);

    if (!name) {
        return hfn_pdb_fail(rec->stream, rec->at, r->err, "a symbol's name has no end");
    }
    *out = hfn_msf_is_view_of_file(&r->pdb->msf, rec->body)
               ? name
               : hfn_arena_copy(&r->table->names, name, strlen(name));
    return *out ? HOTFN_OK : report_no_memory(r);
}

static hotfn_status add_symbol(const symbol_reader *r, const symbol_location *l, uint64_t rva,
                               uint64_t bytes, uint8_t kind)
{
    hfn_symbol symbol = { .rva = rva, .byte_count = bytes, .name = l->name };

    symbol.kind = kind;
    symbol.flags = l->flags;
    symbol.source = HOTFN_SOURCE_PDB;
    symbol.module = r->module;
    if (r->table->count >= UINT32_MAX - 1) {
        return hfn_report_error(r->err, HOTFN_E_LIMIT, r->pdb->msf.path, HOTFN_NO_OFFSET,
                                "more than 4,294,967,294 symbols");
    }
    return hfn_symbol_table_add(r->table, &symbol) ? HOTFN_OK : report_no_memory(r);
}

/* Adds a symbol of an image whose code a tool rearranged after linking (OMAP).  The piece with the
 * entry is the function, the other pieces are fragments; removed code is skipped. */
static hotfn_status add_split_symbol(const symbol_reader *r, const symbol_location *l,
                                     uint64_t source)
{
    uint64_t end = source + (l->bytes ? l->bytes : 1), at = source;
    hotfn_status status = HOTFN_OK;
    hfn_pdb_piece piece;

    while (status == HOTFN_OK && at < end &&
           hfn_pdb_piece_at(&r->pdb->addresses, at, end, &piece)) {
        bool is_entry = piece.source == source || l->kind == HOTFN_SYMBOL_DATA;
        status = add_symbol(r, l, piece.image, l->bytes ? piece.bytes : 0,
                            is_entry ? l->kind : HOTFN_SYMBOL_FRAGMENT);
        at = piece.source + piece.bytes;
    }
    if (r->pdb->addresses.steps_left == 0) {
        return hfn_pdb_fail(&r->pdb->addresses.from_stream, 0, r->err,
                            "procedures overlap each other too much for its OMAP");
    }
    return status;
}

static hotfn_status add_symbol_at(const symbol_reader *r, const symbol_location *l)
{
    const hfn_pdb_addresses *a = &r->pdb->addresses;
    uint64_t source;

    if (!hfn_pdb_source_rva(a, l->section, l->offset, &source)) {
        return HOTFN_OK; /* an absolute symbol: a number, not an address */
    }
    if (a->from_source.size == 0) {
        return add_symbol(r, l, source, l->bytes, l->kind);
    }
    return add_split_symbol(r, l, source);
}

/* PROCSYM32 */
static hotfn_status read_procedure(symbol_reader *r, const record *rec)
{
    symbol_location l = { .section = hfn_pdb_u16(rec->body, 32),
                          .offset = hfn_pdb_u32(rec->body, 28),
                          .bytes = hfn_pdb_u32(rec->body, 12),
                          .kind = HOTFN_SYMBOL_FUNCTION };
    hotfn_status status = get_name(r, rec, 35, &l.name);

    if (status != HOTFN_OK) {
        return status;
    }
    if (rec->kind == S_GPROC32 || rec->kind == S_GPROC32_ID) {
        l.flags = HOTFN_SYMBOL_GLOBAL;
    }
    return add_symbol_at(r, &l);
}

/* THUNKSYM32 */
static hotfn_status read_thunk(symbol_reader *r, const record *rec)
{
    symbol_location l = { .section = hfn_pdb_u16(rec->body, 16),
                          .offset = hfn_pdb_u32(rec->body, 12),
                          .bytes = hfn_pdb_u16(rec->body, 18),
                          .kind = HOTFN_SYMBOL_THUNK };
    hotfn_status status = get_name(r, rec, 21, &l.name);

    return status == HOTFN_OK ? add_symbol_at(r, &l) : status;
}

static bool is_procedure(uint32_t kind)
{
    switch (kind) {
    case S_GPROC32:
    case S_LPROC32:
    case S_GPROC32_ID:
    case S_LPROC32_ID:
    case S_LPROC32_DPC:
    case S_LPROC32_DPC_ID: return true;
    default: return false;
    }
}

/* The name of the procedure whose record begins at this offset of the stream; NULL if there is no
 * such record. */
static hotfn_status find_procedure_name(symbol_reader *r, hfn_msf_stream *stream, uint32_t at,
                                        const char **out)
{
    record rec = { .stream = stream, .at = at };
    hfn_span head;

    *out = NULL;
    if (hfn_msf_view(stream, at, 4, &head) != HOTFN_OK || !is_procedure(hfn_pdb_u16(head, 2)) ||
        hfn_pdb_u16(head, 0) < 2) {
        return HOTFN_OK;
    }
    r->parent_bytes += hfn_pdb_u16(head, 0);
    if (r->parent_bytes > MAX_PARENTS * r->pdb->msf.file.size) {
        return hfn_pdb_fail(stream, at, r->err, "too many records of separated code");
    }
    if (hfn_msf_view(stream, (uint64_t)at + 4, hfn_pdb_u16(head, 0) - 2u, &rec.body) != HOTFN_OK) {
        return HOTFN_OK;
    }
    return get_name(r, &rec, 35, out);
}

/* SEPCODESYM: a part of a procedure that was placed away from it. */
static hotfn_status read_separated(symbol_reader *r, const record *rec)
{
    symbol_location l = { .section = hfn_pdb_u16(rec->body, 24),
                          .offset = hfn_pdb_u32(rec->body, 16),
                          .bytes = hfn_pdb_u32(rec->body, 8),
                          .kind = HOTFN_SYMBOL_FRAGMENT };
    uint32_t parent = hfn_pdb_u32(rec->body, 0);
    hotfn_status status;

    if (rec->body.size < 28) {
        return hfn_pdb_fail(rec->stream, rec->at, r->err, "a record is too short");
    }
    status = find_procedure_name(r, rec->stream, parent, &l.name);
    if (status != HOTFN_OK || l.name) {
        return status == HOTFN_OK ? add_symbol_at(r, &l) : status;
    }
    return hfn_pdb_fail(rec->stream, rec->at, r->err, "separated code refers to no procedure");
}

/* TRAMPOLINESYM */
static hotfn_status read_trampoline(symbol_reader *r, const record *rec)
{
    hfn_pdb_trampoline t = { .bytes = hfn_pdb_u16(rec->body, 2),
                             .offset = hfn_pdb_u32(rec->body, 4),
                             .module = r->module };

    if (rec->body.size < 16) {
        return hfn_pdb_fail(rec->stream, rec->at, r->err, "a record is too short");
    }
    if (!hfn_pdb_image_rva(&r->pdb->addresses, hfn_pdb_u16(rec->body, 12), t.offset, &t.rva) ||
        !hfn_pdb_image_rva(&r->pdb->addresses, hfn_pdb_u16(rec->body, 14),
                           hfn_pdb_u32(rec->body, 8), &t.target)) {
        return HOTFN_OK; /* removed from the image */
    }
    return hfn_pdb_trampolines_add(r->trampolines, &r->table->env, &t) ? HOTFN_OK
                                                                       : report_no_memory(r);
}

/* DATASYM32 */
static hotfn_status read_data(symbol_reader *r, const record *rec)
{
    symbol_location l = { .section = hfn_pdb_u16(rec->body, 8),
                          .offset = hfn_pdb_u32(rec->body, 4),
                          .kind = HOTFN_SYMBOL_DATA };
    hotfn_status status = r->want_data ? get_name(r, rec, 10, &l.name) : HOTFN_OK;

    if (status != HOTFN_OK || !r->want_data) {
        return status;
    }
    l.flags = rec->kind == S_GDATA32 ? HOTFN_SYMBOL_GLOBAL : 0;
    return add_symbol_at(r, &l);
}

/* PUBSYM32.  A symbol in code that is not marked as a function becomes a label. */
static hotfn_status read_public(symbol_reader *r, const record *rec)
{
    symbol_location l = { .section = hfn_pdb_u16(rec->body, 8),
                          .offset = hfn_pdb_u32(rec->body, 4),
                          .kind = HOTFN_SYMBOL_DATA,
                          .flags = HOTFN_SYMBOL_GLOBAL };
    hotfn_status status;

    if (hfn_pdb_u32(rec->body, 0) & PUBLIC_FUNCTION) {
        l.kind = HOTFN_SYMBOL_FUNCTION;
    } else if (hfn_pdb_section_is_code(&r->pdb->addresses, l.section)) {
        l.kind = HOTFN_SYMBOL_LABEL;
    } else if (!r->want_data) {
        return HOTFN_OK;
    }
    status = get_name(r, rec, 10, &l.name);
    return status == HOTFN_OK ? add_symbol_at(r, &l) : status;
}

typedef hotfn_status (*record_fn)(symbol_reader *r, const record *rec);

static hotfn_status read_module_record(symbol_reader *r, const record *rec)
{
    if (is_procedure(rec->kind)) {
        return read_procedure(r, rec);
    }
    switch (rec->kind) {
    case S_THUNK32: return read_thunk(r, rec);
    case S_TRAMPOLINE: return read_trampoline(r, rec);
    case S_SEPCODE: return read_separated(r, rec);
    case S_GDATA32:
    case S_LDATA32: return read_data(r, rec);
    default: return HOTFN_OK;
    }
}

/* Calls visit for each record in [at, end) of the stream. */
static hotfn_status each_record(symbol_reader *r, hfn_msf_stream *stream, uint32_t at, uint32_t end,
                                record_fn visit)
{
    hotfn_status status = HOTFN_OK;

    while (status == HOTFN_OK && at < end) {
        record rec = { .stream = stream, .at = at };
        uint32_t length;
        hfn_span head;

        status = hfn_pdb_view(stream, at, 4, &head, r->err, "symbols");
        if (status != HOTFN_OK) {
            return status;
        }
        length = hfn_pdb_u16(head, 0);
        rec.kind = hfn_pdb_u16(head, 2);
        if (length < 2 || length + 2u > end - at) {
            return hfn_pdb_fail(stream, at, r->err, "a symbol record's length is wrong");
        }
        status = hfn_pdb_view(stream, (uint64_t)at + 4, length - 2u, &rec.body, r->err, "symbols");
        if (status == HOTFN_OK) {
            status = visit(r, &rec);
        }
        at += length + 2u;
    }
    return status;
}

static hotfn_status read_module(symbol_reader *r, const hfn_pdb_module *module, record_fn visit)
{
    hfn_msf_stream stream;
    hfn_span head;
    hotfn_status status;

    if (module->stream == HFN_MSF_NO_STREAM || module->symbol_bytes == 0) {
        return HOTFN_OK;
    }
    status = hfn_msf_stream_open(&stream, &r->pdb->msf, module->stream, r->err);
    if (status != HOTFN_OK) {
        return status;
    }
    status = hfn_pdb_view(&stream, 0, 4, &head, r->err, "module's symbols");
    if (status == HOTFN_OK && module->symbol_bytes > stream.size) {
        status = hfn_pdb_fail(&stream, 0, r->err, "a module claims more symbols than it has");
    }
    if (status == HOTFN_OK && hfn_pdb_u32(head, 0) != SIGNATURE_C13) {
        hfn_log_message(&r->table->env, HOTFN_LOG_WARNING,
                        "%s: the symbols of %s are skipped: unknown version %u", r->pdb->msf.path,
                        module->name, hfn_pdb_u32(head, 0));
    } else if (status == HOTFN_OK) {
        status = each_record(r, &stream, 4, module->symbol_bytes, visit);
    }
    hfn_msf_stream_close(&stream);
    return status;
}

static hotfn_status read_modules(symbol_reader *r)
{
    hotfn_status status = HOTFN_OK;
    hfn_progress progress = hfn_progress_begin(&r->table->env, "reading symbols of",
                                               r->pdb->msf.path, r->pdb->module_count);

    for (uint32_t i = 0; status == HOTFN_OK && i < r->pdb->module_count; i++) {
        const hfn_pdb_module *module = &r->pdb->modules[i];
        hfn_progress_reach(&progress, i);
        if (module->stream != HFN_MSF_NO_STREAM &&
            hfn_msf_was_opened(&r->pdb->msf, module->stream)) {
            status = hfn_report_error(
                r->err, HOTFN_E_FORMAT, r->pdb->msf.path,
                hfn_msf_entry_offset(&r->pdb->msf, module->stream),
                "module %u (%s) has stream %u, which belongs to another module: file damaged", i,
                module->name, module->stream);
            break;
        }
        r->module = hfn_symbol_table_module(r->table, module->name);
        status = r->module ? read_module(r, module, read_module_record) : report_no_memory(r);
    }
    r->module = 0;
    hfn_progress_end(&progress);
    return status;
}

/* Marks the records that a global symbol index (GSI) refers to; its hash table begins at `at`. */
static hotfn_status mark_valid_records(symbol_reader *r, uint32_t number, uint64_t at,
                                       uint8_t *live, uint32_t record_bytes)
{
    hfn_msf_stream stream;
    uint32_t bytes = 0;
    hfn_span table;
    hotfn_status status = hfn_msf_stream_open(&stream, &r->pdb->msf, number, r->err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = hfn_pdb_view(&stream, at, GSI_HEADER_BYTES, &table, r->err, "index of symbols");
    if (status == HOTFN_OK &&
        (hfn_pdb_u32(table, 0) != GSI_SIGNATURE || hfn_pdb_u32(table, 4) != GSI_VERSION)) {
        status = hfn_pdb_fail(&stream, at, r->err, "the index of symbols has no known signature");
    }
    if (status == HOTFN_OK) {
        bytes = hfn_pdb_u32(table, 8);
        at += GSI_HEADER_BYTES;
        status = hfn_pdb_view(&stream, at, bytes, &table, r->err, "index of symbols");
    }
    for (uint32_t i = 0; status == HOTFN_OK && i + GSI_RECORD_BYTES <= bytes;
         i += GSI_RECORD_BYTES) {
        uint32_t place = hfn_pdb_u32(table, i) - 1; /* the index counts from 1 */
        uint8_t bit = (uint8_t)(1u << (place / 4 & 7));
        if (place % 4 != 0 || place >= record_bytes) {
            status = hfn_pdb_fail(&stream, at + i, r->err, "the index refers to no symbol");
        } else if (!(live[place / 32] & bit)) {
            live[place / 32] |= bit;
            r->live_left++;
        }
    }
    hfn_msf_stream_close(&stream);
    return status;
}

static hotfn_status read_shared_record(symbol_reader *r, const record *rec)
{
    if (rec->at % 4 != 0 || !(r->live[rec->at / 32] >> (rec->at / 4 & 7) & 1)) {
        return HOTFN_OK;
    }
    r->live_left--;
    switch (rec->kind) {
    case S_PUB32: return read_public(r, rec);
    case S_GDATA32:
    case S_LDATA32: return read_data(r, rec);
    default: return HOTFN_OK;
    }
}

/* Reads the records that the indexes refer to: the public symbols, and variables if want_data is
 * set. */
static hotfn_status read_shared_stream(symbol_reader *r)
{
    const hfn_pdb *pdb = r->pdb;
    hfn_msf_stream stream;
    size_t live_bytes;
    uint8_t *live;
    hotfn_status status;

    if (pdb->record_stream == HFN_MSF_NO_STREAM) {
        return HOTFN_OK;
    }
    status = hfn_msf_stream_open(&stream, &r->pdb->msf, pdb->record_stream, r->err);
    if (status != HOTFN_OK) {
        return status;
    }
    live_bytes = stream.size / 32 + 1;
    live = hfn_allocate_zeroed(&r->table->env, live_bytes);
    r->live = live;
    if (!live) {
        status = report_no_memory(r);
    }
    if (status == HOTFN_OK && pdb->public_stream != HFN_MSF_NO_STREAM) {
        status = mark_valid_records(r, pdb->public_stream, PUBLICS_HEADER_BYTES, live, stream.size);
    }
    if (status == HOTFN_OK && r->want_data && pdb->global_stream != HFN_MSF_NO_STREAM) {
        status = mark_valid_records(r, pdb->global_stream, 0, live, stream.size);
    }
    if (status == HOTFN_OK) {
        status = each_record(r, &stream, 0, stream.size, read_shared_record);
    }
    if (status == HOTFN_OK && r->live_left) {
        status = hfn_pdb_fail(&stream, 0, r->err, "the index refers to bytes inside of records");
    }
    hfn_free_memory(&r->table->env, live, live_bytes);
    hfn_msf_stream_close(&stream);
    return status;
}

hotfn_status hfn_pdb_read_symbols(hfn_pdb *pdb, hfn_symbol_table *table, bool want_data,
                                  hotfn_error *err)
{
    hfn_pdb_trampolines trampolines = { NULL, 0, 0 };
    symbol_reader r = { .pdb = pdb, .table = table, .err = err, .want_data = want_data };
    hotfn_status status;

    r.trampolines = &trampolines;
    status = read_modules(&r);
    if (status == HOTFN_OK) {
        status = read_shared_stream(&r);
    }
    if (status == HOTFN_OK &&
        !hfn_pdb_trampolines_follow(&trampolines, table, (size_t)pdb->msf.file.size)) {
        status = report_no_memory(&r);
    }
    hfn_pdb_trampolines_finish(&trampolines, &table->env);
    return status;
}
