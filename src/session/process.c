/* SPDX-License-Identifier: MIT */
/* Inside the counted process.  The dynamic linker calls a function of its own whenever its list of
 * modules has changed (the debugger interface); a hook on that function reports dlopen and dlclose.
 * The callback runs in the thread that called dlopen or dlclose, with the linker's lock held and
 * the thread's counting paused. */
#include "session/process.h"

#include "arch/stub.h"
#include "base/hash.h"
#include "base/status.h"
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "hooks/hookset.h"
#include "live/live.h"
#include "plan/plan.h"
#include "scan/file_stamp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_path(const char *path)
{
    return hfn_hash_bytes(HFN_HASH_BEGIN, path, strlen(path));
}

/* A module is identified by what the dynamic linker reports, because its file may be deleted or
 * replaced while it is loaded.  An update runs after every change of the list, so a module at the
 * place of another is new. */
static hfn_loaded_module *find_loaded(hfn_process *p, const hfn_os_module *m)
{
    for (size_t i = 0; i < p->loaded_count; i++) {
        hfn_loaded_module *known = &p->loaded[i];
        if (known->base == m->base && known->end == m->end &&
            (m->is_main || known->path_hash == hash_path(m->path))) {
            return known;
        }
    }
    return NULL;
}

bool hfn_process_is_own_module(const hfn_os_module *m)
{
    uint64_t here = (uint64_t)(uintptr_t)&hfn_process_init;
    return here >= m->base && here < m->end;
}

/* The program is called by the name that it was started with, which may be a link to its file; a
 * link in /proc is no name.  The folder is resolved, because the program may change its working
 * folder. */
static void name_program(hfn_plan_request *out, const hfn_os_file_info *file)
{
    hfn_os_file_info named;
    char folder[4096 + sizeof out->path], real[4096];
    bool is_script = false;
    if (!hfn_os_get_start_path(out->started_as, sizeof out->started_as, &is_script)) {
        out->started_as[0] = 0;
        return;
    }
    out->is_script = is_script;
    const char *slash = strrchr(out->started_as, '/'), *name = slash ? slash + 1 : out->started_as;
    size_t length = slash ? (size_t)(slash - out->started_as) + 1 : 0;
    memcpy(folder, out->started_as, length);
    folder[length] = 0;
    if (is_script || !hfn_os_resolve_path(length ? folder : ".", real, sizeof real) ||
        strncmp(real, "/proc/", 6) == 0) {
        return;
    }
    snprintf(folder, sizeof folder, "%s/%s", strcmp(real, "/") ? real : "", name);
    if (strlen(folder) < sizeof out->path && hfn_os_get_path_info(folder, &named) == 0 &&
        named.device == file->device && named.inode == file->inode) {
        memcpy(out->path, folder, strlen(folder) + 1);
    }
}

bool hfn_process_describe_module(const hfn_os_module *m, hfn_plan_request *out)
{
    hfn_os_file_info file;
    char real[4096];
    *out = (hfn_plan_request){ 0 };
    if (m->path[0] == 0 || !hfn_os_resolve_path(m->path, real, sizeof real) ||
        strlen(real) >= sizeof out->path || hfn_os_get_path_info(real, &file) != 0) {
        return false;
    }
    out->kind = HFN_PLAN_REQUEST_MODULE;
    out->load_base = m->base;
    out->file_device = file.device;
    out->file_inode = file.inode;
    out->file_stamp = hfn_file_stamp(&file);
    memcpy(out->path, real, strlen(real) + 1);
    if (m->is_main) {
        name_program(out, &file);
    }
    return true;
}

static void mark_failed(hfn_process *p, const hfn_loaded_module *m, const char *why)
{
    hfn_log_message(&p->env, HOTFN_LOG_WARNING, "module %u: %s", m->live_module, why);
    if (m->live_module != UINT32_MAX) {
        hfn_live_set_module(p->live, m->live_module, HOTFN_MODULE_FAILED, m->base, why);
    }
}

