/* SPDX-License-Identifier: MIT */
/* Writes .eh_frame for tests, byte by byte: LSB core, 'Exception Frames'; DWARF 5, 6.4. */
#ifndef HFN_TESTS_EH_FRAME_BUILDER_H
#define HFN_TESTS_EH_FRAME_BUILDER_H

#include "image/elf_builder.h"

/* Call frame instructions, as bytes in a string. */
#define CFA_RSP_8 "\x0c\x07\x08" /* DW_CFA_def_cfa rsp, 8   */
#define RA_AT_CFA_8 "\x90\x01"   /* DW_CFA_offset rip, cfa-8 */
#define ENTRY_X86_64 CFA_RSP_8 RA_AT_CFA_8
#define ENTRY_I386 "\x0c\x04\x04\x88\x01" /* DW_CFA_def_cfa esp, 4; DW_CFA_offset eip, cfa-4 */

/* A CIE of version 1; data are the augmentation's bytes.  Returns its offset. */
static inline size_t put_cie(elf_bytes *b, const char *augmentation, const char *data,
                             size_t data_bytes, const char *code, size_t code_bytes)
{
    size_t start = b->size;

    put(b, 0, 4), put(b, 0, 4), put(b, 1, 1);
    put_text(b, augmentation);
    /* code alignment 1; x86-64: data alignment -8, return address 16; i386: -4, 8 */
    put(b, 1, 1), put(b, b->wide ? 0x78 : 0x7C, 1), put(b, b->wide ? 16 : 8, 1);
    if (augmentation[0] == 'z') {
        put(b, data_bytes, 1);
    }
    put_data(b, data, data_bytes);
    put_data(b, code, code_bytes);
    put_align(b, 4);
    put_at(b, start, b->size - start - 4, 4);
    return start;
}

/* A CIE as compilers write it: pointers are pcrel sdata4. */
static inline size_t put_plain_cie(elf_bytes *b)
{
    return put_cie(b, "zR", "\x1b", 1, ENTRY_X86_64, 5);
}

/* An FDE of the function at begin; its pointers are pcrel sdata4.  address is that of .eh_frame.
 * Returns the FDE's offset. */
static inline size_t put_fde(elf_bytes *b, size_t cie, uint64_t address, uint64_t begin,
                             uint32_t size, const char *code, size_t code_bytes)
{
    size_t start = b->size;

    put(b, 0, 4), put(b, start + 4 - cie, 4);
    put(b, begin - (address + b->size), 4), put(b, size, 4);
    put(b, 0, 1); /* no augmentation data */
    put_data(b, code, code_bytes);
    put_align(b, 4);
    put_at(b, start, b->size - start - 4, 4);
    return start;
}

#endif
