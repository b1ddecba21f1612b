/* SPDX-License-Identifier: MIT */
/* Functions of Python programs, in CPython 3.11. */
#ifndef HFN_RUNTIMES_PYTHON_H
#define HFN_RUNTIMES_PYTHON_H

#include "runtimes/methods.h"
#include "session/runtime.h"

/* The tracer.  One per process. */
const hfn_runtime *hfn_python_get_runtime(const hfn_runtime_process *process);

#endif
