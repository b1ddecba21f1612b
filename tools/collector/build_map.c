/* SPDX-License-Identifier: MIT */
/* Number the modules and functions of a build. */
#include "build_map.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MAPS = 8 }; /* builds in memory at a time */

static uint32_t hash_place(uint32_t module, uint64_t rva)
{
    uint64_t h = (rva ^ (uint64_t)module << 48) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

/* What identifies a module: its image id, or its file name if it has none (FNV-1a). */
static uint64_t hash_module(const char *image, const char *file)
{
    uint64_t h = 14695981039346656037u;

    for (const char *at = image[0] ? image : file; *at; at++) {
        h = (h ^ (uint8_t)*at) * 1099511628211u;
    }
    return h;
}

static void free_map(build_map *map)
{
    free(map->modules);
    free(map->rvas);
    free(map->named);
    free(map->slots);
    free(map->known);
    free(map->known_hashes);
    free(map);
}

void build_map_free_all(store *s)
{
    while (s->maps) {
        build_map *map = s->maps;
        s->maps = map->next;
        free_map(map);
    }
}

static void insert_slot(build_map *map, uint32_t number)
{
    uint32_t mask = map->slot_count - 1;
    uint32_t at = hash_place(map->modules[number], map->rvas[number]) & mask;

    while (map->slots[at]) {
        at = (at + 1) & mask;
    }
    map->slots[at] = number + 1;
}

static bool grow_array(void **array, size_t count, size_t element_bytes)
{
    void *more = realloc(*array, count * element_bytes);

    *array = more ? more : *array;
    return more != NULL;
}

static bool grow_map(build_map *map)
{
    uint32_t room = map->room ? map->room * 2 : 1024;

    if (!grow_array((void **)&map->modules, room, sizeof *map->modules) ||
        !grow_array((void **)&map->rvas, room, sizeof *map->rvas) ||
        !grow_array((void **)&map->named, room, sizeof *map->named)) {
        return false;
    }
    uint32_t *slots = calloc(room * 2u, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(map->slots);
    map->slots = slots;
    map->slot_count = room * 2;
    map->room = room;
    for (uint32_t i = 0; i < map->count; i++) {
        insert_slot(map, i);
    }
    return true;
}

static bool append_function(build_map *map, uint32_t module, uint64_t rva, bool named)
{
    if (map->count >= WIRE_MAX_ROWS || (map->count == map->room && !grow_map(map))) {
        return false;
    }
    map->modules[map->count] = module;
    map->rvas[map->count] = rva;
    map->named[map->count] = named;
    insert_slot(map, map->count++);
    return true;
}

static bool append_module(build_map *map, const char *image, const char *file)
{
    uint32_t count = map->known_count;
    bool is_full = (count & (count - 1)) == 0; /* the room is the next power of two */

    if (is_full && (!grow_array((void **)&map->known, count ? 2 * count : 1, sizeof *map->known) ||
                    !grow_array((void **)&map->known_hashes, count ? 2 * count : 1,
                                sizeof *map->known_hashes))) {
        return false;
    }
    map->known_hashes[count] = hash_module(image, file);
    wire_module *m = &map->known[map->known_count++];
    memset(m, 0, sizeof *m);
    copy_bounded(m->image, sizeof m->image, image);
    copy_bounded(m->file, sizeof m->file, file);
    return true;
}

static bool load_modules(store *s, build_map *map)
{
    sqlite3_stmt *q =
        store_get_statement(s, "SELECT image, file FROM module WHERE build = ?1 ORDER BY number");
    int step = SQLITE_ERROR;

    if (!store_bind(q, "i", map->build)) {
        return false;
    }
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        if (!append_module(map, (const char *)sqlite3_column_text(q, 0),
                           (const char *)sqlite3_column_text(q, 1))) {
            break;
        }
    }
    sqlite3_reset(q);
    return step == SQLITE_DONE;
}

static bool load_functions(store *s, build_map *map)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT module, rva, name IS NOT NULL FROM function "
                                             "WHERE build = ?1 ORDER BY number");
    int step = SQLITE_ERROR;

    if (!store_bind(q, "i", map->build)) {
        return false;
    }
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        if (!append_function(map, (uint32_t)sqlite3_column_int64(q, 0),
                             (uint64_t)sqlite3_column_int64(q, 1), sqlite3_column_int(q, 2))) {
            break;
        }
    }
    sqlite3_reset(q);
    return step == SQLITE_DONE;
}

/* Free the map that was not used for the longest time; maps are sorted by their latest use. */
static void limit_maps(store *s)
{
    int count = 0;

    for (build_map **at = &s->maps; *at; at = &(*at)->next) {
        if (++count == MAX_MAPS) {
            build_map *last = (*at)->next;
            (*at)->next = NULL;
            if (last) {
                free_map(last);
            }
            return;
        }
    }
}

build_map *build_map_get(store *s, int64_t build)
{
    for (build_map **at = &s->maps; *at; at = &(*at)->next) {
        if ((*at)->build == build) {
            build_map *map = *at;
            *at = map->next;
            map->next = s->maps;
            return s->maps = map;
        }
    }
    build_map *map = calloc(1, sizeof *map);
    if (!map) {
        return NULL;
    }
    map->build = build;
    if (!grow_map(map) || !load_modules(s, map) || !load_functions(s, map)) {
        free_map(map);
        return NULL;
    }
    map->next = s->maps;
    s->maps = map;
    limit_maps(s);
    return map;
}

bool build_map_is_full(const build_map *map)
{
    return map->count >= WIRE_MAX_ROWS || map->known_count >= MAX_BUILD_MODULES;
}

/* A module without an image id is identified by its file name. */
int64_t build_map_number_module(store *s, build_map *map, const wire_module *module)
{
    uint64_t hash = hash_module(module->image, module->file);

    for (uint32_t i = 0; i < map->known_count; i++) {
        const wire_module *known = &map->known[i];
        if (map->known_hashes[i] == hash && strcmp(known->image, module->image) == 0 &&
            (module->image[0] || strcmp(known->file, module->file) == 0)) {
            return i;
        }
    }
    sqlite3_stmt *q = store_get_statement(s, "INSERT INTO module VALUES(?1, ?2, ?3, ?4)");
    if (map->known_count >= MAX_BUILD_MODULES ||
        !store_bind(q, "iitt", map->build, (int64_t)map->known_count, module->image,
                    module->file) ||
        !store_run(q) || !append_module(map, module->image, module->file)) {
        return -1;
    }
    return map->known_count - 1;
}

uint32_t build_map_number_function(store *s, build_map *map, uint32_t module, uint64_t rva)
{
    uint32_t mask = map->slot_count - 1;

    for (uint32_t at = hash_place(module, rva) & mask; map->slots[at]; at = (at + 1) & mask) {
        uint32_t number = map->slots[at] - 1;
        if (map->modules[number] == module && map->rvas[number] == rva) {
            return number;
        }
    }
    sqlite3_stmt *q = store_get_statement(
        s, "INSERT INTO function(build, number, module, rva) VALUES(?1, ?2, ?3, ?4)");
    if (!store_bind(q, "iiii", map->build, (int64_t)map->count, (int64_t)module, (int64_t)rva) ||
        !store_run(q) || !append_function(map, module, rva, false)) {
        return NO_FUNCTION;
    }
    return map->count - 1;
}
