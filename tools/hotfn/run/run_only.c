/* SPDX-License-Identifier: MIT */
/* --list: a file that says which functions may be hooked at all, .flf or text. */
#include "cli/commands.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_only {
    hotfn_list *list;
    uint64_t *found;
};

run_only *run_only_read(const char *path, bool quiet, const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_list_info info = HOTFN_LIST_INFO_INIT;
    run_only *only = calloc(1, sizeof *only);
    if (!only || hotfn_list_open(&only->list, path, env, &err) != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        free(only);
        return NULL;
    }
    hotfn_list_get_info(only->list, &info);
    if (info.entry_count == 0 && !quiet) {
        fprintf(stderr, "hotfn run: %s: names no function: nothing will be counted\n", path);
    }
    return only;
}

void run_only_free(run_only *only)
{
    if (only) {
        hotfn_list_destroy(only->list);
        free(only->found);
        free(only);
    }
}

static bool same_id(const hotfn_list_info *list, const hotfn_image_info *image)
{
    return list->id_kind == image->id_kind && list->id_bytes == image->id_bytes &&
           memcmp(list->id, image->id, sizeof list->id) == 0;
}

bool run_only_fits(const run_only *only, const char *path, const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_list_info list = HOTFN_LIST_INFO_INIT;
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image;
    const char *slash = strrchr(path, '/');
    hotfn_list_get_info(only->list, &list);
    if (list.flags & HOTFN_LIST_TEXT || strcmp(list.module, slash ? slash + 1 : path) != 0) {
        return true; /* of names, or of a library */
    }
    if (hotfn_image_open(&image, path, env, &err) != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return false;
    }
    hotfn_image_get_info(image, &info);
    bool same = same_id(&list, &info);
    hotfn_image_close(image);
    if (!same) {
        fprintf(stderr,
                "hotfn run: %s: the function list is of another build; make a new one with "
                "hotfn list -o\n",
                path);
    }
    return same;
}

hotfn_status run_only_find(run_only *only, const hotfn_scan *scan, const hotfn_env *env,
                           const uint64_t **rvas, uint32_t *count, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_scan_get_info(scan, &info);
    free(only->found);
    only->found = calloc((size_t)info.function_count + 1, sizeof *only->found);
    if (!only->found) {
        snprintf(err->text, sizeof err->text, "no memory");
        return HOTFN_E_NO_MEMORY;
    }
    *rvas = only->found;
    return hotfn_scan_find_listed(scan, only->list, only->found, info.function_count, count, env,
                                  err);
}
