/* SPDX-License-Identifier: MIT */
/*
 * Builds a small PDB: the caller fills streams with put_* and the calls for records, then
 * pdb_finish places them in blocks of any size, in order or scattered.  Sources: the LLVM documents
 * on PDB.
 */
#ifndef HFN_TESTS_PDB_BUILDER_H
#define HFN_TESTS_PDB_BUILDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    INFO = 1,
    TPI = 2,
    DBI = 3,
    IPI,
    SECTIONS,
    PUBLICS,
    GLOBALS,
    RECORDS,
    MODULE,
    NAMES,
    OMAP_TO,
    OMAP_FROM,
    MODULE_2,
    PDB_STREAMS,
    NO_STREAM = 0xffff
};
enum { STREAM_BYTES = 64 * 1024, TEXT_RVA = 0x1000, TEXT_SIZE = 0x3000, DATA_RVA = 0x4000 };

typedef struct pdb_stream {
    uint8_t data[STREAM_BYTES];
    uint32_t size;
} pdb_stream;

typedef struct pdb_builder {
    pdb_stream s[PDB_STREAMS];
    uint32_t index[2][256]; /* offsets of indexed records: PUBLICS, GLOBALS */
    uint32_t index_count[2];
    uint32_t module_c13, module_2_c13; /* end of the modules' symbols, set when lines are added */
    bool has_omap, scattered;
    uint32_t age;
    uint8_t *file;
    uint64_t file_bytes;
    uint32_t block_bytes, directory_block, map_block;
    uint32_t first_block[PDB_STREAMS]; /* number in the file; of the last block if scattered */
    uint32_t numbers_at[PDB_STREAMS];  /* offset of a stream's block numbers in the directory */
} pdb_builder;

static inline void put_bytes(pdb_builder *b, int stream, const void *bytes, size_t size)
{
    pdb_stream *s = &b->s[stream];

    if (s->size + size > STREAM_BYTES) {
        abort();
    }
    memcpy(s->data + s->size, bytes, size);
    s->size += (uint32_t)size;
}

static inline void put_16(pdb_builder *b, int stream, uint32_t value)
{
    uint8_t bytes[2] = { (uint8_t)value, (uint8_t)(value >> 8) };

    put_bytes(b, stream, bytes, 2);
}

static inline void put_32(pdb_builder *b, int stream, uint32_t value)
{
    put_16(b, stream, value & 0xffff);
    put_16(b, stream, value >> 16);
}

static inline void put_name(pdb_builder *b, int stream, const char *name)
{
    put_bytes(b, stream, name, strlen(name) + 1);
}

static inline void put_zeros(pdb_builder *b, int stream, uint32_t count)
{
    while (count-- > 0) {
        put_bytes(b, stream, "", 1);
    }
}

static inline void align_4(pdb_builder *b, int stream)
{
    while (b->s[stream].size % 4) {
        put_bytes(b, stream, "", 1);
    }
}

static inline void set_32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static inline void section(pdb_builder *b, const char *name, uint32_t rva, uint32_t size,
                           uint32_t flags)
{
    uint8_t header[40] = { 0 };

    memcpy(header, name, strlen(name));
    set_32(header + 8, size);
    set_32(header + 12, rva);
    set_32(header + 36, flags);
    put_bytes(b, SECTIONS, header, sizeof header);
}

/* Starts a PDB with two sections and no symbols: .text (1) and .data (2). */
static inline pdb_builder *pdb_begin(uint32_t block_bytes)
{
    pdb_builder *b = calloc(1, sizeof *b);

    b->block_bytes = block_bytes;
    b->age = 1;
    section(b, ".text", TEXT_RVA, TEXT_SIZE, 0x60000020);
    section(b, ".data", DATA_RVA, 0x1000, 0xc0000040);
    put_32(b, MODULE, 4);
    put_32(b, MODULE_2, 4);
    return b;
}

/* Begins a record and returns its offset; record_end sets its length. */
static inline uint32_t record(pdb_builder *b, int stream, uint32_t kind)
{
    uint32_t at = b->s[stream].size;

    put_16(b, stream, 0);
    put_16(b, stream, kind);
    return at;
}

