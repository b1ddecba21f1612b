/* SPDX-License-Identifier: MIT */
/* Reads the function table of a Go program into the table. */
#ifndef HFN_SYMBOLS_GO_TABLE_H
#define HFN_SYMBOLS_GO_TABLE_H

#include "symbols/elf_symtab.h"

/* HOTFN_OK, also if the image has no such table or it is of an unknown version;
 * HOTFN_E_NO_MEMORY. */
hotfn_status hfn_go_table_read(const hfn_symtab_reader *reader, hotfn_error *err);

#endif
