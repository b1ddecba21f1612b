/* SPDX-License-Identifier: MIT */
/*
 * Searches for the separate debug file of an image in the same order as gdb ('Debugging Information
 * in Separate Files' in its manual): by build-id in <dir>/.build-id/xx/yyyy.debug, then by the name
 * and CRC of .gnu_debuglink beside the image, in .debug/ beside it, and in <dir>/<folder of the
 * image>. <dir> is each folder that the caller gave, then /usr/lib/debug.  At last the env's
 * debug_file_fn is asked.
 */
#include "symbols/elf_separate.h"

#include "base/byte_order.h"
#include "base/status.h"
#include "os/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_DIR "/usr/lib/debug"

typedef struct search {
    const hotfn_image *image;
    const hotfn_env *env;
    hotfn_image_info info;
    const char *link_name; /* of .gnu_debuglink, NULL if none */
    uint32_t link_crc;
    char folder[PATH_MAX]; /* of the image, absolute, no '/' at the end; "" if unknown */
} search;

/* Slicing by eight, because a debug file may have gigabytes.  The tables are made on the stack in
 * 2,048 steps: a global table would need protection against a race at its first use. */
uint32_t hfn_separate_crc32(hfn_span bytes)
{
    uint32_t tables[8][256], crc = UINT32_MAX;
    uint64_t at = 0;

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        }
        tables[0][i] = value;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
        }
    }
    for (; bytes.size - at >= 8; at += 8) {
        const uint8_t *b = bytes.data + at;
        crc ^= hfn_read_le32(b);
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][b[4]] ^ tables[2][b[5]] ^ tables[1][b[6]] ^
              tables[0][b[7]];
    }
    for (; at < bytes.size; at++) {
        crc = crc >> 8 ^ tables[0][(crc ^ bytes.data[at]) & 0xff];
    }
    return ~crc;
}

/* Opens the file.  NULL with a debug message if it cannot be read, and with a warning if it is
 * broken. */
static hotfn_image *try_open(const search *s, const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *found = NULL;

    if (hotfn_image_open(&found, path, s->env, &err) != HOTFN_OK) {
        hfn_log_message(s->env, err.status == HOTFN_E_IO ? HOTFN_LOG_DEBUG : HOTFN_LOG_WARNING,
                        "%s: skipped: %s", path, err.text);
    }
    return found;
}

static bool same_build(const search *s, const hotfn_image *found)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(found, &info);
    if (info.raw_machine != s->info.raw_machine || info.bits != s->info.bits) {
        return false;
    }
    if (info.id_kind != HOTFN_ID_BUILD_ID || s->info.id_kind != HOTFN_ID_BUILD_ID) {
        return true; /* the CRC decides */
    }
    return info.id_bytes == s->info.id_bytes && memcmp(info.id, s->info.id, info.id_bytes) == 0;
}

/* Returns found, or closes it and returns NULL if it belongs to another build. */
static hotfn_image *check_build(const search *s, hotfn_image *found, const char *path,
                                bool check_crc)
{
    const char *difference = NULL;

    if (!found) {
        return NULL;
    }
    if (!same_build(s, found)) {
        difference = "of another build: its build-id differs from that";
    } else if (check_crc && hfn_separate_crc32(hfn_image_file(found)) != s->link_crc) {
        difference = "of another build: its CRC differs from that in .gnu_debuglink";
    }
    if (!difference) {
        return found;
    }
    hfn_log_message(s->env, HOTFN_LOG_WARNING, "%s: skipped: %s of %s", path, difference,
                    s->info.path);
    hotfn_image_close(found);
    return NULL;
}

static hotfn_image *find_by_build_id(const search *s, const char *dir)
{
    char path[PATH_MAX], hex[2 * sizeof s->info.id + 1];

    if (s->info.id_kind != HOTFN_ID_BUILD_ID || s->info.id_bytes < 2) {
        return NULL;
    }
    for (uint32_t i = 0; i < s->info.id_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", s->info.id[i]);
    }
    if (snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2) >=
        (int)sizeof path) {
        return NULL;
    }
    return check_build(s, try_open(s, path), path, false);
}

/* Tries first/middle/name, where first and middle may be "". */
static hotfn_image *find_by_link(const search *s, const char *first, const char *middle)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s%s/%s", first, middle, s->link_name) >= (int)sizeof path ||
        strcmp(path, s->info.path) == 0) {
        return NULL;
    }
    return check_build(s, try_open(s, path), path, true);
}

/* Reads .gnu_debuglink: a name, padding to 4, the CRC.  A name with '/' is ignored, because it
 * would lead out of the folders to search. */
static void read_link(search *s)
{
    const hfn_elf_section *section = hfn_elf_section_named(s->image, ".gnu_debuglink");
    hfn_span bytes;
    const char *name;

    if (!section) {
        return;
    }
    bytes = hfn_elf_section_bytes(s->image, section);
    name = hfn_span_string(bytes, 0);
    if (name && name[0] && !strchr(name, '/') &&
        hfn_span_u32(bytes, (strlen(name) + 4) & ~(uint64_t)3, &s->link_crc)) {
        s->link_name = name;
    }
}

static void find_folder(search *s)
{
    char *slash;

    s->folder[0] = 0;
    if (!hfn_os_resolve_path(s->info.path, s->folder, sizeof s->folder)) {
        s->folder[0] = 0; /* an image from memory has none */
    }
    slash = strrchr(s->folder, '/');
    if (slash) {
        *slash = 0;
    }
}

static hotfn_image *search_links(const search *s, const hfn_symbol_dirs *dirs)
{
    hotfn_image *found = NULL;

    if (!s->link_name) {
        return NULL;
    }
    if (s->folder[0]) {
        found = find_by_link(s, s->folder, "");
        if (!found) {
            found = find_by_link(s, s->folder, "/.debug");
        }
    }
    for (uint32_t i = 0; i < dirs->count && !found; i++) {
        found = find_by_link(s, dirs->paths[i], s->folder);
        if (!found && s->folder[0]) {
            found = find_by_link(s, dirs->paths[i], "");
        }
    }
    return found ? found : find_by_link(s, SYSTEM_DIR, s->folder);
}

static hotfn_image *ask_caller(const search *s)
{
    const hotfn_env *env = s->env;
    char path[PATH_MAX];

    return env->debug_file_fn && s->info.id_kind == HOTFN_ID_BUILD_ID &&
                   env->debug_file_fn(env->debug_file_user, s->info.path, s->info.id,
                                      s->info.id_bytes, path, sizeof path) == 1
               ? check_build(s, try_open(s, path), path, false)
               : NULL;
}

hotfn_image *hfn_separate_open(const hotfn_image *image, const hfn_symbol_dirs *dirs,
                               const hotfn_env *env)
{
    search s = { .image = image, .env = env, .info = HOTFN_IMAGE_INFO_INIT };
    hotfn_image *found = NULL;

    hotfn_image_get_info(image, &s.info);
    read_link(&s);
    find_folder(&s);
    for (uint32_t i = 0; i < dirs->count && !found; i++) {
        found = find_by_build_id(&s, dirs->paths[i]);
    }
    if (!found) {
        found = find_by_build_id(&s, SYSTEM_DIR);
    }
    if (!found) {
        found = search_links(&s, dirs);
    }
    return found ? found : ask_caller(&s);
}
