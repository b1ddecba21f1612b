/* SPDX-License-Identifier: MIT */
/*
 * LLVM docs, PDB: "The PDB Info Stream" (GUID, age, named streams) and "The PDB DBI (Debug Info)
 * Stream" (modules, machine, the numbers of the other streams).  Only the headers are read here;
 * pdb_symbols.c reads the symbol streams and pdb_lines.c the line tables.
 */
#include "symbols/pdb_streams.h"

#include <hotfn/machine.h>

#include <string.h>

enum {
    INFO_STREAM = 1,
    DBI_STREAM = 3,
    INFO_HEADER_BYTES = 28,
    DBI_HEADER_BYTES = 64,
    MODULE_HEADER_BYTES = 64,
};
#define INFO_VC70 20000404u         /* the first version with a GUID */
#define FEATURE_MINIMAL 0x494e494du /* "MINI": /DEBUG:FASTLINK */
#define DBI_SIGNATURE 0xffffffffu   /* "the new DBI header" */

/* The file offset to report for an error at this offset of the stream.  It is that of the stream's
 * last byte if the stream is shorter, and of its directory entry if it is empty. */
static uint64_t get_error_offset(const hfn_msf_stream *stream, uint64_t offset)
{
    if (stream->size == 0) {
        return hfn_msf_entry_offset(stream->msf, stream->number);
    }
    return hfn_msf_offset(stream, offset < stream->size ? offset : stream->size - 1u);
}

hotfn_status hfn_pdb_fail(const hfn_msf_stream *stream, uint64_t offset, hotfn_error *err,
                          const char *what)
{
    return hfn_report_error(err, HOTFN_E_FORMAT, stream->msf->path,
                            get_error_offset(stream, offset),
                            "%s (stream %u, offset %llu): the file is damaged", what,
                            stream->number, (unsigned long long)offset);
}

hotfn_status hfn_pdb_view(hfn_msf_stream *stream, uint64_t offset, uint64_t size, hfn_span *out,
                          hotfn_error *err, const char *what)
{
    hotfn_status status = hfn_msf_view(stream, offset, size, out);

    if (status == HOTFN_E_NO_MEMORY) {
        return hfn_report_error(err, status, stream->msf->path, HOTFN_NO_OFFSET,
                                "not enough memory for its %s", what);
    }
    if (status != HOTFN_OK) {
        return hfn_report_error(err, status, stream->msf->path, get_error_offset(stream, offset),
                                "its %s goes beyond the end of stream %u: the file is damaged",
                                what, stream->number);
    }
    return HOTFN_OK;
}

/* Reads consecutive fields.  A field beyond the end reads as 0; the caller finally checks that `at`
 * is at most the size. */
typedef struct reader {
    hfn_span bytes;
    uint64_t at;
} reader;

static uint32_t read_word(reader *r)
{
    uint32_t value = 0;

    hfn_span_u32(r->bytes, r->at, &value);
    r->at += 4;
    return value;
}

/* Reads the named stream map: a buffer of names, then a hash table of pairs (offset of a name,
 * stream number). */
static void find_named_streams(hfn_pdb *pdb, hfn_span info)
{
    reader r = { info, INFO_HEADER_BYTES };
    uint64_t text_bytes = read_word(&r);
    hfn_span texts = hfn_span_string_table(hfn_span_sub(info, r.at, text_bytes));
    uint32_t size;

    r.at += text_bytes;
    size = read_word(&r);
    read_word(&r);                         /* capacity */
    for (int bits = 0; bits < 2; bits++) { /* bit vectors of the used and the deleted buckets */
        uint64_t words = read_word(&r);
        r.at += 4 * words;
    }
    for (; size > 0 && r.at < info.size; size--) {
        const char *name = hfn_span_name(texts, read_word(&r));
        uint32_t number = read_word(&r);
        if (name && strcmp(name, "/names") == 0 && r.at <= info.size) {
            pdb->names_stream = number;
        }
    }
    while (r.at < info.size) {
        if (read_word(&r) == FEATURE_MINIMAL) {
            pdb->is_fastlink = true;
        }
    }
}

