/* SPDX-License-Identifier: MIT */
/* What the later folders read of the functions: the table itself, without copies. */
#ifndef HFN_FUNCTIONS_FUNCTIONS_H
#define HFN_FUNCTIONS_FUNCTIONS_H

#include <hotfn/lowlevel/functions.h>
#include <stdbool.h>

typedef struct hfn_function {
    uint64_t rva, byte_count;
    uint32_t first_name, name_count; /* in the table of names                   */
    uint32_t section;                /* hotfn_image_get_section; UINT32_MAX     */
    uint64_t lsda_rva;               /* with HAS_LSDA; UINT64_MAX: unknown */
    int32_t fde_cfa_offset;          /* CFA minus stack pointer at entry, or -1 */
    uint16_t flags;                  /* HOTFN_FUNCTION_HAS_SYMBOL ...           */
    uint8_t kind;                    /* HOTFN_FUNCTION_PLAIN ...                */
    bool
        sizes_arguments; /* with HAS_LSDA: exceptions land at a stack depth other than the call's */
    uint32_t cfi_rva,
        cfi_bytes; /* the FDE's instructions, which give that depth; 0: unknown      */
} hfn_function;

/* By rva, never two at one; NULL past the end. */
const hfn_function *hfn_functions_at(const hotfn_functions *functions, uint32_t index);

#endif
