/* SPDX-License-Identifier: MIT */
/* The demangler that an env has by default. */
#ifndef HFN_BASE_DEMANGLE_H
#define HFN_BASE_DEMANGLE_H

#include <hotfn/env.h>

/* NULL if the process has no C++ library. */
hotfn_demangle_fn hfn_demangle_get_default(void);

#endif
