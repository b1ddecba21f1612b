/* SPDX-License-Identifier: MIT */
/* Pack and read the rows of a run. */
#include "pack.h"

void pack_rows(byte_buffer *out, const packed_row *rows, uint32_t count, bool timed)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        const packed_row *row = &rows[i];
        buffer_append_number(out, row->function + UINT64_C(1) - next);
        next = row->function + UINT64_C(1);
        buffer_append_number(out, row->values[0]);
        if (timed) {
            buffer_append_number(out, row->values[1]);
            buffer_append_number(out, row->values[2]);
            buffer_append_number(out, row->max_ns);
        }
    }
}

row_reader begin_rows(const void *bytes, size_t byte_count, bool timed)
{
    return (row_reader){ cursor_begin(bytes, byte_count), 0, timed };
}

bool read_row(row_reader *r, packed_row *out)
{
    if (r->cursor.at == r->cursor.end) {
        return false;
    }
    uint64_t step = cursor_read_number(&r->cursor);
    r->cursor.failed |= step == 0 || step > UINT32_MAX - r->next;
    if (r->cursor.failed) {
        return false;
    }
    r->next += step;
    out->function = (uint32_t)(r->next - 1);
    out->values[0] = cursor_read_number(&r->cursor);
    out->values[1] = out->values[2] = out->max_ns = 0;
    if (r->timed) {
        out->values[1] = cursor_read_number(&r->cursor);
        out->values[2] = cursor_read_number(&r->cursor);
        out->max_ns = cursor_read_number(&r->cursor);
    }
    return !r->cursor.failed;
}
