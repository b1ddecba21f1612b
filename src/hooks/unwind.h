/* SPDX-License-Identifier: MIT */
/* Unwind tables of a region: .eh_frame_hdr with its search table, then .eh_frame, in one block. */
#ifndef HFN_HOOKS_UNWIND_H
#define HFN_HOOKS_UNWIND_H

#include "arch/stub.h"

#include <hotfn/lowlevel/hooks.h>
#include <stdbool.h>

typedef struct hfn_unwind {
    uint8_t *begin; /* the block, where it will be read      */
    uint8_t *at;    /* next byte of .eh_frame                */
    uint8_t *frame; /* begin of .eh_frame, its first CIE     */
    uint8_t *cie_b; /* of AArch64 code that signs with key B, once there is such */
    uint8_t *open;  /* the FDE that is being written, or NULL */
    bool open_key_b;
    uint64_t personality;
    uint64_t code_at; /* what the open FDE has described so far */
    uint32_t fde_count, fde_max;
    uint32_t stubs_in_open;
    uint32_t stubs_per_fde;
} hfn_unwind;

/* An upper bound of the block's size: stubs, how often one signs with another key than that before it (first:
 * A), and the sum of their cfi bytes. */
uint64_t hfn_unwind_max_bytes(uint64_t stub_count, uint64_t key_changes, uint64_t cfi_bytes);
/* memory: as many bytes, zeroed.  personality may be NULL. */
void hfn_unwind_begin(hfn_unwind *unwind, uint8_t *memory, uint64_t stub_count,
                      uint64_t key_changes, void (*personality)(void));
/* Rising addresses without gaps, or a gap after which a new FDE begins. */
void hfn_unwind_code(hfn_unwind *unwind, uint64_t address, uint64_t byte_count, const uint8_t *cfi,
                     uint32_t cfi_bytes);
void hfn_unwind_stub(hfn_unwind *unwind, uint64_t address, uint32_t byte_count,
                     const hfn_stub_shape *shape, bool key_b, const uint8_t *cfi,
                     uint32_t cfi_bytes);
/* Are cfi only instructions that a plan's steps are made of, and how far do they advance? */
bool hfn_unwind_check_steps(const uint8_t *cfi, uint32_t byte_count, uint32_t *advanced);
/* The block's size; sets the table's addresses in region. */
uint64_t hfn_unwind_finish(hfn_unwind *unwind, hotfn_stub_region *region);

/* The FDE of pc by the table, and where its code begins; NULL if no stub is there. */
const uint8_t *hfn_unwind_find(const hotfn_stub_region *region, uint64_t pc, uint64_t *begin);

/* Tell libgcc, if the process has it; for a process without an agent that answers unwinders. */
void hfn_unwind_register(const hotfn_stub_region *region);
/* From now on by this __register_frame, should the process have got libgcc after us. */
void hfn_unwind_tell(void (*register_frame)(void *eh_frame));

#endif
