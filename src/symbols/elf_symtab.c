/* SPDX-License-Identifier: MIT */
/*
 * Reads .symtab and .dynsym.  A symbol is kept if it is defined, has a name and lies in a segment.
 * Symbols of sections and files, thread-local symbols, and the mapping symbols of ARM and RISC-V
 * are dropped.  A name of .symtab is kept unchanged; a name of .dynsym gets '@version' if that
 * version is not the default one, because two functions of the library then share the plain name
 * (LSB core, 'Symbol Versioning'; the System V gABI does not have versions).
 */
#include "symbols/elf_symtab.h"

#include "base/progress.h"
#include "base/status.h"
#include "image/elf_numbers.h"

#include <string.h>

enum { EM_RISCV = 243, VERSION_HIDDEN = 0x8000, VERSION_FIRST_NAMED = 2 };

/* One table of one file, as spans. */
typedef struct symtab {
    const hfn_symtab_reader *reader;
    const hotfn_image *holder;             /* whose sections the symbols name */
    hfn_span entries, names, wide_indices; /* wide_indices: SHT_SYMTAB_SHNDX */
    hfn_span versions;                     /* .gnu.version, empty for .symtab */
    const char **version_names;            /* by number; made when first needed */
    uint64_t entry_bytes;
    uint8_t source;
    bool wide;
    uint16_t raw_machine;
    bool fixed;
    uint32_t outside; /* symbols in no segment */
} symtab;

/* A symbol as the file has it. */
typedef struct entry {
    uint64_t value, size;
    uint32_t name, section;
    uint8_t type, binding, visibility;
} entry;

static bool read_entry(const symtab *t, uint64_t index, entry *e)
{
    uint64_t at = index * t->entry_bytes;
    uint32_t word = t->wide ? 8 : 4;
    uint8_t info, other;
    uint16_t section;

    if (!hfn_span_has(t->entries, at, t->wide ? 24 : 16)) {
        return false;
    }
    hfn_span_u32(t->entries, at, &e->name);
    hfn_span_u8(t->entries, at + (t->wide ? 4 : 12), &info);
    hfn_span_u8(t->entries, at + (t->wide ? 5 : 13), &other);
    hfn_span_u16(t->entries, at + (t->wide ? 6 : 14), &section);
    hfn_span_word(t->entries, at + (t->wide ? 8 : 4), word, &e->value);
    hfn_span_word(t->entries, at + (t->wide ? 16 : 8), word, &e->size);
    e->type = info & 15;
    e->binding = info >> 4;
    e->visibility = other & 3;
    e->section = section;
    if (section == HFN_SHN_XINDEX && !hfn_span_u32(t->wide_indices, index * 4, &e->section)) {
        e->section = HFN_SHN_UNDEF;
    } else if (section == HFN_SHN_ABS || section == HFN_SHN_COMMON) {
        e->section = section == HFN_SHN_ABS ? UINT32_MAX : HFN_SHN_UNDEF;
    }
    return true;
}

/* Mapping symbols mark where code and data begin: '$x', '$d', '$a', '$t', alone or followed by '.'
 * (ELF for the Arm Architecture, 'Mapping symbols'; RISC-V psABI, the same). */
static bool is_mapping_symbol(const symtab *t, const char *name)
{
    if (name[0] != '$' || !name[1] || !strchr("xdat", name[1])) {
        return false;
    }
    return (t->raw_machine == HFN_EM_ARM || t->raw_machine == HFN_EM_AARCH64 ||
            t->raw_machine == EM_RISCV) &&
           (name[2] == 0 || name[2] == '.' || name[1] == 'x');
}

/* The HOTFN_SYMBOL_* kind; 0 for a symbol to drop. */
static uint8_t kind_of(const symtab *t, const entry *e, uint64_t rva)
{
    uint8_t data = t->reader->want_data ? HOTFN_SYMBOL_DATA : 0;

    switch (e->type) {
    case HFN_STT_FUNC: return HOTFN_SYMBOL_FUNCTION;
    case HFN_STT_GNU_IFUNC: return HOTFN_SYMBOL_IFUNC;
    case HFN_STT_OBJECT: return data;
    case HFN_STT_NOTYPE:
        return hfn_image_is_code(t->reader->image, rva) ? HOTFN_SYMBOL_LABEL : data;
    default: return 0;
    }
}

