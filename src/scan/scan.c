/* SPDX-License-Identifier: MIT */
/* Opens, saves and reads the scan of a file.  Its data is one block, which is computed or loaded
 * from the cache; both are read in the same way, so a run with a cached scan gives the same results
 * as the first one. */
#include "scan/scan.h"

#include "base/status.h"
#include "image/file.h"
#include "plan/plan.h"
#include "scan/cache.h"
#include "scan/file_stamp.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ID = sizeof((hfn_scan_header *)0)->id };

/* A debug file may have been installed since the scan was stored. */
static bool is_outdated(const hotfn_scan *scan, const hotfn_scan_options *o)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    options.symbol_dirs = o->symbol_dirs;
    options.symbol_dir_count = o->symbol_dir_count;
    return (scan->header.missing & HFN_SCAN_LACKS_DEBUG_FILE) &&
           hfn_symbols_find_debug_file(scan->path, &options, &scan->env);
}

static void unload_block(hotfn_scan *scan)
{
    hfn_scan_cache_unload(scan->block.data, scan->block.size);
    scan->block = (hfn_span){ 0 };
    scan->is_mapped = false;
}

static bool load_from_cache(hotfn_scan *scan, const hotfn_scan_options *o, hfn_scan_key key)
{
    uint64_t bytes;
    const uint8_t *block = hfn_scan_cache_load(o->cache_folder, key.name, &bytes);
    if (!block) {
        return false;
    }
    scan->block = (hfn_span){ block, bytes, false };
    scan->is_mapped = true;
    if (hfn_scan_check(scan->block, &scan->header) &&
        hfn_plan_is_whole(block + scan->header.plan_offset, scan->header.plan_bytes)) {
        /* The block is unchanged; the code that opens the plan validates its content. */
        if (scan->header.stamp == key.stamp && !is_outdated(scan, o)) {
            return true;
        }
    } else {
        hfn_log_message(&scan->env, HOTFN_LOG_WARNING,
                        "%s: a scan in the cache is damaged; scanning again", o->cache_folder);
    }
    unload_block(scan);
    return false;
}

static hotfn_status compute_block(hotfn_scan *scan, const hotfn_scan_options *options,
                                  hfn_scan_key key, hotfn_error *err)
{
    uint8_t *block;
    uint64_t bytes;
    hotfn_status s = hfn_scan_make(&block, &bytes, scan->path, options, key.stamp, &scan->env, err);
    if (s != HOTFN_OK) {
        return s;
    }
    scan->block = (hfn_span){ block, bytes, false };
    if (!hfn_scan_check(scan->block, &scan->header)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, scan->path, HOTFN_NO_OFFSET,
                                "the scan is inconsistent");
    }
    if (options->cache_folder && scan->stamp_is_reliable &&
        !(scan->header.missing & HFN_SCAN_LACKS_UNPACKED)) {
        hfn_os_error error = hfn_scan_cache_store(options->cache_folder, key.name, block, bytes);
        if (error != 0) {
            hfn_log_message(&scan->env, HOTFN_LOG_WARNING,
                            "%s: the scan of %s could not be stored (%s)", options->cache_folder,
                            scan->path, hfn_os_get_error_text(error));
        }
    }
    return HOTFN_OK;
}

static hotfn_scan *allocate_scan(const char *path, const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_scan *scan = hfn_allocate_zeroed(&filled, sizeof *scan);
    if (!scan) {
        return NULL;
    }
    scan->env = filled;
    scan->path_bytes = strlen(path) + 1;
    scan->path = hfn_allocate_zeroed(&filled, scan->path_bytes);
    if (!scan->path) {
        hfn_free_memory(&filled, scan, sizeof *scan);
        return NULL;
    }
    memcpy(scan->path, path, scan->path_bytes);
    return scan;
}

