/* SPDX-License-Identifier: MIT */
/* One region of generated code on fresh pages: gates, stubs, unwind tables. */
#ifndef HFN_HOOKS_REGION_WRITER_H
#define HFN_HOOKS_REGION_WRITER_H

#include "hooks/hookset.h"
#include "hooks/trampoline.h"
#include "hooks/unwind.h"

/* What is to stand in a region. */
typedef struct hfn_region_needs {
    uint64_t stub_bytes, stub_count, cfi_bytes;
    bool calls; /* some stub is of HOTFN_ACTION_CALL */
    bool key_b; /* the last one's signs with key B */
    uint64_t key_changes;
} hfn_region_needs;

typedef struct hfn_region_writer {
    const hotfn_hooks *hooks;
    uint64_t code;   /* its first byte, a gate */
    uint64_t at;     /* where the next stub goes */
    uint64_t tables; /* 0: no unwinding */
    uint64_t pages_end;
    hfn_gates gates;
    hfn_unwind unwind;
} hfn_region_writer;

/* One more, of a batch of that kind. */
static inline void hfn_region_need(hfn_region_needs *needs, uint32_t kind,
                                   const hfn_plan_hook *hook)
{
    bool key_b = hook->flags & HOTFN_VERDICT_KEY_B;

    needs->stub_bytes += hfn_trampoline_bytes(kind, hook);
    needs->stub_count++;
    needs->cfi_bytes += hook->cfi_bytes;
    needs->key_changes += needs->key_b != key_b;
    needs->key_b = key_b;
}

/* Bytes of gates before the first stub. */
uint32_t hfn_region_gate_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs);
/* At most so many, gates and tables included. */
uint64_t hfn_region_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs);

/* From code on, as many bytes up to pages_end are writable and zero. */
void hfn_region_begin(hfn_region_writer *writer, const hotfn_hooks *hooks,
                      const hfn_region_needs *needs, uint64_t code, uint64_t pages_end);
/* False if the stub cannot reach its targets from here; its place is used up. */
bool hfn_region_stub(hfn_region_writer *writer, const hfn_plan_hook *hook,
                     const hfn_stub_shape *shape, uint64_t base, const hotfn_hook_action *action);
/* Make it executable.  False if the system forbids that. */
bool hfn_region_finish(hfn_region_writer *writer, hotfn_stub_region *region,
                       uint64_t *unwind_bytes);

/* The gates of a region that was written. */
hfn_gates hfn_region_gates(const hotfn_hooks *hooks, const hotfn_stub_region *region);

#endif
