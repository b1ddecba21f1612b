/* SPDX-License-Identifier: MIT */
/* The tracer of Objective-C messages. */
#ifndef HFN_RUNTIMES_OBJC_H
#define HFN_RUNTIMES_OBJC_H

#include "runtimes/methods.h"
#include "session/runtime.h"

const hfn_runtime *hfn_objc_get_runtime(const hfn_runtime_process *process);

#endif
