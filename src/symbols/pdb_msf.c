/* SPDX-License-Identifier: MIT */
/*
 * LLVM docs, PDB: "The MSF File Format".  The superblock leads to the blocks of the stream
 * directory, which lists the size and the blocks of each stream.  A linker writes most blocks of a
 * stream one after the other, so nearly all views point straight into the file; only bytes that
 * cross a gap are copied.  Offsets are 64 bits wide: 32-bit block numbers reach far beyond 4 GiB.
 */
#include "symbols/pdb_msf.h"

#include <string.h>

enum {
    MAGIC_BYTES = 32,
    MIN_BLOCK_BYTES = 512,
    MAX_BLOCK_BYTES = 32 * 1024,
    AT_BLOCK_BYTES = 32, /* offsets in the superblock */
    AT_DIRECTORY_BYTES = 44,
    AT_BLOCK_MAP = 52,
    AHEAD = 64, /* blocks examined for a run, unless a view needs more */
};
#define NIL_SIZE 0xffffffffu /* size of a deleted stream */

/* Reports files that are easily mistaken for a PDB.  Sources: "Portable PDB v1.0: Format
 * Specification"; for 2.00 and MSFZ the first bytes in microsoft-pdb (msf.cpp) and in Microsoft's
 * msfz documents. */
static hotfn_status refuse_other_kind(const hfn_msf *msf, hotfn_error *err)
{
    static const struct {
        const char *magic, *why;
    } others[] = {
        { "BSJB", "a portable .NET PDB, which has no symbols of native code" },
        { "Microsoft C/C++ program database 2.00",
          "a PDB from before 2002 (MSF 2.00); only MSF 7.00 can be read" },
        { "Microsoft MSFZ Container",
          "a compressed PDB (MSFZ): expand it first, or link without /DEBUG:COMPRESS" },
    };

    for (size_t i = 0; i < HFN_COUNT_OF(others); i++) {
        size_t length = strlen(others[i].magic);
        if (msf->file.size >= length && memcmp(msf->file.data, others[i].magic, length) == 0) {
            return hfn_report_error(err, HOTFN_E_UNSUPPORTED, msf->path, 0, "%s", others[i].why);
        }
    }
    return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, 0,
                            "not a PDB: it does not begin with \"Microsoft C/C++ MSF 7.00\"");
}

static uint32_t blocks_for(const hfn_msf *msf, uint64_t bytes)
{
    return (uint32_t)((bytes + (1u << msf->block_shift) - 1) >> msf->block_shift);
}

static hotfn_status no_memory(const hfn_msf *msf, hotfn_error *err)
{
    return hfn_report_no_memory(err, msf->path);
}

/* Marks block as used; its first `bytes` bytes must lie in the file.  at is the file offset of the
 * block number, for the error. */
static hotfn_status claim_block(hfn_msf *msf, uint32_t block, uint64_t bytes, uint64_t at,
                                hotfn_error *err)
{
    uint8_t bit = (uint8_t)(1u << (block & 7));

    if (!hfn_span_has(msf->file, (uint64_t)block << msf->block_shift, bytes)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, at,
                                "block %u lies outside the file: it was cut, or is damaged", block);
    }
    if (block == 0 || (msf->claimed_blocks[block >> 3] & bit)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, at,
                                "block %u is used twice: the file is damaged", block);
    }
    msf->claimed_blocks[block >> 3] |= bit;
    return HOTFN_OK;
}

