/* SPDX-License-Identifier: MIT */
/*
 * System calls that may begin a thread or a process, of x86-64 code for Linux.  A child inherits
 * the gs base, by which its parent finds its row, so such a call is led through a stub that sets
 * the child's gs base to 0.
 *
 *   site:  b8 38 00 00 00  mov $56, %eax         the patch replaces whole instructions, the
 *          0f 05           syscall               `syscall` among them or behind them
 *   stub:  the instructions before the `syscall`, the call with a test for a child, the
 *          instructions behind it that the patch replaced, and a jump back
 *
 * A call whose number is not known is led through a stub, too, which tests the number.  Children
 * of vfork, and of clone with CLONE_VFORK, keep the base: their parent waits for them.
 */
#ifndef HFN_ARCH_CALL_SITE_H
#define HFN_ARCH_CALL_SITE_H

#include "arch/arch.h"

enum { HFN_CALL_STUB_MAX = 192, HFN_CALL_STEPS_MAX = 48, HFN_CALL_PATCH_BYTES = 5 };
enum { HFN_CALL_ROOM_BYTES = 1 << 20 };

/* Offsets in the code. */
typedef struct hfn_child_call {
    uint64_t call;       /* of the `syscall` */
    uint64_t begin, end; /* of the instructions to replace; equal: the call cannot be patched */
} hfn_child_call;

/* Visit the sites of code, until visit returns false.  Returns false if visit did, if the code has
 * too many calls, or if this build has no decoder for x86-64.  room: [HFN_CALL_ROOM_BYTES]. */
typedef bool (*hfn_child_call_fn)(void *user, const hfn_child_call *site);
bool hfn_find_call_sites(const uint8_t *code, uint64_t size, void *room, hfn_child_call_fn visit,
                         void *user);

/* The offset of the first instruction that uses the gs segment or changes its base; UINT64_MAX if
 * there is none. */
uint64_t hfn_find_gs_use(const uint8_t *code, uint64_t size);

/* An instruction of a stub, and where a thread at it continues in the original code. */
typedef struct hfn_call_step {
    uint8_t stub_at;
    int16_t original_at; /* from the site's begin */
} hfn_call_step;

typedef struct hfn_call_stub {
    uint8_t bytes[HFN_CALL_STUB_MAX];
    uint32_t length;
    uint32_t call_at;    /* where a thread that is about to make the call continues */
    uint32_t behind_at;  /* the end of the `syscall` that begins no thread or process */
    uint32_t forking_at; /* the end of the `syscall` that may begin one               */
    hfn_call_step steps[HFN_CALL_STEPS_MAX];
    uint32_t step_count;
} hfn_call_stub;

/* Make the stub for `address`; `original` is the code at the site's begin, which is at `begin`.
 * has_wrgsbase: the system lets programs execute wrgsbase. */
void hfn_make_call_stub(hfn_call_stub *out, const hfn_child_call *site, const uint8_t *original,
                        uint64_t begin, uint64_t address, bool has_wrgsbase);

/* Write the patch: a jump to the stub, and padding up to the site's end. */
void hfn_emit_call_patch(uint8_t *out, const hfn_child_call *site, uint64_t begin, uint64_t stub);

#endif
