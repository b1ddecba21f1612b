/* SPDX-License-Identifier: MIT */
/* Reads one ELF symbol table (gABI ch. 4, 'Symbol Table') into the table. */
#ifndef HFN_SYMBOLS_ELF_SYMTAB_H
#define HFN_SYMBOLS_ELF_SYMTAB_H

#include "image/image.h"
#include "symbols/table.h"

/* Where the symbols are added, and which ones. */
typedef struct hfn_symtab_reader {
    hfn_symbol_table *table;
    const hotfn_image *image; /* the image that the RVAs refer to */
    bool want_data;
} hfn_symtab_reader;

/*
 * Reads the symbol table of holder, which is the image itself or a separate debug file of it; names
 * are views into holder.  HOTFN_OK, also if holder has no such table; HOTFN_E_FORMAT if the table
 * lies outside its file, HOTFN_E_NO_MEMORY.
 */
hotfn_status hfn_symtab_read(const hfn_symtab_reader *reader, const hotfn_image *holder,
                             uint8_t source, hotfn_error *err);
hotfn_status hfn_dynsym_read(const hfn_symtab_reader *reader, hotfn_error *err);

#endif
