/* SPDX-License-Identifier: MIT */
/* The functions as the later folders use them: the table itself, without copies. */
#ifndef HFN_FUNCTIONS_FUNCTIONS_H
#define HFN_FUNCTIONS_FUNCTIONS_H

#include <hotfn/lowlevel/functions.h>
#include <stdbool.h>

typedef struct hfn_function {
    uint64_t rva, byte_count;
    uint32_t first_name, name_count; /* range in the table of names */
    uint32_t section;                /* for hotfn_image_get_section; UINT32_MAX: none */
    uint64_t lsda_rva;               /* with HAS_LSDA; UINT64_MAX: unknown */
    int32_t fde_cfa_offset;          /* CFA minus stack pointer at entry, or -1 */
    uint16_t flags;                  /* HOTFN_FUNCTION_HAS_SYMBOL ...           */
    uint8_t kind;                    /* HOTFN_FUNCTION_PLAIN ...                */
    bool sizes_arguments; /* with HAS_LSDA: landing pads have another stack depth than the call */
    uint32_t cfi_rva, cfi_bytes; /* call frame instructions that give that depth; 0: unknown */
} hfn_function;

/* Sorted by rva, which is unique; NULL past the end. */
const hfn_function *hfn_functions_at(const hotfn_functions *functions, uint32_t index);

#endif