/* Runs in a thread of the target that is in dlopen or dlclose. */
static void handle_list_change(void *user)
{
    hfn_process *p = user;
    void *paused = hotfn_counters_pause();
    int saved = errno;
    /* Pairs with the acquire load in mark_overwritten (check.c). */
    __atomic_store_n(&p->list_changes, 1, __ATOMIC_SEQ_CST);
    if (hfn_os_module_list_is_complete()) {
        hotfn_error err = HOTFN_ERROR_INIT;
        hfn_process_update(p, &err);
        __atomic_store_n(&p->list_changes, 0, __ATOMIC_RELEASE);
    }
    errno = saved;
    hotfn_counters_resume(paused);
}

/* The plan's function at rva; UINT32_MAX if there is none. */
static uint32_t find_function_at(const hotfn_plan *plan, uint32_t entry_count, uint64_t rva)
{
    for (uint32_t i = 0; i < entry_count; i++) {
        hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;
        hotfn_plan_get(plan, i, &entry);
        if (entry.rva == rva) {
            return entry.function_index;
        }
    }
    return UINT32_MAX;
}

bool hfn_process_owns(const hfn_loaded_module *m, uint32_t function_index)
{
    for (uint32_t i = 0; i < m->own_count; i++) {
        if (m->own_functions[i] == function_index) {
            return true;
        }
    }
    return false;
}

typedef hotfn_status add_hook_fn(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                 uint32_t function_index, const hotfn_hook_action *action,
                                 uint32_t *module, hotfn_error *err);

/* Hook the module's function at an address for hotfn itself; false if that is not possible. */
static bool add_own_hook(hfn_process *p, hfn_loaded_module *m, add_hook_fn *add, uint64_t address,
                         const hotfn_hook_action *action, hotfn_error *err)
{
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    uint32_t function, module;

    hotfn_plan_get_info(m->plan, &info);
    function = find_function_at(m->plan, info.entry_count, address - m->base);

    if (function == UINT32_MAX || m->own_count >= HFN_COUNT_OF(m->own_functions)) {
        hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                         "the function at +0x%" PRIx64 " cannot be hooked", address - m->base);
        return false;
    }
    if (add(p->hooks, m->plan, m->base, function, action, &module, err) != HOTFN_OK) {
        return false;
    }
    m->own_functions[m->own_count++] = function;
    return true;
}

/* Hook the function that the dynamic linker calls, if it lies in this module. */
static void follow_module_list(hfn_process *p, hfn_loaded_module *m)
{
    uint64_t breakpoint = hfn_os_get_module_list_hook();
    if (p->follows_modules || (p->flags & HOTFN_SESSION_NO_FOLLOW_DLOPEN) || breakpoint < m->base ||
        breakpoint >= m->end) {
        return;
    }
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    action.kind = HOTFN_ACTION_CALL;
    action.callback = handle_list_change;
    action.user = p;
    hotfn_error err = HOTFN_ERROR_INIT;
    if (add_own_hook(p, m, hotfn_hooks_add, breakpoint, &action, &err)) {
        p->follows_modules = true;
    } else {
        hfn_log_message(&p->env, HOTFN_LOG_WARNING,
                        "modules that are loaded later will not be hooked: %s", err.text);
    }
}

/* Replace the functions by which a runtime's tracer enters the module. */
static void replace_functions(hfn_process *p, hfn_loaded_module *m)
{
    hfn_replaced replaced[HFN_MAX_REPLACED];
    uint32_t count =
        p->runtime ? p->runtime->find_replaced(p->runtime->user, m->base, replaced) : 0;
    for (uint32_t i = 0; i < count; i++) {
        hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
        hotfn_error err = HOTFN_ERROR_INIT;
        action.kind = HOTFN_ACTION_REPLACE;
        action.replacement = replaced[i].replacement;
        action.original = replaced[i].original;
        if (!add_own_hook(p, m, replaced[i].is_known ? hfn_hooks_add_known : hotfn_hooks_add,
                          replaced[i].entry, &action, &err)) {
            p->runtime->report_failure(p->runtime->user, err.text);
        } else if (p->replaced_count < HFN_MAX_REPLACED) {
            p->replaced[p->replaced_count].live_module = m->live_module;
            p->replaced[p->replaced_count++].function = m->own_functions[m->own_count - 1];
        }
    }
}

