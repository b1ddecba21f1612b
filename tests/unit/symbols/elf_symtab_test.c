/* SPDX-License-Identifier: MIT */
/* .symtab and .dynsym: which symbols are kept, which are dropped, which tables are refused. */
#include <hotfn/lowlevel/symbols.h>

#include "check.h"
#include "image/elf_builder.h"

enum { FUNC = 2, OBJECT = 1, NOTYPE = 0, IFUNC = 10, LOCAL = 0, GLOBAL = 1, WEAK = 2 };
enum { CODE = 1024, DATA = 1040 }; /* the addresses of .text and .data */

/* A library with .text (section 1) and .data (section 2), to which a symbol table can be added. */
typedef struct sample {
    elf_builder *b;
    elf_bytes *symbols, *names;
} sample;

static sample new_sample(int bits, bool big, uint16_t machine)
{
    sample s = { elf_new(bits, big, machine), NULL, NULL };

    elf_add(s.b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 8);
    elf_add(s.b, ".data", 1, ELF_ALLOC | ELF_WRITE, "12345678", 8);
    s.symbols = elf_buffer(s.b);
    s.names = elf_buffer(s.b);
    put_text(s.names, "");
    put_symbol(s.symbols, 0, 0, 0, 0, 0, 0);
    return s;
}

static void add(sample *s, const char *name, uint8_t binding, uint8_t type, uint16_t section,
                uint64_t value, uint64_t size)
{
    put_symbol(s->symbols, put_text(s->names, name), binding, type, section, value, size);
}

/* type is 2 for .symtab, 11 for .dynsym. */
static void add_tables(sample *s, uint32_t type)
{
    uint32_t table, entry_bytes = s->b->file.wide ? 24 : 16;

    table = elf_add_buffer(s->b, type == 2 ? ".symtab" : ".dynsym", type, type == 2 ? 0 : ELF_ALLOC,
                           s->symbols);
    s->b->sections[table].entry_size = entry_bytes;
    s->b->sections[table].link = table + 1;
    elf_add_buffer(s->b, type == 2 ? ".strtab" : ".dynstr", 3, type == 2 ? 0 : ELF_ALLOC, s->names);
}

/* The image and symbols that load() opened; finish() closes both. */
typedef struct loaded {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_status status;
    hotfn_error err;
} loaded;

static loaded load(const elf_builder *b, uint32_t flags)
{
    loaded l = { NULL, NULL, HOTFN_OK, HOTFN_ERROR_INIT };
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    options.flags = flags | HOTFN_SYMBOLS_NO_SEPARATE;
    CHECK_EQ_I64(hotfn_image_open_bytes(&l.image, b->file.data, b->file.size, "s", NULL, NULL),
                 HOTFN_OK);
    l.status = hotfn_symbols_load(&l.symbols, l.image, &options, NULL, &l.err);
    return l;
}

static void finish(loaded *l, elf_builder *b)
{
    hotfn_symbols_destroy(l->symbols);
    hotfn_image_close(l->image);
    free(b);
}

static hotfn_symbol at(const loaded *l, uint32_t index)
{
    hotfn_symbol s = HOTFN_SYMBOL_INIT;

    CHECK_EQ_I64(hotfn_symbols_get(l->symbols, index, &s), HOTFN_OK);
    return s;
}

static void functions_are_read_in_32_and_64_bits_and_both_byte_orders(void)
{
    for (int kind = 0; kind < 4; kind++) {
        sample s = new_sample(kind & 1 ? 64 : 32, kind & 2, 8);
        add(&s, "f", GLOBAL, FUNC, 1, CODE + 1, 5);
        add_tables(&s, 2);
        elf_finish(s.b);
        loaded l = load(s.b, 0);
        if (CHECK_EQ_I64(l.status, HOTFN_OK) &&
            CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 1)) {
            hotfn_symbol f = at(&l, 0);
            CHECK_STR(f.name, "f");
            CHECK_EQ_U64(f.rva, CODE + 1);
            CHECK_EQ_U64(f.byte_count, 5);
            CHECK_EQ_U64(f.kind, HOTFN_SYMBOL_FUNCTION);
            CHECK_EQ_U64(f.source, HOTFN_SOURCE_SYMTAB);
            CHECK_EQ_U64(f.flags, HOTFN_SYMBOL_GLOBAL);
        }
        finish(&l, s.b);
    }
}

