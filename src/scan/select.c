/* SPDX-License-Identifier: MIT */
/* Decides which functions the user selected.  A function is selected if an include glob matches any
 * of its names, or there are no include globs, and no exclude glob matches one. */
#include "scan/select.h"

#include "base/status.h"
#include "functions/glob.h"
#include "functions/inside.h"

static hotfn_status check_globs(const char *const *globs, uint32_t count, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; i < count && status == HOTFN_OK; i++) {
        status = hfn_glob_check(globs ? globs[i] : NULL, err);
    }
    return status;
}

hotfn_status hfn_selector_open(hfn_selector *selector, const hotfn_selection *selection,
                               uint8_t *include_used, const hotfn_env *env, hotfn_error *err)
{
    hotfn_selection *s = &selector->selection;

    *selector = (hfn_selector){ .include_used = include_used };
    if (!hfn_copy_options(s, (uint32_t)sizeof *s, selection) || s->flags) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
            "hotfn_selection carries a setting that this version does not know");
    }
    hotfn_status status = check_globs(s->include, s->include_count, err);

    if (status == HOTFN_OK) {
        status = check_globs(s->exclude, s->exclude_count, err);
    }
    if (status == HOTFN_OK) {
        hfn_matcher_init(&selector->matcher, env);
    }
    return status;
}

void hfn_selector_close(hfn_selector *selector)
{
    hfn_matcher_finish(&selector->matcher);
}

void hfn_selector_begin_function(hfn_selector *selector)
{
    selector->is_included = selector->selection.include_count == 0;
    selector->is_excluded = false;
}

void hfn_selector_add_name(hfn_selector *selector, const char *name)
{
    const hotfn_selection *s = &selector->selection;

    hfn_matcher_set_name(&selector->matcher, name);
    for (uint32_t i = 0; i < s->include_count; i++) {
        if (!hfn_matcher_matches(&selector->matcher, s->include[i])) {
            continue;
        }
        selector->is_included = true;
        if (selector->include_used) {
            selector->include_used[i] = 1;
        }
    }
    for (uint32_t i = 0; i < s->exclude_count && !selector->is_excluded; i++) {
        selector->is_excluded = hfn_matcher_matches(&selector->matcher, s->exclude[i]);
    }
}

bool hfn_selector_is_selected(const hfn_selector *selector, uint64_t byte_count)
{
    const hotfn_selection *s = &selector->selection;

    return selector->is_included && !selector->is_excluded && byte_count >= s->min_bytes &&
           (s->max_bytes == 0 || byte_count <= s->max_bytes);
}

hotfn_status hfn_selector_get_status(const hfn_selector *selector, const char *file,
                                     hotfn_error *err)
{
    return selector->matcher.out_of_memory ? hfn_report_no_memory(err, file) : HOTFN_OK;
}

/* ---- Functions of an image. */

static bool select_function(hfn_selector *selector, const hotfn_functions *functions,
                            uint32_t index)
{
    const hfn_function *f = hfn_functions_at(functions, index);

    hfn_selector_begin_function(selector);
    for (uint32_t i = 0; i < f->name_count; i++) {
        hfn_selector_add_name(selector, hotfn_functions_get_name(functions, index, i));
    }
    return hfn_selector_is_selected(selector, f->byte_count);
}

static const char *find_unused_glob(const hfn_selector *selector)
{
    for (uint32_t i = 0; i < selector->selection.include_count; i++) {
        if (!selector->include_used[i]) {
            return selector->selection.include[i];
        }
    }
    return NULL;
}

static hotfn_status select_functions(const hotfn_functions *functions, hfn_selector *selector,
                                     uint8_t *selected, hotfn_error *err)
{
    for (uint32_t i = 0; i < functions->count; i++) {
        selected[i] = select_function(selector, functions, i);
    }
    return hfn_selector_get_status(selector, hfn_image_path(functions->image), err);
}

hotfn_status hotfn_functions_select(const hotfn_functions *functions,
                                    const hotfn_selection *selection, uint8_t *selected,
                                    const char **unmatched, hotfn_error *err)
{
    if (!functions || (!selected && functions->count > 0)) {
        return hfn_report_null(err, __func__);
    }

    const hotfn_env *env = &functions->env;
    hfn_selector selector;
    hotfn_status status = hfn_selector_open(&selector, selection, NULL, env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    uint32_t glob_count = selector.selection.include_count;

    selector.include_used = hfn_allocate_zeroed(env, glob_count);
    if (selector.include_used) {
        status = select_functions(functions, &selector, selected, err);
    } else {
        status = hfn_report_no_memory(err, hfn_image_path(functions->image));
    }
    if (status == HOTFN_OK && unmatched) {
        *unmatched = find_unused_glob(&selector);
    }
    hfn_free_memory(env, selector.include_used, glob_count);
    hfn_selector_close(&selector);
    return status;
}
