/* SPDX-License-Identifier: MIT */
/*
 * The forwarder "COMBASE.CoCreateInstance" leads to the function CoCreateInstance of combase.dll,
 * which may be forwarded again.  The library is searched for beside the image and in the caller's
 * folders, under its name unchanged and in lower case.  Names of API sets (api-ms-win-...) are not
 * files and are not followed.
 */
#include "symbols/forwarders.h"

#include "base/status.h"
#include "os/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOPS_MAX = 16, LIBRARIES_MAX = 256, NAME_BYTES = 256 };

bool hfn_forwarders_init(hfn_forwarders *f, const hotfn_image *image,
                         const hotfn_symbols_options *options, const hotfn_env *env)
{
    char folder[PATH_MAX];
    char *slash;

    memset(f, 0, sizeof *f);
    f->env = env;
    f->options = options;
    hfn_arena_init(&f->names, env);
    if (!hfn_os_resolve_path(hfn_image_path(image), folder,
                             sizeof folder)) { /* an image from memory has none */
        return true;
    }
    slash = strrchr(folder, '/');
    f->folder = hfn_arena_copy(&f->names, folder, slash ? (size_t)(slash - folder) : 0);
    if (f->folder) {
        return true;
    }
    hfn_arena_finish(&f->names);
    return false;
}

void hfn_forwarders_finish(hfn_forwarders *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        hotfn_image_close(f->libraries[i].image);
    }
    hfn_free_memory(f->env, f->libraries, f->capacity * sizeof *f->libraries);
    hfn_arena_finish(&f->names);
}

/* Opens the library if the file exists and is valid; then HOTFN_OK with library->image set.
 * HOTFN_E_NO_MEMORY. */
static hotfn_status try_file(const hfn_forwarders *f, const char *folder, const char *name,
                             hfn_library *library)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    char path[PATH_MAX];
    hfn_os_file_info there;
    hotfn_status status;

    if (snprintf(path, sizeof path, "%s/%s.dll", folder, name) >= (int)sizeof path ||
        hfn_os_get_path_info(path, &there) != 0 || there.kind != HFN_OS_REGULAR_FILE) {
        return HOTFN_E_NOT_FOUND;
    }
    status = hotfn_image_open(&library->image, path, f->env, &err);
    if (status == HOTFN_OK) {
        status = hfn_exports_open(&library->exports, library->image, &err);
    }
    if (status == HOTFN_OK || status == HOTFN_E_NO_MEMORY) {
        return status;
    }
    hfn_log_message(f->env, HOTFN_LOG_WARNING, "%s: skipped: %s", path, err.text);
    hotfn_image_close(library->image);
    library->image = NULL;
    return status;
}

static hotfn_status try_folder(const hfn_forwarders *f, const char *folder, hfn_library *library)
{
    char small[NAME_BYTES];
    hotfn_status status = try_file(f, folder, library->name, library);

    if (status == HOTFN_OK || status == HOTFN_E_NO_MEMORY) {
        return status;
    }
    for (size_t i = 0; i <= strlen(library->name); i++) {
        char c = library->name[i];
        small[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return try_file(f, folder, small, library);
}

/* False if there is no memory. */
static bool open_library(const hfn_forwarders *f, hfn_library *library)
{
    hotfn_status status = HOTFN_E_NOT_FOUND;

    if (f->folder) {
        status = try_folder(f, f->folder, library);
    }
    for (uint32_t i = 0; i < f->options->symbol_dir_count; i++) {
        if (status != HOTFN_OK && status != HOTFN_E_NO_MEMORY) {
            status = try_folder(f, f->options->symbol_dirs[i], library);
        }
    }
    return status != HOTFN_E_NO_MEMORY;
}

/* The library of that name, opened at most once.  *out is NULL if there are too many libraries, or
 * if the name would lead out of the folders to search. */
static bool find_library(hfn_forwarders *f, const char *name, size_t length, hfn_library **out)
{
    hfn_library made = { .image = NULL };

    *out = NULL;
    for (uint32_t i = 0; i < f->count; i++) {
        if (strncmp(f->libraries[i].name, name, length) == 0 && !f->libraries[i].name[length]) {
            *out = &f->libraries[i];
        }
    }
    if (*out || f->count == LIBRARIES_MAX || length == 0 || length >= NAME_BYTES ||
        memchr(name, '/', length) || memchr(name, '\\', length)) {
        return true;
    }
    made.name = hfn_arena_copy(&f->names, name, length);
    if (!made.name || !hfn_grow_array(f->env, (void **)&f->libraries, &f->capacity, f->count + 1u,
                                      sizeof *f->libraries)) {
        return false;
    }
    bool good = open_library(f, &made);
    *out = &f->libraries[f->count];
    f->libraries[f->count++] = made;
    return good;
}

bool hfn_forwarders_follow(hfn_forwarders *f, const char *forward, const hfn_library **library,
                           uint64_t *rva)
{
    *library = NULL;
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        const char *dot = strrchr(forward, '.');
        hfn_library *next = NULL;
        hfn_export found;
        if (!dot) {
            return true;
        }
        if (!find_library(f, forward, (size_t)(dot - forward), &next)) {
            return false;
        }
        if (!next || !next->image || !hfn_exports_find(&next->exports, dot + 1, &found)) {
            return true;
        }
        if (!found.forward) {
            *library = next;
            *rva = found.rva;
            return true;
        }
        forward = found.forward;
    }
    return true; /* a cycle */
}
