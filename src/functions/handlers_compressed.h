/* SPDX-License-Identifier: MIT */
/* The compressed C++ exception tables (FuncInfo4) that Microsoft's compiler writes since 2019. */
#ifndef HFN_FUNCTIONS_HANDLERS_COMPRESSED_H
#define HFN_FUNCTIONS_HANDLERS_COMPRESSED_H

#include "functions/handlers.h"

/* Visits the FuncInfo4 at info_rva of the function that begins at function_rva, if all of it is
 * plausible.  *steps_left is the number of entries that may still be read, and is lowered. */
void hfn_handlers_compressed(const hotfn_image *image, uint64_t info_rva, uint64_t function_rva,
                             uint64_t *steps_left, const hfn_handler_visitor *visitor);

#endif
