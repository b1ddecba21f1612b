/* SPDX-License-Identifier: MIT */
/* Fields of protocol buffers: a key (field number and wire type), then a varint or length and
 * bytes. */
#include "exporters/protobuf.h"

#include <string.h>

enum { VARINT = 0, BYTES = 2 };

void hfn_message_init(hfn_message *m, const hotfn_env *env)
{
    *m = (hfn_message){ .env = *env };
}

void hfn_message_finish(hfn_message *m)
{
    hfn_free_memory(&m->env, m->bytes, m->capacity);
}

void hfn_message_clear(hfn_message *m)
{
    m->count = 0;
}

static size_t encode_varint(uint8_t out[10], uint64_t value)
{
    size_t count = 0;
    for (; value > 0x7f; value >>= 7) {
        out[count++] = (uint8_t)(value | 0x80);
    }
    out[count++] = (uint8_t)value;
    return count;
}

static void put_bytes(hfn_message *m, const void *bytes, size_t count)
{
    m->failed = m->failed ||
                !hfn_grow_array(&m->env, (void **)&m->bytes, &m->capacity, m->count + count, 1);
    if (!m->failed && count > 0) {
        memcpy(m->bytes + m->count, bytes, count);
        m->count += count;
    }
}

static void put_varint(hfn_message *m, uint64_t value)
{
    uint8_t bytes[10];
    put_bytes(m, bytes, encode_varint(bytes, value));
}

void hfn_message_number(hfn_message *m, uint32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3 | VARINT);
    put_varint(m, value);
}

void hfn_message_bytes(hfn_message *m, uint32_t field, const void *bytes, size_t count)
{
    put_varint(m, (uint64_t)field << 3 | BYTES);
    put_varint(m, count);
    put_bytes(m, bytes, count);
}

static bool is_text(const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = hfn_utf8_length(s);
        if (length == 0) {
            return false;
        }
        s += length;
    }
    return true;
}

void hfn_message_text(hfn_message *m, uint32_t field, const char *text)
{
    hfn_message valid;
    if (is_text(text)) {
        hfn_message_bytes(m, field, text, strlen(text));
        return;
    }
    hfn_message_init(&valid, &m->env);
    for (const char *s = text; *s;) {
        size_t length = hfn_utf8_length((const unsigned char *)s);
        put_bytes(&valid, length ? s : "\xef\xbf\xbd", length ? length : 3);
        s += length ? length : 1;
    }
    m->failed = m->failed || valid.failed;
    hfn_message_bytes(m, field, valid.bytes, valid.failed ? 0 : valid.count);
    hfn_message_finish(&valid);
}

void hfn_message_inner(hfn_message *m, uint32_t field, const hfn_message *inner)
{
    m->failed = m->failed || inner->failed;
    hfn_message_bytes(m, field, inner->bytes, inner->count);
}

bool hfn_message_send(hfn_message *m, uint32_t field, hfn_sink *sink)
{
    uint8_t head[20];
    size_t count = encode_varint(head, (uint64_t)field << 3 | BYTES);
    count += encode_varint(head + count, m->count);
    if (!m->failed) {
        hfn_sink_bytes(sink, (const char *)head, count);
        hfn_sink_bytes(sink, (const char *)m->bytes, m->count);
    }
    m->count = 0;
    return !m->failed;
}
