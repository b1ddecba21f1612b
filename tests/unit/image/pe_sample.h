/* SPDX-License-Identifier: MIT */
/*
 * One x64 PE image with an example of each structure that the PE loaders read: exports by name, by
 * number and forwarded, an import stub, .pdata with a chained part and a __try block, a relocated
 * address in code, COFF symbols.
 */
#ifndef HFN_TESTS_PE_SAMPLE_H
#define HFN_TESTS_PE_SAMPLE_H

#include "image/pe_builder.h"

enum {
    PE_TEXT = 0x1000,
    PE_GUARDED = PE_TEXT,      /* a __try block behind its prologue; exported as "guarded"     */
    PE_PLAIN = PE_TEXT + 0x20, /* exported by number only; its part PE_COLD is placed elsewhere */
    PE_COLD = PE_TEXT + 0x40,  /* chained to PE_PLAIN                                          */
    PE_STUB = PE_TEXT + 0x50,  /* jmp [import]                                                 */
    PE_RELOCATED =
        PE_TEXT + 0x60,         /* mov rax, address                                             */
    PE_FILTER = PE_TEXT + 0x80, /* only the scope table leads there                             */
    PE_TEXT_BYTES = 0xa0,
    PE_RDATA = 0x2000,
    PE_IAT = PE_RDATA,
    PE_EXPORT_DIRECTORY = PE_RDATA + 0x40,
    PE_EXPORT_BYTES = 0xc0,
    PE_UNWIND = PE_RDATA + 0x100,
    PE_PDATA = PE_RDATA + 0x180,
};

/* In .rdata, by RVA. */
typedef struct pe_rdata {
    uint8_t bytes[0x400];
} pe_rdata;

static inline void pe_word(pe_rdata *r, uint32_t rva, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        r->bytes[rva - PE_RDATA + (uint32_t)i] = (uint8_t)(value >> (8 * i));
    }
}

static inline void pe_words(pe_rdata *r, uint32_t rva, const uint32_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        pe_word(r, rva + 4 * (uint32_t)i, words[i], 4);
    }
}

static inline void pe_sample_text(uint8_t text[PE_TEXT_BYTES])
{
    memset(text, 0xcc, PE_TEXT_BYTES);
    /* sub rsp, 40; mov byte [rcx], 0; add rsp, 40; ret */
    memcpy(text, "\x48\x83\xec\x28\xc6\x01\x00\x48\x83\xc4\x28\xc3", 12);
    /* sub rsp, 40; test ecx, ecx; jne PE_COLD; add rsp, 40; ret */
    memcpy(text + 0x20, "\x48\x83\xec\x28\x85\xc9\x75\x18\x48\x83\xc4\x28\xc3", 13);
    /* inc eax; jmp PE_PLAIN + 8 */
    memcpy(text + 0x40, "\xff\xc0\xeb\xe4", 4);
    memcpy(text + 0x50, "\xff\x25\xaa\x0f\x00\x00", 6); /* jmp [rip + 0xfaa]: PE_IAT */
    /* mov rax, 0x140001020; ret */
    memcpy(text + 0x60, "\x48\xb8\x20\x10\x00\x40\x01\x00\x00\x00\xc3", 11);
    /* mov eax, 1; ret */
    memcpy(text + 0x80, "\xb8\x01\x00\x00\x00\xc3", 6);
}

static inline void pe_sample_exports(pe_rdata *r)
{
    const uint32_t at = PE_EXPORT_DIRECTORY;
    const uint32_t directory[] = { 0, 0, 0, at + 0x60, 3, 3, 2, at + 0x28, at + 0x34, at + 0x3c };
    const uint32_t functions[] = { PE_GUARDED, PE_PLAIN, at + 0x80 };
    const uint32_t names[] = { at + 0x70, at + 0x90 };

    pe_words(r, at, directory, 10);
    pe_words(r, at + 0x28, functions, 3);
    pe_words(r, at + 0x34, names, 2);
    pe_word(r, at + 0x3c, 2, 2); /* "Sleepy" is the third function */
    pe_word(r, at + 0x3e, 0, 2);
    memcpy(r->bytes + (at - PE_RDATA + 0x60), "x.dll", 6);
    memcpy(r->bytes + (at - PE_RDATA + 0x70), "Sleepy", 7);
    memcpy(r->bytes + (at - PE_RDATA + 0x80), "OTHER.Sleep", 12);
    memcpy(r->bytes + (at - PE_RDATA + 0x90), "guarded", 8);
}

