/* SPDX-License-Identifier: MIT */
/* Cached scans are untrusted like any file: the reader validates the whole block
 * (hfn_scan_check, hotfn_plan_open).  A scan is written to a temporary file, which is then renamed,
 * so that a reader finds the whole scan or none. */
#include "scan/cache.h"

#include "os/os.h"
#include "scan/block.h"
#include "scan/file_stamp.h"

#include <stdio.h>
#include <string.h>

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return hfn_hash_bytes(hash, text, strlen(text) + 1);
}

/* Mix the file number, size and times of a file into the hash. */
static uint64_t mix_facts(uint64_t hash, const char *path)
{
    hfn_os_file_info file;

    if (hfn_os_get_path_info(path, &file) == 0) {
        uint64_t facts[] = { file.inode, file.byte_count, file.modified_s, file.modified_ns };
        hash = hfn_hash_bytes(hash, facts, sizeof facts);
    }
    return hash;
}

/* If the module contains this function, mix its file into the key: another hotfn has files of its
 * own in the folder, and another build of the same hotfn may have other verdicts. */
static bool mix_if_own(void *user, const hfn_os_module *module)
{
    hfn_scan_key *key = user;
    uint64_t here = (uint64_t)(uintptr_t)&hfn_scan_get_key;
    const char *path = module->is_main ? hfn_os_get_program_path() : module->path;

    if (here < module->base || here >= module->end) {
        return true;
    }
    key->name = mix_text(key->name, path);
    key->stamp = mix_facts(key->stamp, path);
    return false;
}

hfn_scan_key hfn_scan_get_key(const char *path, const hfn_os_file_info *file,
                              const hotfn_scan_options *options, const hotfn_env *env)
{
    uint64_t choices[] = { HFN_SCAN_VERSION, options->flags, env->decompress_fn != NULL };
    uint64_t facts[] = { file->device, file->inode, hfn_file_stamp(file) };
    hfn_scan_key key;

    key.name = hfn_hash_bytes(HFN_HASH_BEGIN, choices, sizeof choices);
    key.name = mix_text(key.name, path);
    key.stamp = hfn_hash_bytes(HFN_HASH_BEGIN, facts, sizeof facts);
    key.stamp = mix_text(key.stamp, hotfn_get_version());
    hfn_os_each_module(mix_if_own, &key);
    for (uint32_t i = 0; i < options->symbol_dir_count; i++) {
        key.name = mix_text(key.name, options->symbol_dirs[i]);
    }
    if (options->map_path) {
        key.name = mix_text(key.name, options->map_path);
        key.stamp = mix_facts(key.stamp, options->map_path);
    }
    key.stamp = hfn_hash_bytes(key.stamp, &key.name, sizeof key.name);
    return key;
}

enum { NAME_BYTES = 8192 }; /* longer than any path, so that a shortened one cannot be opened */

static void write_cache_path(char out[NAME_BYTES], const char *folder, uint64_t name)
{
    snprintf(out, NAME_BYTES, "%s/%016llx.scan", folder, (unsigned long long)name);
}

const uint8_t *hfn_scan_cache_load(const char *folder, uint64_t name, uint64_t *bytes)
{
    char path[NAME_BYTES];
    hfn_os_file_info info;
    hfn_os_file file;
    void *block = NULL;

    write_cache_path(path, folder, name);
    if (hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return NULL;
    }
    if (hfn_os_get_file_info(file, &info) == 0 && info.kind == HFN_OS_REGULAR_FILE && info.is_own &&
        info.byte_count >= HFN_SCAN_HEADER_BYTES &&
        hfn_os_map_file(&block, file, 0, info.byte_count, HFN_OS_MAP_PREFAULT, 0) == 0) {
        *bytes = info.byte_count;
    }
    hfn_os_close_file(file);
    return block;
}

void hfn_scan_cache_unload(const uint8_t *block, uint64_t bytes)
{
    hfn_os_unmap((uint64_t)(uintptr_t)block, bytes);
}

hfn_os_error hfn_scan_cache_store(const char *folder, uint64_t name, const uint8_t *block,
                                  uint64_t bytes)
{
    char path[NAME_BYTES], temporary[NAME_BYTES + 32];
    hfn_os_file file;
    hfn_os_error error;

    write_cache_path(path, folder, name);
    hfn_os_make_folders(folder);
    error = hfn_os_create_temporary(&file, path, HFN_OS_PRIVATE, temporary, sizeof temporary);
    if (error != 0) {
        return error;
    }
    error = hfn_os_write_next(file, block, bytes);
    hfn_os_close_file(file);
    if (error == 0) {
        error = hfn_os_replace_file(temporary, path);
    }
    if (error != 0) {
        hfn_os_remove_file(temporary);
    }
    return error;
}