static void only_defined_named_symbols_in_segments_are_kept(void)
{
    sample s = new_sample(64, false, 62);

    add(&s, "undefined", GLOBAL, FUNC, 0, CODE, 1);
    add(&s, "absolute", GLOBAL, FUNC, 0xfff1, CODE, 1);
    add(&s, "common", GLOBAL, 5, 0xfff2, 16, 1);
    add(&s, "file.c", LOCAL, 4, 0xfff1, 0, 0);
    add(&s, "", LOCAL, 3, 1, CODE, 0);
    add(&s, "thread_local", LOCAL, 6, 2, 0, 8);
    add(&s, "", LOCAL, FUNC, 1, CODE, 0);
    add(&s, "outside", LOCAL, FUNC, 1, 0x10000000, 1);
    add(&s, "in_debug_info", LOCAL, NOTYPE, 3, CODE, 0); /* 3: a section that is not loaded */
    add(&s, "object", LOCAL, OBJECT, 2, DATA, 8);
    add(&s, "edge", GLOBAL, NOTYPE, 2, DATA, 0);
    put_symbol(s.symbols, UINT32_MAX, LOCAL, FUNC, 1, CODE,
               1); /* its name lies outside the string table */
    add(&s, "label", LOCAL, NOTYPE, 1, CODE + 4, 0);
    add(&s, "ifunc", GLOBAL, IFUNC, 1, CODE + 5, 0);
    add(&s, "weak", WEAK, FUNC, 1, CODE + 6, 0);
    add_tables(&s, 2);
    elf_finish(s.b);
    loaded l = load(s.b, 0);
    if (CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 3)) {
        CHECK_EQ_U64(at(&l, 0).kind, HOTFN_SYMBOL_LABEL);
        CHECK_EQ_U64(at(&l, 1).kind, HOTFN_SYMBOL_IFUNC);
        CHECK_EQ_U64(at(&l, 2).flags, HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_WEAK);
    }
    finish(&l, s.b);
}

static void data_symbols_are_kept_on_request(void)
{
    sample s = new_sample(64, false, 62);

    add(&s, "object", LOCAL, OBJECT, 2, DATA, 8);
    add(&s, "edge", GLOBAL, NOTYPE, 2, DATA + 4, 0);
    add_tables(&s, 2);
    elf_finish(s.b);
    loaded l = load(s.b, HOTFN_SYMBOLS_DATA);
    if (CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 2)) {
        CHECK_EQ_U64(at(&l, 0).kind, HOTFN_SYMBOL_DATA);
        CHECK_EQ_U64(at(&l, 1).kind, HOTFN_SYMBOL_DATA);
    }
    finish(&l, s.b);
}

static void mapping_symbols_of_arm_are_dropped(void)
{
    for (int i = 0; i < 2; i++) {
        sample s = new_sample(64, false, i ? 183 : 62);
        add(&s, "$x", LOCAL, NOTYPE, 1, CODE, 0);
        add(&s, "$d.17", LOCAL, NOTYPE, 1, CODE, 0);
        add(&s, "$dollar", LOCAL, FUNC, 1, CODE, 0);
        add_tables(&s, 2);
        elf_finish(s.b);
        loaded l = load(s.b, 0);
        CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), i ? 1 : 3);
        finish(&l, s.b);
    }
}

static void only_arm_and_riscv_have_mapping_symbols(void)
{
    enum { ARM = 40, X86_64 = 62, AARCH64 = 183, RISCV = 243 };
    static const uint16_t machines[] = { ARM, X86_64, AARCH64, RISCV };
    static const struct {
        const char *name;
        bool is_mapping_symbol;
    } names[] = {
        { "$x", true },   { "$d", true },   { "$a", true },     { "$t", true },
        { "$x.1", true }, { "$d.1", true }, { "$xrv64", true }, { "$dx", false },
        { "$", false },   { "$b", false },  { "x", false },     { "xd", false },
    };

    for (uint32_t m = 0; m < sizeof machines / sizeof machines[0]; m++) {
        for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            sample s = new_sample(machines[m] == ARM ? 32 : 64, false, machines[m]);
            add(&s, names[i].name, LOCAL, NOTYPE, 1, CODE + 4, 0);
            add_tables(&s, 2);
            elf_finish(s.b);
            loaded l = load(s.b, 0);
            uint32_t kept = machines[m] == X86_64 || !names[i].is_mapping_symbol;
            if (!CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), kept)) {
                printf("# %s of machine %u\n", names[i].name, machines[m]);
            }
            finish(&l, s.b);
        }
    }
}

/* System V gABI ch. 4, st_other: 0 default, 1 internal, 2 hidden, 3 protected. */
static void local_and_hidden_symbols_are_not_exported(void)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        for (uint8_t other = 0; other < 8; other++) {
            for (uint8_t binding = LOCAL; binding <= WEAK; binding++) {
                sample s = new_sample(bits, false, bits == 64 ? 62 : 3);
                bool exported = binding != LOCAL && (other & 3) != 1 && (other & 3) != 2;
                add(&s, "f", binding, FUNC, 1, CODE + 4, 1);
                s.symbols->data[s.symbols->size - (bits == 64 ? 24 - 5 : 16 - 13)] = other;
                add_tables(&s, 11);
                elf_finish(s.b);
                loaded l = load(s.b, 0);
                if (CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 1)) {
                    CHECK(!!(at(&l, 0).flags & HOTFN_SYMBOL_EXPORTED) == exported);
                }
                finish(&l, s.b);
            }
        }
    }
}

