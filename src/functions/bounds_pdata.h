/* SPDX-License-Identifier: MIT */
/* Function bounds from .pdata, the table of functions that x64 and ARM64 PE images carry. */
#ifndef HFN_FUNCTIONS_BOUNDS_PDATA_H
#define HFN_FUNCTIONS_BOUNDS_PDATA_H

#include "functions/bounds_eh_frame.h"

/* Bounds in the form of FDEs: HFN_FDE_INSIDE for a fragment, HFN_FDE_LSDA if it has a handler.
 * Invalid entries are skipped with a warning.  False if there is no memory; then *out is empty. */
bool hfn_bounds_pdata(hfn_fde_list *out, const hotfn_image *image, const hotfn_env *env);

#endif
