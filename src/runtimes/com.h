/* SPDX-License-Identifier: MIT */
/* The tracer of COM objects (Windows; docs/design/com.md). */
#ifndef HFN_RUNTIMES_COM_H
#define HFN_RUNTIMES_COM_H

#include "runtimes/methods.h"
#include "session/runtime.h"

const hfn_runtime *hfn_com_get_runtime(const hfn_runtime_process *process);

#endif