static hotfn_status read_info(hfn_pdb *pdb, hotfn_error *err)
{
    hfn_msf_stream stream;
    hfn_span info;
    uint32_t version = 0;
    hotfn_status status = hfn_msf_stream_open(&stream, &pdb->msf, INFO_STREAM, err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = hfn_pdb_view(&stream, 0, stream.size, &info, err, "info stream");
    if (status == HOTFN_OK && info.size < INFO_HEADER_BYTES) {
        status = hfn_pdb_fail(&stream, 0, err, "the info stream is too short");
    }
    if (status == HOTFN_OK && hfn_span_u32(info, 0, &version) && version < INFO_VC70) {
        status = hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, pdb->msf.path, hfn_msf_offset(&stream, 0),
            "a PDB of version %u, from before 2002: it has no GUID to match with an image",
            version);
    }
    if (status == HOTFN_OK) {
        memcpy(pdb->guid, info.data + 12, sizeof pdb->guid);
        find_named_streams(pdb, info);
    }
    hfn_msf_stream_close(&stream);
    return status;
}

/* IMAGE_FILE_MACHINE_* of "PE Format". */
static uint32_t convert_machine(uint32_t number)
{
    switch (number) {
    case 0x14c: return HOTFN_MACHINE_X86;
    case 0x8664: return HOTFN_MACHINE_X86_64;
    case 0x1c0:
    case 0x1c2:
    case 0x1c4: return HOTFN_MACHINE_ARM;
    case 0xaa64: return HOTFN_MACHINE_ARM64;
    default: return HOTFN_MACHINE_OTHER;
    }
}

static uint32_t read_stream_number(hfn_span s, uint64_t offset)
{
    uint16_t value = HFN_MSF_NO_STREAM;

    hfn_span_u16(s, offset, &value);
    return value;
}

static bool add_module(hfn_pdb *pdb, const hfn_pdb_module *module)
{
    if (!hfn_grow_array(pdb->msf.env, (void **)&pdb->modules, &pdb->module_capacity,
                        (size_t)pdb->module_count + 1, sizeof *pdb->modules)) {
        return false;
    }
    pdb->modules[pdb->module_count++] = *module;
    return true;
}

/* Reads the entry of the module info substream at *at and advances *at. */
static hotfn_status read_module(hfn_pdb *pdb, hfn_span list, uint64_t *at, hfn_arena *names,
                                hotfn_error *err)
{
    hfn_span entry = hfn_span_from(list, *at);
    const char *name = hfn_span_string(entry, MODULE_HEADER_BYTES), *library = NULL;
    hfn_pdb_module module = { .stream = read_stream_number(entry, 34) };
    uint64_t end;

    if (name) {
        library = hfn_span_string(entry, MODULE_HEADER_BYTES + strlen(name) + 1);
    }
    if (!library) {
        return HOTFN_E_FORMAT;
    }
    end = (uint64_t)(library - (const char *)entry.data) + strlen(library) + 1;
    hfn_span_u32(entry, 36, &module.symbol_bytes);
    hfn_span_u32(entry, 40, &module.c11_bytes);
    hfn_span_u32(entry, 44, &module.c13_bytes);
    module.name = hfn_arena_copy(names, name, strlen(name));
    if (!module.name || !add_module(pdb, &module)) {
        return hfn_report_no_memory(err, pdb->msf.path);
    }
    *at += (end + 3) & ~(uint64_t)3;
    return HOTFN_OK;
}

static hotfn_status read_modules(hfn_pdb *pdb, hfn_msf_stream *dbi, uint32_t bytes,
                                 hfn_arena *names, hotfn_error *err)
{
    hfn_span list;
    hotfn_status status = hfn_pdb_view(dbi, DBI_HEADER_BYTES, bytes, &list, err, "list of modules");

    for (uint64_t at = 0; status == HOTFN_OK && at < list.size;) {
        uint64_t begin = at;
        status = read_module(pdb, list, &at, names, err);
        if (status == HOTFN_E_FORMAT) {
            return hfn_pdb_fail(dbi, DBI_HEADER_BYTES + begin, err,
                                "a module's entry is truncated");
        }
    }
    return status;
}

