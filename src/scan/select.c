/* SPDX-License-Identifier: MIT */
/*
 * Which functions a user wants: globs on names, and sizes. A glob is tried on the linker's name, on
 * that name without its '@version', and only where it did not match on the demangled name, with and
 * without its parameter list; demangling is what costs.
 */
#include "functions/glob.h"
#include "functions/inside.h"
#include "functions/name_forms.h"

#include <string.h>

enum { DEMANGLED_BYTES = 16 * 1024 };

/* One name in the forms that a glob may match. */
typedef struct forms {
    const hotfn_env *env;
    const char *name;
    size_t length, plain_length; /* plain: up to '@' */
    bool tried;
    size_t demangled_length; /* 0: it cannot be demangled */
    size_t short_length;     /* without the parameters    */
    char demangled[DEMANGLED_BYTES];
} forms;

typedef struct selector {
    const hotfn_functions *functions;
    const hotfn_selection *wanted;
    uint8_t *hits; /* per include glob: it matched something */
    forms *forms;
} selector;

static void set_name(forms *f, const char *name)
{
    f->name = name;
    f->length = strlen(name);
    f->plain_length = hfn_name_plain_length(name);
    f->tried = false;
    f->demangled_length = 0;
}

static void demangle(forms *f)
{
    char plain[DEMANGLED_BYTES];

    f->tried = true;
    if (!f->env->demangle_fn || f->plain_length >= sizeof plain) {
        return;
    }
    if (f->name[0] != '_' && f->name[0] != '?') { /* Itanium and Rust, Microsoft */
        return;
    }
    memcpy(plain, f->name, f->plain_length);
    plain[f->plain_length] = 0;
    f->demangled_length =
        f->env->demangle_fn(f->env->demangle_user, plain, f->demangled, sizeof f->demangled);
    if (f->demangled_length >= sizeof f->demangled) {
        f->demangled_length = 0;
    }
    f->short_length = hfn_name_short_length(f->demangled, f->demangled_length);
}

static bool matches(forms *f, const char *glob)
{
    if (hfn_glob_matches(glob, f->name, f->length) ||
        (f->plain_length < f->length && hfn_glob_matches(glob, f->name, f->plain_length))) {
        return true;
    }
    if (!f->tried) {
        demangle(f);
    }
    return f->demangled_length && (hfn_glob_matches(glob, f->demangled, f->demangled_length) ||
                                   hfn_glob_matches(glob, f->demangled, f->short_length));
}

/* All include globs are tried, so that one that matches nothing can be told. */
static bool select_one(selector *s, uint32_t index)
{
    const hfn_function *f = hfn_functions_at(s->functions, index);
    const hotfn_selection *wanted = s->wanted;
    bool included = wanted->include_count == 0, excluded = false;

    for (uint32_t n = 0; n < f->name_count; n++) {
        set_name(s->forms, hotfn_functions_get_name(s->functions, index, n));
        for (uint32_t i = 0; i < wanted->include_count; i++) {
            if (!matches(s->forms, wanted->include[i])) {
                continue;
            }
            s->hits[i] = 1;
            included = true;
        }
        for (uint32_t i = 0; i < wanted->exclude_count && !excluded; i++) {
            excluded = matches(s->forms, wanted->exclude[i]);
        }
    }
    return included && !excluded && f->byte_count >= wanted->min_bytes &&
           (wanted->max_bytes == 0 || f->byte_count <= wanted->max_bytes);
}

static const char *first_unmatched(const selector *s)
{
    for (uint32_t i = 0; i < s->wanted->include_count; i++) {
        if (!s->hits[i]) {
            return s->wanted->include[i];
        }
    }
    return NULL;
}

static hotfn_status check_globs(const char *const *globs, uint32_t count, hotfn_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!globs || !globs[i] || !hfn_glob_is_sound(globs[i])) {
            return hfn_fail(err, HOTFN_E_OPTION, "", HOTFN_NO_OFFSET,
                            "the glob '%s' is broken: a '[' without ']', or a '\\' at its end",
                            globs && globs[i] ? globs[i] : "");
        }
    }
    return HOTFN_OK;
}

static hotfn_status check_selection(hotfn_selection *taken, const hotfn_selection *given,
                                    hotfn_error *err)
{
    hotfn_status status;

    if (!hfn_take_options(taken, (uint32_t)sizeof *taken, given) || taken->flags) {
        return hfn_fail(err, HOTFN_E_OPTION, "", HOTFN_NO_OFFSET,
                        "hotfn_selection carries a setting that this version does not know");
    }
    status = check_globs(taken->include, taken->include_count, err);
    return status == HOTFN_OK ? check_globs(taken->exclude, taken->exclude_count, err) : status;
}

hotfn_status hotfn_functions_select(const hotfn_functions *functions,
                                    const hotfn_selection *selection, uint8_t *selected,
                                    const char **unmatched, hotfn_error *err)
{
    if (!functions || (!selected && functions->count > 0)) {
        return hfn_fail_null(err, __func__);
    }

    hotfn_selection wanted;
    selector s = { .functions = functions, .wanted = &wanted };
    hotfn_status status = check_selection(&wanted, selection, err);

    if (status != HOTFN_OK) {
        return status;
    }
    s.hits = hfn_alloc(&functions->env, wanted.include_count);
    s.forms = hfn_alloc(&functions->env, sizeof *s.forms);
    if (s.hits && s.forms) {
        s.forms->env = &functions->env;
        for (uint32_t i = 0; i < functions->count; i++) {
            selected[i] = select_one(&s, i);
        }
        if (unmatched) {
            *unmatched = first_unmatched(&s);
        }
    } else {
        status = hfn_fail(err, HOTFN_E_NO_MEMORY, hfn_image_path(functions->image), HOTFN_NO_OFFSET,
                          "no memory to select its functions");
    }
    hfn_free(&functions->env, s.hits, wanted.include_count);
    hfn_free(&functions->env, s.forms, sizeof *s.forms);
    return status;
}
