/* SPDX-License-Identifier: MIT */
/* The public calls for function tables, except those for selection: create, destroy, and getters
 * that fill sized structs. */
#include "base/search.h"
#include "functions/bounds_pdata.h"
#include "functions/inside.h"

static hotfn_functions *new_functions(const hotfn_image *image, const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_functions *functions = hfn_allocate_zeroed(&filled, sizeof *functions);

    if (!functions) {
        return NULL;
    }
    functions->env = filled;
    functions->image = image;
    hfn_arena_init(&functions->generated_names, &functions->env);
    return functions;
}

/* x64 and ARM64 images of Windows have .pdata; everything else has .eh_frame or nothing. */
static bool read_bounds(hfn_fde_list *out, const hotfn_image *image, const hotfn_env *env)
{
    if (!hfn_bounds_pdata(out, image, env)) {
        return false;
    }
    return out->count > 0 || hfn_bounds_eh_frame(out, image, env);
}

/* The map of another build may have the same sections, but many of its names are then in the middle
 * of functions.  So are labels of assembly code, but they are few. */
static bool is_of_another_build(const hotfn_functions *functions, const hotfn_symbols *symbols)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;

    return functions->map_misses > 2 && functions->map_misses > functions->map_hits / 4 &&
           hotfn_symbols_get_info(symbols, &info) == HOTFN_OK &&
           !(info.flags & HOTFN_SYMBOLS_FORCE);
}

hotfn_status hotfn_functions_build(hotfn_functions **out, const hotfn_image *image,
                                   const hotfn_symbols *symbols, const hotfn_env *env,
                                   hotfn_error *err)
{
    if (!out || !image) {
        return hfn_report_null(err, __func__);
    }

    hotfn_functions *functions = new_functions(image, env);
    hfn_fde_list fdes = { NULL, 0, 0 };
    bool good;

    if (!functions) {
        goto no_memory;
    }
    good = read_bounds(&fdes, image, &functions->env) &&
           hfn_functions_collect(functions, symbols, &fdes);
    hfn_fde_list_finish(&fdes, &functions->env);
    if (!good) {
        goto no_memory;
    }
    if (is_of_another_build(functions, symbols)) {
        uint32_t misses = functions->map_misses, all = misses + functions->map_hits;
        hotfn_functions_destroy(functions);
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, hfn_image_path(image), HOTFN_NO_OFFSET,
            "the map is of another build: %u of its %u functions begin in the middle of a "
            "function of the image; use the map that the same link wrote",
            misses, all);
    }
    hfn_functions_mark_kinds(functions);
    *out = functions;
    return HOTFN_OK;
no_memory:
    hotfn_functions_destroy(functions);
    return hfn_report_no_memory(err, hfn_image_path(image));
}

void hotfn_functions_destroy(hotfn_functions *functions)
{
    hotfn_env env;

    if (!functions) {
        return;
    }
    env = functions->env;
    hfn_arena_finish(&functions->generated_names);
    hfn_free_memory(&env, functions->items, functions->capacity * sizeof *functions->items);
    hfn_free_memory(&env, functions->names, functions->name_capacity * sizeof *functions->names);
    hfn_free_memory(&env, functions, sizeof *functions);
}

uint32_t hotfn_functions_get_count(const hotfn_functions *functions)
{
    return functions ? functions->count : 0;
}

const hfn_function *hfn_functions_at(const hotfn_functions *functions, uint32_t index)
{
    return index < functions->count ? &functions->items[index] : NULL;
}

hotfn_status hotfn_functions_get(const hotfn_functions *functions, uint32_t index,
                                 hotfn_function *out)
{
    if (!functions) {
        return HOTFN_E_OPTION;
    }

    const hfn_function *f = hfn_functions_at(functions, index);
    hotfn_function filled = HOTFN_FUNCTION_INIT;

    if (!f) {
        return HOTFN_E_NOT_FOUND;
    }
    filled.kind = f->kind;
    filled.flags = f->flags;
    filled.name_count = f->name_count;
    filled.rva = f->rva;
    filled.byte_count = f->byte_count;
    filled.name = functions->names[f->first_name];
    filled.fde_cfa_offset = f->fde_cfa_offset;
    filled.section = f->section;
    return hfn_copy_result(out, &filled, (uint32_t)sizeof filled);
}

const char *hotfn_functions_get_name(const hotfn_functions *functions, uint32_t index,
                                     uint32_t name_index)
{
    if (!functions) {
        return NULL;
    }

    const hfn_function *f = hfn_functions_at(functions, index);

    return f && name_index < f->name_count ? functions->names[f->first_name + name_index] : NULL;
}

uint32_t hotfn_functions_find(const hotfn_functions *functions, uint64_t rva)
{
    if (!functions) {
        return UINT32_MAX;
    }

    uint32_t low =
        (uint32_t)hfn_count_up_to(functions->items, functions->count, sizeof *functions->items,
                                  offsetof(hfn_function, rva), rva);

    if (low == 0 || rva - functions->items[low - 1].rva >= functions->items[low - 1].byte_count) {
        return UINT32_MAX;
    }
    return low - 1;
}