static void the_thumb_bit_is_removed_from_addresses(void)
{
    sample s = new_sample(32, false, 40);

    add(&s, "thumb", GLOBAL, FUNC, 1, CODE + 3, 2);
    add_tables(&s, 2);
    elf_finish(s.b);
    loaded l = load(s.b, 0);
    CHECK_EQ_U64(at(&l, 0).rva, CODE + 2);
    finish(&l, s.b);
}

static void a_name_of_a_megabyte_is_not_copied(void)
{
    enum { MEGABYTE = 1 << 20 };
    sample s = new_sample(64, false, 62);
    uint8_t *file = calloc(1, sizeof s.b->file.data + MEGABYTE);

    add(&s, "f", GLOBAL, FUNC, 1, CODE, 1);
    add_tables(&s, 2);
    elf_finish(s.b);
    /* Moves the table of names behind the rest of the file. */
    put_at(&s.b->file, elf_section_field(s.b, 4, 24), s.b->file.size, 8);
    put_at(&s.b->file, elf_section_field(s.b, 4, 32), MEGABYTE, 8);
    memcpy(file, s.b->file.data, s.b->file.size);
    memset(file + s.b->file.size, 'n', MEGABYTE - 1);

    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_symbol f = HOTFN_SYMBOL_INIT;
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, file, s.b->file.size + MEGABYTE, "s", NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, NULL, NULL), HOTFN_OK);
    if (CHECK_EQ_I64(hotfn_symbols_get(symbols, 0, &f), HOTFN_OK)) {
        CHECK_EQ_U64(strlen(f.name), MEGABYTE - 2);
        CHECK((const uint8_t *)f.name == file + s.b->file.size + 1);
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(file);
    free(s.b);
}

static void an_invalid_table_is_refused_with_its_offset(void)
{
    sample s = new_sample(64, false, 62);

    add(&s, "f", GLOBAL, FUNC, 1, CODE, 1);
    add_tables(&s, 2);
    elf_finish(s.b);
    put_at(&s.b->file, elf_section_field(s.b, 3, 32), UINT64_MAX - 7, 8);
    loaded l = load(s.b, 0);
    CHECK_EQ_I64(l.status, HOTFN_E_FORMAT);
    CHECK_EQ_U64(l.err.offset, s.b->sections[3].offset);
    hotfn_image_close(l.image);
    put_at(&s.b->file, elf_section_field(s.b, 3, 32), 48, 8);
    put_at(&s.b->file, elf_section_field(s.b, 3, 56), 23, 8); /* entry size */
    l = load(s.b, 0);
    CHECK_EQ_I64(l.status, HOTFN_E_FORMAT);
    hotfn_image_close(l.image);
    put_at(&s.b->file, elf_section_field(s.b, 3, 56), 24, 8);
    put_at(&s.b->file, elf_section_field(s.b, 3, 40), 99, 4); /* sh_link */
    l = load(s.b, 0);
    CHECK_EQ_I64(l.status, HOTFN_E_FORMAT);
    CHECK(l.symbols == NULL);
    finish(&l, s.b);
}

static void section_numbers_beyond_16_bits_are_read(void)
{
    sample s = new_sample(64, false, 62);
    const uint8_t indices[] = { 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 };

    add(&s, "defined", GLOBAL, FUNC, 0xffff, CODE, 1);
    add(&s, "undefined", GLOBAL, FUNC, 0xffff, CODE, 1);
    add(&s, "unknown", GLOBAL, FUNC, 0xffff, CODE, 1);
    add_tables(&s, 2);
    elf_add(s.b, ".symtab_shndx", 18, 0, indices, sizeof indices);
    elf_finish(s.b);
    loaded l = load(s.b, 0);
    CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 1);
    CHECK_STR(at(&l, 0).name, "defined");
    finish(&l, s.b);
}

