/* SPDX-License-Identifier: MIT */
/* No process of this CPU can be attached to. */
#include "counters/core/core.h"

const hfn_core_image hfn_core = { 0 };
