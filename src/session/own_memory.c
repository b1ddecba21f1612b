/* SPDX-License-Identifier: MIT */
/* Memory of our own, beside the process's malloc: that one may be anybody's, may not be ready yet, and
 * may itself be hooked.  Blocks come from the system and are never given back. */
#include <hotfn/env.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BLOCK_BYTES (1u << 20)

static struct {
    uint8_t *at;
    size_t left;
} arena;

static void *arena_take(size_t bytes)
{
    bytes = (bytes + 15u) & ~(size_t)15u;
    if (bytes > arena.left) {
        size_t block = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        void *map = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED) {
            return NULL;
        }
        arena.at = map;
        arena.left = block;
    }
    void *taken = arena.at;
    arena.at += bytes;
    arena.left -= bytes;
    return taken;
}

/* Freed pieces wait in bins by powers of two: a program that loads and unloads modules all day does
 * not grow.  One thread at a time comes here (the one that holds the loader's lock). */
typedef struct piece {
    struct piece *next;
} piece;

static piece *bins[64];

static unsigned bin_of(size_t bytes)
{
    return bytes <= 16 ? 4 : 64u - (unsigned)__builtin_clzll(bytes - 1);
}

static void *take_piece(size_t bytes)
{
    unsigned bin = bin_of(bytes);
    piece *found = bins[bin];
    if (!found) {
        return arena_take((size_t)1 << bin);
    }
    bins[bin] = found->next;
    return found;
}

static void give_piece(void *memory, size_t bytes)
{
    piece *back = memory;
    unsigned bin = bin_of(bytes);
    back->next = bins[bin];
    bins[bin] = back;
}

static void *own_realloc(void *user, void *memory, size_t old_bytes, size_t new_bytes)
{
    (void)user;
    if (memory && new_bytes > 0 && bin_of(old_bytes) == bin_of(new_bytes)) {
        return memory;
    }
    void *fresh = new_bytes > 0 ? take_piece(new_bytes) : NULL;
    if (memory && (fresh || new_bytes == 0)) {
        if (fresh) {
            memcpy(fresh, memory, old_bytes < new_bytes ? old_bytes : new_bytes);
        }
        give_piece(memory, old_bytes);
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
