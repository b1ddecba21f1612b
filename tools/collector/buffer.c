/* SPDX-License-Identifier: MIT */
/* Growing bytes, and numbers of variable length in them. */
#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool buffer_reserve(byte_buffer *b, size_t byte_count)
{
    if (b->failed || byte_count <= b->room - b->used) {
        return !b->failed;
    }
    size_t room = b->room ? b->room : 256;
    while (room - b->used < byte_count && room < SIZE_MAX / 2) {
        room *= 2;
    }
    uint8_t *more = room - b->used < byte_count ? NULL : realloc(b->data, room);
    if (!more) {
        b->failed = true;
        return false;
    }
    b->data = more;
    b->room = room;
    return true;
}

void buffer_append(byte_buffer *b, const void *bytes, size_t byte_count)
{
    if (byte_count > 0 && buffer_reserve(b, byte_count)) {
        memcpy(b->data + b->used, bytes, byte_count);
        b->used += byte_count;
    }
}

void buffer_append_text(byte_buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}

void buffer_append_format(byte_buffer *b, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text) {
        b->failed = true;
        return;
    }
    buffer_append(b, text, (size_t)length);
}

void buffer_append_number(byte_buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;

    do {
        bytes[count++] = (uint8_t)((value & 127u) | (value > 127 ? 128u : 0u));
        value >>= 7;
    } while (value);
    buffer_append(b, bytes, count);
}

void buffer_free(byte_buffer *b)
{
    free(b->data);
    *b = (byte_buffer){ 0 };
}

int32_t buffer_write(void *user, const void *bytes, size_t byte_count)
{
    byte_buffer *b = user;

    buffer_append(b, bytes, byte_count);
    return b->failed;
}

void copy_bounded(char *out, size_t out_bytes, const char *text)
{
    size_t length = strnlen(text, out_bytes - 1);

    memcpy(out, text, length);
    out[length] = 0;
}

byte_cursor cursor_begin(const void *bytes, size_t byte_count)
{
    const uint8_t *at = bytes;

    return (byte_cursor){ at, byte_count ? at + byte_count : at, false };
}

uint64_t cursor_read_number(byte_cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && !c->failed && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 127u) << shift;
        if (!(byte & 128u)) {
            return value;
        }
    }
    c->failed = true;
    return 0;
}

const uint8_t *cursor_read_bytes(byte_cursor *c, uint64_t byte_count)
{
    const uint8_t *at = c->at;

    if (c->failed || byte_count > (uint64_t)(c->end - c->at)) {
        c->failed = true;
        return NULL;
    }
    c->at += byte_count;
    return at;
}
