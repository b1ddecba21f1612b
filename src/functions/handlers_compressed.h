/* SPDX-License-Identifier: MIT */
/* The compressed exception tables of C++, which Microsoft's compiler writes since 2019
 * (FuncInfo4). */
#ifndef HFN_FUNCTIONS_HANDLERS_COMPRESSED_H
#define HFN_FUNCTIONS_HANDLERS_COMPRESSED_H

#include "functions/handlers.h"

/* What stands at info_rva, for the function that begins at function_rva.  Only what holds together
 * to the end is visited.  *left is how many entries may still be read, and is lowered. */
void hfn_handlers_compressed(const hotfn_image *image, uint64_t info_rva, uint64_t function_rva,
                             uint64_t *left, const hfn_handler_visitor *visitor);

#endif