static hotfn_status read_superblock(hfn_msf *msf, uint32_t *directory_bytes, uint32_t *map_block,
                                    hotfn_error *err)
{
    static const uint8_t magic[MAGIC_BYTES] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
                                              "DS\0\0";
    uint32_t block_bytes = 0;

    if (msf->file.size < MAGIC_BYTES || memcmp(msf->file.data, magic, MAGIC_BYTES) != 0) {
        return refuse_other_kind(msf, err);
    }
    if (!hfn_span_u32(msf->file, AT_BLOCK_BYTES, &block_bytes) ||
        !hfn_span_u32(msf->file, AT_DIRECTORY_BYTES, directory_bytes) ||
        !hfn_span_u32(msf->file, AT_BLOCK_MAP, map_block)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, msf->file.size,
                                "it ends inside its superblock");
    }
    if (block_bytes < MIN_BLOCK_BYTES || block_bytes > MAX_BLOCK_BYTES ||
        (block_bytes & (block_bytes - 1))) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, AT_BLOCK_BYTES,
                                "a block cannot have %u bytes", block_bytes);
    }
    while (1u << msf->block_shift < block_bytes) {
        msf->block_shift++;
    }
    msf->block_count = (msf->file.size + block_bytes - 1) >> msf->block_shift;
    if (*directory_bytes > msf->file.size || *directory_bytes < 4 || *directory_bytes % 4 != 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, AT_DIRECTORY_BYTES,
                                "its stream directory cannot have %u bytes", *directory_bytes);
    }
    return HOTFN_OK;
}

static hotfn_status gather_directory(hfn_msf *msf, uint32_t bytes, hotfn_error *err)
{
    uint32_t block_bytes = 1u << msf->block_shift;

    msf->directory_copy = hfn_resize_memory(msf->env, NULL, 0, bytes);
    if (!msf->directory_copy) {
        return no_memory(msf, err);
    }
    msf->directory = (hfn_span){ msf->directory_copy, bytes, false };
    for (uint32_t done = 0; done < bytes;) {
        uint64_t at = msf->map_at + 4 * (uint64_t)(done >> msf->block_shift);
        uint32_t part = bytes - done < block_bytes ? bytes - done : block_bytes, block = 0;
        hotfn_status status;
        hfn_span_u32(msf->file, at, &block);
        status = claim_block(msf, block, part, at, err);
        if (status != HOTFN_OK) {
            return status;
        }
        memcpy(msf->directory_copy + done, msf->file.data + ((uint64_t)block << msf->block_shift),
               part);
        done += part;
    }
    return HOTFN_OK;
}

static hotfn_status read_directory(hfn_msf *msf, uint32_t bytes, uint32_t map_block,
                                   hotfn_error *err)
{
    uint64_t map_bytes = 4 * (uint64_t)blocks_for(msf, bytes);
    uint64_t map_at = (uint64_t)map_block << msf->block_shift;

    if (map_block == 0 || !hfn_span_has(msf->file, map_at, map_bytes)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, msf->path, AT_BLOCK_MAP,
            "the block map, at block %u, lies outside the file: it was cut, or is "
            "damaged",
            map_block);
    }
    for (uint32_t i = 0; i < blocks_for(msf, map_bytes); i++) {
        hotfn_status status = claim_block(msf, map_block + i, 1, AT_BLOCK_MAP, err);
        if (status != HOTFN_OK) {
            return status;
        }
    }
    msf->map_at = map_at;
    return gather_directory(msf, bytes, err);
}

/* The file offset of the directory's word with that index. */
static uint64_t directory_offset(const hfn_msf *msf, uint64_t word)
{
    uint64_t at = 4 * word;
    uint32_t block = 0;

    hfn_span_u32(msf->file, msf->map_at + 4 * (at >> msf->block_shift), &block);
    return ((uint64_t)block << msf->block_shift) + (at & ((1u << msf->block_shift) - 1));
}

static uint32_t stream_size(const hfn_msf *msf, uint32_t number)
{
    uint32_t size = NIL_SIZE;

    hfn_span_u32(msf->directory, 4 + 4 * (uint64_t)number, &size);
    return size == NIL_SIZE ? 0 : size;
}

