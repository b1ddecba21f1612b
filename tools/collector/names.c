/* SPDX-License-Identifier: MIT */
/* Store the names of functions. */
#include "names.h"

static int64_t find_or_create_name(store *s, const wire_name *name)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM name WHERE text = ?1");

    if (!q ||
        sqlite3_bind_text(q, 1, name->text, (int)name->text_bytes, SQLITE_STATIC) != SQLITE_OK) {
        return -1;
    }
    int64_t id = store_read_integer(q, 0);
    if (id != 0) {
        return id;
    }
    q = store_get_statement(s, "INSERT INTO name(text) VALUES(?1)");
    if (!q ||
        sqlite3_bind_text(q, 1, name->text, (int)name->text_bytes, SQLITE_STATIC) != SQLITE_OK) {
        return -1;
    }
    return store_run(q) ? sqlite3_last_insert_rowid(s->db) : -1;
}

static bool store_name(store *s, build_map *map, uint32_t module, const wire_name *name,
                       bool replace)
{
    uint32_t number = build_map_number_function(s, map, module, name->rva);

    if (number == NO_FUNCTION) {
        return false;
    }
    if ((map->named[number] && !replace) || name->text_bytes == 0) {
        return true;
    }
    int64_t id = find_or_create_name(s, name);
    sqlite3_stmt *q = store_get_statement(s, "UPDATE function SET name = ?3, byte_count = ?4 "
                                             "WHERE build = ?1 AND number = ?2");
    if (id < 0 ||
        !store_bind(q, "iiii", map->build, (int64_t)number, id, (int64_t)name->byte_count) ||
        !store_run(q)) {
        return false;
    }
    map->named[number] = 1;
    return true;
}

bool store_names(store *s, build_map *map, const wire_run *names, bool replace)
{
    for (uint32_t i = 0; i < names->module_count; i++) {
        const wire_module *m = &names->modules[i];
        int64_t module = build_map_number_module(s, map, m);
        for (uint32_t k = 0; k < m->row_count; k++) {
            if (module < 0 ||
                !store_name(s, map, (uint32_t)module, &names->names[m->first_row + k], replace)) {
                return false;
            }
        }
    }
    return true;
}
