/* SPDX-License-Identifier: MIT */
/* The pool of functions for methods (docs/design/runtimes.md): what its assembly and the
 * library share.  Function n of the pool calls, or jumps to, the address in targets[n]. */
#ifndef HFN_ARCH_METHOD_POOL_H
#define HFN_ARCH_METHOD_POOL_H

/* Framed functions call their targets, so they may be timed; a target must not have arguments on
 * the stack.  Plain functions, which follow them, jump to theirs.  Powers of two. */
#define HFN_POOL_FRAMED 16384
#define HFN_POOL_PLAIN 8192

#define HFN_POOL_FRAMED_BYTES 32
#define HFN_POOL_PLAIN_BYTES 16

/* Symbols of the pool's library. */
#define HFN_POOL_TARGETS "hotfn_method_targets"
#define HFN_POOL_FUNCTIONS "hotfn_method_functions"

#endif
