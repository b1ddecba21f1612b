/* SPDX-License-Identifier: MIT */
/* Writes x86 instructions into a bounded buffer.  A writer that has become full stays full and
 * writes nothing more, so a sequence is checked once, at its end. */
#ifndef HFN_ARCH_X86_EMIT_H
#define HFN_ARCH_X86_EMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_x86_writer {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t length;
    bool full; /* an instruction did not fit */
} hfn_x86_writer;

hfn_x86_writer hfn_x86_begin_writer(uint8_t *bytes, uint32_t capacity);

void hfn_x86_put_bytes(hfn_x86_writer *w, const uint8_t *bytes, uint32_t count);
void hfn_x86_put_u8(hfn_x86_writer *w, uint8_t value);
void hfn_x86_put_u32(hfn_x86_writer *w, uint32_t value); /* little endian */

/* Write a branch whose 4-byte field is 0; returns the field's offset. */
uint32_t hfn_x86_put_jump(hfn_x86_writer *w);                       /* jmp rel32 */
uint32_t hfn_x86_put_jump_if(hfn_x86_writer *w, uint8_t condition); /* jcc rel32, condition 0..15 */

/* Overwrite the 4 bytes at offset `at` with value. */
void hfn_x86_replace_u32(hfn_x86_writer *w, uint32_t at, uint32_t value);

#endif
