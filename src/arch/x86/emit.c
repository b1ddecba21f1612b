/* SPDX-License-Identifier: MIT */
/* A bounded writer of machine code (encodings: Intel SDM vol. 2, JMP and Jcc). */
#include "arch/x86/emit.h"

#include "base/byte_order.h"

#include <string.h>

hfn_x86_writer hfn_x86_begin_writer(uint8_t *bytes, uint32_t capacity)
{
    return (hfn_x86_writer){ .bytes = bytes, .capacity = capacity };
}

void hfn_x86_put_bytes(hfn_x86_writer *w, const uint8_t *bytes, uint32_t count)
{
    if (w->full || count > w->capacity - w->length) {
        w->full = true;
        return;
    }
    memcpy(w->bytes + w->length, bytes, count);
    w->length += count;
}

void hfn_x86_put_u8(hfn_x86_writer *w, uint8_t value)
{
    hfn_x86_put_bytes(w, &value, 1);
}

void hfn_x86_put_u32(hfn_x86_writer *w, uint32_t value)
{
    uint8_t bytes[4];

    hfn_write_le32(bytes, value);
    hfn_x86_put_bytes(w, bytes, sizeof bytes);
}

uint32_t hfn_x86_put_jump(hfn_x86_writer *w)
{
    hfn_x86_put_bytes(w, (const uint8_t[]){ 0xE9, 0, 0, 0, 0 }, 5); /* jmp rel32 */
    return w->length - 4;
}

uint32_t hfn_x86_put_jump_if(hfn_x86_writer *w, uint8_t condition)
{
    hfn_x86_put_bytes(w, (const uint8_t[]){ 0x0F, (uint8_t)(0x80 | condition), 0, 0, 0, 0 }, 6);
    return w->length - 4;
}

void hfn_x86_replace_u32(hfn_x86_writer *w, uint32_t at, uint32_t value)
{
    hfn_x86_writer field = { .bytes = w->bytes + at, .capacity = 4 };

    if (!w->full) {
        hfn_x86_put_u32(&field, value);
    }
}
