/* SPDX-License-Identifier: MIT */
/* The unwind tables of a region, in one block: .eh_frame_hdr with its search table, then .eh_frame
 * (unwind.c), or RUNTIME_FUNCTIONs and UNWIND_INFOs (unwind_windows.c). */
#ifndef HFN_HOOKS_UNWIND_H
#define HFN_HOOKS_UNWIND_H

#include "arch/stub.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/hooks.h>
#include <hotfn/lowlevel/verdicts.h>
#include <stdbool.h>

typedef struct hfn_unwind {
    uint8_t *begin;  /* the block, at its final address       */
    uint8_t *at;     /* next byte of .eh_frame                */
    uint8_t *frame;  /* start of .eh_frame, the first CIE     */
    uint8_t *cie_b;  /* the CIE for signatures with key B; NULL until needed */
    uint8_t *open;   /* the FDE being written, or NULL        */
    bool open_key_b; /* the FDE being written is for signatures with key B */
    uint64_t personality;
    uint64_t code_at; /* end of the code that the open FDE describes */
    uint32_t fde_count, fde_max;
    uint32_t stubs_in_open;
    uint32_t stubs_per_fde;
    uint64_t base;            /* Windows: what RVAs count from                */
    uint32_t shared_info[33]; /* Windows: RVA of the info for n pushed words  */
} hfn_unwind;

/* Upper bound of the block's size.
 * key_changes  number of stubs that sign with another key than the stub before them; the first stub
 *              is compared with key A.
 * cfi_bytes    sum over all stubs. */
uint64_t hfn_unwind_max_bytes(uint64_t stub_count, uint64_t key_changes, uint64_t cfi_bytes);
/* Begin the tables in zeroed memory of that size; personality may be NULL. */
void hfn_unwind_begin(hfn_unwind *unwind, uint8_t *memory, uint64_t stub_count,
                      uint64_t key_changes, void (*personality)(void));
/* Describe code other than a stub.  This function and hfn_unwind_stub must be called in the order
 * of addresses. */
void hfn_unwind_code(hfn_unwind *unwind, uint64_t address, uint64_t byte_count, const uint8_t *cfi,
                     uint32_t cfi_bytes);
void hfn_unwind_stub(hfn_unwind *unwind, uint64_t address, uint32_t byte_count,
                     const hfn_stub_shape *shape, const hfn_plan_hook *hook, uint64_t image_base);
/* Finish the tables and store their addresses in region.  Returns the block's size. */
uint64_t hfn_unwind_finish(hfn_unwind *unwind, hotfn_stub_region *region);

/* The FDE that describes pc, and the start of its code; NULL if there is none. */
const uint8_t *hfn_unwind_find(const hotfn_stub_region *region, uint64_t pc, uint64_t *begin);

/* Whether unwinders find the tables of a stub only after hfn_unwind_register. */
bool hfn_unwind_needs_registration(void);
/* Register the tables with libgcc, if the process has it, or with the system. */
void hfn_unwind_register(const hotfn_stub_region *region);
/* Set the __register_frame of a libgcc that was loaded after this library. */
void hfn_unwind_set_register_frame(void (*register_frame)(void *eh_frame));

#endif
