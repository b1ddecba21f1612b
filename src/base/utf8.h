/* SPDX-License-Identifier: MIT */
/* UTF-8 sequences (Unicode 15, table 3-7). */
#ifndef HFN_BASE_UTF8_H
#define HFN_BASE_UTF8_H

#include <stddef.h>

/* Returns the length in bytes of the UTF-8 sequence that begins at s, or 0 if it is not valid.  s
 * points into a NUL-terminated string. */
size_t hfn_utf8_length(const unsigned char *s);

#endif