/* List the replaced functions in the record, so that the launcher can restore them. */
static void list_replaced(hfn_process *p)
{
    for (size_t i = 0; i < p->loaded_count && p->replaced_count > 0; i++) {
        hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
        uint32_t pool = p->loaded[i].live_module;
        if (pool == UINT32_MAX || hfn_live_get_module(p->live, pool, &known) != HOTFN_OK ||
            !(known.flags & HOTFN_MODULE_METHODS)) {
            continue;
        }
        while (p->replaced_count > 0) {
            p->replaced_count--;
            hfn_live_add_replaced(p->live, pool, p->replaced[p->replaced_count].live_module,
                                  p->replaced[p->replaced_count].function);
        }
    }
}

/* Request hooks for all functions of the module that have a slot, except for hotfn's own. */
static void request_hooks(hfn_process *p, hfn_loaded_module *m, uint32_t function_count)
{
    const uint32_t *slots = hfn_live_get_slots(p->live, m->live_module);
    size_t bytes = (size_t)function_count * sizeof *slots;
    uint32_t *changed = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    if (m->own_count > 0) {
        changed = hfn_allocate_zeroed(&p->env, bytes);
        if (!changed) {
            mark_failed(p, m, "not enough memory");
            return;
        }
        memcpy(changed, slots, bytes);
        for (uint32_t i = 0; i < m->own_count; i++) {
            changed[m->own_functions[i]] = HOTFN_NO_SLOT;
        }
    }
    if (hotfn_hooks_add_module(p->hooks, m->plan, m->base, changed ? changed : slots,
                               &m->hooks_module, &err) != HOTFN_OK) {
        mark_failed(p, m, err.text);
    }
    hfn_free_memory(&p->env, changed, bytes);
}

/* Stop timing for good if the module has a system call of its own that may disable the TSC: the
 * clock would then fault in a thread without a warning. */
static void stop_clock_if_unsafe(hfn_process *p, const hfn_loaded_module *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    uint64_t stopped_at = 0;
    char note[128];
    if (!hfn_plan_get_tsc_disable_rva(m->plan)) {
        return;
    }
    hfn_timing_stop_clock(&stopped_at);
    hfn_timing_record_stop(stopped_at);
    hfn_live_get_module(p->live, m->live_module, &known);
    snprintf(note, sizeof note,
             "nothing is timed: its system call at +0x%" PRIx32 " may disable the TSC",
             hfn_plan_get_tsc_disable_rva(m->plan));
    hfn_live_set_module(p->live, m->live_module, known.flags, m->base, note);
}

/* Report that calls of the module are counted in one row for all threads (hooks/shared.c). */
static void note_own_threads(hfn_process *p, const hfn_loaded_module *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    if (!hfn_plan_has_own_threads(m->plan)) {
        return;
    }
    hfn_live_get_module(p->live, m->live_module, &known);
    hfn_live_set_module(p->live, m->live_module, known.flags, m->base,
                        "it sets thread pointers itself, so calls of all threads are counted in "
                        "one row, and none is timed");
}

static void hook_module(hfn_process *p, hfn_loaded_module *m, const void *bytes,
                        uint64_t byte_count)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    if (hotfn_plan_open(&m->plan, bytes, byte_count, 0, &p->env, &err) != HOTFN_OK) {
        mark_failed(p, m, err.text);
        return;
    }
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    hfn_live_get_module(p->live, m->live_module, &known);
    hotfn_plan_get_info(m->plan, &info);
    follow_module_list(p, m);
    replace_functions(p, m);
    stop_clock_if_unsafe(p, m);
    note_own_threads(p, m);
    if (known.function_count > 0 && known.function_count == info.function_count) {
        m->groups =
            p->source.get_groups ? p->source.get_groups(p->source.user, m->live_module) : NULL;
        request_hooks(p, m, info.function_count);
        hfn_process_find_allocators(p, m);
    }
}

