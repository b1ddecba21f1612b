/* SPDX-License-Identifier: MIT */
/* Rows of functions, made one by one when they are read: no list of them is built in memory. */
#ifndef HFN_BASE_FUNCTION_SOURCE_H
#define HFN_BASE_FUNCTION_SOURCE_H

#include <hotfn/function.h>

/* Fill *out with the function at index.  Its strings stay valid until the next call. */
typedef struct hfn_function_source {
    void (*get)(void *user, uint32_t index, hotfn_record_function *out);
    void *user;
} hfn_function_source;

#endif
