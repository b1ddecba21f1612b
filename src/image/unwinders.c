/* SPDX-License-Identifier: MIT */
/* Reads the dynamic symbols that show how exceptions are handled. */
#include "image/unwinders.h"

#include "image/elf_numbers.h"
#include "image/inside.h"

#include <string.h>

typedef struct imports {
    bool finds_modules, finds_objects, has_libgcc;
} imports;

static void note_import(void *user, const hfn_image_slot *slot)
{
    imports *i = user;

    i->finds_modules |=
        strcmp(slot->name, "_dl_find_object") == 0 || strcmp(slot->name, "dl_iterate_phdr") == 0;
    i->finds_objects |= strcmp(slot->name, "_dl_find_object") == 0;
    i->has_libgcc |= strncmp(slot->name, "_Unwind_", strlen("_Unwind_")) == 0;
}

bool hfn_image_has_own_unwinder(const hotfn_image *image)
{
    imports i = { false, false, false };

    if (!hfn_elf_section_named(image, ".gcc_except_table")) {
        return false;
    }
    hfn_image_each_slot(image, note_import, &i);
    return i.finds_modules && !i.has_libgcc;
}

bool hfn_image_remembers_tables(const hotfn_image *image)
{
    imports i = { false, false, false };

    if (hfn_image_find_export(image, "_Unwind_RaiseException") == 0) {
        return false;
    }
    hfn_image_each_slot(image, note_import, &i);
    return !i.finds_objects;
}

uint64_t hfn_image_find_export(const hotfn_image *image, const char *name)
{
    enum { ENTRY_BYTES = 24, SECTION_AT = 6, VALUE_AT = 8 }; /* Elf64_Sym */
    hfn_span entries, names;
    uint64_t value;
    uint32_t text;
    uint16_t section;

    if (image->info.format != HOTFN_FORMAT_ELF || image->word_bytes != 8) {
        return 0;
    }
    entries = hfn_span_sub(hfn_elf_dynamic_table(image, HFN_DT_SYMTAB), 0,
                           hfn_elf_dynamic_symbol_count(image) * ENTRY_BYTES);
    names = hfn_span_string_table(hfn_elf_dynamic_span(image, HFN_DT_STRTAB, HFN_DT_STRSZ));
    for (uint64_t at = 0;
         hfn_span_u32(entries, at, &text) && hfn_span_u16(entries, at + SECTION_AT, &section) &&
         hfn_span_u64(entries, at + VALUE_AT, &value);
         at += ENTRY_BYTES) {
        const char *found = section != HFN_SHN_UNDEF ? hfn_span_name(names, text) : NULL;
        if (found && strcmp(found, name) == 0 && value > image->info.link_base) {
            return value - image->info.link_base;
        }
    }
    return 0;
}
