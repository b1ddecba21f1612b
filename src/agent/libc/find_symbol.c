/* SPDX-License-Identifier: MIT */
/* The agent's own dlsym(RTLD_NEXT, name): the loader's takes a lock and may allocate, and the
 * target may define another dlsym.  It searches the modules behind the agent in the loader's list
 * by their hash tables (System V gABI ch. 5, 'Hash Table'; DT_GNU_HASH is described only by the GNU
 * linker's source). */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu, *sysv;
} tables;

/* The loader has relocated the entry, unless the dynamic section is read-only. */
static const void *get_address(const struct link_map *map, const ElfW(Dyn) * entry)
{
    ElfW(Addr) at = entry->d_un.d_ptr;

    return (const void *)(at < map->l_addr ? at + map->l_addr : at);
}

static tables read_tables(const struct link_map *map)
{
    tables t = { NULL, NULL, NULL, NULL };

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

/* The address of symbol `index` if the module defines a function of this name there, else NULL. */
static void *match_function(const struct link_map *map, const tables *t, uint32_t index,
                            const char *name)
{
    const ElfW(Sym) *symbol = &t->symbols[index];

    if (symbol->st_shndx == SHN_UNDEF || ELF32_ST_TYPE(symbol->st_info) != STT_FUNC ||
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
            (chain[index - first] | 1) == (hash | 1) ? match_function(map, t, index, name) : NULL;
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
        found = match_function(map, t, i, name);
    }
    return found;
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
        tables t = read_tables(map);
        if (t.symbols && t.names && t.gnu) {
            found = find_gnu(map, &t, name);
        } else if (t.symbols && t.names && t.sysv) {
            found = find_sysv(map, &t, name);
        }
    }
    return found;
}