static inline void record_end(pdb_builder *b, int stream, uint32_t at)
{
    pdb_stream *s = &b->s[stream];

    align_4(b, stream);
    s->data[at] = (uint8_t)(s->size - at - 2);
    s->data[at + 1] = (uint8_t)((s->size - at - 2) >> 8);
}

/* Adds S_GPROC32 or a similar kind, with its S_END. */
static inline uint32_t procedure(pdb_builder *b, int stream, uint32_t kind, const char *name,
                                 uint32_t offset, uint32_t size)
{
    uint32_t at = record(b, stream, kind);

    put_zeros(b, stream, 12);
    put_32(b, stream, size);
    put_zeros(b, stream, 12);
    put_32(b, stream, offset);
    put_16(b, stream, 1);
    put_bytes(b, stream, "", 1);
    put_name(b, stream, name);
    record_end(b, stream, at);
    record_end(b, stream, record(b, stream, 6));
    return at;
}

/* Adds S_PUB32, S_GDATA32 or S_LDATA32; the first word is flags or a type.  put_index adds it to an
 * index. */
static inline uint32_t variable(pdb_builder *b, int stream, uint32_t kind, const char *name,
                                uint32_t first, uint32_t number, uint32_t offset)
{
    uint32_t at = record(b, stream, kind);

    put_32(b, stream, first);
    put_32(b, stream, offset);
    put_16(b, stream, number);
    put_name(b, stream, name);
    record_end(b, stream, at);
    return at;
}

static inline void put_index(pdb_builder *b, int stream, uint32_t at)
{
    int which = stream == GLOBALS;

    b->index[which][b->index_count[which]++] = at;
}

static inline void public_function(pdb_builder *b, const char *name, uint32_t offset)
{
    put_index(b, PUBLICS, variable(b, RECORDS, 0x110e, name, 2, 1, offset));
}

static inline void trampoline(pdb_builder *b, uint32_t offset, uint32_t target)
{
    uint32_t at = record(b, MODULE, 0x112c);

    put_16(b, MODULE, 0);
    put_16(b, MODULE, 5);
    put_32(b, MODULE, offset);
    put_32(b, MODULE, target);
    put_16(b, MODULE, 1);
    put_16(b, MODULE, 1);
    record_end(b, MODULE, at);
}

static inline void separated(pdb_builder *b, uint32_t parent, uint32_t offset, uint32_t size)
{
    uint32_t at = record(b, MODULE, 0x1132);

    put_32(b, MODULE, parent);
    put_32(b, MODULE, 0);
    put_32(b, MODULE, size);
    put_32(b, MODULE, 0);
    put_32(b, MODULE, offset);
    put_32(b, MODULE, 0);
    put_16(b, MODULE, 1);
    put_16(b, MODULE, 1);
    record_end(b, MODULE, at);
}

static inline void thunk(pdb_builder *b, const char *name, uint32_t offset, uint32_t size)
{
    uint32_t at = record(b, MODULE, 0x1102);

    put_zeros(b, MODULE, 12);
    put_32(b, MODULE, offset);
    put_16(b, MODULE, 1);
    put_16(b, MODULE, size);
    put_bytes(b, MODULE, "", 1);
    put_name(b, MODULE, name);
    record_end(b, MODULE, at);
}

static inline void omap(pdb_builder *b, uint32_t source, uint32_t image)
{
    b->has_omap = true;
    put_32(b, OMAP_FROM, source);
    put_32(b, OMAP_FROM, image);
}

/* Adds the list of files with one file, "a.c"; call it after all symbols. */
static inline void files(pdb_builder *b)
{
    b->module_c13 = b->s[MODULE].size;
    put_32(b, NAMES, 0xeffeeffe);
    put_32(b, NAMES, 1);
    put_32(b, NAMES, 5);
    put_bytes(b, NAMES, "\0a.c", 5);
    put_32(b, MODULE, 0xf4);
    put_32(b, MODULE, 8);
    put_32(b, MODULE, 1);
    put_32(b, MODULE, 0);
}