static inline void pe_sample_unwind(pe_rdata *r)
{
    const uint32_t scopes[] = { PE_FILTER,      1,         PE_GUARDED + 4,
                                PE_GUARDED + 7, PE_FILTER, PE_GUARDED + 7 };
    const uint32_t parent[] = { PE_PLAIN, PE_PLAIN + 13, PE_UNWIND + 0x40 };
    const uint32_t pdata[] = { PE_GUARDED, PE_GUARDED + 12, PE_UNWIND,
                               PE_PLAIN,   PE_PLAIN + 13,   PE_UNWIND + 0x40,
                               PE_COLD,    PE_COLD + 4,     PE_UNWIND + 0x60 };

    pe_word(r, PE_UNWIND, 0x00010409, 4);     /* EHANDLER, prologue of 4 bytes, one code */
    pe_word(r, PE_UNWIND + 4, 0x00004204, 4); /* ALLOC_SMALL 40                          */
    pe_words(r, PE_UNWIND + 8, scopes, 6);    /* the handler is PE_FILTER, too           */
    pe_word(r, PE_UNWIND + 0x40, 0x00010401, 4);
    pe_word(r, PE_UNWIND + 0x44, 0x00004204, 4);
    pe_word(r, PE_UNWIND + 0x60, 0x00000021, 4); /* CHAININFO, no codes */
    pe_words(r, PE_UNWIND + 0x64, parent, 3);
    pe_words(r, PE_PDATA, pdata, 9);
}

/* Two symbols: "relocated" of function type, "a_long_named_label" without. */
static inline void pe_sample_symbols(pe_builder *b)
{
    static const char names[] = "a_long_named_label";
    size_t at = b->size;

    pe_put(b, PE_FILE_AT + 8, at, 4);
    pe_put(b, PE_FILE_AT + 12, 2, 4);
    memcpy(b->data + at, "relocat", 8);
    pe_put(b, at + 8, PE_RELOCATED - PE_TEXT, 4);
    pe_put(b, at + 12, 1, 2);
    pe_put(b, at + 14, 0x20, 2);
    pe_put(b, at + 16, 2, 1);
    pe_put(b, at + 18 + 4, 4, 4);
    pe_put(b, at + 18 + 8, PE_STUB - PE_TEXT, 4);
    pe_put(b, at + 18 + 12, 1, 2);
    pe_put(b, at + 18 + 16, 2, 1);
    pe_put(b, at + 36, 4 + sizeof names, 4);
    memcpy(b->data + at + 40, names, sizeof names);
    b->size += 40 + sizeof names;
}

static inline pe_builder *pe_new_sample(void)
{
    pe_builder *b = pe_new(64, 0x8664);
    uint8_t text[PE_TEXT_BYTES];
    static const uint8_t relocs[] = { 0, 0x10, 0, 0, 12, 0, 0, 0, 0x62, 0xa0, 0, 0 };
    pe_rdata r = { { 0 } };

    pe_sample_text(text);
    pe_sample_exports(&r);
    pe_sample_unwind(&r);
    b->entry = pe_add(b, ".text", PE_CODE, text, sizeof text, 0);
    pe_add(b, ".rdata", PE_DATA, r.bytes, sizeof r.bytes, 0);
    pe_directory(b, 0, PE_EXPORT_DIRECTORY, PE_EXPORT_BYTES);
    pe_directory(b, 3, PE_PDATA, 36);
    pe_directory(b, 5, pe_add(b, ".reloc", PE_DATA, relocs, sizeof relocs, 0), sizeof relocs);
    pe_directory(b, 12, PE_IAT, 16);
    pe_finish(b);
    pe_sample_symbols(b);
    return b;
}

#endif