static uint8_t flags_of(const symtab *t, const entry *e)
{
    uint8_t flags = 0;

    if (e->binding != HFN_STB_LOCAL) {
        flags |= HOTFN_SYMBOL_GLOBAL;
    }
    if (e->binding == HFN_STB_WEAK) {
        flags |= HOTFN_SYMBOL_WEAK;
    }
    if (t->source == HOTFN_SOURCE_DYNSYM && e->binding != HFN_STB_LOCAL &&
        e->visibility != HFN_STV_HIDDEN && e->visibility != HFN_STV_INTERNAL) {
        flags |= HOTFN_SYMBOL_EXPORTED;
    }
    return flags;
}

/* Fills t->version_names. A Verdef has vd_ndx at 4, vd_aux at 12 and vd_next at 16; vda_name is at
 * 0 of its first Verdaux (LSB core, 'Version Definitions'). vd_next only leads forward. */
static bool read_versions(symtab *t)
{
    hfn_span definitions = hfn_elf_dynamic_table(t->reader->image, HFN_DT_VERDEF);
    uint32_t aux, next = 1, name;
    uint16_t number;

    t->version_names =
        hfn_arena_alloc(&t->reader->table->names, VERSION_HIDDEN * sizeof *t->version_names);
    if (!t->version_names) {
        return false;
    }
    for (uint64_t at = 0;
         next && hfn_span_u16(definitions, at + 4, &number) &&
         hfn_span_u32(definitions, at + 12, &aux) && hfn_span_u32(definitions, at + 16, &next);
         at += next) {
        if (number < VERSION_HIDDEN && hfn_span_u32(definitions, at + aux, &name)) {
            t->version_names[number] = hfn_span_name(t->names, name);
        }
    }
    return true;
}

/* name, or a copy with '@version'; NULL if there is no memory. */
static const char *versioned_name(symtab *t, uint64_t index, const char *name)
{
    const char *version;
    uint16_t number;
    char *copy;

    if (!hfn_span_u16(t->versions, index * 2, &number) || !(number & VERSION_HIDDEN)) {
        return name;
    }
    number &= VERSION_HIDDEN - 1;
    if (!t->version_names && !read_versions(t)) {
        return NULL;
    }
    version = number >= VERSION_FIRST_NAMED ? t->version_names[number] : NULL;
    if (!version) {
        return name;
    }
    copy = hfn_arena_alloc(&t->reader->table->names, strlen(name) + strlen(version) + 2);
    if (copy) {
        strcpy(copy, name);
        strcat(copy, "@");
        strcat(copy, version);
    }
    return copy;
}

/* False for a symbol in a section like .debug_info: its value is an offset that may look like an
 * address of code. */
static bool is_loaded(const symtab *t, const entry *e)
{
    const hfn_elf_section *section = hfn_elf_section_at(t->holder, e->section);

    return !section || (section->flags & HFN_SHF_ALLOC);
}

/* False if there is no memory. */
static bool add_entry(symtab *t, uint64_t index, const entry *e)
{
    hfn_symbol symbol = { .byte_count = e->size, .source = t->source };
    uint64_t value = e->value;

    if (e->section == HFN_SHN_UNDEF || e->type == HFN_STT_SECTION || e->type == HFN_STT_FILE ||
        !is_loaded(t, e)) {
        return true;
    }
    symbol.name = hfn_span_name(t->names, e->name);
    if (!symbol.name || !symbol.name[0] || is_mapping_symbol(t, symbol.name)) {
        return true;
    }
    if (e->section == UINT32_MAX && !(t->fixed && e->type == HFN_STT_FUNC)) {
        return true; /* absolute: not an address, unless the image cannot be relocated */
    }
    if (t->raw_machine == HFN_EM_ARM && e->type == HFN_STT_FUNC) {
        value &= ~(uint64_t)1; /* Thumb */
    }
    if (!hfn_image_rva(t->reader->image, value, &symbol.rva)) {
        t->outside++;
        return true;
    }
    symbol.kind = kind_of(t, e, symbol.rva);
    if (!symbol.kind) {
        return true;
    }
    symbol.flags = flags_of(t, e);
    symbol.name = versioned_name(t, index, symbol.name);
    return symbol.name && hfn_symbol_table_add(t->reader->table, &symbol);
}

