/* SPDX-License-Identifier: MIT */
/* MSF 7.0, the container of a PDB: numbered streams, each a list of blocks anywhere in the file. */
#ifndef HFN_SYMBOLS_PDB_MSF_H
#define HFN_SYMBOLS_PDB_MSF_H

#include "base/memory.h"
#include "base/span.h"
#include "base/status.h"

/* Reads a field of a record; 0 if it lies outside, which the caller excludes by checking the
 * size. */
static inline uint32_t hfn_pdb_u32(hfn_span s, uint64_t offset)
{
    uint32_t value = 0;

    hfn_span_u32(s, offset, &value);
    return value;
}

static inline uint32_t hfn_pdb_u16(hfn_span s, uint64_t offset)
{
    uint16_t value = 0;

    hfn_span_u16(s, offset, &value);
    return value;
}

#define HFN_MSF_NO_STREAM 0xffffu /* the stream number that means "no stream" */

typedef struct hfn_msf {
    const hotfn_env *env; /* env, path and file are kept */
    const char *path;
    hfn_span file;
    uint32_t block_shift; /* a block has 1 << block_shift bytes */
    uint32_t stream_count;
    uint64_t block_count; /* blocks in the file, a partial last one included */
    uint64_t map_at;      /* file offset of the block numbers of the directory */
    hfn_span directory;   /* the joined blocks of the stream directory, in directory_copy */
    uint8_t *directory_copy;
    uint32_t *first_number;  /* index of a stream's first block number in the directory, in words */
    uint8_t *claimed_blocks; /* one bit a block: it belongs to a stream that was opened */
    uint8_t *claimed_streams; /* one bit a stream: it was opened */
} hfn_msf;

/* An open stream, and the run of adjacent blocks that was read last. */
typedef struct hfn_msf_stream {
    const hfn_msf *msf;
    uint32_t number;
    uint32_t size;         /* bytes */
    uint32_t first_number; /* as in hfn_msf */
    uint64_t run_begin, run_end;
    const uint8_t *run;
    uint8_t *scratch; /* for bytes that lie in two runs */
    size_t scratch_bytes;
} hfn_msf_stream;

/* file, path and env are kept.  On failure there is nothing to close.  HOTFN_E_UNSUPPORTED: the
 * message names the format of the file if it is a known one. */
hotfn_status hfn_msf_open(hfn_msf *msf, hfn_span file, const char *path, const hotfn_env *env,
                          hotfn_error *err);
void hfn_msf_close(hfn_msf *msf);

/* True if the stream exists and is not nil. */
bool hfn_msf_has(const hfn_msf *msf, uint32_t number);
bool hfn_msf_was_opened(const hfn_msf *msf, uint32_t number);
/* The file offset of the stream's size in the directory; for a stream that does not exist, the
 * offset of the number of streams. */
uint64_t hfn_msf_entry_offset(const hfn_msf *msf, uint32_t number);
/*
 * Check that the stream's blocks lie inside the file and belong to no other stream that was opened.
 * Reading all streams therefore reads no more bytes than the file has.  A stream may be opened
 * several times.  HOTFN_OK or HOTFN_E_FORMAT.
 */
hotfn_status hfn_msf_stream_open(hfn_msf_stream *stream, hfn_msf *msf, uint32_t number,
                                 hotfn_error *err);
void hfn_msf_stream_close(hfn_msf_stream *stream); /* a zeroed one is fine */

/* A view of [offset, offset + size) of the stream: into the file where the blocks are adjacent,
 * else into memory that the next call overwrites.  HOTFN_E_FORMAT if the range ends beyond the
 * stream. */
hotfn_status hfn_msf_view(hfn_msf_stream *stream, uint64_t offset, uint64_t size, hfn_span *out);
/* True if the span is a view into the file, false if the next call overwrites it. */
bool hfn_msf_is_view_of_file(const hfn_msf *msf, hfn_span span);
/* The file offset of the byte at offset of the stream; HOTFN_NO_OFFSET beyond its end. */
uint64_t hfn_msf_offset(const hfn_msf_stream *stream, uint64_t offset);

#endif
