/* SPDX-License-Identifier: MIT */
/*
 * Attaching, in one stop of the target:
 *
 *   running   list modules, scan them, copy their code to mirrors, request hooks
 *   stopped   choose the threads' word; map record, core and stubs; build the stubs; move program
 *             counters; copy the patched pages
 *   running   account: states of modules and functions
 *
 * Until the first page of code is written, the target executes nothing of hotfn, so that a failure
 * only unmaps what was mapped.
 */
#include "launch/attach/attachment.h"

#include "base/status.h"
#include "counters/core/core.h"
#include "counters/thread_row.h"
#include "scan/file_stamp.h"

#include <string.h>

enum { STOP_NS = 1000000000, STOP_TRIES = 5, PAGE_BYTES = 4096 };

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

/* ---- Modules. */

static bool describe_module(const hfn_remote_module *module, hfn_plan_request *out)
{
    hfn_os_file_info file;

    *out = (hfn_plan_request){ 0 };
    if (!module->is_available || strlen(module->path) >= sizeof out->path ||
        hfn_os_get_path_info(module->path, &file) != 0) {
        return false;
    }
    out->kind = module->is_main ? HFN_PLAN_REQUEST_MAIN : HFN_PLAN_REQUEST_MODULE;
    out->load_base = module->base;
    out->file_device = file.device;
    out->file_inode = file.inode;
    out->file_stamp = hfn_file_stamp(&file);
    memcpy(out->path, module->path, strlen(module->path) + 1);
    return true;
}

static void refuse_module(hfn_attachment *a, uint32_t live_module, uint64_t base, const char *why)
{
    hfn_log_message(&a->env, HOTFN_LOG_WARNING, "module %u: %s", live_module, why);
    hfn_live_set_module(a->launch->live, live_module, HOTFN_MODULE_FAILED, base, why);
}

static void mirror_module(hfn_attachment *a, const hfn_remote_module *module, uint32_t live_module)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint64_t bytes = 0;
    const void *plan = hfn_plan_channel_view_plan(a->launch->channel, live_module, &bytes);
    uint32_t index;
    hfn_mirror *m;

    if (!plan) {
        return;
    }
    if (!hfn_mirror_add(a, module, &index)) {
        hfn_os_unmap((uint64_t)(uintptr_t)plan, bytes);
        refuse_module(a, live_module, module->base, "its code cannot be copied");
        return;
    }
    m = &a->mirrors[index];
    m->plan_bytes = plan;
    m->plan_byte_count = bytes;
    if (hotfn_plan_open(&m->plan, plan, bytes, 0, &a->env, &err) != HOTFN_OK) {
        refuse_module(a, live_module, module->base, err.text);
        return;
    }
    m->live_module = live_module;
}

static bool add_module(void *user, const hfn_remote_module *module)
{
    hfn_attachment *a = user;
    hfn_plan_request request;
    uint32_t live_module;

    if (describe_module(module, &request)) {
        live_module = hfn_plan_service_resolve(a->launch, &request);
        if (live_module != UINT32_MAX) {
            mirror_module(a, module, live_module);
        }
    }
    return true;
}

static void request_hooks(hfn_attachment *a, hfn_mirror *m)
{
    const hfn_live *live = a->launch->live;
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    hfn_live_get_module(live, m->live_module, &known);
    hotfn_plan_get_info(m->plan, &info);
    if (known.function_count > 0 && known.function_count == info.function_count &&
        hotfn_hooks_add_module(a->hooks, m->plan, m->base + m->distance,
                               hfn_live_get_slots(live, m->live_module), &m->hooks_module,
                               &err) != HOTFN_OK) {
        refuse_module(a, m->live_module, m->base, err.text);
    }
}

/* ---- In the stopped target. */

static bool map_pages(hfn_attachment *a, uint64_t bytes, uint64_t *out)
{
    a->error = hfn_os_remote_map(&a->remote, 0, page_up(bytes), out);
    return a->error == 0;
}

