/* SPDX-License-Identifier: MIT */
/*
 * Searches for the PDB of an image: first beside the image, by the file name that the linker wrote
 * into the image and by the image's own name; then in each folder that the caller gave, as a plain
 * file and as NAME/GUIDAGE/NAME, the layout of a symbol store (Microsoft, 'SymStore'; two-tier
 * stores are not supported).  Each name is tried unchanged and in lower case, because Windows
 * ignores case.
 */
#include "symbols/pdb_find.h"

#include "base/status.h"
#include "os/files.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, STORE_BYTES = 48 };

typedef struct search {
    const hotfn_image *image;
    const hotfn_symbols_options *options;
    const hotfn_env *env;
    char names[4][NAME_BYTES]; /* from linker and image, as they are and in lower case */
    char store[STORE_BYTES];   /* GUIDAGE */
    hotfn_symbols *found;
    hotfn_status status;
} search;

/* The part behind the last '/' or '\'. */
static const char *base_name(const char *path)
{
    const char *name = path;

    for (; *path; path++) {
        if (*path == '/' || *path == '\\') {
            name = path + 1;
        }
    }
    return name;
}

/* Stores the name and its lower-case form.  A name that begins with '.' or is too long is
 * ignored. */
static void set_name(char (*names)[NAME_BYTES], const char *name, size_t length, const char *suffix)
{
    if (length == 0 || name[0] == '.' || length + strlen(suffix) >= NAME_BYTES) {
        return;
    }
    snprintf(names[0], NAME_BYTES, "%.*s%s", (int)length, name, suffix);
    for (size_t i = 0; i <= strlen(names[0]); i++) {
        char c = names[0][i];
        names[1][i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    if (strcmp(names[0], names[1]) == 0) {
        names[1][0] = 0;
    }
}

/* The GUID as numbers, the age without leading zeros. */
static void set_store(search *s, const hfn_pe_pdb *pdb)
{
    hfn_span guid = { pdb->guid, sizeof pdb->guid, false };
    uint32_t first = 0;
    uint16_t second = 0, third = 0;
    char *at = s->store;

    hfn_span_u32(guid, 0, &first);
    hfn_span_u16(guid, 4, &second);
    hfn_span_u16(guid, 6, &third);
    at += snprintf(at, 20, "%08" PRIX32 "%04" PRIX16 "%04" PRIX16, first, second, third);
    for (int i = 8; i < 16; i++) {
        at += snprintf(at, 4, "%02X", pdb->guid[i]);
    }
    snprintf(at, 12, "%" PRIX32, pdb->age);
}

/* Returns true when the search must end: the PDB was loaded, or memory ran out. */
static bool try_file(search *s, const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_os_file_info there;

    if (hfn_os_get_path_info(path, &there) != 0 || there.kind != HFN_OS_REGULAR_FILE) {
        return false; /* a symbol store has a folder of that name */
    }
    s->status = hotfn_symbols_load_pdb(&s->found, path, s->image, s->options, s->env, &err);
    if (s->status == HOTFN_OK) {
        hfn_log_message(s->env, HOTFN_LOG_INFO, "%s: symbols from %s", hfn_image_path(s->image),
                        path);
    } else if (s->status != HOTFN_E_NO_MEMORY) {
        hfn_log_message(s->env, HOTFN_LOG_WARNING, "%s: skipped: %s", path, err.text);
    }
    return s->status == HOTFN_OK || s->status == HOTFN_E_NO_MEMORY;
}

static bool try_folder(search *s, const char *folder, bool is_store)
{
    char path[PATH_MAX];
    bool over = false;

    for (size_t i = 0; i < HFN_COUNT_OF(s->names) && !over; i++) {
        const char *name = s->names[i];
        if (!name[0]) {
            continue;
        }
        if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path) {
            over = try_file(s, path);
        }
        if (!over && is_store &&
            snprintf(path, sizeof path, "%s/%s/%s/%s", folder, name, s->store, name) <
                (int)sizeof path) {
            over = try_file(s, path);
        }
    }
    return over;
}

static bool try_beside(search *s)
{
    char folder[PATH_MAX];
    char *slash;

    if (!hfn_os_resolve_path(hfn_image_path(s->image), folder,
                             sizeof folder)) { /* an image from memory has none */
        return false;
    }
    slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
    }
    return try_folder(s, folder, false);
}

hotfn_status hfn_pdb_find(hotfn_symbols **out, const hotfn_image *image,
                          const hotfn_symbols_options *options, const hotfn_env *env,
                          hotfn_error *err)
{
    search s = { .image = image, .options = options, .env = env, .status = HOTFN_OK };
    const char *own = base_name(hfn_image_path(image)), *dot = strrchr(own, '.');
    hfn_pe_pdb pdb;

    if (!hfn_pe_pdb_of(image, &pdb)) {
        return HOTFN_OK; /* without a GUID no PDB can be matched */
    }
    set_store(&s, &pdb);
    set_name(&s.names[0], base_name(pdb.path), strlen(base_name(pdb.path)), "");
    set_name(&s.names[2], own, dot ? (size_t)(dot - own) : strlen(own), ".pdb");
    bool over = try_beside(&s);
    for (uint32_t i = 0; i < options->symbol_dir_count && !over; i++) {
        over = try_folder(&s, options->symbol_dirs[i], true);
    }
    if (s.found) {
        *out = s.found;
    }
    if (s.status == HOTFN_E_NO_MEMORY) {
        return hfn_report_error(err, s.status, hfn_image_path(image), HOTFN_NO_OFFSET,
                                "not enough memory");
    }
    return HOTFN_OK;
}