/* Adds .gnu.version, .gnu.version_d and the dynamic section that leads to them. */
static void add_versions(sample *s, uint32_t strtab)
{
    elf_bytes *numbers = elf_buffer(s->b), *definitions = elf_buffer(s->b);
    elf_bytes *dynamic = elf_buffer(s->b);
    const uint16_t of_symbols[] = { 0, 1, 0x8002, 2, 0x8009 };
    uint32_t v, d;

    for (size_t i = 0; i < 5; i++) {
        put(numbers, of_symbols[i], 2);
    }
    /* Verdef: version, flags, ndx, cnt, hash, aux, next; Verdaux: name, next. */
    put(definitions, 1, 2), put(definitions, 0, 2), put(definitions, 2, 2), put(definitions, 1, 2);
    put(definitions, 0, 4), put(definitions, 20, 4), put(definitions, 0, 4);
    put(definitions, 1, 4), put(definitions, 0, 4);
    v = elf_add_buffer(s->b, ".gnu.version", 0x6fffffff, ELF_ALLOC, numbers);
    d = elf_add_buffer(s->b, ".gnu.version_d", 0x6ffffffd, ELF_ALLOC, definitions);
    put_word(dynamic, 0x6ffffff0), put_word(dynamic, s->b->sections[v].address);
    put_word(dynamic, 0x6ffffffc), put_word(dynamic, s->b->sections[d].address);
    put_word(dynamic, 5), put_word(dynamic, s->b->sections[strtab].address);
    put_word(dynamic, 0), put_word(dynamic, 0);
    elf_segment_of(s->b, 2, elf_add_buffer(s->b, ".dynamic", 6, ELF_ALLOC, dynamic));
}

static void only_versions_other_than_the_default_appear_in_names(void)
{
    sample s = new_sample(64, false, 62);

    put_text(s.names, "V1"); /* at 1 */
    add(&s, "global", GLOBAL, FUNC, 1, CODE, 1);
    add(&s, "old", GLOBAL, FUNC, 1, CODE + 1, 1);
    add(&s, "new", GLOBAL, FUNC, 1, CODE + 2, 1);
    add(&s, "lost", GLOBAL, FUNC, 1, CODE + 3, 1);
    add_tables(&s, 11);
    add_versions(&s, 4);
    elf_finish(s.b);
    loaded l = load(s.b, 0);
    if (CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 4)) {
        CHECK_STR(at(&l, 0).name, "global");
        CHECK_STR(at(&l, 1).name, "old@V1");
        CHECK_STR(at(&l, 2).name, "new");
        CHECK_STR(at(&l, 3).name, "lost");
        CHECK_EQ_U64(at(&l, 0).flags, HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_EXPORTED);
    }
    finish(&l, s.b);
}

static void dynsym_is_found_without_section_headers(void)
{
    sample s = new_sample(64, false, 62);
    elf_bytes *hash = elf_buffer(s.b), *dynamic = elf_buffer(s.b);
    const uint32_t tags[] = { 6, 5, 4 }; /* SYMTAB, STRTAB, HASH: sections 3, 4, 5 */

    add(&s, "f", GLOBAL, FUNC, 1, CODE, 1);
    put(hash, 1, 4), put(hash, 2, 4);
    size_t names_bytes = s.names->size;
    add_tables(&s, 11);
    elf_add_buffer(s.b, ".hash", 5, ELF_ALLOC, hash);
    for (size_t i = 0; i < 3; i++) {
        put_word(dynamic, tags[i]), put_word(dynamic, s.b->sections[3 + i].address);
    }
    put_word(dynamic, 10), put_word(dynamic, names_bytes);
    put_word(dynamic, 0), put_word(dynamic, 0);
    elf_segment_of(s.b, 2, elf_add_buffer(s.b, ".dynamic", 6, ELF_ALLOC, dynamic));
    s.b->no_sections = true;
    elf_finish(s.b);
    loaded l = load(s.b, 0);
    if (CHECK_EQ_U64(hotfn_symbols_get_count(l.symbols), 1)) {
        CHECK_STR(at(&l, 0).name, "f");
    }
    finish(&l, s.b);
}

static const check_test tests[] = {
    CHECK_TEST(functions_are_read_in_32_and_64_bits_and_both_byte_orders),
    CHECK_TEST(only_defined_named_symbols_in_segments_are_kept),
    CHECK_TEST(data_symbols_are_kept_on_request),
    CHECK_TEST(mapping_symbols_of_arm_are_dropped),
    CHECK_TEST(only_arm_and_riscv_have_mapping_symbols),
    CHECK_TEST(local_and_hidden_symbols_are_not_exported),
    CHECK_TEST(the_thumb_bit_is_removed_from_addresses),
    CHECK_TEST(a_name_of_a_megabyte_is_not_copied),
    CHECK_TEST(an_invalid_table_is_refused_with_its_offset),
    CHECK_TEST(section_numbers_beyond_16_bits_are_read),
    CHECK_TEST(only_versions_other_than_the_default_appear_in_names),
    CHECK_TEST(dynsym_is_found_without_section_headers),
};
CHECK_MAIN(tests)
