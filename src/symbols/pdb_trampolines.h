/* SPDX-License-Identifier: MIT */
/* Jumps that an incremental link places before functions; the PDB has no names for them. */
#ifndef HFN_SYMBOLS_PDB_TRAMPOLINES_H
#define HFN_SYMBOLS_PDB_TRAMPOLINES_H

#include "symbols/table.h"

typedef struct hfn_pdb_trampoline {
    uint64_t rva, target;
    uint32_t offset, bytes; /* offset of the jump in its section; size of the jump */
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

/* Sorts the table, then adds each jump as a thunk that is named after its target.  Once these names
 * would take more than name_bytes in all, jumps are named by number alone.  False if there is no
 * memory. */
bool hfn_pdb_trampolines_follow(hfn_pdb_trampolines *list, hfn_symbol_table *table,
                                size_t name_bytes);

#endif
