/* SPDX-License-Identifier: MIT */
/*
 * Makes small ELF files for tests, byte by byte, in both classes and byte orders. It shares no code
 * with the reader. Layout: header and program headers in the first KiB, then the sections in the
 * order they were added, then .shstrtab and the section headers.  By default a section's address is
 * base plus its file offset, and one segment covers the whole file.
 */
#ifndef HFN_TESTS_ELF_BUILDER_H
#define HFN_TESTS_ELF_BUILDER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ELF_ALLOC = 2, ELF_WRITE = 1, ELF_CODE = 4, ELF_HEAD_BYTES = 1024 };

/* A growing buffer of numbers in one byte order. */
typedef struct elf_bytes {
    uint8_t data[1 << 17];
    size_t size;
    bool big, wide;
} elf_bytes;

static inline void put_at(elf_bytes *b, size_t at, uint64_t value, int bytes)
{
    assert(at + (size_t)bytes <= sizeof b->data);
    for (int i = 0; i < bytes; i++) {
        b->data[at + (size_t)(b->big ? bytes - 1 - i : i)] = (uint8_t)(value >> (8 * i));
    }
}

static inline void put(elf_bytes *b, uint64_t value, int bytes)
{
    put_at(b, b->size, value, bytes);
    b->size += (size_t)bytes;
}

static inline void put_word(elf_bytes *b, uint64_t value)
{
    put(b, value, b->wide ? 8 : 4);
}

