/* SPDX-License-Identifier: MIT */
/*
 * Every address that the loader writes into the image: relocations (RELA, REL, RELR), the entry
 * point and the constructor tables.  The functions at these addresses may be called without a
 * direct call that the scan finds.  A program at a fixed address has no relocations for its own
 * addresses; instead, each aligned word of data that holds an address of code is visited.  The
 * decoder finds addresses inside instructions (abs32, lea).
 */
#include "image/inside.h"

/* The relocation numbers of one machine (its psABI, 'Relocation Types'). */
typedef struct reloc_numbers {
    uint16_t machine;
    uint16_t relative, absolute, glob_dat, jump_slot, irelative;
} reloc_numbers;

static const reloc_numbers machines[] = {
    { HFN_EM_386, 8, 1, 6, 7, 42 },
    { HFN_EM_X86_64, 8, 1, 6, 7, 37 },
    { HFN_EM_ARM, 23, 2, 21, 22, 160 },
    { HFN_EM_AARCH64, 1027, 257, 1025, 1026, 1032 },
};

typedef struct walk {
    const hotfn_image *image;
    const reloc_numbers *numbers;
    hfn_span symbols; /* .dynsym and what follows it */
    hfn_span names;   /* slots only */
    hfn_pointer_fn visit;
    hfn_slot_fn visit_slot; /* slots only, if not NULL */
    hfn_word_fn visit_word; /* words with their places only, if not NULL */
    void *user;
    bool resolvers_only;
    uint64_t places, place_bytes; /* only relocations of words in this range */
} walk;

static void visit_address(const walk *w, uint64_t link_address)
{
    uint64_t rva;

    if (hfn_image_rva(w->image, link_address, &rva)) {
        w->visit(w->user, rva);
    }
}

/* The word at link address `place` holds the address `link_address`. */
static void visit_word(const walk *w, uint64_t place, uint64_t link_address)
{
    uint64_t place_rva, rva;

    if (!w->visit_word) {
        visit_address(w, link_address);
    } else if (hfn_image_rva(w->image, place, &place_rva) &&
               hfn_image_rva(w->image, link_address, &rva)) {
        w->visit_word(w->user, place_rva, rva);
    }
}

static bool read_word(const walk *w, uint64_t link_address, uint64_t *value)
{
    uint64_t rva;

    return hfn_image_rva(w->image, link_address, &rva) &&
           hfn_span_word(hfn_image_span(w->image, rva), 0, w->image->word_bytes, value);
}

/* The value of a defined dynamic symbol; false if it comes from another image. */
static bool symbol_value(const walk *w, uint64_t index, uint64_t *value)
{
    bool wide = w->image->word_bytes == 8;
    uint64_t at = index * (wide ? 24 : 16); /* index has at most 32 bits */
    uint16_t section;

    return hfn_span_u16(w->symbols, at + (wide ? 6 : 14), &section) && section != HFN_SHN_UNDEF &&
           hfn_span_word(w->symbols, at + (wide ? 8 : 4), w->image->word_bytes, value);
}

/* A resolver's value is not the function's. */
static bool is_resolver(const walk *w, uint64_t index)
{
    bool wide = w->image->word_bytes == 8;
    uint8_t info;

    return !hfn_span_u8(w->symbols, index * (wide ? 24 : 16) + (wide ? 4 : 12), &info) ||
           (info & 0xf) == HFN_STT_GNU_IFUNC;
}

static const char *symbol_name(const walk *w, uint64_t index)
{
    uint32_t at;

    return hfn_span_u32(w->symbols, index * (w->image->word_bytes == 8 ? 24 : 16), &at)
               ? hfn_span_name(w->names, at)
               : NULL;
}

static void visit_slot(const walk *w, uint64_t place, uint64_t symbol)
{
    hfn_image_slot slot = { .target_rva = UINT64_MAX, .name = symbol_name(w, symbol) };
    uint64_t value;

    if (!hfn_image_rva(w->image, place, &slot.place_rva)) {
        return;
    }
    if (symbol_value(w, symbol, &value) && !is_resolver(w, symbol)) {
        hfn_image_rva(w->image, value, &slot.target_rva);
    }
    if (slot.name) {
        w->visit_slot(w->user, &slot);
    }
}

