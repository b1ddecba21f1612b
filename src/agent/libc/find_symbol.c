/* SPDX-License-Identifier: MIT */
/* The agent's own dlsym(RTLD_NEXT, name), and a search in one module.  The loader's dlsym takes a
 * lock and may allocate, and the target may define another one.  dlsym searches the modules behind
 * the agent in the loader's list, and finds functions only.  Both use the hash tables of modules
 * (System V gABI ch. 5, 'Hash Table'; DT_GNU_HASH is described only by the GNU linker's source). */
#include "agent/libc/find_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu, *sysv;
    bool finds_data;
} tables;

/* The loader has relocated the entry, unless the dynamic section is read-only. */
static const void *get_address(const struct link_map *map, const ElfW(Dyn) * entry)
{
    ElfW(Addr) at = entry->d_un.d_ptr;

    return (const void *)(at < map->l_addr ? at + map->l_addr : at);
}

static tables read_tables(const struct link_map *map)
{
    tables t = { .symbols = NULL };

    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: t.symbols = get_address(map, entry); break;
        case DT_STRTAB: t.names = get_address(map, entry); break;
        case DT_GNU_HASH: t.gnu = get_address(map, entry); break;
        case DT_HASH: t.sysv = get_address(map, entry); break;
        default: break;
        }
    }
    return t;
}

/* The address of symbol `index` if the module defines this name there, else NULL. */
static void *match_symbol(const struct link_map *map, const tables *t, uint32_t index,
                          const char *name)
{
    const ElfW(Sym) *symbol = &t->symbols[index];
    unsigned type = ELF32_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF ||
        (type != STT_FUNC && !(t->finds_data && type == STT_OBJECT)) ||
        strcmp(t->names + symbol->st_name, name) != 0) {
        return NULL;
    }
    return (void *)(map->l_addr + symbol->st_value);
}

static void *find_gnu(const struct link_map *map, const tables *t, const char *name)
{
    uint32_t bucket_count = t->gnu[0], first = t->gnu[1], hash = 5381, index;
    const uint32_t *buckets = t->gnu + 4 + t->gnu[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + bucket_count;

    for (const char *at = name; *at; at++) {
        hash = hash * 33 + (uint8_t)*at;
    }
    index = bucket_count > 0 ? buckets[hash % bucket_count] : 0;
    for (; index >= first; index++) {
        void *found =
            (chain[index - first] | 1) == (hash | 1) ? match_symbol(map, t, index, name) : NULL;
        if (found || (chain[index - first] & 1)) {
            return found;
        }
    }
    return NULL;
}

static void *find_sysv(const struct link_map *map, const tables *t, const char *name)
{
    void *found = NULL;

    for (uint32_t i = 1; i < t->sysv[1] && !found; i++) {
        found = match_symbol(map, t, i, name);
    }
    return found;
}

static void *find_in_module(const struct link_map *map, const char *name, bool finds_data)
{
    tables t = read_tables(map);

    t.finds_data = finds_data;
    if (t.symbols && t.names && t.gnu) {
        return find_gnu(map, &t, name);
    }
    return t.symbols && t.names && t.sysv ? find_sysv(map, &t, name) : NULL;
}

/* The module at base is the one with the first dynamic section behind base. */
void *agent_find_symbol(uint64_t base, const char *name)
{
    const struct link_map *found = NULL;

    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        if ((uintptr_t)map->l_ld >= base && (!found || map->l_ld < found->l_ld)) {
            found = map;
        }
    }
    return found ? find_in_module(found, name, true) : NULL;
}

void *dlsym(void *handle, const char *name)
{
    const struct link_map *map = _r_debug.r_map;
    void *found = NULL;

    (void)handle; /* RTLD_NEXT */
    while (map && map->l_ld != _DYNAMIC) {
        map = map->l_next;
    }
    for (map = map ? map->l_next : NULL; map && !found; map = map->l_next) {
        found = find_in_module(map, name, false);
    }
    return found;
}
