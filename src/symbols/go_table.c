/* SPDX-License-Identifier: MIT */
/*
 * Reads the function table of a Go program, which the runtime needs and which therefore stays when
 * the symbol table is removed (go build -ldflags=-s).  Go 1.16 and later (Go,
 * debug/gosym/pclntab.go; cmd/link/internal/ld/pcln.go):
 *
 *   header      magic u32, 0 0, instruction size, word size, then words: functions, files,
 *               [address of the code, from 1.18 on], offsets of names, units, files, tables,
 *               entries
 *   entries     pairs: address, offset of a record; from 1.18 on u32 relative to the code
 *   record      address, offset of the name i32, ...; both offsets from their table
 */
#include "symbols/go_table.h"

#include "base/status.h"

#include <string.h>

enum { MAGIC_1_16 = 0xfa, MAGIC_1_18 = 0xf0, MAGIC_1_20 = 0xf1, HEADER_BYTES = 8 };

typedef struct go_table {
    hfn_span all, names, entries;
    uint64_t code, count;
    uint32_t word_bytes,
        entry_bytes; /* of a word of the header; of an address or offset in entries */
    bool is_relative;
} go_table;

static bool read_version(go_table *t)
{
    uint32_t magic = 0;
    uint8_t word_bytes = 0;

    if (!hfn_span_u32(t->all, 0, &magic) || !hfn_span_u8(t->all, 7, &word_bytes) ||
        magic >> 8 != 0xffffff || (word_bytes != 4 && word_bytes != 8)) {
        return false;
    }
    t->word_bytes = word_bytes;
    t->is_relative = (magic & 0xff) != MAGIC_1_16;
    t->entry_bytes = t->is_relative ? 4 : word_bytes;
    return (magic & 0xff) == MAGIC_1_16 || (magic & 0xff) == MAGIC_1_18 ||
           (magic & 0xff) == MAGIC_1_20;
}

static bool read_word(const go_table *t, uint32_t index, uint64_t *out)
{
    return hfn_span_word(t->all, HEADER_BYTES + (uint64_t)index * t->word_bytes, t->word_bytes,
                         out);
}

/* The linker may leave the address of the code to the loader. */
static uint64_t find_code(const hotfn_image *image, uint64_t address)
{
    const hfn_elf_section *text = hfn_elf_section_named(image, ".text");

    return address == 0 && text ? text->address : address;
}

static bool open_table(go_table *t, const hotfn_image *image, hfn_span bytes)
{
    uint64_t names, entries;
    uint32_t next;

    *t = (go_table){ .all = bytes };
    if (!read_version(t) || !read_word(t, 0, &t->count)) {
        return false;
    }
    if (t->is_relative && !read_word(t, 2, &t->code)) {
        return false;
    }
    t->code = t->is_relative ? find_code(image, t->code) : 0;
    next = t->is_relative ? 3 : 2;
    if (!read_word(t, next, &names) || !read_word(t, next + 4, &entries)) {
        return false;
    }
    t->names = hfn_span_string_table(hfn_span_from(t->all, names));
    t->entries = hfn_span_from(t->all, entries);
    return t->count <= t->entries.size / (2 * t->entry_bytes);
}

/* The address of function number `index`; behind the last one, where it ends. */
static bool read_address(const go_table *t, uint64_t index, uint64_t *out)
{
    bool ok = hfn_span_word(t->entries, 2 * index * t->entry_bytes, t->entry_bytes, out);

    *out += t->code;
    return ok;
}

static const char *read_name(const go_table *t, uint64_t index)
{
    uint64_t record = 0;
    uint32_t name = 0;

    return hfn_span_word(t->entries, (2 * index + 1) * t->entry_bytes, t->entry_bytes, &record) &&
                   hfn_span_u32(t->entries, record + t->entry_bytes, &name)
               ? hfn_span_name(t->names, name)
               : NULL;
}

hotfn_status hfn_go_table_read(const hfn_symtab_reader *reader, hotfn_error *err)
{
    const hfn_elf_section *section = hfn_elf_section_named(reader->image, ".gopclntab");
    uint64_t begin, end;
    go_table t;

    section = section ? section : hfn_elf_section_named(reader->image, ".data.rel.ro.gopclntab");
    if (!section || !open_table(&t, reader->image, hfn_elf_section_bytes(reader->image, section))) {
        return HOTFN_OK;
    }
    for (uint64_t i = 0; i < t.count && read_address(&t, i, &begin); i++) {
        hfn_symbol symbol = { .source = HOTFN_SOURCE_GO, .kind = HOTFN_SYMBOL_FUNCTION };
        symbol.name = read_name(&t, i);
        if (!symbol.name || !symbol.name[0] || !read_address(&t, i + 1, &end) || end <= begin ||
            !hfn_image_rva(reader->image, begin, &symbol.rva) ||
            !hfn_image_is_code(reader->image, symbol.rva)) {
            continue;
        }
        symbol.byte_count = end - begin;
        if (!hfn_symbol_table_add(reader->table, &symbol)) {
            return hfn_report_no_memory(err, hfn_image_path(reader->image));
        }
    }
    return HOTFN_OK;
}
