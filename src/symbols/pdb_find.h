/* SPDX-License-Identifier: MIT */
/* Finds the PDB that belongs to a PE image. */
#ifndef HFN_SYMBOLS_PDB_FIND_H
#define HFN_SYMBOLS_PDB_FIND_H

#include "image/pe.h"

#include <hotfn/lowlevel/symbols.h>

/*
 * Tries the places where the PDB may be and loads the first that is of this build into *out, which
 * is left alone if there is none.  One of another build, or broken, is passed over with a warning.
 * HOTFN_OK or HOTFN_E_NO_MEMORY.
 */
hotfn_status hfn_pdb_find(hotfn_symbols **out, const hotfn_image *image,
                          const hotfn_symbols_options *options, const hotfn_env *env,
                          hotfn_error *err);

#endif
