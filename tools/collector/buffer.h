/* SPDX-License-Identifier: MIT */
/* A growing array of bytes.  After an allocation fails, the buffer is marked failed and later
 * appends do nothing, so that callers check once at the end. */
#ifndef HOTFN_COLLECTOR_BUFFER_H
#define HOTFN_COLLECTOR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct byte_buffer {
    uint8_t *data;
    size_t used, room;
    bool failed;
} byte_buffer;

/* Make room for so many further bytes; false if the buffer failed or there is no memory. */
bool buffer_reserve(byte_buffer *b, size_t byte_count);
void buffer_append(byte_buffer *b, const void *bytes, size_t byte_count);
void buffer_append_text(byte_buffer *b, const char *text);
void buffer_append_format(byte_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Unsigned LEB128 (DWARF 5, 7.6). */
void buffer_append_number(byte_buffer *b, uint64_t value);
void buffer_free(byte_buffer *b);
/* A hotfn_write_fn whose user is a byte_buffer. */
int32_t buffer_write(void *user, const void *bytes, size_t byte_count);

/* Copy a text; what does not fit is cut off. */
void copy_bounded(char *out, size_t out_bytes, const char *text);

/* A position in bytes that may be damaged.  A read past the end, or of a number above 64 bits,
 * marks the cursor failed and returns 0. */
typedef struct byte_cursor {
    const uint8_t *at, *end;
    bool failed;
} byte_cursor;

/* bytes may be NULL if there are none, as SQLite returns an empty blob. */
byte_cursor cursor_begin(const void *bytes, size_t byte_count);
uint64_t cursor_read_number(byte_cursor *c);
/* NULL if fewer bytes are left. */
const uint8_t *cursor_read_bytes(byte_cursor *c, uint64_t byte_count);

#endif