static bool map_record(hfn_attachment *a)
{
    const hfn_section *sections = a->launch->live->layout.sections;
    char path[64];

    a->record_offset = sections[HFN_SECTION_CELLS].offset & ~(uint64_t)(PAGE_BYTES - 1);
    a->record_bytes =
        sections[HFN_SECTION_ROWS].offset + sections[HFN_SECTION_ROWS].bytes - a->record_offset;
    hfn_launch_live_path(a->launch, path, sizeof path);
    a->error =
        hfn_os_remote_map_file(&a->remote, path, a->record_offset, a->record_bytes, &a->record);
    return a->error == 0;
}

static void *in_target(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* The state of the core, as thread_row.c reads it. */
static hfn_row_state make_state(const hfn_attachment *a)
{
    const hfn_live *live = a->launch->live;
    const hfn_section *sections = live->layout.sections;
    uint64_t cells = a->record + sections[HFN_SECTION_CELLS].offset - a->record_offset;
    hfn_row_state state = {
        .header = in_target(cells),
        .cells = in_target(cells + sizeof(hfn_cell_header)),
        .rows = in_target(a->record + sections[HFN_SECTION_ROWS].offset - a->record_offset),
        .discard = in_target(a->spare_row),
        .discard_bytes = a->spare_bytes,
        .row_bytes = live->layout.row_bytes,
        .thread_capacity = (uint32_t)(sections[HFN_SECTION_ROWS].bytes / live->layout.row_bytes),
        .slot_capacity = hfn_live_slot_capacity(live),
        .word_at = a->word_at,
    };
    uint32_t number = 0;

    hfn_os_get_random(&number, sizeof number);
    state.process = number | 1;
    hfn_os_remote_get_identity(a->remote.pid, &state.pid, &state.pid_namespace);
    return state;
}

static bool place_core(hfn_attachment *a)
{
    hfn_row_state state;

    if (!map_pages(a, hfn_core.byte_count, &a->core)) {
        return false;
    }
    state = make_state(a);
    if (!hfn_os_remote_write(&a->remote, a->core, hfn_core.bytes, hfn_core.byte_count) ||
        !hfn_os_remote_write(&a->remote, a->core + hfn_core.rows_at, &state, sizeof state)) {
        return false;
    }
    a->error = hfn_os_remote_make_executable(&a->remote, a->core, hfn_core.data_at);
    return a->error == 0;
}

static hotfn_status report_failed_step(const hfn_attachment *a, const char *what, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "process %u is not attached to, and runs on as before: %s%s%s",
                            a->remote.pid, what, a->error ? ": " : "",
                            a->error ? hfn_os_get_error_text(a->error) : "");
}

static hotfn_status place_hooks(hfn_attachment *a, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;

    a->hooks->access.slow_path = (void (*)(void))(uintptr_t)(a->core + hfn_core.slow_path_at);
    hfn_hooks_set_count_shared(a->hooks, a->core + hfn_core.count_shared_at);
    a->hooks->access.displacement = (int32_t)a->word_at;
    for (size_t i = 0; i < a->mirror_count; i++) {
        if (a->mirrors[i].plan) {
            request_hooks(a, &a->mirrors[i]);
        }
    }
    a->stats = (hotfn_commit_stats)HOTFN_COMMIT_STATS_INIT;
    if (hotfn_hooks_commit(a->hooks, &a->stats, &why) != HOTFN_OK) {
        return report_failed_step(a, why.text, err);
    }
    if (!hfn_fork_sites_patch(a) || !hfn_mirror_write_stubs(a)) {
        return report_failed_step(a, "its fork function could not be patched", err);
    }
    if (!hfn_mirror_show_code(a)) {
        return report_failed_step(a, "its code could not be written", err);
    }
    return HOTFN_OK;
}

