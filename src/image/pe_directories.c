/* SPDX-License-Identifier: MIT */
/*
 * What the data directories and the file header point to: the PDB that belongs to the image, the
 * COFF symbol table.  Each is read on demand, with checked reads; none of them can make
 * the image unreadable.
 */
#include "image/inside.h"
#include "image/pe.h"
#include "image/pe_numbers.h"

#include <string.h>

enum { DEBUG_ENTRY_BYTES = 28, SYMBOL_BYTES = 18, CLR_FLAGS_AT = 16, CLR_IL_ONLY = 1 };

bool hfn_image_is_pe(const hotfn_image *image)
{
    return image->info.format == HOTFN_FORMAT_PE;
}

hfn_span hfn_pe_directory(const hotfn_image *image, uint32_t index, uint64_t *rva)
{
    const hfn_pe_range *d = &image->pe.directories[index];
    hfn_span bytes = hfn_image_span(image, d->rva);

    *rva = d->rva;
    if (d->rva == 0 || d->byte_count == 0) {
        return (hfn_span){ NULL, 0, false };
    }
    return hfn_span_sub(bytes, 0, d->byte_count < bytes.size ? d->byte_count : bytes.size);
}

bool hfn_pe_directory_has(const hotfn_image *image, uint32_t index, uint64_t rva)
{
    const hfn_pe_range *d = &image->pe.directories[index];

    return d->rva != 0 && rva - d->rva < d->byte_count;
}

/* Returns the bytes of a debug entry, found by file offset because they need not be loaded. */
static hfn_span debug_data(const hotfn_image *image, hfn_span directory, uint64_t at)
{
    uint32_t bytes = 0, rva = 0, offset = 0;

    hfn_span_u32(directory, at + 16, &bytes);
    hfn_span_u32(directory, at + 20, &rva);
    hfn_span_u32(directory, at + 24, &offset);
    if (offset) {
        return hfn_span_sub(image->bytes, offset, bytes);
    }
    return hfn_span_sub(hfn_image_span(image, rva), 0, bytes);
}

/* CodeView: "RSDS", GUID, age, path (LLVM docs, 'The PDB Info Stream'; PE Format, 'Debug Type').
 * The older "NB10" has no GUID and names a PDB 2.0, which is not supported. */
static bool read_codeview(hfn_span s, hfn_pe_pdb *out)
{
    static const uint8_t zero[16];
    const char *path;
    uint32_t signature = 0;

    if (!hfn_span_u32(s, 0, &signature) || signature != 0x53445352 || !hfn_span_has(s, 4, 20)) {
        return false;
    }
    memcpy(out->guid, s.data + 4, sizeof out->guid);
    hfn_span_u32(s, 20, &out->age);
    path = hfn_span_string(s, 24);
    out->path = path ? path : "";
    return memcmp(out->guid, zero, sizeof zero) != 0;
}

bool hfn_pe_pdb_of(const hotfn_image *image, hfn_pe_pdb *out)
{
    uint64_t rva;
    hfn_span directory = hfn_pe_directory(image, HFN_PE_DEBUG, &rva);
    hfn_pe_pdb found;
    uint32_t type;

    for (uint64_t at = 0; hfn_span_has(directory, at, DEBUG_ENTRY_BYTES); at += DEBUG_ENTRY_BYTES) {
        hfn_span_u32(directory, at + 12, &type);
        if (type == HFN_PE_DEBUG_CODEVIEW &&
            read_codeview(debug_data(image, directory, at), &found)) {
            *out = found;
            return true;
        }
    }
    return false;
}

/* Flags of the CLR header: ECMA-335 II.25.3.3. */
bool hfn_pe_is_managed(const hotfn_image *image)
{
    uint64_t rva;
    hfn_span header = hfn_pe_directory(image, HFN_PE_CLR, &rva);
    uint32_t flags;

    return hfn_span_u32(header, CLR_FLAGS_AT, &flags) && flags & CLR_IL_ONLY;
}

/* The entry point is in a section that may be written, and there is code that is not in the file.
 * The latter alone is no sign: programs for incremental linking have such a section. */
bool hfn_pe_is_packed(const hotfn_image *image)
{
    bool has_missing_code = false, entry_is_writable = false;

    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;

        hotfn_image_get_section(image, i, &s);
        if (s.flags & HOTFN_SECTION_EXECUTE) {
            has_missing_code |= s.byte_count > 0 && s.file_bytes == 0;
            entry_is_writable |=
                s.flags & HOTFN_SECTION_WRITE && image->info.entry_rva - s.rva < s.byte_count;
        }
    }
    return has_missing_code && entry_is_writable;
}

/* A table of no symbols may still have names: those of the sections. */
void hfn_pe_find_symtab(hotfn_image *image)
{
    uint64_t begin = image->pe.symbols_offset;
    uint64_t bytes = (uint64_t)image->pe.symbol_count * SYMBOL_BYTES;
    uint32_t name_bytes;

    if (begin == 0) {
        return;
    }
    if (!hfn_span_has(image->bytes, begin, bytes) ||
        !hfn_span_u32(image->bytes, begin + bytes, &name_bytes) ||
        !hfn_span_has(image->bytes, begin + bytes, name_bytes)) {
        hfn_log_message(&image->env, HOTFN_LOG_WARNING,
                        "%s: its symbol table at byte %llu lies outside the file: read as empty",
                        image->info.path, (unsigned long long)begin);
        return;
    }
    image->pe.symbol_entries = hfn_span_sub(image->bytes, begin, bytes);
    image->pe.symbol_names =
        hfn_span_string_table(hfn_span_sub(image->bytes, begin + bytes, name_bytes));
}

hfn_pe_symtab hfn_pe_symtab_of(const hotfn_image *image)
{
    return (hfn_pe_symtab){ image->pe.symbol_entries, image->pe.symbol_names };
}

bool hfn_pe_word_rva(const hotfn_image *image, hfn_span directory, uint64_t at, uint64_t *rva)
{
    uint64_t address;

    return hfn_span_word(directory, at, image->word_bytes, &address) && address != 0 &&
           hfn_image_rva(image, address, rva);
}
