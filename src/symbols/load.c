/* SPDX-License-Identifier: MIT */
/* The public calls of the symbols station: which sources, in which order, and who owns what. */
#include "base/status.h"
#include "symbols/elf_separate.h"
#include "symbols/elf_symtab.h"
#include "symbols/table.h"

#include <string.h>

#define MAX_DEBUGDATA_BYTES ((size_t)512 << 20) /* .gnu_debugdata, decompressed */

struct hotfn_symbols {
    hfn_symbol_table table;
    hotfn_image *separate;  /* names are views into it */
    hotfn_image *debugdata; /* the same                */
    void *debugdata_bytes;
    size_t debugdata_size;
};

static void warn(const hotfn_symbols *symbols, const hotfn_error *err)
{
    hfn_log(&symbols->table.env, HOTFN_LOG_WARNING, "%s: passed over: %s", err->file, err->text);
}

/* A source beside the image: broken is a warning, only no memory is an error. */
static hotfn_status read_beside(hotfn_symbols *symbols, const hfn_symtab_reader *reader,
                                const hotfn_image *holder, uint8_t source, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_symtab_read(reader, holder, source, &why);

    if (status == HOTFN_E_NO_MEMORY)
        return hfn_fail(err, status, why.file, why.offset, "%s", why.text);
    if (status != HOTFN_OK)
        warn(symbols, &why);
    return HOTFN_OK;
}

/* A small ELF file with a .symtab, packed with xz into the image itself (Fedora's MiniDebugInfo;
 * gdb's manual, same heading). */
static void unpack_debugdata(hotfn_symbols *symbols, const hotfn_image *image)
{
    const hotfn_env *env = &symbols->table.env;
    const hfn_elf_section *section = hfn_elf_section_named(image, ".gnu_debugdata");
    hotfn_error why = HOTFN_ERROR_INIT;
    hfn_span packed;

    if (!section)
        return;
    packed = hfn_elf_section_bytes(image, section);
    if (!env->decompress_fn || !packed.size || packed.size > SIZE_MAX) {
        hfn_log(env, HOTFN_LOG_INFO, "%s: its .gnu_debugdata cannot be unpacked",
                hfn_image_path(image));
        return;
    }
    symbols->debugdata_bytes = env->decompress_fn(
        env->decompress_user, HOTFN_COMPRESSION_XZ, packed.data, (size_t)packed.size,
        MAX_DEBUGDATA_BYTES, env->realloc_fn, env->realloc_user, &symbols->debugdata_size);
    if (!symbols->debugdata_bytes)
        hfn_log(env, HOTFN_LOG_WARNING, "%s: its .gnu_debugdata is damaged", hfn_image_path(image));
    else if (hotfn_image_from_bytes(&symbols->debugdata, symbols->debugdata_bytes,
                                    symbols->debugdata_size, ".gnu_debugdata", env,
                                    &why) != HOTFN_OK)
        warn(symbols, &why);
}

static hotfn_status read_sources(hotfn_symbols *symbols, const hfn_symtab_reader *reader,
                                 const hotfn_symbols_options *options, hotfn_error *err)
{
    hfn_symbol_dirs dirs = { options->symbol_dirs, options->symbol_dir_count };
    hotfn_status status = hfn_symtab_read(reader, reader->image, HOTFN_SOURCE_SYMTAB, err);

    if (status == HOTFN_OK && !symbols->table.function_count &&
        !(options->flags & HOTFN_SYMBOLS_NO_SEPARATE))
        symbols->separate = hfn_separate_open(reader->image, &dirs, &symbols->table.env);
    if (symbols->separate)
        status = read_beside(symbols, reader, symbols->separate, HOTFN_SOURCE_DEBUG_FILE, err);
    if (status == HOTFN_OK && !symbols->table.function_count)
        unpack_debugdata(symbols, reader->image);
    if (symbols->debugdata)
        status = read_beside(symbols, reader, symbols->debugdata, HOTFN_SOURCE_DEBUGDATA, err);
    return status == HOTFN_OK ? hfn_dynsym_read(reader, err) : status;
}

hotfn_status hotfn_symbols_load(hotfn_symbols **out, const hotfn_image *image,
                                const hotfn_symbols_options *options, const hotfn_env *env,
                                hotfn_error *err)
{
    const uint32_t known_flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA;
    hotfn_env filled = hfn_env_fill(env);
    hotfn_symbols_options taken;
    hotfn_symbols *symbols;
    hotfn_status status;

    if (!hfn_take_options(&taken, (uint32_t)sizeof taken, options) ||
        (taken.flags & ~known_flags) || taken.reserved)
        return hfn_fail(err, HOTFN_E_OPTION, "", HOTFN_NO_OFFSET,
                        "hotfn_symbols_options carries a setting that this version does not know");
    symbols = hfn_alloc(&filled, sizeof *symbols);
    if (!symbols)
        return hfn_fail(err, HOTFN_E_NO_MEMORY, hfn_image_path(image), HOTFN_NO_OFFSET,
                        "no memory for its symbols");
    hfn_symbol_table_init(&symbols->table, &filled);
    status = read_sources(
        symbols,
        &(hfn_symtab_reader){ &symbols->table, image, (taken.flags & HOTFN_SYMBOLS_DATA) != 0 },
        &taken, err);
    if (status == HOTFN_OK && !hfn_symbol_table_sort(&symbols->table))
        status = hfn_fail(err, HOTFN_E_NO_MEMORY, hfn_image_path(image), HOTFN_NO_OFFSET,
                          "no memory to sort its symbols");
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

    if (!symbols)
        return;
    env = symbols->table.env;
    hfn_symbol_table_finish(&symbols->table);
    hotfn_image_close(symbols->separate);
    hotfn_image_close(symbols->debugdata);
    hfn_free(&env, symbols->debugdata_bytes, symbols->debugdata_size);
    hfn_free(&env, symbols, sizeof *symbols);
}

uint32_t hotfn_symbols_count(const hotfn_symbols *symbols)
{
    return symbols->table.count;
}

const hfn_symbol *hfn_symbols_table(const hotfn_symbols *symbols)
{
    return symbols->table.items;
}

hotfn_status hotfn_symbols_get(const hotfn_symbols *symbols, uint32_t index, hotfn_symbol *out)
{
    hotfn_symbol filled = HOTFN_SYMBOL_INIT;
    const hfn_symbol *s;

    if (index >= symbols->table.count)
        return HOTFN_E_NOT_FOUND;
    s = &symbols->table.items[index];
    filled.kind = s->kind;
    filled.source = s->source;
    filled.flags = s->flags;
    filled.rva = s->rva;
    filled.byte_count = s->byte_count;
    filled.name = s->name;
    return hfn_give(out, &filled, (uint32_t)sizeof filled) ? HOTFN_OK : HOTFN_E_OPTION;
}
