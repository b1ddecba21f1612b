/* SPDX-License-Identifier: MIT */
/*
 * The COFF symbol table (PE Format, 'COFF Symbol Table'): 18 bytes a symbol, followed by its
 * auxiliary symbols.  Only symbols that are defined in a section and have a name of their own are
 * kept.  A symbol of function type is a function; an untyped one in code is a label (an import's
 * stub, hand-written code).  Sizes are not recorded here: they come from .pdata or .eh_frame.
 */
#include "symbols/coff_symtab.h"

#include "base/progress.h"
#include "base/status.h"

#include <string.h>

enum {
    ENTRY_BYTES = 18,
    SHORT_NAME_BYTES = 8,
    CLASS_EXTERNAL = 2,
    CLASS_STATIC = 3,
    TYPE_FUNCTION = 2, /* in bits 4 and 5 of the type */
};

typedef struct entry {
    uint32_t value;
    int16_t section; /* from 1; 0 undefined, -1 absolute, -2 debug */
    uint16_t type;
    uint8_t storage_class, aux_count;
} entry;

typedef struct reader {
    hfn_symbol_table *table;
    const hotfn_image *image;
    hfn_pe_symtab symtab;
    bool want_data, has_prefix; /* has_prefix: an underscore precedes the names of C, as on x86 */
} reader;

static bool read_entry(hfn_span entries, uint64_t at, entry *e)
{
    uint16_t section = 0;

    if (!hfn_span_has(entries, at, ENTRY_BYTES)) {
        return false;
    }
    hfn_span_u32(entries, at + 8, &e->value);
    hfn_span_u16(entries, at + 12, &section);
    hfn_span_u16(entries, at + 14, &e->type);
    hfn_span_u8(entries, at + 16, &e->storage_class);
    hfn_span_u8(entries, at + 17, &e->aux_count);
    e->section = (int16_t)section;
    return true;
}

/* The name of a symbol: a view if it ends with a NUL, else a copy; "" if it has none; NULL if there
 * is no memory. */
static const char *name_of(const reader *r, uint64_t at)
{
    const char *raw = (const char *)r->symtab.entries.data + at, *name;
    uint32_t zeroes = 0, offset = 0;

    hfn_span_u32(r->symtab.entries, at, &zeroes);
    if (zeroes == 0) {
        hfn_span_u32(r->symtab.entries, at + 4, &offset);
        name = offset >= 4 ? hfn_span_name(r->symtab.names, offset) : NULL;
        return name ? name : "";
    }
    if (memchr(raw, 0, SHORT_NAME_BYTES)) {
        return raw;
    }
    return hfn_arena_copy(&r->table->names, raw, SHORT_NAME_BYTES);
}

/* A symbol that names a section or an object file's part of a section (".text", ".idata$5"). */
static bool is_section_symbol(const entry *e, const char *name)
{
    return e->storage_class == CLASS_STATIC && name[0] == '.';
}

/* mingw's linker puts the lists of constructors and destructors among the code. */
static bool is_pointer_list(const char *name)
{
    return strcmp(name, "__CTOR_LIST__") == 0 || strcmp(name, "__DTOR_LIST__") == 0;
}

/* False if there is no memory. */
static bool add_entry(const reader *r, uint64_t at, const entry *e)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    hfn_symbol symbol = { .source = HOTFN_SOURCE_SYMTAB };

    if ((e->storage_class != CLASS_EXTERNAL && e->storage_class != CLASS_STATIC) ||
        e->section <= 0 ||
        hotfn_image_get_section(r->image, (uint32_t)e->section - 1, &section) != HOTFN_OK ||
        !(section.flags & HOTFN_SECTION_LOADED) || e->value >= section.byte_count) {
        return true;
    }
    symbol.rva = section.rva + e->value;
    symbol.flags = e->storage_class == CLASS_EXTERNAL ? HOTFN_SYMBOL_GLOBAL : 0;
    symbol.name = name_of(r, at);
    if (r->has_prefix && symbol.name && symbol.name[0] == '_' && symbol.name[1]) {
        symbol.name++;
    }
    if (!symbol.name || !symbol.name[0] || is_section_symbol(e, symbol.name)) {
        return symbol.name != NULL;
    }
    if ((e->type >> 4 & 3) == TYPE_FUNCTION) {
        symbol.kind = HOTFN_SYMBOL_FUNCTION;
    } else {
        symbol.kind = section.flags & HOTFN_SECTION_EXECUTE && !is_pointer_list(symbol.name)
                          ? HOTFN_SYMBOL_LABEL
                          : HOTFN_SYMBOL_DATA;
    }
    if (symbol.kind == HOTFN_SYMBOL_DATA && !r->want_data) {
        return true;
    }
    return hfn_symbol_table_add(r->table, &symbol);
}

hotfn_status hfn_coff_symtab_read(hfn_symbol_table *table, const hotfn_image *image, bool want_data,
                                  hotfn_error *err)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    reader r = { .table = table, .image = image, .want_data = want_data };
    entry e;

    hotfn_image_get_info(image, &info);
    r.has_prefix = info.machine == HOTFN_MACHINE_X86;
    r.symtab = hfn_pe_symtab_of(image);
    bool has_memory = true;
    hfn_progress progress = hfn_progress_begin(&table->env, "reading symbols of",
                                               hfn_image_path(image), r.symtab.entries.size);
    for (uint64_t at = 0; has_memory && read_entry(r.symtab.entries, at, &e);
         at += ENTRY_BYTES * (1 + (uint64_t)e.aux_count)) {
        hfn_progress_reach(&progress, at);
        has_memory = add_entry(&r, at, &e);
    }
    hfn_progress_end(&progress);
    return has_memory ? HOTFN_OK : hfn_report_no_memory(err, hfn_image_path(image));
}
