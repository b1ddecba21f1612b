/* SPDX-License-Identifier: MIT */
/* UTF-8 sequences (Unicode 15, table 3-7). */
#ifndef HFN_BASE_UTF8_H
#define HFN_BASE_UTF8_H

#include <stddef.h>

/* The bytes of the valid sequence at s, which ends with a NUL; 0 if there is none. */
size_t hfn_utf8_length(const unsigned char *s);

#endif