/* Create a scan with the path and the stamp of a file, but without a block. */
static hotfn_status create_scan_of_file(hotfn_scan **out, const char *path, const hotfn_env *env,
                                        hfn_os_file_info *file, hotfn_error *err)
{
    hfn_os_error error = hfn_os_get_path_info(path, file);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot be read: %s",
                                hfn_os_get_error_text(error));
    }
    *out = allocate_scan(path, env);
    if (!*out) {
        return hfn_report_no_memory(err, path);
    }
    (*out)->device = file->device;
    (*out)->inode = file->inode;
    (*out)->file_stamp = hfn_file_stamp(file);
    (*out)->stamp_is_reliable = hfn_file_stamp_is_reliable(file);
    return HOTFN_OK;
}

/* Return the scan in *out if status is HOTFN_OK, otherwise close it. */
static hotfn_status return_or_close_scan(hotfn_scan *scan, hotfn_status status, hotfn_scan **out)
{
    if (status == HOTFN_OK) {
        *out = scan;
    } else {
        hotfn_scan_close(scan);
    }
    return status;
}

hotfn_status hotfn_scan_open(hotfn_scan **out, const char *path, const hotfn_scan_options *options,
                             const hotfn_env *env, hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_scan_options o;
    hotfn_scan *scan;
    hfn_os_file_info file;
    const uint32_t known = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_FORCE | HOTFN_SCAN_TIMING |
                           HOTFN_SCAN_NO_TAIL_EXIT | HOTFN_SCAN_FOREIGN | HOTFN_SCAN_FOUND;
    if (!hfn_copy_options(&o, sizeof o, options) || o.flags & ~known) {
        return hfn_report_error(err, HOTFN_E_OPTION, path, HOTFN_NO_OFFSET, "unknown scan option");
    }
    hotfn_status status = create_scan_of_file(&scan, path, env, &file, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hfn_scan_key key = hfn_scan_get_key(path, &file, &o, &scan->env);
    if (!o.cache_folder || !load_from_cache(scan, &o, key)) {
        status = compute_block(scan, &o, key, err);
    }
    return return_or_close_scan(scan, status, out);
}

void hotfn_scan_close(hotfn_scan *scan)
{
    if (!scan) {
        return;
    }
    hotfn_env env = scan->env;
    if (scan->is_mapped) {
        hfn_scan_cache_unload(scan->block.data, scan->block.size);
    } else if (scan->block.data) {
        hfn_free_memory(&env, (void *)(uintptr_t)scan->block.data, scan->block.size);
    }
    hfn_free_memory(&env, scan->path, scan->path_bytes);
    hfn_free_memory(&env, scan, sizeof *scan);
}

/* ---- Scans in files, for use on another machine. */

hotfn_status hotfn_scan_save(const hotfn_scan *scan, const char *scan_path, hotfn_error *err)
{
    if (!scan || !scan_path) {
        return hfn_report_null(err, __func__);
    }
    hfn_os_error error = hfn_os_save_file(scan_path, scan->block.data, scan->block.size);

    return error == 0 ? HOTFN_OK
                      : hfn_report_error(err, HOTFN_E_IO, scan_path, HOTFN_NO_OFFSET,
                                         "cannot be written: %s", hfn_os_get_error_text(error));
}

static hotfn_status read_block(hotfn_scan *scan, const char *scan_path, hotfn_error *err)
{
    hfn_file file;
    hotfn_status status = hfn_file_open(&file, scan_path, &scan->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    uint8_t *copy = hfn_allocate_zeroed(&scan->env, file.size);
    if (copy && file.size) {
        memcpy(copy, file.data, file.size);
    }
    scan->block = (hfn_span){ copy, copy ? file.size : 0, false };
    hfn_file_close(&file, &scan->env);
    if (!copy) {
        return hfn_report_no_memory(err, scan_path);
    }
    return hfn_scan_check(scan->block, &scan->header) &&
                   hfn_plan_is_whole(scan->block.data + scan->header.plan_offset,
                                     scan->header.plan_bytes)
               ? HOTFN_OK
               : hfn_report_error(
                     err, HOTFN_E_FORMAT, scan_path, 0,
                     "not a scan, or a scan of another version of hotfn: scan the file again");
}

static void format_id(char out[2 * MAX_ID + 1], const uint8_t *id, uint32_t byte_count)
{
    out[0] = 0;
    for (uint32_t i = 0; i < byte_count && i < MAX_ID; i++) {
        snprintf(out + 2 * i, 3, "%02x", id[i]);
    }
}

/* The file must be the build that was scanned; only the ids are compared. */
static hotfn_status compare_id(const hotfn_scan *scan, hotfn_error *err)
{
    hotfn_image *image;
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    char own[2 * MAX_ID + 1], scanned[2 * MAX_ID + 1];
    hotfn_status status = hotfn_image_open(&image, scan->path, &scan->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hotfn_image_get_info(image, &info);
    hotfn_image_close(image);
    if (info.id_kind == scan->header.id_kind && info.id_bytes == scan->header.id_bytes &&
        memcmp(info.id, scan->header.id, sizeof info.id) == 0) {
        return HOTFN_OK;
    }
    format_id(own, info.id, info.id_bytes);
    format_id(scanned, scan->header.id, scan->header.id_bytes);
    return hfn_report_error(err, HOTFN_E_MISMATCH, scan->path, HOTFN_NO_OFFSET,
                            "another build than the plan's: this file has the id %s, the plan is "
                            "for %s; take the kit of this build",
                            own, scanned);
}

hotfn_status hotfn_scan_load(hotfn_scan **out, const char *path, const char *scan_path,
                             const hotfn_env *env, hotfn_error *err)
{
    if (!out || !path || !scan_path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_scan *scan;
    hfn_os_file_info file;
    hotfn_status status = create_scan_of_file(&scan, path, env, &file, err);
    if (status != HOTFN_OK) {
        return status;
    }
    status = read_block(scan, scan_path, err);
    if (status == HOTFN_OK) {
        status = compare_id(scan, err);
    }
    return return_or_close_scan(scan, status, out);
}

hotfn_status hotfn_scan_get_info(const hotfn_scan *scan, hotfn_scan_info *out)
{
    if (!scan) {
        return HOTFN_E_OPTION;
    }

    const hfn_scan_header *h = &scan->header;
    hotfn_scan_info info = {
        .machine = h->machine,
        .image_flags = h->image_flags,
        .function_count = h->function_count,
        .hookable_count = h->hookable_count,
        .refused_count = h->refused_count,
        .fragment_count = h->fragment_count,
        .from_cache = scan->is_mapped,
        .id_kind = h->id_kind,
        .id_bytes = h->id_bytes,
        .plan = scan->block.data + h->plan_offset,
        .plan_bytes = h->plan_bytes,
        .file_device = scan->device,
        .file_inode = scan->inode,
        .file_stamp = scan->file_stamp,
        .code_bytes = h->code_bytes,
        .known_bytes = h->known_bytes,
        .path = scan->path,
    };
    memcpy(info.id, h->id, sizeof info.id);
    return hfn_copy_result(out, &info, sizeof info);
}

static void fill_function(const hotfn_scan *scan, const hfn_scan_function *f,
                          hotfn_record_function *out)
{
    const char *name = (const char *)scan->block.data + scan->header.names_offset + f->name_offset;
    *out = (hotfn_record_function){
        .size = sizeof *out,
        .slot = HOTFN_NO_SLOT,
        .state = f->state,
        .rva = f->rva,
        .byte_count = f->byte_count,
        .flags = f->flags,
        .name_count = f->name_count,
        .reason_offset = f->reason_offset,
        .name = name,
        .names = name + strlen(name) + 1,
        .strategy = f->strategy ? hotfn_strategy_get_name(f->strategy) : "",
        .reason = f->reason ? hotfn_reason_get_name(f->reason) : "",
        .reason_text = f->reason ? hotfn_reason_get_text(f->reason) : "",
    };
}

hotfn_status hotfn_scan_get_function(const hotfn_scan *scan, uint32_t index,
                                     hotfn_record_function *out)
{
    if (!scan) {
        return HOTFN_E_OPTION;
    }

    hfn_scan_function f;
    hotfn_record_function row;
    if (!hfn_scan_function_at(scan->block, &scan->header, index, &f)) {
        return HOTFN_E_NOT_FOUND;
    }
    fill_function(scan, &f, &row);
    return hfn_copy_result(out, &row, sizeof row);
}

bool hfn_scan_stamp_is_reliable(const hotfn_scan *scan)
{
    return scan->stamp_is_reliable;
}