/* Adds the lines of a function: pairs of (offset, line). */
static inline uint32_t lines(pdb_builder *b, uint32_t offset, uint32_t size, const uint32_t *pairs,
                             uint32_t count)
{
    uint32_t at = b->s[MODULE].size;

    put_32(b, MODULE, 0xf2);
    put_32(b, MODULE, 12 + 12 + 8 * count);
    put_32(b, MODULE, offset);
    put_16(b, MODULE, 1);
    put_16(b, MODULE, 0);
    put_32(b, MODULE, size);
    put_32(b, MODULE, 0);
    put_32(b, MODULE, count);
    put_32(b, MODULE, 12 + 8 * count);
    for (uint32_t i = 0; i < count; i++) {
        put_32(b, MODULE, pairs[2 * i]);
        put_32(b, MODULE, pairs[2 * i + 1]);
    }
    return at;
}

static inline void put_info(pdb_builder *b)
{
    put_32(b, INFO, 20000404);
    put_32(b, INFO, 0x5eed);
    put_32(b, INFO, 1);
    put_bytes(b, INFO, "0123456789abcdef", 16);
    put_32(b, INFO, 7); /* names of streams */
    put_name(b, INFO, "/names");
    put_32(b, INFO, 1); /* one entry, in a table of one bucket */
    put_32(b, INFO, 1);
    put_32(b, INFO, 1);
    put_32(b, INFO, 1);
    put_32(b, INFO, 0);
    put_32(b, INFO, 0);
    put_32(b, INFO, NAMES);
    put_32(b, INFO, 0);
    put_32(b, INFO, 20140508);
}

static inline void put_module(pdb_builder *b, int stream, uint32_t c13, const char *name)
{
    uint32_t symbols = c13 ? c13 : b->s[stream].size;

    put_zeros(b, DBI, 34);
    put_16(b, DBI, (uint32_t)stream);
    put_32(b, DBI, symbols);
    put_32(b, DBI, 0);
    put_32(b, DBI, b->s[stream].size - symbols);
    put_zeros(b, DBI, 16);
    put_name(b, DBI, name);
    put_name(b, DBI, name);
    align_4(b, DBI);
}

static inline void put_dbi(pdb_builder *b)
{
    uint32_t modules_at,
        debug[11] = { NO_STREAM, NO_STREAM, NO_STREAM, NO_STREAM, NO_STREAM, SECTIONS,
                      NO_STREAM, NO_STREAM, NO_STREAM, NO_STREAM, NO_STREAM };

    if (b->has_omap) {
        debug[3] = OMAP_TO;
        debug[4] = OMAP_FROM;
    }
    put_32(b, DBI, 0xffffffff);
    put_32(b, DBI, 19990903);
    put_32(b, DBI, b->age);
    put_16(b, DBI, GLOBALS);
    put_16(b, DBI, 0);
    put_16(b, DBI, PUBLICS);
    put_16(b, DBI, 0);
    put_16(b, DBI, RECORDS);
    put_zeros(b, DBI, 58 - 22);
    put_16(b, DBI, 0x8664);
    put_32(b, DBI, 0);
    modules_at = b->s[DBI].size;
    put_module(b, MODULE, b->module_c13, "one.obj");
    put_module(b, MODULE_2, b->module_2_c13, "two.obj");
    set_32(b->s[DBI].data + 24, b->s[DBI].size - modules_at);
    set_32(b->s[DBI].data + 48, 2 * 11);
    for (int i = 0; i < 11; i++) {
        put_16(b, DBI, debug[i]);
    }
}

static inline void put_indexes(pdb_builder *b)
{
    put_zeros(b, PUBLICS, 28);
    for (int which = 0; which < 2; which++) {
        int stream = which ? GLOBALS : PUBLICS;
        put_32(b, stream, 0xffffffff);
        put_32(b, stream, 0xeffe0000u + 19990810u);
        put_32(b, stream, 8 * b->index_count[which]);
        put_32(b, stream, 0);
        for (uint32_t i = 0; i < b->index_count[which]; i++) {
            put_32(b, stream, b->index[which][i] + 1);
            put_32(b, stream, 1);
        }
    }
}

/* The number of blocks of a stream with that many bytes. */
static inline uint32_t blocks_of(const pdb_builder *b, uint32_t bytes)
{
    return (bytes + b->block_bytes - 1) / b->block_bytes;
}

