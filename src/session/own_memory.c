/* SPDX-License-Identifier: MIT */
/* An allocator that is independent of the process's malloc, because the program may replace malloc,
 * it may not be initialised yet, and it may be hooked.  Blocks come from the system and are never
 * returned to it. */
#include "os/memory.h"

#include <hotfn/env.h>
#include <string.h>

#define ARENA_BLOCK_BYTES (1u << 20)

static struct {
    uint8_t *at;
    size_t unused_bytes;
} arena;

static void *allocate_from_arena(size_t bytes)
{
    bytes = (bytes + 15u) & ~(size_t)15u;
    if (bytes > arena.unused_bytes) {
        size_t block = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        void *map = hfn_os_map_pages(block);
        if (!map) {
            return NULL;
        }
        arena.at = map;
        arena.unused_bytes = block;
    }
    void *memory = arena.at;
    arena.at += bytes;
    arena.unused_bytes -= bytes;
    return memory;
}

/* Freed pieces are kept in bins, one for each power of two, and reused, so that a program that
 * loads and unloads modules again and again does not grow.  Callers hold the dynamic linker's lock,
 * so only one thread allocates at a time. */
typedef struct piece {
    struct piece *next;
} piece;

static piece *bins[64];

static unsigned get_bin(size_t bytes)
{
    return bytes <= 16 ? 4 : 64u - (unsigned)__builtin_clzll(bytes - 1);
}

static void *allocate_piece(size_t bytes)
{
    unsigned bin = get_bin(bytes);
    piece *found = bins[bin];
    if (!found) {
        return allocate_from_arena((size_t)1 << bin);
    }
    bins[bin] = found->next;
    return found;
}

static void free_piece(void *memory, size_t bytes)
{
    piece *freed = memory;
    unsigned bin = get_bin(bytes);
    freed->next = bins[bin];
    bins[bin] = freed;
}

static void *own_realloc(void *user, void *memory, size_t old_bytes, size_t new_bytes)
{
    (void)user;
    if (memory && new_bytes > 0 && get_bin(old_bytes) == get_bin(new_bytes)) {
        return memory;
    }
    void *fresh = new_bytes > 0 ? allocate_piece(new_bytes) : NULL;
    if (memory && (fresh || new_bytes == 0)) {
        if (fresh) {
            memcpy(fresh, memory, old_bytes < new_bytes ? old_bytes : new_bytes);
        }
        free_piece(memory, old_bytes);
    }
    return fresh;
}

void hotfn_env_own_memory(hotfn_env *env)
{
    if (!env) {
        return;
    }
    env->realloc_fn = own_realloc;
    env->realloc_user = NULL;
}