static void visit_reloc(const walk *w, uint64_t place, uint64_t info, uint64_t addend)
{
    const reloc_numbers *n = w->numbers;
    bool wide = w->image->word_bytes == 8;
    uint64_t type = wide ? info & UINT32_MAX : info & 0xff;
    uint64_t symbol = wide ? info >> 32 : info >> 8, value;

    if (w->visit_slot) {
        if (type == n->glob_dat || type == n->jump_slot) {
            visit_slot(w, place, symbol);
        }
    } else if (type == n->irelative && !w->visit_word) {
        visit_address(w, addend);
    } else if (w->resolvers_only) {
        return;
    } else if (type == n->relative) {
        visit_word(w, place, addend);
    } else if (type == n->absolute || type == n->glob_dat || type == n->jump_slot) {
        if (symbol_value(w, symbol, &value)) {
            visit_word(w, place, value + (type == n->absolute ? addend : 0));
        }
    }
}

/* gABI ch. 4, 'Relocation': r_offset, r_info and, in RELA, r_addend; REL keeps it in place. */
static void visit_relocs(const walk *w, hfn_span table, bool has_addend)
{
    uint32_t word = w->image->word_bytes;
    uint64_t step = (has_addend ? 3u : 2u) * word, place, info;

    for (uint64_t at = 0; hfn_span_has(table, at, step); at += step) {
        uint64_t addend = 0;
        hfn_span_word(table, at, word, &place);
        hfn_span_word(table, at + word, word, &info);
        if (has_addend) {
            hfn_span_word(table, at + 2 * word, word, &addend);
        } else {
            read_word(w, place, &addend);
        }
        if (place - w->places < w->place_bytes) {
            visit_reloc(w, place, info, addend);
        }
    }
}

static void visit_word_at(const walk *w, uint64_t place)
{
    uint64_t value;

    if (place - w->places < w->place_bytes && read_word(w, place, &value)) {
        visit_word(w, place, value);
    }
}

/* gABI ch. 5, 'Relative relocation table': an even word is an address, an odd one is a bitmap of
 * the words that follow the last address. */
static void visit_relr(const walk *w, hfn_span table)
{
    uint32_t word = w->image->word_bytes;
    uint64_t entry, place = 0;

    for (uint64_t at = 0; hfn_span_word(table, at, word, &entry); at += word) {
        if (!(entry & 1)) {
            visit_word_at(w, entry);
            place = entry + word;
            continue;
        }
        for (uint32_t bit = 1; bit < 8 * word; bit++) {
            if (entry >> bit & 1) {
                visit_word_at(w, place + (bit - 1) * word);
            }
        }
        place += (8 * word - 1) * word;
    }
}

static void visit_words(const walk *w, hfn_span words)
{
    uint64_t value;

    for (uint64_t at = 0; hfn_span_word(words, at, w->image->word_bytes, &value);
         at += w->image->word_bytes) {
        visit_address(w, value);
    }
}

/* A static program has relocation sections (for its ifuncs) but no dynamic section. */
static void visit_static_relocs(const walk *w)
{
    for (uint32_t i = 0; i < w->image->section_count; i++) {
        const hfn_elf_section *s = &w->image->sections[i];
        if ((s->flags & HFN_SHF_ALLOC) && (s->type == HFN_SHT_RELA || s->type == HFN_SHT_REL)) {
            visit_relocs(w, hfn_elf_section_bytes(w->image, s), s->type == HFN_SHT_RELA);
        }
    }
}

static void visit_all_relocs(const walk *w)
{
    const hotfn_image *image = w->image;
    uint64_t kind = HFN_DT_RELA;

    if (!w->numbers) {
        return;
    }
    if (!(image->info.flags & HOTFN_IMAGE_DYNAMIC)) {
        visit_static_relocs(w);
        return;
    }
    visit_relocs(w, hfn_elf_dynamic_span(image, HFN_DT_RELA, HFN_DT_RELASZ), true);
    visit_relocs(w, hfn_elf_dynamic_span(image, HFN_DT_REL, HFN_DT_RELSZ), false);
    hfn_elf_dynamic(image, HFN_DT_PLTREL, &kind);
    visit_relocs(w, hfn_elf_dynamic_span(image, HFN_DT_JMPREL, HFN_DT_PLTRELSZ),
                 kind == HFN_DT_RELA);
    if (!w->resolvers_only && !w->visit_slot) {
        visit_relr(w, hfn_elf_dynamic_span(image, HFN_DT_RELR, HFN_DT_RELRSZ));
    }
}

/* An address of code, or of the end of code. */
static void visit_code_word(const walk *w, uint64_t place, uint64_t value)
{
    uint64_t rva = value - w->image->info.link_base;

    if (value < w->image->info.link_base) {
        return;
    }
    if (w->visit_word &&
        (hfn_image_is_code(w->image, rva) || hfn_image_is_code(w->image, rva - 1))) {
        visit_word(w, place, value);
    } else if (!w->visit_word && hfn_image_is_code(w->image, rva)) {
        w->visit(w->user, rva);
    }
}