static inline void lay_stream(pdb_builder *b, int number, uint32_t *next, uint8_t *directory,
                              uint32_t *at)
{
    const pdb_stream *s = &b->s[number];
    uint32_t count = blocks_of(b, s->size);

    b->numbers_at[number] = *at;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = *next + (b->scattered ? 2 * (count - 1 - i) : i);
        uint32_t from = i * b->block_bytes, left = s->size - from;
        memcpy(b->file + (uint64_t)block * b->block_bytes, s->data + from,
               left < b->block_bytes ? left : b->block_bytes);
        set_32(directory + *at, block);
        *at += 4;
        b->first_block[number] = block;
    }
    *next += b->scattered ? 2 * count : count;
}

static inline void lay_out(pdb_builder *b)
{
    static const char magic[] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
                                "DS\0\0";
    uint32_t blocks = 16, next = 3, at = 4 + 4 * PDB_STREAMS;
    uint8_t *directory = calloc(1, 64 * 1024);

    for (int i = 0; i < PDB_STREAMS; i++) {
        blocks += 2 * blocks_of(b, b->s[i].size);
    }
    blocks += 64 * 1024 / b->block_bytes;
    b->file_bytes = (uint64_t)blocks * b->block_bytes;
    b->file = calloc(1, b->file_bytes);
    set_32(directory, PDB_STREAMS);
    for (int i = 0; i < PDB_STREAMS; i++) {
        set_32(directory + 4 + 4 * i, b->s[i].size);
        lay_stream(b, i, &next, directory, &at);
    }
    b->directory_block = next;
    memcpy(b->file + (uint64_t)next * b->block_bytes, directory, at);
    b->map_block = next + blocks_of(b, at);
    for (uint32_t i = 0; i < blocks_of(b, at); i++) {
        set_32(b->file + (uint64_t)b->map_block * b->block_bytes + 4 * i, next + i);
    }
    memcpy(b->file, magic, 32);
    set_32(b->file + 32, b->block_bytes);
    set_32(b->file + 36, 1);
    b->file_bytes = (uint64_t)(b->map_block + 1) * b->block_bytes;
    set_32(b->file + 40, b->map_block + 1);
    set_32(b->file + 44, at);
    set_32(b->file + 52, b->map_block);
    free(directory);
}

static inline void pdb_finish(pdb_builder *b)
{
    put_info(b);
    put_dbi(b);
    put_indexes(b);
    lay_out(b);
}

static inline void pdb_free(pdb_builder *b)
{
    free(b->file);
    free(b);
}

/* The file offset of the byte at `at` of the directory. */
static inline uint64_t directory_at(const pdb_builder *b, uint32_t at)
{
    return (uint64_t)b->directory_block * b->block_bytes + at;
}

/* Adds symbols of all kinds and lines; most tests begin with this. */
static inline void put_everything(pdb_builder *b)
{
    static const uint32_t pairs[] = { 0, 10, 4, 11, 8, 13 };
    uint32_t parent;

    trampoline(b, 0x005, 0x020);
    thunk(b, "thunk", 0x010, 6);
    parent = procedure(b, MODULE, 0x1110, "one", 0x020, 16);
    separated(b, parent, 0x200, 8);
    procedure(b, MODULE, 0x1147, "by_id", 0x030, 16);
    procedure(b, MODULE_2, 0x110f, "local", 0x040, 32);
    public_function(b, "?one@@YAHXZ", 0x020);
    public_function(b, "one", 0x020);
    variable(b, RECORDS, 0x110e, "dead_public", 2, 1, 0x100);
    put_index(b, PUBLICS, variable(b, RECORDS, 0x110e, "label", 0, 1, 0x050));
    put_index(b, PUBLICS, variable(b, RECORDS, 0x110e, "data_public", 0, 2, 0x8));
    put_index(b, GLOBALS, variable(b, RECORDS, 0x110d, "data", 0x74, 2, 0x8));
    variable(b, MODULE_2, 0x110c, "kept", 0x74, 2, 0x10);
    put_index(b, PUBLICS, variable(b, RECORDS, 0x110e, "absolute", 0, 3, 0x8));
    files(b);
    lines(b, 0x020, 16, pairs, 3);
    lines(b, 0x030, 16, pairs, 2);
}

#endif
