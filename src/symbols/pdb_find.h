/* SPDX-License-Identifier: MIT */
/* Finds the PDB that belongs to a PE image. */
#ifndef HFN_SYMBOLS_PDB_FIND_H
#define HFN_SYMBOLS_PDB_FIND_H

#include "image/pe.h"

#include <hotfn/lowlevel/symbols.h>

/*
 * Loads the first PDB of this very build among the places where it may be.  *out stays unchanged if
 * there is none.  A PDB of another build or a broken one is skipped with a warning.
 * HOTFN_OK or HOTFN_E_NO_MEMORY.
 */
hotfn_status hfn_pdb_find(hotfn_symbols **out, const hotfn_image *image,
                          const hotfn_symbols_options *options, const hotfn_env *env,
                          hotfn_error *err);

#endif