/* Where sections are only made from segments, data may lie in the executable one.  No more is read
 * than the file has: sections that overlap by the thousand are cut short. */
static void visit_fixed_data(const walk *w)
{
    const hotfn_image *image = w->image;
    uint32_t word = image->word_bytes;
    uint64_t value, left = image->bytes.size;

    for (uint32_t i = 0; i < image->placed_count; i++) {
        const hfn_elf_section *s = &image->sections[image->placed[i].section];
        hfn_span bytes = hfn_elf_section_bytes(image, s);
        if ((s->flags & HFN_SHF_EXECINSTR) && !image->sections_synthetic) {
            continue;
        }
        for (uint64_t at = (0 - s->address) & (word - 1);
             left >= word && hfn_span_word(bytes, at, word, &value); at += word, left -= word) {
            visit_code_word(w, s->address + at, value);
        }
    }
}

static walk new_walk(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    walk w = { .image = image, .visit = visit, .user = user, .place_bytes = UINT64_MAX };

    w.symbols = hfn_elf_dynamic_table(image, HFN_DT_SYMTAB);

    for (size_t i = 0; i < HFN_COUNT_OF(machines); i++) {
        if (machines[i].machine == image->info.raw_machine &&
            image->info.machine != HOTFN_MACHINE_OTHER) {
            w.numbers = &machines[i];
        }
    }
    return w;
}

void hfn_image_each_pointer(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    walk w = new_walk(image, visit, user);
    uint64_t value;

    if (image->info.format == HOTFN_FORMAT_PE) {
        hfn_pe_each_pointer(image, visit, user);
        if (image->info.flags & HOTFN_IMAGE_FIXED) {
            visit_fixed_data(&w);
        }
        return;
    }
    if (image->info.entry_rva) {
        visit(user, image->info.entry_rva);
    }
    if (hfn_elf_dynamic(image, HFN_DT_INIT, &value)) {
        visit_address(&w, value);
    }
    if (hfn_elf_dynamic(image, HFN_DT_FINI, &value)) {
        visit_address(&w, value);
    }
    visit_words(&w, hfn_elf_dynamic_span(image, HFN_DT_PREINIT_ARRAY, HFN_DT_PREINIT_ARRAYSZ));
    hfn_image_each_array_word(image, false, visit, user);
    hfn_image_each_array_word(image, true, visit, user);
    visit_all_relocs(&w);
    if (image->info.flags & HOTFN_IMAGE_FIXED) {
        visit_fixed_data(&w);
    }
}

void hfn_image_each_word(const hotfn_image *image, hfn_word_fn visit, void *user)
{
    walk w = new_walk(image, NULL, user);

    w.visit_word = visit;
    if (image->info.format == HOTFN_FORMAT_PE) {
        return;
    }
    visit_all_relocs(&w);
    if (image->info.flags & HOTFN_IMAGE_FIXED) {
        visit_fixed_data(&w);
    }
}

void hfn_image_each_resolver(const hotfn_image *image, hfn_pointer_fn visit, void *user)
{
    walk w = new_walk(image, visit, user);

    w.resolvers_only = true;
    visit_all_relocs(&w);
}

void hfn_image_each_slot(const hotfn_image *image, hfn_slot_fn visit, void *user)
{
    walk w = new_walk(image, NULL, user);

    w.visit_slot = visit;
    w.names = hfn_span_string_table(hfn_elf_dynamic_table(image, HFN_DT_STRTAB));
    visit_all_relocs(&w);
}

/* Visit the values that the words have after relocation.  In an image with RELA relocations the
 * file may hold zeros instead. */
void hfn_image_each_array_word(const hotfn_image *image, bool fini, hfn_pointer_fn visit,
                               void *user)
{
    walk w = new_walk(image, visit, user);
    const hfn_elf_section *s = hfn_elf_section_named(image, fini ? ".fini_array" : ".init_array");
    uint64_t tag = fini ? HFN_DT_FINI_ARRAY : HFN_DT_INIT_ARRAY;
    uint64_t size_tag = fini ? HFN_DT_FINI_ARRAYSZ : HFN_DT_INIT_ARRAYSZ;

    if (hfn_elf_dynamic(image, tag, &w.places) &&
        hfn_elf_dynamic(image, size_tag, &w.place_bytes)) {
        visit_words(&w, hfn_elf_dynamic_span(image, tag, size_tag));
        visit_all_relocs(&w);
    } else if (s) {
        visit_words(&w, hfn_elf_section_bytes(image, s));
    }
}
