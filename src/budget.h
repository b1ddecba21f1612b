/* SPDX-License-Identifier: MIT */
/* Inside of a budget: what stands in the target because of a function's hook, as bytes that can be
 * taken out and put in again from outside (budget_cut.c), for who decides about it (budget.c). */
#ifndef HFN_BUDGET_H
#define HFN_BUDGET_H

#include "hooks/plan.h"
#include "os/remote.h"

/* A module of the target. */
typedef struct hfn_cut_module {
    hotfn_plan *plan;  /* NULL: it has none */
    const void *bytes; /* of the plan, mapped */
    uint64_t byte_count;
    uint64_t base;
    uint32_t first_function; /* in the record */
    uint32_t function_count;
    uint32_t *site_ends; /* by the plan's entry: where its sites end in site_fields; NULL: not yet made */
    uint32_t *site_fields; /* their fields' RVAs, by entry */
    uint32_t site_count;
} hfn_cut_module;

enum { HFN_CUT_BYTES_MAX = 8, HFN_CUT_STUB_BYTES = 16 };

typedef struct hfn_cut_write {
    uint64_t address;
    uint8_t byte_count;
    uint8_t is_entry; /* whole instructions change: nobody may stand between them */
    uint8_t bare[HFN_CUT_BYTES_MAX], hooked[HFN_CUT_BYTES_MAX];
} hfn_cut_write;

typedef struct hfn_cut {
    uint64_t stub;
    uint8_t stub_bytes[HFN_CUT_STUB_BYTES];
    uint32_t write_count, write_capacity;
    hfn_cut_write writes[];
} hfn_cut;

/* The hook of the plan's entry as it stands now in the target, whose memory is open; NULL if it does
 * not stand as it was made, or there is no memory.  Free by hfn_cut_free. */
hfn_cut *hfn_cut_make(hfn_cut_module *module, uint32_t entry, const hfn_remote *remote,
                      const hotfn_env *env);
void hfn_cut_free(hfn_cut *cut, const hotfn_env *env);
void hfn_cut_module_finish(hfn_cut_module *module, const hotfn_env *env);

/* The target is stopped.  Take the hook out; false: nothing of it stands any more. */
bool hfn_cut_take_out(const hfn_cut *cut, const hfn_remote *remote);
/* Put it in again; false: its stub is gone, or other bytes stand there.  The caller saw to it that no
 * thread stands in its ranges. */
bool hfn_cut_put_in(const hfn_cut *cut, const hfn_remote *remote);
/* Where no thread may stand meanwhile: at most one range a cut; 0: anywhere is fine. */
uint32_t hfn_cut_range(const hfn_cut *cut, hfn_remote_range *out);

#endif
