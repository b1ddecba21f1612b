/* SPDX-License-Identifier: MIT */
/* Hook plans: what must change in a module so that its functions are hooked, as one relocatable
 * block of bytes.  A plan is built without touching a process and is used by a hook set (hooks.h)
 * inside one. */
#ifndef HOTFN_PLAN_H
#define HOTFN_PLAN_H

#include <hotfn/lowlevel/verdicts.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_plan hotfn_plan;

typedef struct hotfn_plan_info {
    uint32_t size;           /* sizeof(hotfn_plan_info) */
    uint32_t machine;        /* HOTFN_MACHINE_*                               */
    uint32_t function_count; /* of the image, hookable or not                 */
    uint32_t entry_count;    /* functions that can be hooked                  */
    uint32_t id_kind;        /* the image's id: HOTFN_ID_*                    */
    uint32_t id_bytes;
    uint8_t id[32];
    const uint8_t *bytes; /* view: the block                               */
    uint64_t byte_count;
} hotfn_plan_info;
#define HOTFN_PLAN_INFO_INIT                                                                       \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_plan_info), 0, 0, 0, 0, 0, { 0 }, 0, 0                              \
    }

/* One hookable function.  Entries are sorted by rva. */
typedef struct hotfn_plan_entry {
    uint32_t size;           /* sizeof(hotfn_plan_entry)                      */
    uint32_t function_index; /* in the image's hotfn_functions                */
    uint64_t rva;            /* of the function                               */
    uint32_t strategy;       /* HOTFN_STRATEGY_*                              */
    uint32_t flags;          /* HOTFN_VERDICT_*                               */
    uint32_t patch_offset;   /* bytes from the entry to the patch             */
    uint32_t patch_bytes;
} hotfn_plan_entry;
#define HOTFN_PLAN_ENTRY_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_plan_entry), 0, 0, 0, 0, 0, 0                                       \
    }

/*
 * Build the plan for every hookable function of an image.
 *
 * out  receives a plan that the caller owns; untouched on failure.
 * image, functions, verdicts  borrowed.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (the image is larger than 4 GiB).  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_plan_build(hotfn_plan **out, const hotfn_image *image,
                                        const hotfn_functions *functions,
                                        const hotfn_verdicts *verdicts, const hotfn_env *env,
                                        hotfn_error *err);
/*
 * Open the bytes of a plan that hotfn_plan_build made.
 *
 * out        receives a plan that the caller owns; untouched on failure.
 * bytes      kept until the plan is destroyed.
 * check_sum  1 to verify the checksum too; every offset and count is always verified.
 *
 * HOTFN_OK, HOTFN_E_FORMAT, HOTFN_E_MISMATCH (another version), HOTFN_E_NO_MEMORY.  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_plan_open(hotfn_plan **out, const void *bytes, uint64_t byte_count,
                                       uint32_t check_sum, const hotfn_env *env, hotfn_error *err);
/* Free the plan; NULL is fine.  No hook set may use it any more.  Any thread.  Since 0.1. */
HOTFN_API void hotfn_plan_destroy(hotfn_plan *plan);
/* Get the image that the plan belongs to and the size of the plan.  info.bytes is a view into the
 * plan. HOTFN_OK, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_plan_get_info(const hotfn_plan *plan, hotfn_plan_info *out);
/* Get one hookable function; index < info.entry_count, in the order of addresses.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_plan_get(const hotfn_plan *plan, uint32_t index,
                                      hotfn_plan_entry *out);

#ifdef __cplusplus
}
#endif

#endif
