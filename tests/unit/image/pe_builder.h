/* SPDX-License-Identifier: MIT */
/*
 * Makes small PE files for tests, byte by byte, in both widths.  It shares no code with the reader.
 * Layout: headers in the first 1024 bytes (PE header at 64), then the sections in the order they
 * were added, 512-aligned in the file and 4096-aligned in memory.
 */
#ifndef HFN_TESTS_PE_BUILDER_H
#define HFN_TESTS_PE_BUILDER_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PE_CODE = 0x60000020,
    PE_DATA = 0x40000040,
    PE_HEAD_BYTES = 1024,
    PE_FILE_AT = 68, /* the file header */
    PE_OPTIONAL_AT = 88,
};

typedef struct pe_builder {
    uint8_t data[1 << 17];
    size_t size;
    int bits;
    uint64_t base;
    uint32_t entry, next_rva, section_count, directories_at, sections_at;
    uint32_t last_offset; /* of the section added last, in the file */
} pe_builder;

static inline void pe_put(pe_builder *b, size_t at, uint64_t value, int bytes)
{
    assert(at + (size_t)bytes <= sizeof b->data);
    for (int i = 0; i < bytes; i++) {
        b->data[at + (size_t)i] = (uint8_t)(value >> (8 * i));
    }
}

static inline pe_builder *pe_new(int bits, uint16_t machine)
{
    pe_builder *b = calloc(1, sizeof *b);

    assert(b);
    b->bits = bits;
    b->base = bits == 64 ? 0x140000000 : 0x400000;
    b->size = PE_HEAD_BYTES;
    b->next_rva = 4096;
    b->directories_at = PE_OPTIONAL_AT + (bits == 64 ? 112 : 96);
    b->sections_at = b->directories_at + 16 * 8;
    memcpy(b->data, "MZ", 2);
    pe_put(b, 0x3c, 64, 4);
    memcpy(b->data + 64, "PE\0\0", 4);
    pe_put(b, PE_FILE_AT, machine, 2);
    pe_put(b, PE_FILE_AT + 4, 0x5eed0001, 4); /* TimeDateStamp */
    pe_put(b, PE_FILE_AT + 16, b->sections_at - PE_OPTIONAL_AT, 2);
    pe_put(b, PE_FILE_AT + 18, 0x22, 2);
    pe_put(b, PE_OPTIONAL_AT, bits == 64 ? 0x20b : 0x10b, 2);
    pe_put(b, PE_OPTIONAL_AT + (bits == 64 ? 24 : 28), b->base, bits / 8);
    pe_put(b, PE_OPTIONAL_AT + 32, 4096, 4);
    pe_put(b, PE_OPTIONAL_AT + 36, 512, 4);
    pe_put(b, PE_OPTIONAL_AT + 60, PE_HEAD_BYTES, 4);
    pe_put(b, b->directories_at - 4, 16, 4);
    return b;
}

/* Add a section and return its RVA.  memory_bytes 0 means size. */
static inline uint32_t pe_add(pe_builder *b, const char *name, uint32_t flags, const void *data,
                              size_t size, uint32_t memory_bytes)
{
    size_t at = b->sections_at + 40 * (size_t)b->section_count++;
    uint32_t rva = b->next_rva, raw = (uint32_t)((size + 511) & ~(size_t)511);

    assert(at + 40 <= PE_HEAD_BYTES && b->size + raw <= sizeof b->data);
    memory_bytes = memory_bytes ? memory_bytes : (uint32_t)size;
    memcpy(b->data + at, name, strnlen(name, 8));
    pe_put(b, at + 8, memory_bytes, 4);
    pe_put(b, at + 12, rva, 4);
    pe_put(b, at + 16, raw, 4);
    pe_put(b, at + 20, raw ? b->size : 0, 4);
    pe_put(b, at + 36, flags, 4);
    if (size) {
        memcpy(b->data + b->size, data, size);
    }
    b->last_offset = (uint32_t)b->size;
    b->size += raw;
    b->next_rva = (rva + (memory_bytes > raw ? memory_bytes : raw) + 4095) & ~4095u;
    return rva;
}

static inline void pe_directory(pe_builder *b, uint32_t index, uint32_t rva, uint32_t bytes)
{
    pe_put(b, b->directories_at + 8 * index, rva, 4);
    pe_put(b, b->directories_at + 8 * index + 4, bytes, 4);
}

static inline void pe_finish(pe_builder *b)
{
    pe_put(b, PE_FILE_AT + 2, b->section_count, 2);
    pe_put(b, PE_OPTIONAL_AT + 16, b->entry, 4);
    pe_put(b, PE_OPTIONAL_AT + 56, b->next_rva, 4);
}

#endif
