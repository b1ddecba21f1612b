/* SPDX-License-Identifier: MIT */
/* The hooked functions that an order matches, by their names and modules in the live record, and
 * their entries in the plans. */
#include "launch/switch/switch.h"

#include "base/memory.h"
#include "base/status.h"
#include "os/memory.h"
#include "scan/select.h"

#include <hotfn/lowlevel/functions.h>
#include <string.h>

/* ---- Modules. */

bool hfn_switch_matches_module(const hotfn_switch_order *order, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

    for (uint32_t i = 0; i < order->module_count; i++) {
        if (hotfn_glob_match(order->modules[i], file) == 1 ||
            hotfn_glob_match(order->modules[i], path) == 1) {
            return true;
        }
    }
    return order->module_count == 0;
}

static void forget_functions(hfn_switch *s, uint32_t module, const hotfn_env *env)
{
    for (size_t i = 0; i < s->function_capacity; i++) {
        hfn_switched *f = &s->functions[i];
        if (f->level != 0 && f->module == module) {
            hfn_unpatch_free_record(f->hook, env);
            hfn_unpatch_free_record(f->timing, env);
            *f = (hfn_switched){ .level = 0 };
        }
    }
}

/* Read the plan of a module that has hooks.  If the module was loaded again, it has new hooks, so
 * the state of its functions is forgotten.  False: there is nothing to switch. */
bool hfn_switch_load_plan(hfn_switch *s, uint32_t index, const hotfn_record_module *known,
                          const hotfn_env *env)
{
    hfn_patched_module *m = &s->modules[index];

    if (known->load_base == 0 || (known->flags & HOTFN_MODULE_UNLOADED)) {
        return false;
    }
    if (m->plan && m->base != known->load_base) {
        forget_functions(s, index, env);
        hfn_patched_module_finish(m, env);
    }
    if (m->plan) {
        return true;
    }
    m->bytes = hfn_plan_channel_view_plan(s->channel, index, &m->byte_count);
    if (!m->bytes) {
        return false;
    }
    if (hotfn_plan_open(&m->plan, m->bytes, m->byte_count, 0, env, NULL) != HOTFN_OK) {
        hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
        m->bytes = NULL;
        return false;
    }
    m->base = known->load_base;
    m->first_function = known->first_function;
    m->function_count = known->function_count;
    return true;
}

/* ---- Functions. */

static bool choose_function(hfn_switch *s, uint32_t module, uint32_t index, const hotfn_env *env)
{
    hfn_patched_module *m = &s->modules[module];
    uint32_t number = m->first_function + index;
    hfn_switched *f = &s->functions[number];

    if (f->level == 0) {
        uint32_t entry = hfn_plan_find_function(m->plan, index);
        if (entry == UINT32_MAX) {
            return true; /* hotfn's own hook */
        }
        f->module = module;
        f->entry = entry;
        f->can_time = hfn_live_time_header(s->live) && hfn_live_is_timed(s->live, number);
        f->level = f->can_time ? HOTFN_BUDGET_TIMED : HOTFN_BUDGET_COUNTED;
    }
    if (!hfn_grow_array(env, (void **)&s->chosen, &s->chosen_capacity, s->chosen_count + 1,
                        sizeof *s->chosen)) {
        return false;
    }
    s->chosen[s->chosen_count++] = number;
    return true;
}

static bool has_name(const hfn_switch *s, uint32_t number)
{
    const uint8_t *entry =
        hfn_live_section(s->live, HFN_SECTION_FUNCTIONS) + (uint64_t)number * HFN_FUNCTION_BYTES;

    return hfn_live_text(s->live, hfn_read_le32(entry + HFN_FUNCTION_NAME))[0] != 0;
}

/* A function of the pool that has no method stays hooked: orders decide about its method. */
static bool is_free(const hfn_switch *s, uint32_t number)
{
    return s->has_methods && !has_name(s, number);
}

/* A method also matches by the part of its name before " (", as when the run is started. */
static void add_short_name(hfn_selector *selector, const char *name)
{
    const char *end = strstr(name, " (");
    char text[1024];

    if (end && (size_t)(end - name) < sizeof text) {
        memcpy(text, name, (size_t)(end - name));
        text[end - name] = 0;
        hfn_selector_add_name(selector, text);
    }
}