/* Stores where the block numbers of each stream begin; they must all lie inside the directory. */
static hotfn_status index_streams(hfn_msf *msf, hotfn_error *err)
{
    uint64_t numbers, next;

    hfn_span_u32(msf->directory, 0, &msf->stream_count);
    numbers = msf->directory.size / 4;
    if (msf->stream_count > numbers - 1) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, directory_offset(msf, 0),
                                "its stream directory is too short for %u streams",
                                msf->stream_count);
    }
    msf->first_number =
        hfn_resize_memory(msf->env, NULL, 0, msf->stream_count * sizeof *msf->first_number);
    msf->claimed_streams = hfn_allocate_zeroed(msf->env, msf->stream_count / 8 + 1);
    if (!msf->first_number || !msf->claimed_streams) {
        return no_memory(msf, err);
    }
    next = 1 + (uint64_t)msf->stream_count;
    for (uint32_t i = 0; i < msf->stream_count; i++) {
        msf->first_number[i] = (uint32_t)next;
        next += blocks_for(msf, stream_size(msf, i));
        if (next > numbers) {
            return hfn_report_error(
                err, HOTFN_E_FORMAT, msf->path, directory_offset(msf, 1 + i),
                "stream %u claims %u bytes, more than its directory has blocks for", i,
                stream_size(msf, i));
        }
    }
    return HOTFN_OK;
}

hotfn_status hfn_msf_open(hfn_msf *msf, hfn_span file, const char *path, const hotfn_env *env,
                          hotfn_error *err)
{
    uint32_t directory_bytes = 0, map_block = 0;
    hotfn_status status;

    memset(msf, 0, sizeof *msf);
    msf->env = env;
    msf->path = path;
    msf->file = file;
    status = read_superblock(msf, &directory_bytes, &map_block, err);
    if (status != HOTFN_OK) {
        return status;
    }
    msf->claimed_blocks = hfn_allocate_zeroed(env, (size_t)(msf->block_count / 8 + 1));
    if (!msf->claimed_blocks) {
        return no_memory(msf, err);
    }
    status = read_directory(msf, directory_bytes, map_block, err);
    if (status == HOTFN_OK) {
        status = index_streams(msf, err);
    }
    if (status != HOTFN_OK) {
        hfn_msf_close(msf);
    }
    return status;
}

void hfn_msf_close(hfn_msf *msf)
{
    hfn_free_memory(msf->env, msf->claimed_blocks, (size_t)(msf->block_count / 8 + 1));
    hfn_free_memory(msf->env, msf->claimed_streams, msf->stream_count / 8 + 1);
    hfn_free_memory(msf->env, msf->first_number, msf->stream_count * sizeof *msf->first_number);
    hfn_free_memory(msf->env, msf->directory_copy, (size_t)msf->directory.size);
    memset(msf, 0, sizeof *msf);
}

bool hfn_msf_has(const hfn_msf *msf, uint32_t number)
{
    uint32_t size = NIL_SIZE;

    return number < msf->stream_count &&
           hfn_span_u32(msf->directory, 4 + 4 * (uint64_t)number, &size) && size != NIL_SIZE;
}

bool hfn_msf_was_opened(const hfn_msf *msf, uint32_t number)
{
    return number < msf->stream_count && (msf->claimed_streams[number >> 3] >> (number & 7) & 1);
}

uint64_t hfn_msf_entry_offset(const hfn_msf *msf, uint32_t number)
{
    return directory_offset(msf, number < msf->stream_count ? 1 + (uint64_t)number : 0);
}

/* The number of the index-th block of the stream; it was checked when the stream was opened. */
static uint32_t block_of(const hfn_msf_stream *s, uint64_t index)
{
    uint32_t block = 0;

    hfn_span_u32(s->msf->directory, 4 * (s->first_number + index), &block);
    return block;
}

