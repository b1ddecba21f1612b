/* SPDX-License-Identifier: MIT */
/* What the exception tables of x64 and ARM64 PE images say of code: functions that only a handler
 * calls, places that only a handler jumps to, instructions whose address a handler asks for. */
#ifndef HFN_FUNCTIONS_HANDLERS_H
#define HFN_FUNCTIONS_HANDLERS_H

#include "image/image.h"

typedef struct hfn_handler_visitor {
    void (*calls)(void *user, uint64_t rva); /* filters, finally and catch blocks, the handlers   */
    void (*jumps)(void *user, uint64_t rva); /* where execution goes on                           */
    void (*guards)(void *user, uint64_t begin, uint64_t end); /* a fault here has a handler       */
    void *user;
} hfn_handler_visitor;

/* Nothing is visited in an image of another kind. */
void hfn_each_handler(const hotfn_image *image, const hfn_handler_visitor *visitor);

#endif