static hotfn_status read_table(symtab *t, const hotfn_image *holder, hotfn_error *err)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    uint64_t index = 1; /* entry 0 is reserved */
    entry e;

    hotfn_image_get_info(t->reader->image, &info);
    t->holder = holder;
    t->wide = info.bits == 64;
    t->raw_machine = (uint16_t)info.raw_machine;
    t->fixed = info.flags & HOTFN_IMAGE_FIXED;
    t->entry_bytes = t->entry_bytes ? t->entry_bytes : t->wide ? 24 : 16;
    if (t->entry_bytes < (t->wide ? 24u : 16u)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, hfn_image_path(holder), HOTFN_NO_OFFSET,
                                "a symbol table with entries of %llu bytes, which is too few",
                                (unsigned long long)t->entry_bytes);
    }
    bool has_memory = true;
    hfn_progress progress =
        hfn_progress_begin(&t->reader->table->env, "reading symbols of", hfn_image_path(holder),
                           t->entries.size / t->entry_bytes);
    for (; has_memory && read_entry(t, index, &e); index++) {
        hfn_progress_reach(&progress, index);
        has_memory = add_entry(t, index, &e);
    }
    hfn_progress_end(&progress);
    if (!has_memory) {
        return hfn_report_no_memory(err, hfn_image_path(holder));
    }
    if (t->outside) {
        hfn_log_message(&t->reader->table->env, HOTFN_LOG_DEBUG,
                        "%s: %u symbols outside any segment", hfn_image_path(holder), t->outside);
    }
    return HOTFN_OK;
}

static const hfn_elf_section *section_of_type(const hotfn_image *image, uint32_t type)
{
    for (uint32_t i = 0; i < hfn_elf_section_count(image); i++) {
        if (hfn_elf_section_at(image, i)->type == type) {
            return hfn_elf_section_at(image, i);
        }
    }
    return NULL;
}

/* Opens the symbol table in section and the table of its names (sh_link). */
static hotfn_status table_of_section(symtab *t, const hotfn_image *holder,
                                     const hfn_elf_section *section, hotfn_error *err)
{
    const hfn_elf_section *names = hfn_elf_section_at(holder, section->link);

    t->entries = hfn_elf_section_bytes(holder, section);
    t->entry_bytes = section->entry_size;
    if (names) {
        t->names = hfn_span_string_table(hfn_elf_section_bytes(holder, names));
    }
    if (section->size && !t->entries.size) {
        return hfn_report_error(err, HOTFN_E_FORMAT, hfn_image_path(holder), section->offset,
                                "its symbol table of %llu bytes lies outside the file",
                                (unsigned long long)section->size);
    }
    if (t->entries.size && (!names || (names->size && !t->names.size))) {
        return hfn_report_error(err, HOTFN_E_FORMAT, hfn_image_path(holder),
                                names ? names->offset : 0,
                                "its table of symbol names lies outside the file");
    }
    return HOTFN_OK;
}

hotfn_status hfn_symtab_read(const hfn_symtab_reader *reader, const hotfn_image *holder,
                             uint8_t source, hotfn_error *err)
{
    symtab t = { .reader = reader, .source = source };
    const hfn_elf_section *section = section_of_type(holder, HFN_SHT_SYMTAB);
    const hfn_elf_section *wide = section_of_type(holder, HFN_SHT_SYMTAB_SHNDX);
    hotfn_status status;

    if (!section || section->type == HFN_SHT_NOBITS) {
        return HOTFN_OK;
    }
    status = table_of_section(&t, holder, section, err);
    if (wide) {
        t.wide_indices = hfn_elf_section_bytes(holder, wide);
    }
    return status == HOTFN_OK ? read_table(&t, holder, err) : status;
}

/* Opens .dynsym of an image without section headers: the dynamic section gives its address, the
 * hash table its length. */
static void table_of_dynamic(symtab *t, const hotfn_image *image)
{
    hfn_span rest = hfn_elf_dynamic_table(image, HFN_DT_SYMTAB);
    uint64_t entry_bytes = hfn_elf_word_bytes(image) == 8 ? 24 : 16;
    uint64_t count = hfn_elf_dynamic_symbol_count(image);

    t->names = hfn_span_string_table(hfn_elf_dynamic_span(image, HFN_DT_STRTAB, HFN_DT_STRSZ));
    if (count > rest.size / entry_bytes) {
        count = rest.size / entry_bytes;
    }
    t->entries = hfn_span_sub(rest, 0, count * entry_bytes);
}

hotfn_status hfn_dynsym_read(const hfn_symtab_reader *reader, hotfn_error *err)
{
    symtab t = { .reader = reader, .source = HOTFN_SOURCE_DYNSYM };
    const hfn_elf_section *section = section_of_type(reader->image, HFN_SHT_DYNSYM);
    hotfn_status status = HOTFN_OK;

    if (section) {
        status = table_of_section(&t, reader->image, section, err);
    } else {
        table_of_dynamic(&t, reader->image);
    }
    t.versions = hfn_elf_dynamic_table(reader->image, HFN_DT_VERSYM);
    return status == HOTFN_OK ? read_table(&t, reader->image, err) : status;
}
