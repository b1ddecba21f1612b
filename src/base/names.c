/* SPDX-License-Identifier: MIT */
/* Interning with uthash, which only this file includes.  Texts and entries are in an arena.  The
 * hash table also allocates from the env, and reports a failed allocation by a flag, without
 * exit(). */
#include "base/names.h"

#include "base/memory.h"

typedef struct name_entry name_entry;

/* uthash's macros are used only in functions with a variable `names`. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) hfn_allocate_zeroed(&names->env, (bytes))
#define uthash_free(memory, bytes) hfn_free_memory(&names->env, (memory), (bytes))
#define uthash_nonfatal_oom(entry) (names->out_of_memory = true)
#include <uthash.h>

struct name_entry {
    const char *text;
    uint32_t number;
    UT_hash_handle hh;
};

struct hfn_names {
    hotfn_env env;
    hfn_arena arena;
    name_entry *head; /* uthash's list */
    uint32_t count;
    bool out_of_memory;
};

hfn_names *hfn_names_create(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hfn_names *names = hfn_allocate_zeroed(&filled, sizeof *names);

    if (!names) {
        return NULL;
    }
    names->env = filled;
    hfn_arena_init(&names->arena, &names->env);
    return names;
}

void hfn_names_destroy(hfn_names *names)
{
    hotfn_env env;

    if (!names) {
        return;
    }
    HASH_CLEAR(hh, names->head);
    env = names->env;
    hfn_arena_finish(&names->arena);
    hfn_free_memory(&env, names, sizeof *names);
}

uint32_t hfn_names_find(const hfn_names *names, const char *text, size_t length)
{
    name_entry *found = NULL;

    HASH_FIND(hh, names->head, text, length, found);
    return found ? found->number : HFN_NAME_NONE;
}

static name_entry *new_entry(hfn_names *names, const char *text, size_t length)
{
    name_entry *entry = hfn_arena_alloc(&names->arena, sizeof *entry);

    if (!entry) {
        return NULL;
    }
    entry->text = hfn_arena_copy(&names->arena, text, length);
    entry->number = names->count;
    return entry->text ? entry : NULL;
}

uint32_t hfn_names_intern(hfn_names *names, const char *text, size_t length)
{
    uint32_t known = hfn_names_find(names, text, length);
    name_entry *entry;

    if (known != HFN_NAME_NONE) {
        return known;
    }
    if (names->count == HFN_NAME_NONE - 1) {
        return HFN_NAME_NONE;
    }
    entry = new_entry(names, text, length);
    if (!entry) {
        return HFN_NAME_NONE;
    }
    names->out_of_memory = false;
    HASH_ADD_KEYPTR(hh, names->head, entry->text, length, entry);
    if (names->out_of_memory) {
        return HFN_NAME_NONE;
    }
    return names->count++;
}

uint32_t hfn_names_count(const hfn_names *names)
{
    return names->count;
}
