/* SPDX-License-Identifier: MIT */
/* The parts of the tools' demangler.  Each writes a readable name into out and returns its length;
 * 0 if it does not support the name or if the result does not fit. */
#ifndef HOTFN_TOOL_DEMANGLE_H
#define HOTFN_TOOL_DEMANGLE_H

#include <stddef.h>

#define DEMANGLE_LONGEST 16384 /* of a mangled name: a longer one is shown as it is */

#ifdef __cplusplus
extern "C" {
#endif

/* demangle_llvm.cpp: Itanium C++, Microsoft, Rust v0, D.  Its time and memory are not bounded. */
size_t demangle_by_llvm(const char *mangled, char *out, size_t out_bytes);
/* demangle.c: by the demanglers that are available, with readable names of Rust; not bounded. */
size_t demangle_in_process(const char *mangled, char *out, size_t out_bytes);
/* demangle_worker.c: the same in a worker process, with bounds of time and memory. */
size_t demangle_in_worker(const char *mangled, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif

#endif
