/* SPDX-License-Identifier: MIT */
/* Allocation through the caller's env, and the arena: many small objects that are freed
 * together. */
#ifndef HFN_BASE_MEMORY_H
#define HFN_BASE_MEMORY_H

#include <hotfn/env.h>
#include <stdbool.h>
#include <stddef.h>

/* A copy of env with every default filled in (env NULL or shorter than today's is fine). */
hotfn_env hfn_env_fill(const hotfn_env *env);

void *hfn_allocate_zeroed(const hotfn_env *env, size_t byte_count); /* NULL if there is no memory */
/* The same, but uninitialised, for memory that the caller fills completely. */
void *hfn_allocate_unset(const hotfn_env *env, size_t byte_count);
void hfn_free_memory(const hotfn_env *env, void *memory, size_t byte_count);
void *hfn_resize_memory(const hotfn_env *env, void *memory, size_t old_bytes, size_t new_bytes);

/* Make room for `needed` elements in a growing array: doubles its capacity until they fit.  False
 * if there is no memory, or the size overflows; then *items and *capacity are unchanged. */
bool hfn_grow_array(const hotfn_env *env, void **items, size_t *capacity, size_t needed,
                    size_t element_bytes);

typedef struct hfn_arena_block hfn_arena_block;
typedef struct hfn_arena {
    const hotfn_env *env;
    hfn_arena_block *blocks;
} hfn_arena;

void hfn_arena_init(hfn_arena *arena, const hotfn_env *env); /* env must outlive it */
void hfn_arena_finish(hfn_arena *arena);
void *hfn_arena_alloc(hfn_arena *arena, size_t byte_count); /* zeroed, 16-aligned; or NULL */
char *hfn_arena_copy(hfn_arena *arena, const char *text, size_t length); /* NUL added */

/* The first place of the wanted bytes; NULL if they are not there.  wanted_bytes > 0. */
const void *hfn_find_bytes(const void *in, size_t byte_count, const void *wanted,
                           size_t wanted_bytes);

#endif
