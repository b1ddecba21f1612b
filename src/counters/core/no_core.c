/* SPDX-License-Identifier: MIT */
/* hotfn cannot attach to processes on this CPU or system, so there is no core. */
#include "counters/core/core.h"

const hfn_core_image hfn_core = { 0 };
