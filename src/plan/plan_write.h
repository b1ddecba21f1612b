/* SPDX-License-Identifier: MIT */
/* Builds a plan entry by entry.  plan_build.c makes the entries from verdicts, tests from
 * constants. */
#ifndef HFN_PLAN_PLAN_WRITE_H
#define HFN_PLAN_PLAN_WRITE_H

#include "plan/plan.h"

/* The description of one hookable function. */
typedef struct hfn_plan_new_entry {
    uint32_t function_index;
    uint32_t section; /* entries of one section share a range */
    uint64_t rva;
    uint64_t end_rva; /* of the function, if its code may contain sites; otherwise 0 */
    uint32_t strategy, flags, patch_offset, patch_bytes;
    uint32_t arguments;         /* PLAN_ENTRY_ARGUMENTS_AT */
    uint32_t stored_arguments;  /* PLAN_ENTRY_STORED_AT */
    uint32_t scratch;           /* scratch register at the site, plus 1; 0: none */
    const uint32_t *tail_exits; /* rvas of the fields of tail jumps that end a timed call */
    uint32_t tail_exit_count, tail_target_rva;
    uint64_t island_rva;     /* ISLAND */
    const uint8_t *original; /* [original_bytes] from the site: what is patched or moved;
                                PUN: also the rest of the 5-byte jump */
    uint32_t original_bytes;
    const uint8_t *island_original; /* [5] if ISLAND */
    const hfn_moved *moved;
} hfn_plan_new_entry;

typedef struct hfn_plan_writer hfn_plan_writer;

/* Create a writer, which the caller owns; NULL if there is no memory. */
hfn_plan_writer *hfn_plan_writer_create(const hotfn_env *env, uint32_t machine,
                                        uint32_t function_count);
void hfn_plan_writer_set_flags(hfn_plan_writer *writer, uint32_t flags); /* PLAN_OWN_THREADS */
void hfn_plan_writer_set_tsc_disable_rva(hfn_plan_writer *writer, uint32_t rva);
void hfn_plan_writer_set_id(hfn_plan_writer *writer, uint32_t id_kind, const uint8_t *id,
                            uint32_t id_bytes);
/* Add an entry; rva and function_index must be higher than those of the previous one.  HOTFN_OK,
 * HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (the format cannot hold it: nothing was added, others may
 * follow). */
hotfn_status hfn_plan_writer_add(hfn_plan_writer *writer, const hfn_plan_new_entry *source);
/* Add a site, after all entries and in the order of fields: the 4-byte field at field_rva refers
 * to the entry of that index.  A site outside all ranges is ignored.  False if there is no
 * memory. */
bool hfn_plan_writer_add_site(hfn_plan_writer *writer, uint32_t field_rva, uint32_t entry);
/* Finish the plan, which the caller owns and which owns its bytes. */
hotfn_status hfn_plan_writer_finish(hfn_plan_writer *writer, hotfn_plan **out, hotfn_error *err);
void hfn_plan_writer_destroy(hfn_plan_writer *writer); /* NULL is fine */

#endif
