/* SPDX-License-Identifier: MIT */
/* Packing rows of counts: most threads call few of the functions, so most slots are 0. */
#include "records/pack.h"

#include "base/status.h"

#include <string.h>

#define CHUNK_BYTES 65536u
#define MAX_ULEB_BYTES 10u /* of a u64 */

void hfn_packed_init(hfn_packed *p, const hotfn_env *env)
{
    memset(p, 0, sizeof *p);
    p->env = *env;
}

void hfn_packed_finish(hfn_packed *p)
{
    hfn_free_memory(&p->env, p->bytes, p->byte_capacity);
    hfn_free_memory(&p->env, p->ends, p->row_capacity * sizeof *p->ends);
    p->bytes = NULL;
    p->ends = NULL;
    p->byte_count = p->byte_capacity = p->row_count = p->row_capacity = 0;
}

/* ---- Packing. */

static void put_uleb(hfn_packed *p, uint64_t value)
{
    do {
        p->bytes[p->byte_count++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
}

bool hfn_packed_append(hfn_packed *p, const uint64_t *counts, uint64_t slot_count)
{
    for (uint64_t i = 0; i < slot_count; i++) {
        if (counts[i] == 0) {
            p->zeros++;
            continue;
        }
        if (!hfn_grow_array(&p->env, (void **)&p->bytes, &p->byte_capacity,
                            p->byte_count + 2 * MAX_ULEB_BYTES, 1)) {
            return false;
        }
        put_uleb(p, p->zeros);
        put_uleb(p, counts[i]);
        p->zeros = 0;
    }
    return true;
}

void hfn_packed_skip_slots(hfn_packed *p, uint64_t zero_count)
{
    p->zeros += (uint32_t)zero_count;
}

bool hfn_packed_end_row(hfn_packed *p)
{
    if (!hfn_grow_array(&p->env, (void **)&p->ends, &p->row_capacity, p->row_count + 1,
                        sizeof *p->ends)) {
        return false;
    }
    p->ends[p->row_count++] = p->byte_count;
    p->zeros = 0;
    return true;
}

/* ---- Unpacking. */

hfn_span hfn_packed_row(const hfn_packed *p, uint64_t row)
{
    hfn_span all = { p->bytes, p->byte_count, false };
    uint64_t begin;

    if (row >= p->row_count) {
        return hfn_span_sub(all, 0, 0);
    }
    begin = row == 0 ? 0 : p->ends[row - 1];
    return hfn_span_sub(all, begin, p->ends[row] >= begin ? p->ends[row] - begin : 0);
}

bool hfn_unpack_next(hfn_unpacker *u, uint64_t slot_count, uint64_t *slot, uint64_t *count)
{
    uint64_t zeros;

    if (u->offset >= u->row.size || !hfn_span_uleb(u->row, &u->offset, &zeros) ||
        !hfn_span_uleb(u->row, &u->offset, count)) {
        return false;
    }
    if (u->slot >= slot_count || zeros >= slot_count - u->slot) {
        return false;
    }
    *slot = u->slot + zeros;
    u->slot = *slot + 1;
    return true;
}

static uint64_t add_clamped(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t hfn_unpack_add(hfn_span row, uint64_t *totals, uint64_t slot_count)
{
    hfn_unpacker u = { row, 0, 0 };
    uint64_t slot, count, sum = 0;

    while (hfn_unpack_next(&u, slot_count, &slot, &count)) {
        if (totals) {
            totals[slot] = add_clamped(totals[slot], count);
        }
        sum = add_clamped(sum, count);
    }
    return sum;
}

/* ---- From a live record. */

typedef struct row_reader {
    hfn_packed *out;
    hfn_os_file file;
    bool has_holes;
    uint64_t *chunk;
    const char *path;
    hotfn_error *err;
} row_reader;

/* True if the file may have holes.  A durable file has none, since all its blocks are allocated; it
 * must not be searched for holes, because some file systems report a hole where a mapping has just
 * been written. */
static bool has_holes(hfn_os_file file, uint64_t byte_count)
{
    hfn_os_file_info info;

    return hfn_os_get_file_info(file, &info) == 0 && info.stored_bytes < byte_count;
}

/* The first offset from `at` on that is not in a hole; end if there is none. */
static uint64_t next_data(const row_reader *r, uint64_t at, uint64_t end)
{
    uint64_t data = r->has_holes ? hfn_os_find_data(r->file, at, end) : at;

    return data < end ? data & ~7ull : end;
}

static hotfn_status no_memory(const row_reader *r)
{
    return hfn_report_no_memory(r->err, r->path);
}

/* A count that is being incremented is not torn: the kernel copies aligned words as a whole. */
static hotfn_status read_row(const row_reader *r, uint64_t begin, uint64_t end)
{
    hfn_os_error error;
    uint64_t done;

    for (uint64_t at = begin; at < end;) {
        uint64_t data = next_data(r, at, end);
        uint64_t bytes = end - data < CHUNK_BYTES ? end - data : CHUNK_BYTES;

        hfn_packed_skip_slots(r->out, (data - at) / sizeof(uint64_t));
        error = hfn_os_read_at(r->file, data, r->chunk, bytes, &done);
        if (error != 0 || done < bytes) {
            return hfn_report_error(r->err, HOTFN_E_IO, r->path, data, "counts cannot be read: %s",
                                    error != 0 ? hfn_os_get_error_text(error)
                                               : "the file is too short");
        }
        if (!hfn_packed_append(r->out, r->chunk, bytes / sizeof(uint64_t))) {
            return no_memory(r);
        }
        at = data + bytes;
    }
    return hfn_packed_end_row(r->out) ? HOTFN_OK : no_memory(r);
}

hotfn_status hfn_packed_read(hfn_packed *out, hfn_os_file file, uint64_t rows_offset,
                             uint32_t row_bytes, uint32_t row_count, uint32_t slot_count,
                             const char *path, hotfn_error *err)
{
    row_reader r = { .out = out, .file = file, .path = path, .err = err };
    hotfn_status status = HOTFN_OK;

    r.has_holes = has_holes(file, (uint64_t)row_count * row_bytes);
    r.chunk = hfn_allocate_unset(&out->env, CHUNK_BYTES);
    if (!r.chunk) {
        return no_memory(&r);
    }
    for (uint32_t row = 0; status == HOTFN_OK && row < row_count; row++) {
        uint64_t begin = rows_offset + (uint64_t)row * row_bytes;

        status = read_row(&r, begin, begin + (uint64_t)slot_count * sizeof(uint64_t));
    }
    hfn_free_memory(&out->env, r.chunk, CHUNK_BYTES);
    return status;
}

/* ---- Differences. */

static void subtract_row(hfn_span row, uint64_t *counts, uint64_t slot_count)
{
    hfn_unpacker u = { row, 0, 0 };
    uint64_t slot, count;

    while (hfn_unpack_next(&u, slot_count, &slot, &count)) {
        counts[slot] -= count < counts[slot] ? count : counts[slot];
    }
}

bool hfn_packed_subtract(hfn_packed *out, const hfn_packed *to, const hfn_packed *from,
                         uint32_t slot_count)
{
    size_t bytes = (size_t)slot_count * sizeof(uint64_t);
    uint64_t *counts = hfn_allocate_zeroed(&out->env, bytes);
    bool ok = counts != NULL;

    for (size_t row = 0; ok && row < to->row_count; row++) {
        memset(counts, 0, bytes);
        hfn_unpack_add(hfn_packed_row(to, row), counts, slot_count);
        subtract_row(hfn_packed_row(from, row), counts, slot_count);
        ok = hfn_packed_append(out, counts, slot_count) && hfn_packed_end_row(out);
    }
    hfn_free_memory(&out->env, counts, bytes);
    return ok;
}
