/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load_pdb: loads the symbols of a program database and checks that it belongs to the
 * image. */
#include "base/byte_order.h"
#include "symbols/inside.h"
#include "symbols/pdb_lines.h"
#include "symbols/pdb_symbols.h"

#include <stdio.h>
#include <string.h>

enum { GUID_BYTES = 16, ID_BYTES = 20, ID_TEXT_BYTES = 48 };

/* Prints a GUID as symbol servers and Microsoft's tools do: three little-endian numbers, then 8
 * bytes. */
static void print_id(char out[ID_TEXT_BYTES], const uint8_t *id)
{
    hfn_span s = { id, ID_BYTES, false };
    uint32_t first = 0, age = 0;
    uint16_t second = 0, third = 0;

    hfn_span_u32(s, 0, &first);
    hfn_span_u16(s, 4, &second);
    hfn_span_u16(s, 6, &third);
    hfn_span_u32(s, GUID_BYTES, &age);
    snprintf(out, ID_TEXT_BYTES, "%08X%04X%04X%02X%02X%02X%02X%02X%02X%02X%02X age %u", first,
             second, third, id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15], age);
}

static void fill_info(hotfn_symbols_info *info, const hfn_pdb *pdb)
{
    info->source = HOTFN_SOURCE_PDB;
    info->format = "pdb";
    info->machine = pdb->machine;
    info->id_kind = HOTFN_ID_PDB;
    info->id_bytes = ID_BYTES;
    memcpy(info->id, pdb->guid, GUID_BYTES);
    hfn_write_le32(info->id + GUID_BYTES, pdb->age);
}

/* The GUID and age in the image must equal those of the PDB. A linker changes at least one of them
 * each time it links. */
static hotfn_status check_image(const hotfn_symbols *symbols, const hotfn_image *image, bool force,
                                hotfn_error *err)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    char pdb_id[ID_TEXT_BYTES], image_id[ID_TEXT_BYTES] = "(none)";
    hotfn_status status = HOTFN_OK;

    hotfn_image_get_info(image, &info);
    if (info.id_kind == HOTFN_ID_PDB && info.id_bytes == ID_BYTES) {
        if (memcmp(info.id, symbols->info.id, ID_BYTES) == 0) {
            return HOTFN_OK;
        }
        print_id(image_id, info.id);
    }
    print_id(pdb_id, symbols->info.id);
    if (force) {
        hfn_log_message(
            &symbols->table.env, HOTFN_LOG_WARNING,
            "%s: used for %s by force, although that names the PDB %s and this one is %s: names "
            "and addresses may be wrong",
            symbols->info.path, info.path, image_id, pdb_id);
    } else {
        status = hfn_report_error(err, HOTFN_E_MISMATCH, symbols->info.path, HOTFN_NO_OFFSET,
                                  "a PDB of another build: %s names the PDB %s, this one is %s",
                                  info.path, image_id, pdb_id);
    }
    return status;
}

static hotfn_status read_pdb(hotfn_symbols *symbols, const hotfn_image *image, uint32_t flags,
                             hotfn_error *err)
{
    hfn_symbol_table *table = &symbols->table;
    hfn_span bytes = { symbols->file.data, symbols->file.size, false };
    hfn_pdb_lines *lines = hfn_pdb_lines_new(&table->env);
    hotfn_status status;

    if (!lines) {
        return hfn_report_no_memory(err, symbols->info.path);
    }
    symbols->lines = (hfn_line_source){ hfn_pdb_lines_find, hfn_pdb_lines_destroy, lines };
    status = hfn_pdb_open(&lines->pdb, bytes, symbols->info.path, &table->names, &table->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    fill_info(&symbols->info, &lines->pdb);
    if (image) {
        status = check_image(symbols, image, (flags & HOTFN_SYMBOLS_FORCE) != 0, err);
    }
    if (status == HOTFN_OK && lines->pdb.is_fastlink) {
        hfn_log_message(
            &table->env, HOTFN_LOG_WARNING,
            "%s: linked with /DEBUG:FASTLINK, which leaves most symbols in the object files; "
            "link with /DEBUG:FULL",
            symbols->info.path);
    }
    if (status == HOTFN_OK) {
        status = hfn_pdb_read_symbols(&lines->pdb, table, (flags & HOTFN_SYMBOLS_DATA) != 0, err);
    }
    return status;
}

/* Opens the file at path, or uses bytes if path is NULL. */
static hotfn_status load_pdb(hotfn_symbols **out, const char *path, hfn_file bytes,
                             const char *name, const hotfn_image *image,
                             const hotfn_symbols_options *options, const hotfn_env *env,
                             hotfn_error *err)
{
    hotfn_symbols_options copied;
    hotfn_symbols *symbols;
    hotfn_status status = hfn_symbols_copy_options(
        &copied, options, HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE,
        err);

    if (status != HOTFN_OK) {
        return status;
    }
    symbols = hfn_symbols_new(name, env);
    if (!symbols) {
        return hfn_report_no_memory(err, name);
    }
    symbols->file = bytes;
    if (path) {
        status = hfn_file_open(&symbols->file, path, &symbols->table.env, err);
    }
    if (status == HOTFN_OK) {
        status = read_pdb(symbols, image, copied.flags, err);
    }
    return hfn_symbols_finish_load(out, symbols, status, err);
}

hotfn_status hotfn_symbols_pdb_from_bytes(hotfn_symbols **out, const void *bytes,
                                          uint64_t byte_count, const char *name,
                                          const hotfn_image *image,
                                          const hotfn_symbols_options *options,
                                          const hotfn_env *env, hotfn_error *err)
{
    if (!out || (!bytes && byte_count > 0)) {
        return hfn_report_null(err, __func__);
    }

    hfn_file file = { bytes, byte_count, 0, 0 };

    return load_pdb(out, NULL, file, name ? name : "(memory)", image, options, env, err);
}

hotfn_status hotfn_symbols_load_pdb(hotfn_symbols **out, const char *path, const hotfn_image *image,
                                    const hotfn_symbols_options *options, const hotfn_env *env,
                                    hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hfn_file no_bytes = { NULL, 0, 0, 0 };

    return load_pdb(out, path, no_bytes, path, image, options, env, err);
}