static bool add_module(hfn_process *p, const hfn_os_module *os, const hfn_plan_request *request)
{
    if (!hfn_grow_array(&p->env, (void **)&p->loaded, &p->loaded_capacity, p->loaded_count + 1,
                        sizeof *p->loaded)) {
        return false;
    }
    hfn_loaded_module *m = &p->loaded[p->loaded_count++];
    *m = (hfn_loaded_module){ .base = os->base,
                              .end = os->end,
                              .path_hash = hash_path(os->path),
                              .live_module = UINT32_MAX,
                              .hooks_module = UINT32_MAX,
                              .seen = true,
                              .is_new = true };
    const void *plan = NULL;
    uint64_t plan_bytes = 0;
    p->source.find(p->source.user, request, os->is_main, &m->live_module, &plan, &plan_bytes);
    if (m->live_module != UINT32_MAX && plan) {
        hook_module(p, m, plan, plan_bytes);
    }
    return true;
}

static bool update_module(void *user, const hfn_os_module *os)
{
    hfn_process *p = user;
    hfn_plan_request request;
    if (hfn_process_is_own_module(os)) {
        return true;
    }
    hfn_loaded_module *known = find_loaded(p, os);
    if (known) {
        known->seen = true;
        return true;
    }
    bool is_described = p->source.describe ? p->source.describe(p->source.user, os, &request)
                                           : hfn_process_describe_module(os, &request);
    return !is_described || add_module(p, os, &request);
}

static void forget_unseen(hfn_process *p)
{
    for (size_t i = p->loaded_count; i-- > 0;) {
        hfn_loaded_module *m = &p->loaded[i];
        if (m->seen) {
            continue;
        }
        if (m->hooks_module != UINT32_MAX) {
            hotfn_hooks_forget_module(p->hooks, m->hooks_module);
        }
        if (m->live_module != UINT32_MAX) {
            hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
            hfn_live_get_module(p->live, m->live_module, &known);
            hfn_live_set_module(p->live, m->live_module, known.flags | HOTFN_MODULE_UNLOADED, 0,
                                NULL);
        }
        hotfn_plan_destroy(m->plan);
        *m = p->loaded[--p->loaded_count];
    }
}

static void mark_refused(void *user, uint32_t hooks_module, uint32_t function_index,
                         uint32_t reason, uint32_t offset)
{
    hfn_process *p = user;
    for (size_t i = 0; i < p->loaded_count; i++) {
        if (p->loaded[i].hooks_module == hooks_module) {
            hfn_live_set_function(p->live, p->loaded[i].live_module, function_index,
                                  HOTFN_STATE_REFUSED, reason, offset);
        }
    }
}

static void mark_hooked(hfn_process *p, const hfn_loaded_module *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hfn_live_get_module(p->live, m->live_module, &known);
    const uint32_t *slots = hfn_live_get_slots(p->live, m->live_module);
    for (uint32_t i = 0; i < known.function_count; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            hfn_live_set_function(p->live, m->live_module, i, HOTFN_STATE_HOOKED, 0, 0);
        }
        if (slots[i] != HOTFN_NO_SLOT && p->hooks->has_own_threads) {
            hfn_live_set_count_only(p->live, m->live_module, i, HOTFN_REASON_OWN_THREADS);
        }
    }
    for (uint32_t i = 0; i < m->own_count && m->own_functions[i] < known.function_count; i++) {
        hfn_live_set_function(p->live, m->live_module, m->own_functions[i], HOTFN_STATE_REFUSED,
                              HOTFN_REASON_ENGINE, 0);
    }
    uint32_t flags = (known.flags | HOTFN_MODULE_LOADED) & ~HOTFN_MODULE_UNLOADED;
    hfn_live_set_module(p->live, m->live_module, flags, m->base, NULL);
    if (p->runtime && known.flags & HOTFN_MODULE_METHODS) {
        p->runtime->use_methods(p->runtime->user, p->live, m->live_module, m->base);
    }
}

/* The hooks that hotfn itself needs in modules that are new. */
static uint32_t count_own_hooks(const hfn_process *p)
{
    uint32_t count = 0;

    for (size_t i = 0; i < p->loaded_count; i++) {
        count += p->loaded[i].is_new ? p->loaded[i].own_count : 0;
    }
    return count;
}

