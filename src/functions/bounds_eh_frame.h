/* SPDX-License-Identifier: MIT */
/* Function bounds from .eh_frame: each FDE as a range, with the state of the frame at its first
 * byte. */
#ifndef HFN_FUNCTIONS_BOUNDS_EH_FRAME_H
#define HFN_FUNCTIONS_BOUNDS_EH_FRAME_H

#include "image/image.h"

enum {
    HFN_FDE_INSIDE = 1,     /* the first byte lies inside a frame: not an entry */
    HFN_FDE_SIGNAL = 2,     /* 'S': a signal restorer */
    HFN_FDE_LSDA = 4,       /* it has language-specific data (an LSDA) */
    HFN_FDE_ARGUMENTS = 16, /* with LSDA: landing pads have another stack depth than the call */
    HFN_FDE_EXPRESSION = 8, /* the CFA at the first byte is an expression (linker stubs) */
};

typedef struct hfn_fde {
    uint64_t rva, byte_count;
    int32_t cfa_offset; /* CFA minus stack pointer at the first byte; -1 unknown */
    uint32_t flags;     /* HFN_FDE_*                                             */
    uint64_t lsda_rva;  /* with HFN_FDE_LSDA; UINT64_MAX: unknown         */
    uint32_t cfi_rva,
        cfi_bytes; /* with HFN_FDE_ARGUMENTS: its call frame instructions; 0: beyond 4 GiB */
} hfn_fde;

typedef struct hfn_fde_list {
    hfn_fde *items; /* sorted by rva */
    size_t capacity;
    uint32_t count;
} hfn_fde_list;

/* Reads the FDEs of the image.  Without .eh_frame the list is empty; of a damaged section it has
 * the FDEs before the damage, and a warning is logged. False if there is no memory; then *out is
 * empty. */
bool hfn_bounds_eh_frame(hfn_fde_list *out, const hotfn_image *image, const hotfn_env *env);
void hfn_fde_list_finish(hfn_fde_list *list, const hotfn_env *env);

#endif
