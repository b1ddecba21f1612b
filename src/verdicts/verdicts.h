/* SPDX-License-Identifier: MIT */
/* What the hooks station sees of the verdicts: everything a plan needs, as data.  The moved prologue
 * is made on demand (it is a pure function of the image's bytes), so that judging 100,000 functions
 * stays small.  Nothing here touches a process.
 *
 * Words: entry = the function's rva; site = entry + patch_offset (behind ENDBR64; or the first call,
 * see RETARGET); covered = the whole instructions at the site that move into the stub (covered_bytes
 * >= patch_bytes, except JUMP_PAD). */
#ifndef HFN_VERDICTS_VERDICTS_H
#define HFN_VERDICTS_VERDICTS_H

#include "arch/arch.h"
#include "base/span.h"

#include <hotfn/lowlevel/verdicts.h>

/*
 * What to write, by strategy (stub = the address that the plan chose):
 * RETARGET  opcode E8/E9 stays, its rel32 at site+1 becomes stub-(site+5).  patch_bytes 5.
 *           The moved code is just `jmp old target`: a call's return address stays in place.
 *           The site may be a call behind a few instructions that every run through the entry passes
 *           (`sub rsp,8; call f`): the stub then runs in the place of f's entry, deeper on the
 *           stack.  Good for counting; not for replacing or timing the function.
 * JUMP      E9 rel32 at site.  patch_bytes 5.
 * JUMP_PAD  the same; site+covered_bytes .. site+5 is padding that nobody reaches.
 * ISLAND    EB rel8 at site to island_rva; E9 rel32 to the stub in the 5 bytes at island_rva, written
 *           before the 2 bytes at the site (restored after them).  patch_bytes 2.
 * PUN       E9 at site and the low patch_bytes-1 bytes of the displacement; the others stand there
 *           already: (stub - (site+5)) & pun_mask == pun_fixed must hold (32 bit, two's complement).
 *           patch_bytes 1..4.
 * INT3      CC at site.  patch_bytes 1.
 */
typedef struct hfn_verdict {
    hotfn_verdict pub;      /* size is set; offset etc. as the public header says        */
    uint64_t site_rva;      /* entry + pub.patch_offset                                  */
    uint64_t island_rva;    /* ISLAND: 5 bytes of padding, used by nobody else; else 0   */
    uint32_t pun_fixed;     /* PUN: the displacement bits that cannot be chosen          */
    uint32_t pun_mask;      /* PUN: 1 where pun_fixed holds; 0 for the other strategies  */
    uint32_t covered_bytes; /* original bytes that the moved code replaces               */
    uint8_t scratch;        /* a register that is dead at the site, plus 1; 0: none known   */
    uint8_t
        pc_register; /* i386: where a call among the moved gives back its return address, plus 1 */
} hfn_verdict;

/* Never NULL for index < hotfn_verdicts_get_count; NULL past the end. */
const hfn_verdict *hfn_verdicts_at(const hotfn_verdicts *verdicts, uint32_t index);

/* The moved code of a hookable function (for RETARGET: a jmp to the old target).  False if the
 * function is not hookable; never fails for a hookable one. */
bool hfn_verdicts_moved(const hotfn_verdicts *verdicts, uint32_t index, hfn_moved *out);

/* The original bytes that the patch replaces at the site: pub.patch_bytes of them (a view; empty if
 * not hookable).  A process whose memory differs is refused with BYTES_DIFFER. */
hfn_span hfn_verdicts_original(const hotfn_verdicts *verdicts, uint32_t index);
/* The same for ISLAND's 5 padding bytes; empty for the other strategies. */
hfn_span hfn_verdicts_island_original(const hotfn_verdicts *verdicts, uint32_t index);

/* A direct call or jump. */
typedef struct hfn_branch {
    uint32_t field;  /* RVA of its 4-byte field                         */
    uint32_t target; /* while code is read an RVA, then a function's index */
} hfn_branch;

/* Those that lead exactly to a hookable function whose stub may be entered in place of it: they can be
 * sent there.  By field.  No patch overwrites them. */
const hfn_branch *hfn_verdicts_sites(const hotfn_verdicts *verdicts, size_t *count);

/* Asked for timing: the RVA of a system call in its code that forbids its thread the clock; 0: none was seen. */
uint64_t hfn_verdicts_get_tsc_disable_rva(const hotfn_verdicts *verdicts);

const hotfn_image *hfn_verdicts_image(const hotfn_verdicts *verdicts);
const hotfn_functions *hfn_verdicts_functions(const hotfn_verdicts *verdicts);
const hfn_arch *hfn_verdicts_arch(
    const hotfn_verdicts *verdicts); /* NULL if no judge for the machine */

#endif
