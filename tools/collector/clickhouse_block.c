/* SPDX-License-Identifier: MIT */
/* Encode runs as a block of ClickHouse's Native format. */
#include "clickhouse_block.h"

#include "pack.h"

#include <string.h>

/* In the order of the values of append_row. */
static const struct {
    const char *name, *type;
} columns[BLOCK_COLUMNS] = {
    { "day", "Date" },      { "batch", "UInt64" },    { "build", "UInt32" },
    { "caller", "UInt32" }, { "function", "UInt32" }, { "client", "UInt32" },
    { "run", "UInt64" },    { "start_ns", "UInt64" }, { "labels", "Array(String)" },
    { "calls", "UInt64" },  { "total_ns", "UInt64" }, { "self_ns", "UInt64" },
    { "max_ns", "UInt64" },
};
static const uint8_t widths[BLOCK_COLUMNS] = { 2, 8, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8 };

static void write_le64(uint8_t *out, uint64_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
    out[2] = (uint8_t)(value >> 16);
    out[3] = (uint8_t)(value >> 24);
    out[4] = (uint8_t)(value >> 32);
    out[5] = (uint8_t)(value >> 40);
    out[6] = (uint8_t)(value >> 48);
    out[7] = (uint8_t)(value >> 56);
}

/* Of a narrower value the next one overwrites the bytes that are too many. */
static void append_row(count_block *b, const block_run *run, uint32_t caller, const packed_row *row)
{
    b->label_count += run->label_count;
    buffer_append(&b->labels, run->labels->data, run->labels->used);
    const uint64_t values[BLOCK_COLUMNS] = { run->day,       run->batch,     run->build,
                                             caller,         row->function,  run->client,
                                             run->run,       run->start_ns,  b->label_count,
                                             row->values[0], row->values[1], row->values[2],
                                             row->max_ns };
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        byte_buffer *column = &b->columns[i];
        if (column->room - column->used >= 8 || buffer_reserve(column, 8)) {
            write_le64(column->data + column->used, values[i]);
            column->used += widths[i];
        }
    }
    b->row_count++;
}

static bool add_callers(count_block *b, const block_run *run)
{
    byte_cursor c = cursor_begin(run->callers, run->caller_bytes);

    while (c.at < c.end) {
        uint64_t caller = cursor_read_number(&c), callee = cursor_read_number(&c);
        packed_row row = { (uint32_t)callee, { cursor_read_number(&c), 0, 0 }, 0 };
        if (c.failed || caller >= ALL_CALLERS || callee >= ALL_CALLERS) {
            return false;
        }
        append_row(b, run, (uint32_t)caller, &row);
    }
    return true;
}

bool block_add_run(count_block *b, const block_run *run)
{
    row_reader reader = begin_rows(run->rows, run->row_bytes, run->timed);
    packed_row row;

    while (read_row(&reader, &row)) {
        append_row(b, run, ALL_CALLERS, &row);
    }
    bool ok = !reader.cursor.failed && add_callers(b, run) && !b->labels.failed;
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        ok = ok && !b->columns[i].failed;
    }
    return ok;
}

static void append_text(byte_buffer *out, const char *text)
{
    buffer_append_number(out, strlen(text));
    buffer_append_text(out, text);
}

void block_finish(const count_block *b, byte_buffer *out)
{
    buffer_append_number(out, BLOCK_COLUMNS);
    buffer_append_number(out, b->row_count);
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        append_text(out, columns[i].name);
        append_text(out, columns[i].type);
        buffer_append(out, b->columns[i].data, b->columns[i].used);
        if (strcmp(columns[i].name, "labels") == 0) {
            buffer_append(out, b->labels.data, b->labels.used);
        }
    }
}

static void clear_buffer(byte_buffer *b)
{
    b->used = 0;
    b->failed = false;
}

void block_clear(count_block *b)
{
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        clear_buffer(&b->columns[i]);
    }
    clear_buffer(&b->labels);
    b->label_count = b->row_count = 0;
}

void block_free(count_block *b)
{
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        buffer_free(&b->columns[i]);
    }
    buffer_free(&b->labels);
    *b = (count_block){ 0 };
}
