/* SPDX-License-Identifier: MIT */
/* Reads the COFF symbol table that GNU linkers (and lld for mingw) leave in a PE image. */
#ifndef HFN_SYMBOLS_COFF_SYMTAB_H
#define HFN_SYMBOLS_COFF_SYMTAB_H

#include "image/pe.h"
#include "symbols/table.h"

/* Adds the symbols with source SYMTAB.  HOTFN_OK, also if the image has no such table;
 * HOTFN_E_NO_MEMORY. */
hotfn_status hfn_coff_symtab_read(hfn_symbol_table *table, const hotfn_image *image, bool want_data,
                                  hotfn_error *err);

#endif