static inline void put_data(elf_bytes *b, const void *data, size_t size)
{
    assert(b->size + size <= sizeof b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

/* Appends text with its NUL; returns its offset. */
static inline uint32_t put_text(elf_bytes *b, const char *text)
{
    uint32_t at = (uint32_t)b->size;

    put_data(b, text, strlen(text) + 1);
    return at;
}

static inline void put_align(elf_bytes *b, size_t alignment)
{
    while (b->size % alignment) {
        put(b, 0, 1);
    }
}

typedef struct elf_builder_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t flags, address, offset, size, entry_size;
} elf_builder_section;

typedef struct elf_builder_segment {
    uint32_t type, flags;
    uint64_t offset, address, file_bytes, memory_bytes, alignment;
} elf_builder_segment;

typedef struct elf_builder {
    elf_bytes file;
    uint16_t type, machine;
    uint64_t base, entry;
    elf_builder_section sections[40];
    elf_builder_segment segments[12];
    uint32_t section_count, segment_count;
    bool no_sections;     /* leave the section headers away            */
    bool extended_counts; /* counts stand in section 0                 */
    uint64_t headers_at;  /* where the section headers were written    */
} elf_builder;

/* Create an empty shared library; the caller frees it with free(). */
static inline elf_builder *elf_new(int bits, bool big, uint16_t machine)
{
    elf_builder *b = calloc(1, sizeof *b);

    assert(b);
    b->file.big = big;
    b->file.wide = bits == 64;
    b->file.size = ELF_HEAD_BYTES;
    b->type = 3;
    b->machine = machine;
    b->section_count = 1;
    return b;
}

static inline elf_builder *elf_new_x86_64(void)
{
    return elf_new(64, false, 62);
}

/* Create a buffer of the same class and byte order. */
static inline elf_bytes *elf_buffer(const elf_builder *b)
{
    elf_bytes *bytes = calloc(1, sizeof *bytes);

    assert(bytes);
    bytes->big = b->file.big;
    bytes->wide = b->file.wide;
    return bytes;
}

static inline uint32_t elf_add(elf_builder *b, const char *name, uint32_t type, uint64_t flags,
                               const void *data, size_t size)
{
    elf_builder_section *s = &b->sections[b->section_count];

    put_align(&b->file, 16);
    *s = (elf_builder_section){ .name = name, .type = type, .flags = flags, .size = size };
    s->offset = b->file.size;
    s->address = flags & ELF_ALLOC ? b->base + s->offset : 0;
    if (type != 8) {
        put_data(&b->file, data, size);
    }
    return b->section_count++;
}

/* The same from a buffer, which is freed. */
static inline uint32_t elf_add_buffer(elf_builder *b, const char *name, uint32_t type,
                                      uint64_t flags, elf_bytes *bytes)
{
    uint32_t index = elf_add(b, name, type, flags, bytes->data, bytes->size);

    free(bytes);
    return index;
}

static inline elf_builder_segment *elf_segment(elf_builder *b, uint32_t type, uint32_t flags,
                                               uint64_t offset, uint64_t size)
{
    elf_builder_segment *s = &b->segments[b->segment_count++];

    *s = (elf_builder_segment){ type, flags, offset, b->base + offset, size, size, 4 };
    return s;
}

/* Add a segment that covers one section. */
static inline elf_builder_segment *elf_segment_of(elf_builder *b, uint32_t type, uint32_t section)
{
    return elf_segment(b, type, 4, b->sections[section].offset, b->sections[section].size);
}

/* Function and other symbols: type 2 FUNC, 0 NOTYPE, 1 OBJECT, 10 IFUNC; binding 0, 1, 2. */
static inline void put_symbol(elf_bytes *b, uint32_t name, uint8_t binding, uint8_t type,
                              uint16_t section, uint64_t value, uint64_t size)
{
    uint8_t info = (uint8_t)(binding << 4 | type);

    put(b, name, 4);
    if (b->wide) {
        put(b, info, 1), put(b, 0, 1), put(b, section, 2);
        put(b, value, 8), put(b, size, 8);
    } else {
        put(b, value, 4), put(b, size, 4);
        put(b, info, 1), put(b, 0, 1), put(b, section, 2);
    }
}

static inline void elf_write_segment(elf_builder *b, size_t at, const elf_builder_segment *s)
{
    elf_bytes *f = &b->file;
    size_t end = f->size;

    f->size = at;
    put(f, s->type, 4);
    if (f->wide) {
        put(f, s->flags, 4);
    }
    put_word(f, s->offset), put_word(f, s->address), put_word(f, s->address);
    put_word(f, s->file_bytes), put_word(f, s->memory_bytes);
    if (!f->wide) {
        put(f, s->flags, 4);
    }
    put_word(f, s->alignment);
    f->size = end;
}

static inline void elf_write_section(elf_builder *b, const elf_builder_section *s, uint32_t name)
{
    elf_bytes *f = &b->file;

    put(f, name, 4), put(f, s->type, 4), put_word(f, s->flags), put_word(f, s->address);
    put_word(f, s->offset), put_word(f, s->size), put(f, s->link, 4), put(f, s->info, 4);
    put_word(f, 1), put_word(f, s->entry_size);
}

static inline void elf_write_sections(elf_builder *b)
{
    uint32_t names[40] = { 0 }, count = b->section_count + 1;
    elf_builder_section *table = &b->sections[b->section_count];

    *table = (elf_builder_section){ .name = ".shstrtab", .type = 3, .offset = b->file.size };
    put(&b->file, 0, 1);
    for (uint32_t i = 1; i < count; i++) {
        names[i] = put_text(&b->file, b->sections[i].name) - (uint32_t)table->offset;
    }
    table->size = b->file.size - table->offset;
    if (b->extended_counts) {
        b->sections[0].size = count;
        b->sections[0].link = count - 1;
        b->sections[0].info = b->segment_count;
    }
    put_align(&b->file, 8);
    b->headers_at = b->file.size;
    for (uint32_t i = 0; i < count; i++) {
        elf_write_section(b, &b->sections[i], names[i]);
    }
}

static inline void elf_write_header(elf_builder *b)
{
    elf_bytes *f = &b->file;
    size_t end = f->size;
    bool tables = !b->no_sections;

    f->size = 0;
    put_data(f, "\177ELF", 4);
    put(f, f->wide ? 2 : 1, 1), put(f, f->big ? 2 : 1, 1), put(f, 1, 1);
    f->size = 16;
    put(f, b->type, 2), put(f, b->machine, 2), put(f, 1, 4);
    put_word(f, b->entry), put_word(f, f->wide ? 64 : 52), put_word(f, tables ? b->headers_at : 0);
    put(f, 0, 4), put(f, f->wide ? 64 : 52, 2), put(f, f->wide ? 56 : 32, 2);
    put(f, b->extended_counts ? 0xffff : b->segment_count, 2), put(f, f->wide ? 64 : 40, 2);
    put(f, tables && !b->extended_counts ? b->section_count + 1 : 0, 2);
    put(f, !tables ? 0 : b->extended_counts ? 0xffff : b->section_count, 2);
    f->size = end;
}

/* Completes the file; its bytes are b->file. */
static inline void elf_finish(elf_builder *b)
{
    bool has_load = false;

    for (uint32_t i = 0; i < b->segment_count; i++) {
        has_load |= b->segments[i].type == 1;
    }
    if (!has_load) {
        elf_segment(b, 1, 5, 0, b->file.size);
    }
    for (uint32_t i = 0; i < b->segment_count; i++) {
        elf_write_segment(b, (size_t)(b->file.wide ? 64 : 52) + i * (b->file.wide ? 56u : 32u),
                          &b->segments[i]);
    }
    if (!b->no_sections) {
        elf_write_sections(b);
    }
    elf_write_header(b);
}

/* Offsets of fields in the finished file, for tests that damage them. */
static inline size_t elf_section_field(const elf_builder *b, uint32_t section, int field_64)
{
    return (size_t)b->headers_at + section * 64u + (size_t)field_64;
}

#endif
