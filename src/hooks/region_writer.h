/* SPDX-License-Identifier: MIT */
/* One region of generated code on new pages: gates, stubs, unwind tables. */
#ifndef HFN_HOOKS_REGION_WRITER_H
#define HFN_HOOKS_REGION_WRITER_H

#include "hooks/hookset.h"
#include "hooks/trampoline.h"
#include "hooks/unwind.h"

/* The required sizes of a region. */
typedef struct hfn_region_needs {
    uint64_t stub_bytes, stub_count, cfi_bytes;
    bool calls; /* it has a stub that calls a gate: HOTFN_ACTION_CALL or FILTER, COUNT_SHARED */
    bool key_b; /* the last stub added signs with key B */
    uint64_t key_changes;
} hfn_region_needs;

typedef struct hfn_region_writer {
    const hotfn_hooks *hooks;
    uint64_t code;   /* its first byte, a gate */
    uint64_t at;     /* address of the next stub */
    uint64_t tables; /* 0: no unwind data */
    uint64_t pages_end;
    hfn_gates gates;
    hfn_unwind unwind;
} hfn_region_writer;

/* Add the sizes of one more stub. */
static inline void hfn_region_add_need(hfn_region_needs *needs, uint32_t kind,
                                       const hfn_plan_hook *hook)
{
    bool key_b = hook->flags & HOTFN_VERDICT_KEY_B;

    needs->calls |=
        kind == HOTFN_ACTION_CALL || kind == HOTFN_ACTION_FILTER || kind == HFN_ACTION_COUNT_SHARED;
    needs->stub_bytes += hfn_trampoline_bytes(kind, hook);
    needs->stub_count++;
    needs->cfi_bytes += hook->cfi_bytes;
    needs->key_changes += needs->key_b != key_b;
    needs->key_b = key_b;
}

/* Size of the gates before the first stub. */
uint32_t hfn_region_gate_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs);
/* Upper bound of the region's size, with gates and tables. */
uint64_t hfn_region_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs);

/* Begin a region at `code`; the memory up to pages_end is writable and zero. */
void hfn_region_begin(hfn_region_writer *writer, const hotfn_hooks *hooks,
                      const hfn_region_needs *needs, uint64_t code, uint64_t pages_end);
/* Append a stub; false if it cannot reach its targets, in which case its bytes remain unused. */
bool hfn_region_stub(hfn_region_writer *writer, const hfn_plan_hook *hook,
                     const hfn_stub_shape *shape, uint64_t base, const hotfn_hook_action *action);
/* Write the tables and make the region executable; false if the system forbids it. */
bool hfn_region_finish(hfn_region_writer *writer, hotfn_stub_region *region,
                       uint64_t *unwind_bytes);

/* The gates of a finished region. */
hfn_gates hfn_region_gates(const hotfn_hooks *hooks, const hotfn_stub_region *region);

#endif
