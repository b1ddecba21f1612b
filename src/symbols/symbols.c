/* SPDX-License-Identifier: MIT */
/* The public calls that do not depend on the source of the symbols: ownership, and getters that
 * fill sized structs. */
#include "symbols/inside.h"

#include <string.h>

hotfn_symbols *hfn_symbols_new(const char *path, const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_symbols *symbols = hfn_allocate_zeroed(&filled, sizeof *symbols);

    if (!symbols) {
        return NULL;
    }
    hfn_symbol_table_init(&symbols->table, &filled);
    symbols->info.size = (uint32_t)sizeof symbols->info;
    symbols->info.path = hfn_arena_copy(&symbols->table.names, path, strlen(path));
    if (!symbols->info.path) {
        hotfn_symbols_destroy(symbols);
        return NULL;
    }
    return symbols;
}

hotfn_status hfn_symbols_copy_options(hotfn_symbols_options *out, const hotfn_symbols_options *in,
                                      uint32_t known_flags, hotfn_error *err)
{
    if (!hfn_copy_options(out, (uint32_t)sizeof *out, in) || (out->flags & ~known_flags) ||
        out->reserved) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, "", HOTFN_NO_OFFSET,
            "hotfn_symbols_options has a setting that this version does not support");
    }
    return HOTFN_OK;
}

/* Uses the id of the image itself: a debug file of another build has been skipped. */
void hfn_symbols_describe(hotfn_symbols *symbols, const hotfn_image *image)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(image, &info);
    symbols->info.machine = info.machine;
    symbols->info.id_kind = info.id_kind;
    symbols->info.id_bytes = info.id_bytes;
    memcpy(symbols->info.id, info.id, sizeof symbols->info.id);
    if (symbols->table.count) { /* the first source that had any symbols is the best one */
        symbols->info.source = symbols->table.items[0].source;
    }
}

hotfn_status hfn_symbols_finish_load(hotfn_symbols **out, hotfn_symbols *symbols,
                                     hotfn_status status, hotfn_error *err)
{
    if (status == HOTFN_OK && !hfn_symbol_table_sort(&symbols->table)) {
        status = hfn_report_no_memory(err, symbols->info.path);
    }
    if (status != HOTFN_OK) {
        hotfn_symbols_destroy(symbols);
        return status;
    }
    *out = symbols;
    return HOTFN_OK;
}

void hotfn_symbols_destroy(hotfn_symbols *symbols)
{
    hotfn_env env;

    if (!symbols) {
        return;
    }
    env = symbols->table.env;
    if (symbols->lines.destroy) {
        symbols->lines.destroy(symbols->lines.state);
    }
    hfn_symbol_table_finish(&symbols->table);
    hotfn_image_close(symbols->separate);
    hotfn_image_close(symbols->debugdata);
    hfn_free_memory(&env, symbols->debugdata_bytes, symbols->debugdata_size);
    hfn_free_memory(&env, symbols->line_text, sizeof *symbols->line_text);
    hfn_file_close(&symbols->file, &env);
    hfn_free_memory(&env, symbols, sizeof *symbols);
}

uint32_t hotfn_symbols_get_count(const hotfn_symbols *symbols)
{
    return symbols ? symbols->table.count : 0;
}

bool hfn_symbols_unpack_failed(const hotfn_symbols *symbols)
{
    return symbols->unpack_failed;
}

const hfn_symbol *hfn_symbols_table(const hotfn_symbols *symbols)
{
    return symbols->table.items;
}

hotfn_status hotfn_symbols_get(const hotfn_symbols *symbols, uint32_t index, hotfn_symbol *out)
{
    if (!symbols) {
        return HOTFN_E_OPTION;
    }

    hotfn_symbol filled = HOTFN_SYMBOL_INIT;
    const hfn_symbol *s;

    if (index >= symbols->table.count) {
        return HOTFN_E_NOT_FOUND;
    }
    s = &symbols->table.items[index];
    filled.kind = s->kind;
    filled.source = s->source;
    filled.flags = s->flags;
    filled.rva = s->rva;
    filled.byte_count = s->byte_count;
    filled.name = s->name;
    filled.module = hfn_symbol_table_module_name(&symbols->table, s->module);
    return hfn_copy_result(out, &filled, (uint32_t)sizeof filled);
}

