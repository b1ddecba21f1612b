/* SPDX-License-Identifier: MIT */
/* libobjc2 (GNUstep's runtime): classes and methods by its public calls. */
#ifndef HFN_RUNTIMES_OBJC2_H
#define HFN_RUNTIMES_OBJC2_H

#include "runtimes/methods.h"
#include "session/runtime.h"

/* Find the runtime's calls; false: the module at base is not libobjc2. */
bool hfn_objc2_open(hfn_find_symbol_fn *find_symbol, uint64_t base);
/* The class of a receiver that is not nil. */
const void *hfn_objc2_get_class(const void *receiver);
/* Write the name of the method, "-[Class selector]", with the class that implements it; false: the
 * IMP is that of no method, for example because it forwards the message. */
bool hfn_objc2_write_name(char *out, size_t out_bytes, const void *class, const void *selector,
                          hotfn_code imp);

#endif
