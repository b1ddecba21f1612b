/* SPDX-License-Identifier: MIT */
/*
 * Visits the names of all symbols that an image defines, in .symtab and .dynsym.  src/symbols reads
 * only functions, but the symbols that identify a language runtime are often data.
 */
#include "image/elf_numbers.h"
#include "image/inside.h"

typedef struct name_table {
    hfn_span entries, names;
    uint64_t entry_bytes, section_at; /* section_at: offset of st_shndx in an entry */
} name_table;

static void visit_table(const name_table *t, hfn_name_fn visit, void *user)
{
    uint32_t name;
    uint16_t section;

    for (uint64_t at = 0; hfn_span_u32(t->entries, at, &name) &&
                          hfn_span_u16(t->entries, at + t->section_at, &section);
         at += t->entry_bytes) {
        const char *text = section != HFN_SHN_UNDEF ? hfn_span_name(t->names, name) : NULL;
        if (text && text[0]) {
            visit(user, text);
        }
    }
}

static void visit_section(const hotfn_image *image, const hfn_elf_section *section, name_table *t,
                          hfn_name_fn visit, void *user)
{
    const hfn_elf_section *names = hfn_elf_section_at(image, section->link);

    if (names) {
        t->entries = hfn_elf_section_bytes(image, section);
        t->names = hfn_span_string_table(hfn_elf_section_bytes(image, names));
        visit_table(t, visit, user);
    }
}

void hfn_image_each_defined_name(const hotfn_image *image, hfn_name_fn visit, void *user)
{
    bool wide = image->word_bytes == 8;
    name_table t = { .entry_bytes = wide ? 24 : 16, .section_at = wide ? 6 : 14 };
    bool has_dynsym = false;

    if (image->info.format != HOTFN_FORMAT_ELF) {
        return;
    }
    for (uint32_t i = 0; i < hfn_elf_section_count(image); i++) {
        const hfn_elf_section *section = hfn_elf_section_at(image, i);
        if (section->type == HFN_SHT_SYMTAB || section->type == HFN_SHT_DYNSYM) {
            has_dynsym |= section->type == HFN_SHT_DYNSYM;
            visit_section(image, section, &t, visit, user);
        }
    }
    if (!has_dynsym) { /* an image without sections */
        t.entries = hfn_span_sub(hfn_elf_dynamic_table(image, HFN_DT_SYMTAB), 0,
                                 hfn_elf_dynamic_symbol_count(image) * t.entry_bytes);
        t.names = hfn_span_string_table(hfn_elf_dynamic_span(image, HFN_DT_STRTAB, HFN_DT_STRSZ));
        visit_table(&t, visit, user);
    }
}
