/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load, where the image is a PE file. */
#ifndef HFN_SYMBOLS_LOAD_PE_H
#define HFN_SYMBOLS_LOAD_PE_H

#include <hotfn/lowlevel/symbols.h>

/* options are taken (all flags known); the rest as hotfn_symbols_load says. */
hotfn_status hfn_symbols_load_pe(hotfn_symbols **out, const hotfn_image *image,
                                 const hotfn_symbols_options *options, const hotfn_env *env,
                                 hotfn_error *err);

#endif