hotfn_status hfn_process_commit(hfn_process *p, hotfn_error *err)
{
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t own = count_own_hooks(p);
    hfn_process_switch_new(p);
    hotfn_status s = hotfn_hooks_commit(p->hooks, &stats, err);
    for (size_t i = 0; i < p->loaded_count; i++) {
        hfn_loaded_module *m = &p->loaded[i];
        if (m->is_new && m->live_module != UINT32_MAX && s == HOTFN_OK) {
            mark_hooked(p, m);
        } else if (m->is_new && m->hooks_module != UINT32_MAX) {
            mark_failed(p, m, err ? err->text : "could not be hooked");
        }
        m->is_new = false;
    }
    hotfn_hooks_each_refused(p->hooks, mark_refused, p);
    if (s == HOTFN_OK) {
        list_replaced(p);
    }
    p->stats.hooked += stats.hooked > own ? stats.hooked - own : 0;
    p->stats.refused += stats.refused;
    p->stats.stub_bytes += stats.stub_bytes;
    p->stats.unwind_bytes += stats.unwind_bytes;
    p->stats.table_bytes += stats.table_bytes;
    p->stats.copied_page_bytes += stats.copied_page_bytes;
    p->stats.total_ns += stats.total_ns;
    return s;
}

hotfn_status hfn_process_init(hfn_process *p, hfn_live *live, uint32_t flags, uint32_t hook_flags,
                              hfn_plan_source source, const hotfn_env *env, hotfn_error *err)
{
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hfn_time_memory times;
    *p = (hfn_process){ .env = hfn_env_fill(env), .flags = flags, .live = live, .source = source };
    options.flags = hook_flags;
    if (hfn_live_time_header(live) && !hfn_process_may_time()) {
        return hfn_report_error(
            err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
            "a thread is still in a timed call's hook of an earlier session: calls of this "
            "process cannot be timed any more");
    }
    hfn_row_memory memory = hfn_live_activate_rows(live);
    hotfn_status s = hfn_counters_create_in(&p->counters, &memory, &p->env, err);
    if (s != HOTFN_OK) {
        return s;
    }
    if (hfn_live_time_memory(live, &times)) {
        times.header->call_stack_bytes = hfn_stub_get_call_stack_bytes();
        hfn_timing_start(&times);
    }
    hotfn_counters_get_access(p->counters, &access);
    s = hotfn_hooks_create(&p->hooks, &options, &access, &p->env, err);
    if (s != HOTFN_OK) {
        hotfn_counters_destroy(p->counters);
        return s;
    }
    hfn_hooks_set_count_shared(p->hooks, (uint64_t)(uintptr_t)&hfn_thread_row_count_shared);
    return s;
}

void hfn_process_measure_hooks(hfn_live *live)
{
    hfn_time_memory times;

    if (hfn_live_time_memory(live, &times)) {
        hfn_timing_measure(&times, hfn_live_slot_capacity(live));
    }
}

hotfn_status hfn_process_update(hfn_process *p, hotfn_error *err)
{
    hfn_process_begin_change(p);
    for (size_t i = 0; i < p->loaded_count; i++) {
        p->loaded[i].seen = false;
    }
    size_t before = p->loaded_count;
    if (before == 0 && !(p->flags & HOTFN_SESSION_NO_FOLLOW_DLOPEN)) {
        p->follows_modules = hfn_os_watch_modules(handle_list_change, p);
    }
    hfn_os_each_module(update_module, p);
    hotfn_status s =
        p->loaded_count > before || before == 0 ? hfn_process_commit(p, err) : HOTFN_OK;
    if (before == 0) {
        hfn_live_map_first_histograms(p->live);
    }
    forget_unseen(p);
    hfn_process_end_change(p);
    return s;
}

hotfn_status hfn_process_finish(hfn_process *p, uint32_t *remaining, hotfn_error *why)
{
    hotfn_status s;

    hfn_os_watch_modules(NULL, NULL);
    s = hotfn_hooks_remove(p->hooks, why);
    *remaining = hfn_hooks_count_patched(p->hooks);
    if (hfn_live_time_header(p->live)) {
        hfn_process_end_times(p);
    }
    hotfn_hooks_destroy(p->hooks);
    hotfn_counters_destroy(p->counters);
    for (size_t i = 0; i < p->loaded_count; i++) {
        hotfn_plan_destroy(p->loaded[i].plan);
    }
    hfn_free_memory(&p->env, p->loaded, p->loaded_capacity * sizeof *p->loaded);
    *p = (hfn_process){ .env = p->env };
    return s;
}