static bool is_selected(hfn_selector *selector, const hfn_live *live, uint32_t number,
                        bool is_method)
{
    const uint8_t *entry =
        hfn_live_section(live, HFN_SECTION_FUNCTIONS) + (uint64_t)number * HFN_FUNCTION_BYTES;
    const char *name = hfn_live_text(live, hfn_read_le32(entry + HFN_FUNCTION_NAME));

    hfn_selector_begin_function(selector);
    for (; name[0]; name += strlen(name) + 1) { /* an empty one is the last */
        hfn_selector_add_name(selector, name);
        if (is_method) {
            add_short_name(selector, name);
        }
    }
    return hfn_selector_is_selected(selector, hfn_read_le64(entry + HFN_FUNCTION_SIZE));
}

static bool grow_functions(hfn_switch *s, uint32_t count, const hotfn_env *env)
{
    hfn_switched *more;

    if (count <= s->function_capacity) {
        return true;
    }
    more = hfn_resize_memory(env, s->functions, s->function_capacity * sizeof *more,
                             count * sizeof *more);
    if (!more) {
        return false;
    }
    memset(more + s->function_capacity, 0, (count - s->function_capacity) * sizeof *more);
    s->functions = more;
    s->function_capacity = count;
    return true;
}

static hotfn_status choose_functions(hfn_switch *s, uint32_t module, hfn_selector *selector,
                                     bool is_method, const hotfn_env *env, hotfn_error *err)
{
    const hfn_patched_module *m = &s->modules[module];

    if (!grow_functions(s, m->first_function + m->function_count, env)) {
        return hfn_report_no_memory(err, NULL);
    }
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (hfn_live_is_hooked(s->live, module, i) && !is_free(s, m->first_function + i) &&
            is_selected(selector, s->live, m->first_function + i, is_method) &&
            !choose_function(s, module, i, env)) {
            return hfn_report_no_memory(err, NULL);
        }
    }
    return hfn_selector_get_status(selector, NULL, err);
}

static bool grow_modules(hfn_switch *s, uint32_t count, const hotfn_env *env)
{
    hfn_patched_module *more;

    if (count <= s->module_capacity) {
        return true;
    }
    more =
        hfn_resize_memory(env, s->modules, s->module_capacity * sizeof *more, count * sizeof *more);
    if (!more) {
        return false;
    }
    memset(more + s->module_capacity, 0, (count - s->module_capacity) * sizeof *more);
    s->modules = more;
    s->module_capacity = count;
    return true;
}

static hotfn_status check_globs(const hotfn_switch_order *order, hotfn_error *err)
{
    for (uint32_t i = 0; i < order->module_count; i++) {
        if (hotfn_glob_match(order->modules[i], "") < 0) {
            return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                    "'%s' is not a glob", order->modules[i]);
        }
    }
    return HOTFN_OK;
}

hotfn_status hfn_switch_select(hfn_switch *s, const hotfn_switch_order *order, const hotfn_env *env,
                               hotfn_error *err)
{
    /* the shared count: another thread of this process adds modules meanwhile */
    uint32_t count = hfn_shared_get32(s->live->base + HFN_AT_MODULES);
    hotfn_status status = check_globs(order, err);
    hfn_selector selector;

    s->chosen_count = 0;
    if (status == HOTFN_OK) {
        status = hfn_selector_open(&selector, order->selection, NULL, env, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (!grow_modules(s, count, env)) {
        status = hfn_report_no_memory(err, NULL);
    }
    for (uint32_t i = 0; i < count && status == HOTFN_OK; i++) {
        hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
        if (hfn_live_get_module(s->live, i, &known) == HOTFN_OK &&
            hfn_switch_matches_module(order, known.path) && known.function_count > 0 &&
            hfn_switch_load_plan(s, i, &known, env)) {
            status =
                choose_functions(s, i, &selector, known.flags & HOTFN_MODULE_METHODS, env, err);
        }
    }
    hfn_selector_close(&selector);
    return status;
}

hotfn_status hfn_switch_select_free(hfn_switch *s, uint32_t pool, const hotfn_env *env,
                                    hotfn_error *err)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    const hfn_patched_module *m;

    s->chosen_count = 0;
    if (!grow_modules(s, pool + 1, env)) {
        return hfn_report_no_memory(err, NULL);
    }
    if (hfn_live_get_module(s->live, pool, &known) != HOTFN_OK ||
        !hfn_switch_load_plan(s, pool, &known, env)) {
        return HOTFN_OK;
    }
    m = &s->modules[pool];
    if (!grow_functions(s, m->first_function + m->function_count, env)) {
        return hfn_report_no_memory(err, NULL);
    }
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (hfn_live_is_counted_place(i) && hfn_live_is_hooked(s->live, pool, i) &&
            !has_name(s, m->first_function + i) && !choose_function(s, pool, i, env)) {
            return hfn_report_no_memory(err, NULL);
        }
    }
    return HOTFN_OK;
}
