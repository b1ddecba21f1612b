/* SPDX-License-Identifier: MIT */
/* The errors of src/os/none: its functions fail with UNAVAILABLE. */
#ifndef HFN_OS_NONE_UNAVAILABLE_H
#define HFN_OS_NONE_UNAVAILABLE_H

enum { UNAVAILABLE = 1, OUT_OF_MEMORY = 2 };

#endif