/* Reads the list of modules and the list of debug streams, which follow the header. */
static hotfn_status read_substreams(hfn_pdb *pdb, hfn_msf_stream *dbi, hfn_span header,
                                    hfn_arena *names, hotfn_error *err)
{
    /* header offsets of the sizes of: modules, contributions, section map, files, type
     * servers, EC */
    static const uint8_t sizes_at[] = { 24, 28, 32, 36, 40, 52 };
    uint32_t module_bytes = 0, debug_bytes = 0;
    uint64_t at = DBI_HEADER_BYTES;
    hfn_pdb_address_streams streams;
    hotfn_status status;
    hfn_span numbers;

    hfn_span_u32(header, 24, &module_bytes);
    hfn_span_u32(header, 48, &debug_bytes);
    for (size_t i = 0; i < sizeof sizes_at; i++) {
        uint32_t bytes = 0;
        hfn_span_u32(header, sizes_at[i], &bytes);
        at += bytes;
    }
    /* Indices in the list of debug streams: 3 and 4 are OMAP, 5 the section headers, 10 the section
     * headers from before OMAP. */
    status = hfn_pdb_view(dbi, at, debug_bytes, &numbers, err, "list of debug streams");
    if (status != HOTFN_OK) {
        return status;
    }
    streams =
        (hfn_pdb_address_streams){ read_stream_number(numbers, 10), read_stream_number(numbers, 20),
                                   read_stream_number(numbers, 6), read_stream_number(numbers, 8) };
    status = read_modules(pdb, dbi, module_bytes, names, err);
    return status == HOTFN_OK ? hfn_pdb_addresses_open(&pdb->addresses, &pdb->msf, &streams, err)
                              : status;
}

static hotfn_status read_dbi(hfn_pdb *pdb, hfn_arena *names, hotfn_error *err)
{
    hfn_msf_stream dbi;
    hfn_span header;
    uint8_t copy[DBI_HEADER_BYTES];
    uint32_t signature = 0;
    hotfn_status status = hfn_msf_stream_open(&dbi, &pdb->msf, DBI_STREAM, err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = hfn_pdb_view(&dbi, 0, DBI_HEADER_BYTES, &header, err, "DBI header");
    if (status == HOTFN_OK) {
        memcpy(copy, header.data, sizeof copy); /* the next view may overwrite it */
        header.data = copy;
        hfn_span_u32(header, 0, &signature);
        if (signature != DBI_SIGNATURE) {
            status = hfn_pdb_fail(&dbi, 0, err, "the DBI stream has no known signature");
        }
    }
    if (status == HOTFN_OK) {
        hfn_span_u32(header, 8, &pdb->age);
        pdb->global_stream = read_stream_number(header, 12);
        pdb->public_stream = read_stream_number(header, 16);
        pdb->record_stream = read_stream_number(header, 20);
        pdb->machine = convert_machine(read_stream_number(header, 58));
        status = read_substreams(pdb, &dbi, header, names, err);
    }
    hfn_msf_stream_close(&dbi);
    return status;
}

static bool has_bytes(const hfn_msf *msf, uint32_t number)
{
    uint32_t size = 0;

    return hfn_msf_has(msf, number) &&
           hfn_span_u32(msf->directory, 4 + 4 * (uint64_t)number, &size) && size > 0;
}

hotfn_status hfn_pdb_open(hfn_pdb *pdb, hfn_span file, const char *path, hfn_arena *names,
                          const hotfn_env *env, hotfn_error *err)
{
    hotfn_status status;

    memset(pdb, 0, sizeof *pdb);
    pdb->names_stream = HFN_MSF_NO_STREAM;
    status = hfn_msf_open(&pdb->msf, file, path, env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    status = read_info(pdb, err);
    if (status == HOTFN_OK && !has_bytes(&pdb->msf, DBI_STREAM)) {
        status = hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, path, HOTFN_NO_OFFSET,
            "it has only types (a compiler's PDB, /Zi): use the PDB that the linker wrote");
    }
    if (status == HOTFN_OK) {
        status = read_dbi(pdb, names, err);
    }
    if (status != HOTFN_OK) {
        hfn_pdb_close(pdb);
    }
    return status;
}

void hfn_pdb_close(hfn_pdb *pdb)
{
    hfn_pdb_addresses_close(&pdb->addresses);
    if (pdb->modules) {
        hfn_free_memory(pdb->msf.env, pdb->modules, pdb->module_capacity * sizeof *pdb->modules);
    }
    hfn_msf_close(&pdb->msf);
    memset(pdb, 0, sizeof *pdb);
}