hotfn_status hfn_msf_stream_open(hfn_msf_stream *stream, hfn_msf *msf, uint32_t number,
                                 hotfn_error *err)
{
    hfn_msf_stream s = { .msf = msf, .number = number };
    uint32_t block_bytes = 1u << msf->block_shift;

    if (!hfn_msf_has(msf, number)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, msf->path, hfn_msf_entry_offset(msf, number),
                                "stream %u is referred to but does not exist", number);
    }
    s.size = stream_size(msf, number);
    s.first_number = msf->first_number[number];
    for (uint32_t done = 0, i = 0; !hfn_msf_was_opened(msf, number) && done < s.size; i++) {
        uint32_t part = s.size - done < block_bytes ? s.size - done : block_bytes;
        uint64_t at = directory_offset(msf, (uint64_t)s.first_number + i);
        hotfn_status status = claim_block(msf, block_of(&s, i), part, at, err);
        if (status != HOTFN_OK) {
            return status;
        }
        done += part;
    }
    msf->claimed_streams[number >> 3] |= (uint8_t)(1u << (number & 7));
    *stream = s;
    return HOTFN_OK;
}

void hfn_msf_stream_close(hfn_msf_stream *stream)
{
    if (stream->msf) {
        hfn_free_memory(stream->msf->env, stream->scratch, stream->scratch_bytes);
    }
    memset(stream, 0, sizeof *stream);
}

/* Finds the run of adjacent blocks that begins with the block of offset.  It looks at AHEAD blocks,
 * or at as many as size needs: a bound, so that scattered reads stay cheap in a long stream. */
static void find_run(hfn_msf_stream *s, uint64_t offset, uint64_t size)
{
    uint32_t shift = s->msf->block_shift, blocks = blocks_for(s->msf, s->size);
    uint64_t first = offset >> shift, next = first + 1, end = offset + size;
    uint32_t block = block_of(s, first);

    while (next < blocks && (next - first < AHEAD || next << shift < end) &&
           block_of(s, next) == block + (next - first)) {
        next++;
    }
    s->run = s->msf->file.data + ((uint64_t)block << shift);
    s->run_begin = first << shift;
    s->run_end = next << shift < s->size ? next << shift : s->size;
}

static hotfn_status gather_bytes(hfn_msf_stream *s, uint64_t offset, uint64_t size, hfn_span *out)
{
    if (!hfn_grow_array(s->msf->env, (void **)&s->scratch, &s->scratch_bytes, (size_t)size, 1)) {
        return HOTFN_E_NO_MEMORY;
    }
    for (uint64_t done = 0; done < size;) {
        uint64_t at = offset + done, part;
        if (at < s->run_begin || at >= s->run_end) {
            find_run(s, at, size - done);
        }
        part = s->run_end - at < size - done ? s->run_end - at : size - done;
        memcpy(s->scratch + done, s->run + (at - s->run_begin), (size_t)part);
        done += part;
    }
    *out = (hfn_span){ s->scratch, size, false };
    return HOTFN_OK;
}

hotfn_status hfn_msf_view(hfn_msf_stream *stream, uint64_t offset, uint64_t size, hfn_span *out)
{
    if (offset > stream->size || size > stream->size - offset) {
        return HOTFN_E_FORMAT;
    }
    if (size == 0) {
        *out = (hfn_span){ stream->msf->file.data, 0, false };
        return HOTFN_OK;
    }
    if (offset < stream->run_begin || offset >= stream->run_end ||
        size > stream->run_end - offset) {
        find_run(stream, offset, size);
    }
    if (size > stream->run_end - offset) {
        return gather_bytes(stream, offset, size, out);
    }
    *out = (hfn_span){ stream->run + (offset - stream->run_begin), size, false };
    return HOTFN_OK;
}

bool hfn_msf_is_view_of_file(const hfn_msf *msf, hfn_span span)
{
    return (uintptr_t)span.data >= (uintptr_t)msf->file.data &&
           (uintptr_t)span.data < (uintptr_t)msf->file.data + msf->file.size;
}

uint64_t hfn_msf_offset(const hfn_msf_stream *stream, uint64_t offset)
{
    uint32_t shift = stream->msf->block_shift;

    if (offset >= stream->size) {
        return HOTFN_NO_OFFSET;
    }
    return ((uint64_t)block_of(stream, offset >> shift) << shift) + (offset & ((1u << shift) - 1));
}
