/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load for a PE image. */
#ifndef HFN_SYMBOLS_LOAD_PE_H
#define HFN_SYMBOLS_LOAD_PE_H

#include <hotfn/lowlevel/symbols.h>

/* options are those of hfn_symbols_copy_options; otherwise as hotfn_symbols_load. */
hotfn_status hfn_symbols_load_pe(hotfn_symbols **out, const hotfn_image *image,
                                 const hotfn_symbols_options *options, const hotfn_env *env,
                                 hotfn_error *err);

#endif
