/* SPDX-License-Identifier: MIT */
/* Reads the symbol records of a PDB into the table. */
#ifndef HFN_SYMBOLS_PDB_SYMBOLS_H
#define HFN_SYMBOLS_PDB_SYMBOLS_H

#include "symbols/pdb_streams.h"
#include "symbols/table.h"

/* Procedures, thunks and publics; variables too if want_data.  HOTFN_OK, HOTFN_E_FORMAT,
 * HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT. */
hotfn_status hfn_pdb_read_symbols(hfn_pdb *pdb, hfn_symbol_table *table, bool want_data,
                                  hotfn_error *err);

#endif
