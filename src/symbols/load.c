/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load: the sources of symbols of an ELF image, and their order; load_pe.c has those
 * of a PE image. */
#include "image/pe.h"
#include "symbols/elf_separate.h"
#include "symbols/elf_symtab.h"
#include "symbols/go_table.h"
#include "symbols/inside.h"
#include "symbols/load_pe.h"
#include "symbols/pdb_find.h"
#include "symbols/symbols.h"

#define MAX_DEBUGDATA_BYTES ((size_t)512 << 20) /* .gnu_debugdata, decompressed */

static void warn_skipped_file(const hotfn_symbols *symbols, const hotfn_error *err)
{
    hfn_log_message(&symbols->table.env, HOTFN_LOG_WARNING, "%s: skipped: %s", err->file,
                    err->text);
}

/* Reads a source outside of the image: if that is broken, a warning is logged; only lack of memory
 * is an error. */
static hotfn_status read_extra_source(hotfn_symbols *symbols, const hfn_symtab_reader *reader,
                                      const hotfn_image *holder, uint8_t source, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status = hfn_symtab_read(reader, holder, source, &why);

    if (status == HOTFN_E_NO_MEMORY) {
        return hfn_report_error(err, status, why.file, why.offset, "%s", why.text);
    }
    if (status != HOTFN_OK) {
        warn_skipped_file(symbols, &why);
    }
    return HOTFN_OK;
}

/* Unpacks .gnu_debugdata: a small ELF file with a .symtab, compressed with xz into a section of the
 * image (Fedora's MiniDebugInfo; gdb's manual, same heading). */
static void unpack_debugdata(hotfn_symbols *symbols, const hotfn_image *image)
{
    const hotfn_env *env = &symbols->table.env;
    const hfn_elf_section *section = hfn_elf_section_named(image, ".gnu_debugdata");
    hotfn_error why = HOTFN_ERROR_INIT;
    hfn_span packed;

    if (!section) {
        return;
    }
    packed = hfn_elf_section_bytes(image, section);
    if (!env->decompress_fn || !packed.size || packed.size > SIZE_MAX) {
        hfn_log_message(env, HOTFN_LOG_INFO, "%s: its .gnu_debugdata cannot be unpacked",
                        hfn_image_path(image));
        return;
    }
    symbols->debugdata_bytes = env->decompress_fn(
        env->decompress_user, HOTFN_COMPRESSION_XZ, packed.data, (size_t)packed.size,
        MAX_DEBUGDATA_BYTES, env->realloc_fn, env->realloc_user, &symbols->debugdata_size);
    symbols->unpack_failed = symbols->debugdata_bytes == NULL;
    if (!symbols->debugdata_bytes) {
        hfn_log_message(
            env, HOTFN_LOG_WARNING,
            "%s: its .gnu_debugdata could not be unpacked: it is damaged, or liblzma is missing",
            hfn_image_path(image));
    } else if (hotfn_image_open_bytes(&symbols->debugdata, symbols->debugdata_bytes,
                                      symbols->debugdata_size, ".gnu_debugdata", env,
                                      &why) != HOTFN_OK) {
        warn_skipped_file(symbols, &why);
    }
}

static hotfn_status read_sources(hotfn_symbols *symbols, const hfn_symtab_reader *reader,
                                 const hotfn_symbols_options *options, hotfn_error *err)
{
    hfn_symbol_dirs dirs = { options->symbol_dirs, options->symbol_dir_count };
    hotfn_status status = hfn_symtab_read(reader, reader->image, HOTFN_SOURCE_SYMTAB, err);

    if (status == HOTFN_OK && !symbols->table.function_count &&
        !(options->flags & HOTFN_SYMBOLS_NO_SEPARATE)) {
        symbols->separate = hfn_separate_open(reader->image, &dirs, &symbols->table.env);
        symbols->lacks_debug_file = symbols->separate == NULL;
    }
    if (symbols->separate) {
        status =
            read_extra_source(symbols, reader, symbols->separate, HOTFN_SOURCE_DEBUG_FILE, err);
    }
    if (status == HOTFN_OK && !symbols->table.function_count) {
        unpack_debugdata(symbols, reader->image);
    }
    if (symbols->debugdata) {
        status =
            read_extra_source(symbols, reader, symbols->debugdata, HOTFN_SOURCE_DEBUGDATA, err);
    }
    if (status == HOTFN_OK && !symbols->table.function_count) {
        status = hfn_go_table_read(reader, err);
    }
    return status == HOTFN_OK ? hfn_dynsym_read(reader, err) : status;
}

hotfn_status hotfn_symbols_load(hotfn_symbols **out, const hotfn_image *image,
                                const hotfn_symbols_options *options, const hotfn_env *env,
                                hotfn_error *err)
{
    if (!out || !image) {
        return hfn_report_null(err, __func__);
    }

    hotfn_symbols_options taken;
    hfn_symtab_reader reader;
    hotfn_symbols *symbols;
    hotfn_status status = hfn_symbols_copy_options(
        &taken, options, HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (hfn_image_is_pe(image)) {
        return hfn_symbols_load_pe(out, image, &taken, env, err);
    }
    symbols = hfn_symbols_new(hfn_image_path(image), env);
    if (!symbols) {
        return hfn_report_no_memory(err, hfn_image_path(image));
    }
    reader = (hfn_symtab_reader){ &symbols->table, image, (taken.flags & HOTFN_SYMBOLS_DATA) != 0 };
    status = read_sources(symbols, &reader, &taken, err);
    hfn_symbols_describe(symbols, image);
    return hfn_symbols_finish_load(out, symbols, status, err);
}

/* ---- Debug files that appear later. */

bool hfn_symbols_lack_debug_file(const hotfn_symbols *symbols)
{
    return symbols->lacks_debug_file;
}

static bool finds_pdb(const hotfn_image *image, const hotfn_symbols_options *options,
                      const hotfn_env *env)
{
    hotfn_symbols *found = NULL;
    bool is_found = hfn_pdb_find(&found, image, options, env, NULL) == HOTFN_OK && found;

    hotfn_symbols_destroy(found);
    return is_found;
}

bool hfn_symbols_find_debug_file(const char *path, const hotfn_symbols_options *options,
                                 const hotfn_env *env)
{
    hfn_symbol_dirs dirs = { options->symbol_dirs, options->symbol_dir_count };
    hotfn_env quiet = *env; /* faults of a file are logged when it is read */
    hotfn_image *image, *found;
    bool is_found;

    quiet.log_fn = NULL;
    if (hotfn_image_open(&image, path, &quiet, NULL) != HOTFN_OK) {
        return false;
    }
    if (hfn_image_is_pe(image)) {
        is_found = finds_pdb(image, options, &quiet);
    } else {
        found = hfn_separate_open(image, &dirs, &quiet);
        is_found = found != NULL;
        hotfn_image_close(found);
    }
    hotfn_image_close(image);
    return is_found;
}
