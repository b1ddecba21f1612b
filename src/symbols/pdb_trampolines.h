/* SPDX-License-Identifier: MIT */
/* Jumps that an incremental link puts before functions; the PDB gives them no names. */
#ifndef HFN_SYMBOLS_PDB_TRAMPOLINES_H
#define HFN_SYMBOLS_PDB_TRAMPOLINES_H

#include "symbols/table.h"

typedef struct hfn_pdb_trampoline {
    uint64_t rva, target;
    uint32_t offset, bytes; /* in its section; of the jump */
    uint32_t module;
} hfn_pdb_trampoline;

typedef struct hfn_pdb_trampolines {
    hfn_pdb_trampoline *items;
    size_t capacity;
    uint32_t count;
} hfn_pdb_trampolines;

/* False if there is no memory. */
bool hfn_pdb_trampolines_add(hfn_pdb_trampolines *list, const hotfn_env *env,
                             const hfn_pdb_trampoline *trampoline);
void hfn_pdb_trampolines_finish(hfn_pdb_trampolines *list, const hotfn_env *env);

/* Sort the table, then add each to it as a thunk called after what it leads to; by its number alone
 * when all their names together would take more than name_bytes.  False if there is no memory. */
bool hfn_pdb_trampolines_follow(hfn_pdb_trampolines *list, hfn_symbol_table *table,
                                size_t name_bytes);

#endif
