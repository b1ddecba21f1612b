/* SPDX-License-Identifier: MIT */
/* Reads the exception tables of x64 and ARM64 PE images: functions that only a handler calls,
 * addresses that only a handler jumps to, and ranges where a handler depends on the address of a
 * fault. */
#ifndef HFN_FUNCTIONS_HANDLERS_H
#define HFN_FUNCTIONS_HANDLERS_H

#include "image/image.h"

typedef struct hfn_handler_visitor {
    /* A function that only a handler calls: a filter, finally or catch block, or the handler. */
    void (*calls)(void *user, uint64_t rva);
    /* An address where execution continues after a handler. */
    void (*jumps)(void *user, uint64_t rva);
    /* A range where a fault may be caught. */
    void (*guards)(void *user, uint64_t begin, uint64_t end);
    void *user;
} hfn_handler_visitor;

/* Calls the visitor for each item; does nothing for an image of another kind. */
void hfn_each_handler(const hotfn_image *image, const hfn_handler_visitor *visitor);

/* Calls visit for each range of the function that begins at rva in which an exception or a fault
 * may continue at target, a place in the same function.  False if that is not known. */
typedef void (*hfn_continuation_fn)(void *user, uint64_t begin, uint64_t end, uint64_t target);
bool hfn_each_continuation(const hotfn_image *image, uint64_t rva, hfn_continuation_fn visit,
                           void *user);

#endif
