/* SPDX-License-Identifier: MIT */
/* Writing a plan block, entry by entry; plan_build.c feeds it from verdicts, tests by hand. */
#ifndef HFN_HOOKS_PLAN_WRITE_H
#define HFN_HOOKS_PLAN_WRITE_H

#include "plan/plan.h"

/* What is known of one hookable function. */
typedef struct hfn_plan_source {
    uint32_t function_index;
    uint32_t section; /* entries of one section are patched through one window */
    uint64_t rva;
    uint64_t end_rva; /* of the function, if its code may hold sites; 0 */
    uint32_t strategy, flags, patch_offset, patch_bytes;
    uint32_t arguments;        /* PLAN_ENTRY_ARGUMENTS_AT */
    uint32_t scratch;          /* a register that is dead at the site, plus 1; 0: none */
    const uint32_t *comebacks; /* fields of the jumps to comes_to_rva that end a timed call first */
    uint32_t comeback_count, comes_to_rva;
    uint64_t island_rva;     /* ISLAND */
    const uint8_t *original; /* [original_bytes] from the site: all that is patched or moved;
                                 PUN: also up to the end of the 5-byte jump */
    uint32_t original_bytes;
    const uint8_t *island_original; /* [5] if ISLAND */
    const hfn_moved *moved;
} hfn_plan_source;

typedef struct hfn_plan_writer hfn_plan_writer;

/* NULL if there is no memory. */
hfn_plan_writer *hfn_plan_writer_create(const hotfn_env *env, uint32_t machine,
                                        uint32_t function_count);
void hfn_plan_writer_set_tsc_disable_rva(hfn_plan_writer *writer, uint32_t rva);
void hfn_plan_writer_set_id(hfn_plan_writer *writer, uint32_t id_kind, const uint8_t *id,
                            uint32_t id_bytes);
/* Rising rva and function_index.  HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (does not fit the
 * format: nothing was added, go on with the next). */
hotfn_status hfn_plan_writer_add(hfn_plan_writer *writer, const hfn_plan_source *source);
/* Of rising fields, behind all entries: the 4-byte field at field_rva leads to the entry of that index.
 * One that lies in no range is left out.  False if there is no memory. */
bool hfn_plan_writer_add_site(hfn_plan_writer *writer, uint32_t field_rva, uint32_t entry);
/* The plan, which owns its block. */
hotfn_status hfn_plan_writer_finish(hfn_plan_writer *writer, hotfn_plan **out, hotfn_error *err);
void hfn_plan_writer_destroy(hfn_plan_writer *writer); /* NULL is fine */

#endif
