/* SPDX-License-Identifier: MIT */
/* Writing x86-64 instructions into a buffer: what moved prologues and stubs are made of.  A writer
 * that is full stays full and writes nothing more, so a sequence is checked once, at its end. */
#ifndef HFN_ARCH_X86_EMIT_H
#define HFN_ARCH_X86_EMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_x86_writer {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t length;
    bool full; /* something did not fit */
} hfn_x86_writer;

hfn_x86_writer hfn_x86_begin_writer(uint8_t *bytes, uint32_t capacity);

void hfn_x86_put_bytes(hfn_x86_writer *w, const uint8_t *bytes, uint32_t count);
void hfn_x86_put_u8(hfn_x86_writer *w, uint8_t value);
void hfn_x86_put_u32(hfn_x86_writer *w, uint32_t value); /* little endian */

/* The branches with a 4-byte field, whose place in the buffer is the answer; the field holds 0. */
uint32_t hfn_x86_put_jump(hfn_x86_writer *w);                       /* jmp rel32 */
uint32_t hfn_x86_put_jump_if(hfn_x86_writer *w, uint8_t condition); /* jcc rel32, condition 0..15 */

/* Fill the 4 bytes at `at` with distance. */
void hfn_x86_replace_u32(hfn_x86_writer *w, uint32_t at, uint32_t value);

#endif
