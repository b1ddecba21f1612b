/* SPDX-License-Identifier: MIT */
/* The functions of a build, numbered from 0.  The writer keeps the numbers of the builds in use in
 * memory, so that storing a run asks the database only about functions that are new. */
#ifndef HOTFN_COLLECTOR_BUILD_MAP_H
#define HOTFN_COLLECTOR_BUILD_MAP_H

#include "store.h"
#include "wire.h"

#define NO_FUNCTION UINT32_MAX

enum { MAX_BUILD_MODULES = 16384 }; /* and WIRE_MAX_ROWS functions */

typedef struct build_map {
    struct build_map *next;
    int64_t build;
    uint32_t *modules; /* by number */
    uint64_t *rvas;    /* by number */
    uint8_t *named;    /* by number */
    uint32_t *slots;   /* hash table: number + 1, 0 if free */
    uint32_t slot_count, count, room;
    wire_module *known; /* modules of the build: image and file */
    uint64_t *known_hashes;
    uint32_t known_count;
} build_map;

/* The map of a build, read from the database on first use; NULL on failure. */
build_map *build_map_get(store *s, int64_t build);
/* The number of a module, added to the build if it is new; -1 on failure. */
int64_t build_map_number_module(store *s, build_map *map, const wire_module *module);
/* The number of a function, added if it is new; NO_FUNCTION on failure. */
uint32_t build_map_number_function(store *s, build_map *map, uint32_t module, uint64_t rva);
/* Has it as many modules or functions as a build may have? */
bool build_map_is_full(const build_map *map);
/* Forget all maps: the transaction that they belong to was rolled back. */
void build_map_free_all(store *s);

#endif
