/* SPDX-License-Identifier: MIT */
/* The input files that the caller may name besides the program: a function list, a linker map and a
 * kit.  A file that belongs to another build is refused before the program starts. */
#include "base/status.h"
#include "launch/launch.h"
#include "scan/scan.h"

#include <hotfn/lowlevel/functions.h>
#include <hotfn/lowlevel/lists.h>
#include <hotfn/lowlevel/symbols.h>
#include <stdio.h>
#include <string.h>

/* ---- The list. */

static bool has_id(const hotfn_list_info *list, const hotfn_image_info *image)
{
    return list->id_kind == image->id_kind && list->id_bytes == image->id_bytes &&
           memcmp(list->id, image->id, sizeof list->id) == 0;
}

/* Refuse a list of another build of the program.  A text list has no id to compare, and the list of
 * another module is checked when that module is loaded. */
static hotfn_status check_list(const hotfn_launch *l, const hotfn_list_info *list, hotfn_error *err)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image;
    const char *path = l->target.image, *slash = strrchr(path, '/');

    if (list->flags & HOTFN_LIST_TEXT || strcmp(list->module, slash ? slash + 1 : path) != 0) {
        return HOTFN_OK;
    }
    hotfn_status status = hotfn_image_open(&image, path, &l->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hotfn_image_get_info(image, &info);
    bool is_same = has_id(list, &info);
    hotfn_image_close(image);
    return is_same
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_MISMATCH, path, HOTFN_NO_OFFSET,
                                  "the function list belongs to another build; make a new one with "
                                  "hotfn list -o");
}

static hotfn_status open_list(hotfn_launch *l, const char *path, hotfn_error *err)
{
    hotfn_list_info info = HOTFN_LIST_INFO_INIT;
    hotfn_status status = hotfn_list_open(&l->list, path, &l->env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    hotfn_list_get_info(l->list, &info);
    if (info.entry_count == 0) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "%s: the list has no functions, so nothing will be counted", path);
    }
    return l->options.target_glob ? HOTFN_OK : check_list(l, &info, err);
}

/* ---- The map. */

static hotfn_status check_map(const hotfn_launch *l, hotfn_error *err)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;

    options.flags = l->options.flags & HOTFN_LAUNCH_FORCE_MAP ? HOTFN_SYMBOLS_FORCE : 0;
    hotfn_status status = hotfn_image_open(&image, l->target.image, &l->env, err);
    if (status == HOTFN_OK) {
        status = hfn_scan_load_names(&symbols, l->options.map_path, image, &options, &l->env, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_functions_build(&functions, image, symbols, &l->env, err);
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    return status;
}

/* ---- The kit. */

static hotfn_status open_kit(hotfn_launch *l, hotfn_error *err)
{
    const char *folder = l->options.kit_path;
    char plan[HFN_OS_PATH_BYTES];

    if (snprintf(l->kit_list, sizeof l->kit_list, "%s/" HOTFN_KIT_LIST, folder) >=
            (int)sizeof l->kit_list ||
        snprintf(plan, sizeof plan, "%s/" HOTFN_KIT_PLAN, folder) >= (int)sizeof plan) {
        return hfn_report_error(err, HOTFN_E_LIMIT, folder, HOTFN_NO_OFFSET,
                                "the kit's path is too long");
    }
    return hotfn_scan_load(&l->kit, l->target.image, plan, &l->env, err);
}

hotfn_status hfn_launch_open_inputs(hotfn_launch *l, hotfn_error *err)
{
    const char *list = l->options.list_path;
    hotfn_status status = l->options.kit_path ? open_kit(l, err) : HOTFN_OK;

    if (!list && l->options.kit_path) {
        list = l->kit_list;
    }
    if (status == HOTFN_OK && list) {
        status = open_list(l, list, err);
    }
    return status == HOTFN_OK && l->options.map_path && !l->options.target_glob ? check_map(l, err)
                                                                                : status;
}