static hotfn_status change_target(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status;

    if (!hfn_thread_word_choose(a, err)) {
        return HOTFN_E_UNSUPPORTED;
    }
    a->error = hfn_os_remote_begin_calls(&a->remote);
    if (a->error != 0) {
        return report_failed_step(a, "it cannot make system calls", err);
    }
    a->spare_bytes = a->launch->live->layout.row_bytes;
    if (!map_record(a)) {
        return report_failed_step(a, "it cannot map the record", err);
    }
    if (!map_pages(a, a->spare_bytes, &a->spare_row) || !place_core(a)) {
        return report_failed_step(a, "it has no memory for the counting code", err);
    }
    status = place_hooks(a, err);
    a->is_inside = status == HOTFN_OK;
    return status;
}

/* ---- Accounting. */

static void mark_refused(void *user, uint32_t hooks_module, uint32_t function, uint32_t reason,
                         uint32_t offset)
{
    const hfn_attachment *a = user;

    for (size_t i = 0; i < a->mirror_count; i++) {
        if (a->mirrors[i].hooks_module == hooks_module) {
            hfn_live_set_function(a->launch->live, a->mirrors[i].live_module, function,
                                  HOTFN_STATE_REFUSED, reason, offset);
        }
    }
}

static void mark_hooked(hfn_live *live, const hfn_mirror *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    const uint32_t *slots = hfn_live_get_slots(live, m->live_module);

    hfn_live_get_module(live, m->live_module, &known);
    for (uint32_t i = 0; i < known.function_count; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            hfn_live_set_function(live, m->live_module, i, HOTFN_STATE_HOOKED, 0, 0);
        }
    }
    hfn_live_set_module(live, m->live_module, known.flags | HOTFN_MODULE_LOADED, m->base, NULL);
}

static void account_hooks(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        if (a->mirrors[i].hooks_module != UINT32_MAX) {
            mark_hooked(a->launch->live, &a->mirrors[i]);
        }
    }
    hotfn_hooks_each_refused(a->hooks, mark_refused, a);
    hfn_live_begin_process(a->launch->live);
}

/* ---- All of it. */

static hotfn_status prepare_hooks(hfn_attachment *a, hotfn_error *err)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hotfn_status status;

    a->error = hfn_os_remote_open(&a->remote);
    if (a->error != 0) {
        return report_failed_step(a, "its memory cannot be opened", err);
    }
    if (!hfn_fork_sites_wait(a) || !hfn_os_remote_each_module(a->remote.pid, add_module, a) ||
        !hfn_fork_sites_find(a)) {
        a->error = 0;
        return report_failed_step(
            a, "its C library has no fork function that hotfn recognises (glibc's is needed)", err);
    }
    hfn_thread_words_search(a);
    options.flags = HOTFN_HOOKS_NO_UNWIND;
    status = hotfn_hooks_create(&a->hooks, &options, &access, &a->env, err);
    if (status == HOTFN_OK) {
        hfn_mirror_init_space(a);
        hfn_hooks_use_space(a->hooks, &a->space);
    }
    return status;
}

static hotfn_status stop_target(hfn_attachment *a, hotfn_error *err)
{
    for (int i = 0; i < STOP_TRIES; i++) {
        a->error = hfn_os_remote_stop(&a->remote, STOP_NS);
        if (a->error == 0) {
            return HOTFN_OK;
        }
        while (!hfn_os_remote_resume(&a->remote)) {
            hfn_os_remote_wait_end(a->remote.pid, 1000000);
        }
    }
    return report_failed_step(a, "its threads cannot be stopped", err);
}

hotfn_status hfn_attachment_enter(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = prepare_hooks(a, err);

    if (status == HOTFN_OK) {
        status = stop_target(a, err);
    }
    if (status != HOTFN_OK) {
        hfn_os_remote_close(&a->remote);
        return status;
    }
    status = change_target(a, err);
    if (status != HOTFN_OK) {
        hfn_attachment_unmap(a);
    }
    hfn_os_remote_end_calls(&a->remote);
    a->enter_ns = hfn_os_remote_get_stopped_ns(&a->remote);
    while (!hfn_os_remote_resume(&a->remote)) {
        hfn_os_remote_wait_end(a->remote.pid, 1000000);
    }
    hfn_os_remote_close(&a->remote);
    if (status == HOTFN_OK) {
        account_hooks(a);
    }
    return status;
}
