/* SPDX-License-Identifier: MIT */
/* hotfn_exports_load: a table with one row for each export, and with the target of each export that
 * is forwarded. */
#include "symbols/forwarders.h"
#include "symbols/inside.h"

#include <string.h>

struct hotfn_exports {
    hotfn_env env;
    hfn_forwarders forwarders;
    hotfn_exported *items;
    size_t capacity;
    uint32_t count;
};

static bool add_export(hotfn_exports *exports, const hfn_exports *tables, const hfn_export *e)
{
    const hfn_library *library = NULL;
    hotfn_exported row = HOTFN_EXPORTED_INIT;

    row.ordinal = tables->ordinal_base + e->index;
    row.rva = e->rva;
    row.name = e->name;
    row.forward = e->forward;
    if (e->forward &&
        !hfn_forwarders_follow(&exports->forwarders, e->forward, &library, &row.target_rva)) {
        return false;
    }
    if (library) {
        row.target_path = hfn_image_path(library->image);
    }
    if (!hfn_grow_array(&exports->env, (void **)&exports->items, &exports->capacity,
                        exports->count + 1u, sizeof row)) {
        return false;
    }
    exports->items[exports->count++] = row;
    return true;
}

/* The names of each function as linked lists. first[i] is the first name of function i, next[n] is
 * the name after name n; both hold the index of a name plus 1, and 0 ends a list. */
typedef struct name_lists {
    uint32_t *first, *next;
} name_lists;

static void chain_names(const hfn_exports *tables, name_lists *names)
{
    hfn_export e;

    for (uint32_t n = tables->name_count; n-- > 0;) {
        if (!hfn_exports_named(tables, n, &e)) {
            continue;
        }
        names->next[n] = names->first[e.index];
        names->first[e.index] = n + 1;
    }
}

static bool add_all(hotfn_exports *exports, const hfn_exports *tables, const name_lists *names)
{
    hfn_export e;

    for (uint32_t i = 0; i < tables->function_count; i++) {
        uint32_t n = names->first[i];
        if (n == 0 && hfn_exports_at(tables, i, &e) && !add_export(exports, tables, &e)) {
            return false;
        }
        for (; n != 0; n = names->next[n - 1]) {
            if (hfn_exports_named(tables, n - 1, &e) && !add_export(exports, tables, &e)) {
                return false;
            }
        }
    }
    return true;
}

static bool read_rows(hotfn_exports *exports, const hfn_exports *tables)
{
    size_t first_bytes = tables->function_count * sizeof(uint32_t);
    size_t next_bytes = tables->name_count * sizeof(uint32_t);
    name_lists names = { hfn_allocate_zeroed(&exports->env, first_bytes),
                         hfn_allocate_zeroed(&exports->env, next_bytes) };
    bool good = names.first && names.next;

    if (good) {
        chain_names(tables, &names);
        good = add_all(exports, tables, &names);
    }
    hfn_free_memory(&exports->env, names.first, first_bytes);
    hfn_free_memory(&exports->env, names.next, next_bytes);
    return good;
}

static hotfn_exports *new_exports(const hotfn_image *image, const hotfn_symbols_options *options,
                                  const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_exports *exports = hfn_allocate_zeroed(&filled, sizeof *exports);

    if (!exports) {
        return NULL;
    }
    exports->env = filled;
    if (hfn_forwarders_init(&exports->forwarders, image, options, &exports->env)) {
        return exports;
    }
    hfn_free_memory(&filled, exports, sizeof *exports);
    return NULL;
}

hotfn_status hotfn_exports_load(hotfn_exports **out, const hotfn_image *image,
                                const hotfn_symbols_options *options, const hotfn_env *env,
                                hotfn_error *err)
{
    if (!out || !image) {
        return hfn_report_null(err, __func__);
    }

    hotfn_symbols_options copied;
    hfn_exports tables = { .image = image };
    hotfn_exports *exports;
    hotfn_status status = hfn_symbols_copy_options(
        &copied, options, HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE,
        err);

    if (status == HOTFN_OK && hfn_image_is_pe(image)) {
        status = hfn_exports_open(&tables, image, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    exports = new_exports(image, &copied, env);
    if (exports && (tables.function_count == 0 || read_rows(exports, &tables))) {
        exports->forwarders.options = NULL; /* borrowed for this call only */
        *out = exports;
        return HOTFN_OK;
    }
    hotfn_exports_destroy(exports);
    return hfn_report_no_memory(err, hfn_image_path(image));
}

void hotfn_exports_destroy(hotfn_exports *exports)
{
    hotfn_env env;

    if (!exports) {
        return;
    }
    env = exports->env;
    hfn_forwarders_finish(&exports->forwarders);
    hfn_free_memory(&env, exports->items, exports->capacity * sizeof *exports->items);
    hfn_free_memory(&env, exports, sizeof *exports);
}

uint32_t hotfn_exports_get_count(const hotfn_exports *exports)
{
    return exports ? exports->count : 0;
}

hotfn_status hotfn_exports_get(const hotfn_exports *exports, uint32_t index, hotfn_exported *out)
{
    if (!exports) {
        return HOTFN_E_OPTION;
    }
    if (index >= exports->count) {
        return HOTFN_E_NOT_FOUND;
    }
    return hfn_copy_result(out, &exports->items[index], (uint32_t)sizeof *exports->items);
}
