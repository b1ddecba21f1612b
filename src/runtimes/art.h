/* SPDX-License-Identifier: MIT */
/* The filter of Android's method trace. */
#ifndef HFN_RUNTIMES_ART_H
#define HFN_RUNTIMES_ART_H

#include "runtimes/methods.h"
#include "session/runtime.h"

const hfn_runtime *hfn_art_get_runtime(const hfn_runtime_process *process);

#endif
