/* SPDX-License-Identifier: MIT */
/*
 * Verdicts as the plan needs them.  The moved instructions are computed on demand from the
 * image's bytes, so that 100,000 verdicts stay small.
 *
 * Terms: entry: the function's rva.  site: entry + patch_offset, where the patch is.  covered:
 * the whole instructions at the site that move into the stub; covered_bytes >= patch_bytes,
 * except for JUMP_PAD.
 */
#ifndef HFN_VERDICTS_VERDICTS_H
#define HFN_VERDICTS_VERDICTS_H

#include "arch/arch.h"
#include "base/span.h"

#include <hotfn/lowlevel/verdicts.h>

/*
 * The bytes of a patch, by strategy; `stub` is the address that the hook set chose:
 * RETARGET  The opcode E8 or E9 stays; the rel32 at site+1 becomes stub-(site+5).  patch_bytes 5.
 *           The moved code is `jmp old target`, so a call's return address does not change.  If the
 *           site is a call behind a few instructions (`sub rsp,8; call f`), the stub runs at the
 *           entry of f, with a deeper stack: good for counting, not for timing the function.
 * JUMP      E9 rel32 at the site.  patch_bytes 5.
 * JUMP_PAD  As JUMP; the bytes from site+covered_bytes to site+5 are dead padding.
 * ISLAND    EB rel8 at the site to island_rva; E9 rel32 to the stub in the 5 bytes there, written
 *           before the 2 bytes at the site and restored after them.  patch_bytes 2.
 * PUN       E9 at the site and the low patch_bytes-1 bytes of the displacement; the others are
 *           existing bytes: (stub - (site+5)) & pun_mask == pun_fixed must hold in 32 bits.
 *           patch_bytes 1..4.
 * INT3      CC at the site.  patch_bytes 1.
 */
typedef struct hfn_verdict {
    hotfn_verdict pub;      /* with its size set                                         */
    uint64_t site_rva;      /* entry + pub.patch_offset                                  */
    uint64_t island_rva;    /* ISLAND: 5 bytes of padding; else 0                        */
    uint32_t pun_fixed;     /* PUN: the displacement bits that are fixed                 */
    uint32_t pun_mask;      /* PUN: which bits are fixed; else 0                         */
    uint32_t covered_bytes; /* size of the original instructions that move               */
    uint8_t scratch;        /* scratch register at the site, plus 1; 0: none known          */
    uint8_t
        stored_arguments; /* i386, TIMED: bit n: argument word n is written back at the return */
    uint8_t pc_register;  /* i386: receives the return address of a moved call, plus 1; 0 */
} hfn_verdict;

/* The verdict of a function; NULL past the end. */
const hfn_verdict *hfn_verdicts_at(const hotfn_verdicts *verdicts, uint32_t index);

/* Compute the moved code of a hookable function (RETARGET: a jump to the old target).  False only
 * if the function is not hookable. */
bool hfn_verdicts_moved(const hotfn_verdicts *verdicts, uint32_t index, hfn_moved *out);

/* The original bytes that the patch replaces at the site (a view; empty if the function is not
 * hookable). */
hfn_span hfn_verdicts_original(const hotfn_verdicts *verdicts, uint32_t index);
/* ISLAND: the original 5 bytes of padding; empty for the other strategies. */
hfn_span hfn_verdicts_island_original(const hotfn_verdicts *verdicts, uint32_t index);

/* A direct call or jump. */
typedef struct hfn_branch {
    uint32_t field;     /* RVA of its 4-byte field                           */
    uint32_t target;    /* during the analysis an RVA, then a function's index */
    uint32_t path_from; /* only during the analysis: RVA at which the code before it begins */
} hfn_branch;

/* The branches that may be redirected to the stub of their target, sorted by field.  No patch
 * overwrites them. */
const hfn_branch *hfn_verdicts_sites(const hotfn_verdicts *verdicts, size_t *count);

/* With HOTFN_VERDICTS_TIMING: the RVA of a system call that disables the TSC of its thread; 0:
 * none was found. */
uint64_t hfn_verdicts_get_tsc_disable_rva(const hotfn_verdicts *verdicts);

/* Whether the image may set thread pointers, so that a thread has no word for a row pointer. */
bool hfn_verdicts_has_own_threads(const hotfn_verdicts *verdicts);

const hotfn_image *hfn_verdicts_image(const hotfn_verdicts *verdicts);
const hotfn_functions *hfn_verdicts_functions(const hotfn_verdicts *verdicts);
const hfn_arch *hfn_verdicts_arch(const hotfn_verdicts *verdicts); /* NULL: unsupported machine */

#endif
