/* SPDX-License-Identifier: MIT */
/* Every allocation of the library is made through the caller's env, with its size, so that a custom
 * allocator, a memory count and the out-of-memory tests cover all of them.  The arena holds objects
 * that are freed together, such as names and paths, and allocates each by advancing an offset. */
#include "base/memory.h"

#include "base/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARENA_BLOCK_BYTES = 64 * 1024,
    ARENA_ALIGNMENT = 16,
};

static void *default_realloc(void *user, void *memory, size_t old_bytes, size_t new_bytes)
{
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(memory);
        return NULL;
    }
    return realloc(memory, new_bytes);
}

hotfn_env hfn_env_fill(const hotfn_env *env)
{
    hotfn_env filled = HOTFN_ENV_INIT;

    if (env) {
        memcpy(&filled, env, env->size < sizeof filled ? env->size : sizeof filled);
        filled.size = (uint32_t)sizeof filled;
    }
    if (!filled.realloc_fn) {
        filled.realloc_fn = default_realloc;
    }
    if (!filled.demangle_fn) {
        filled.demangle_fn = hfn_demangle_get_default();
    }
    return filled;
}

void *hfn_allocate_unset(const hotfn_env *env, size_t byte_count)
{
    /* at least 1, so that NULL always means a failure */
    return env->realloc_fn(env->realloc_user, NULL, 0, byte_count ? byte_count : 1);
}

void *hfn_allocate_zeroed(const hotfn_env *env, size_t byte_count)
{
    void *memory = hfn_allocate_unset(env, byte_count);

    if (memory) {
        memset(memory, 0, byte_count);
    }
    return memory;
}

void hfn_free_memory(const hotfn_env *env, void *memory, size_t byte_count)
{
    if (memory) {
        env->realloc_fn(env->realloc_user, memory, byte_count ? byte_count : 1, 0);
    }
}

void *hfn_resize_memory(const hotfn_env *env, void *memory, size_t old_bytes, size_t new_bytes)
{
    if (!memory) {
        old_bytes = 0;
    } else if (old_bytes == 0) {
        old_bytes = 1;
    }
    return env->realloc_fn(env->realloc_user, memory, old_bytes, new_bytes ? new_bytes : 1);
}

bool hfn_grow_array(const hotfn_env *env, void **items, size_t *capacity, size_t needed,
                    size_t element_bytes)
{
    size_t larger = *capacity ? *capacity : 16;
    void *old, *memory;

    if (needed <= *capacity) {
        return true;
    }
    while (larger < needed) {
        larger = larger > SIZE_MAX / 2 ? needed : larger * 2;
    }
    if (larger > SIZE_MAX / element_bytes) {
        return false;
    }
    memcpy(&old, items, sizeof old); /* the caller's array is not of type void *: see C11 6.5p7 */
    memory = hfn_resize_memory(env, old, *capacity * element_bytes, larger * element_bytes);
    if (!memory) {
        return false;
    }
    memcpy(items, &memory, sizeof memory);
    *capacity = larger;
    return true;
}

struct hfn_arena_block {
    hfn_arena_block *next;
    size_t used, size; /* bytes behind the header */
};

static size_t round_up(size_t bytes)
{
    return (bytes + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
}

static uint8_t *block_bytes(hfn_arena_block *block)
{
    return (uint8_t *)block + round_up(sizeof *block);
}

void hfn_arena_init(hfn_arena *arena, const hotfn_env *env)
{
    arena->env = env;
    arena->blocks = NULL;
}

void hfn_arena_finish(hfn_arena *arena)
{
    while (arena->blocks) {
        hfn_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        hfn_free_memory(arena->env, block, round_up(sizeof *block) + block->size);
    }
}

/* A block for one large request is inserted after the current block, so that the free bytes of the
 * current block are still used. */
static hfn_arena_block *add_block(hfn_arena *arena, size_t byte_count)
{
    size_t size = byte_count > ARENA_BLOCK_BYTES / 4 ? byte_count : ARENA_BLOCK_BYTES;
    hfn_arena_block *block = hfn_allocate_unset(arena->env, round_up(sizeof *block) + size);

    if (!block) {
        return NULL;
    }
    *block = (hfn_arena_block){ .size = size };
    if (arena->blocks && size != ARENA_BLOCK_BYTES) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *hfn_arena_alloc(hfn_arena *arena, size_t byte_count)
{
    hfn_arena_block *block = arena->blocks;
    size_t bytes = round_up(byte_count ? byte_count : 1);
    void *memory;

    if (byte_count > SIZE_MAX / 2) {
        return NULL;
    }
    if (!block || bytes > block->size - block->used) {
        block = add_block(arena, bytes);
    }
    if (!block) {
        return NULL;
    }
    memory = block_bytes(block) + block->used;
    block->used += bytes;
    return memset(memory, 0, bytes);
}

char *hfn_arena_copy(hfn_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? hfn_arena_alloc(arena, length + 1) : NULL;

    if (copy) {
        memcpy(copy, text, length);
    }
    return copy;
}

const void *hfn_find_bytes(const void *in, size_t byte_count, const void *wanted,
                           size_t wanted_bytes)
{
    const uint8_t *at = in, *end = at + byte_count, first = *(const uint8_t *)wanted;

    while ((size_t)(end - at) >= wanted_bytes) {
        at = memchr(at, first, (size_t)(end - at) - wanted_bytes + 1);
        if (!at || memcmp(at, wanted, wanted_bytes) == 0) {
            return at;
        }
        at++;
    }
    return NULL;
}