hotfn_status hotfn_symbols_get_info(const hotfn_symbols *symbols, hotfn_symbols_info *out)
{
    if (!symbols) {
        return HOTFN_E_OPTION;
    }
    return hfn_copy_result(out, &symbols->info, (uint32_t)sizeof symbols->info);
}

/* Checks that the caller's line readers can be called.  They need an image; a PDB or a map that was
 * loaded alone has none. */
static hotfn_status prepare_line_query(hotfn_symbols *symbols, bool has_reader)
{
    if (!has_reader || symbols->info.format) {
        return HOTFN_E_NOT_FOUND;
    }
    if (!symbols->line_text) {
        symbols->line_text = hfn_allocate_zeroed(&symbols->table.env, sizeof *symbols->line_text);
    }
    return symbols->line_text ? HOTFN_OK : HOTFN_E_NO_MEMORY;
}

static hotfn_status query_caller_line(hotfn_symbols *symbols, uint64_t rva, hotfn_source_line *out)
{
    const hotfn_env *env = &symbols->table.env;
    const hotfn_symbols_info *info = &symbols->info;
    hotfn_status status = prepare_line_query(symbols, env->line_fn != NULL);

    if (status != HOTFN_OK) {
        return status;
    }
    if (!env->line_fn(env->line_user, info->path, info->id, info->id_bytes, rva,
                      symbols->line_text->file, sizeof symbols->line_text->file, &out->line)) {
        return HOTFN_E_NOT_FOUND;
    }
    out->file = symbols->line_text->file;
    out->rva = rva;
    out->byte_count = 1;
    return HOTFN_OK;
}

static hotfn_status query_caller_frame(hotfn_symbols *symbols, uint64_t rva, uint32_t depth,
                                       hotfn_source_frame *out)
{
    const hotfn_env *env = &symbols->table.env;
    const hotfn_symbols_info *info = &symbols->info;
    hotfn_status status = prepare_line_query(symbols, env->inlined_fn != NULL);
    hfn_line_text *text = symbols->line_text;

    if (status != HOTFN_OK) {
        return status;
    }
    if (!env->inlined_fn(env->inlined_user, info->path, info->id, info->id_bytes, rva, depth,
                         text->function, sizeof text->function, text->file, sizeof text->file,
                         &out->line)) {
        return HOTFN_E_NOT_FOUND;
    }
    out->function = text->function;
    out->file = text->file;
    return HOTFN_OK;
}

hotfn_status hotfn_symbols_find_line(hotfn_symbols *symbols, uint64_t rva, hotfn_source_line *out)
{
    if (!symbols) {
        return HOTFN_E_OPTION;
    }

    hotfn_source_line filled = HOTFN_SOURCE_LINE_INIT;
    hotfn_status status;

    if (symbols->lines.find) {
        status = symbols->lines.find(symbols->lines.state, rva, &filled);
    } else {
        status = query_caller_line(symbols, rva, &filled);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    return hfn_copy_result(out, &filled, (uint32_t)sizeof filled);
}

hotfn_status hotfn_symbols_find_frame(hotfn_symbols *symbols, uint64_t rva, uint32_t depth,
                                      hotfn_source_frame *out)
{
    if (!symbols) {
        return HOTFN_E_OPTION;
    }

    hotfn_source_frame filled = HOTFN_SOURCE_FRAME_INIT;
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_status status = query_caller_frame(symbols, rva, depth, &filled);

    if (status == HOTFN_E_NOT_FOUND && depth == 0) {
        status = hotfn_symbols_find_line(symbols, rva, &line);
        filled.line = line.line;
        filled.function = "";
        filled.file = line.file;
    }
    if (status != HOTFN_OK) {
        return status;
    }
    return hfn_copy_result(out, &filled, (uint32_t)sizeof filled);
}
