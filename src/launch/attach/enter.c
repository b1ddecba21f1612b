/* SPDX-License-Identifier: MIT */
/*
 * Attaching, in two stops of the target:
 *
 *   running   list modules, scan them, copy their code to mirrors; build hooks and stubs there;
 *             write the journal
 *   stopped   check the threads' word; map journal, record, core and stubs
 *   running   write core and stubs; give the target its own copies of the pages that change
 *   stopped   move program counters; copy the patched pages
 *   running   account: states of modules and functions
 *
 * The pages for core and stubs are chosen while the target runs.  If it maps other memory there
 * before it is stopped, hooks are built again; the last time while it stands.
 */
#include "launch/attach/attachment.h"
#include "launch/attach/call_sites.h"
#include "launch/attach/replaced.h"
#include "launch/attach/stack_growth.h"
#include "launch/attach/timing.h"

#include "base/status.h"
#include "counters/core/core.h"

#include <string.h>

enum {
    FIRST_STOP_NS = 20000000, /* doubled from try to try: other threads stand meanwhile */
    STOP_TRIES = 8,
    BUILD_TRIES = 4,
    UNDO_TRIES = 4,
    PAGE_BYTES = 4096,
};

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

/* ---- Modules. */

static void refuse_module(hfn_attachment *a, uint32_t live_module, uint64_t base, const char *why)
{
    if (hfn_os_remote_was_replaced(&a->remote)) {
        return; /* the attach fails */
    }
    hfn_log_message(&a->env, HOTFN_LOG_WARNING, "module %u: %s", live_module, why);
    hfn_live_set_module(a->launch->live, live_module, HOTFN_MODULE_FAILED, base, why);
}

static bool is_unloaded(const hfn_attachment *a, const hfn_remote_module *module)
{
    hfn_os_gap gap;

    return hfn_os_remote_find_gaps(&a->remote, module->base, module->end, &gap, 1) != 0;
}

/* The program may unload it at any time. */
static void refuse_copy(hfn_attachment *a, const hfn_remote_module *module, uint32_t live_module)
{
    if (!is_unloaded(a, module)) {
        refuse_module(a, live_module, module->base, "its code cannot be copied");
        return;
    }
    hfn_live_set_module(a->launch->live, live_module, HOTFN_MODULE_UNLOADED, module->base,
                        "was unloaded during the attach");
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
        refuse_copy(a, module, live_module);
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
    hfn_replaced_find(a, m, module->path);
}

static bool add_module(void *user, const hfn_remote_module *module)
{
    hfn_attachment *a = user;
    hfn_plan_request request;
    uint32_t live_module;

    if (hfn_attachment_describe_module(module, &request)) {
        live_module = hfn_plan_service_resolve(a->launch, &request);
        if (live_module != UINT32_MAX) {
            mirror_module(a, module, live_module);
        }
    }
    return true;
}

/* The slots of the module's functions without those that the core replaces; NULL: no memory. */
static uint32_t *choose_slots(hfn_attachment *a, const hfn_mirror *m, uint32_t function_count)
{
    const uint32_t *slots = hfn_live_get_slots(a->launch->live, m->live_module);
    uint32_t *chosen = hfn_allocate_zeroed(&a->env, function_count * sizeof *chosen);

    for (uint32_t i = 0; chosen && i < function_count; i++) {
        chosen[i] = hfn_replaced_has(m, i) ? HOTFN_NO_SLOT : slots[i];
    }
    return chosen;
}

static void request_hooks(hfn_attachment *a, hfn_mirror *m)
{
    const hfn_live *live = a->launch->live;
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t *slots;

    hfn_live_get_module(live, m->live_module, &known);
    hotfn_plan_get_info(m->plan, &info);
    if (known.function_count == 0 || known.function_count != info.function_count) {
        return;
    }
    slots = choose_slots(a, m, info.function_count);
    if (!slots) {
        refuse_module(a, m->live_module, m->base, "not enough memory");
    } else if (hotfn_hooks_add_module(a->hooks, m->plan, m->base + m->distance, slots,
                                      &m->hooks_module, &err) != HOTFN_OK) {
        refuse_module(a, m->live_module, m->base, err.text);
    }
    hfn_free_memory(&a->env, slots, info.function_count * sizeof *slots);
}

/* ---- Building, in the mirrors. */

static hotfn_status report_failed_step(const hfn_attachment *a, const char *what, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "process %u is not attached to, and runs on as before: %s%s%s",
                            a->remote.pid, what, a->error ? ": " : "",
                            a->error ? hfn_os_get_error_text(a->error) : "");
}

static uint64_t get_row_capacity(const hfn_live *live)
{
    return live->layout.sections[HFN_SECTION_ROWS].bytes / live->layout.row_bytes;
}

static bool choose_pages(hfn_attachment *a)
{
    const hfn_live *live = a->launch->live;
    uint64_t core = page_up(hfn_core.byte_count), row = page_up(live->layout.row_bytes);
    uint64_t journal = page_up(a->journal.byte_count), record = page_up(live->layout.file_bytes);
    uint64_t regions = a->is_timed ? HFN_TIMED_TABLE_BYTES : 0;
    uint64_t words = a->uses_gs ? page_up(8 * (get_row_capacity(live) + 1)) : 0;
    uint64_t at = hfn_mirrors_find_room(a, core + regions + words + row + journal + record);
    hfn_attached_pages *pages = &a->pages;

    pages->core = at;
    pages->regions = pages->core + core;
    pages->words = pages->regions + regions;
    pages->spare_row = pages->words + words;
    pages->journal = pages->spare_row + row;
    pages->record = pages->journal + journal;
    pages->end = pages->record + record;
    pages->zeros = a->uses_gs ? hfn_mirrors_find_low_page(a) : 0;
    return at != 0 && (pages->zeros != 0 || !a->uses_gs);
}

static hotfn_status create_hooks(hfn_attachment *a, hotfn_error *err)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = hfn_core_get_access(a);
    hotfn_status status;

    hotfn_hooks_destroy(a->hooks);
    a->hooks = NULL;
    hfn_mirrors_reset(a);
    options.flags = a->is_timed ? 0 : HOTFN_HOOKS_NO_UNWIND;
    status = hotfn_hooks_create(&a->hooks, &options, &access, &a->env, err);
    if (status == HOTFN_OK) {
        hfn_hooks_set_count_shared(a->hooks, a->pages.core + hfn_core.count_shared_at);
        hfn_mirror_init_space(a);
        hfn_hooks_use_space(a->hooks, &a->space);
        if (a->uses_gs) {
            hfn_hooks_use_gs(a->hooks);
        }
    }
    return status;
}

static hotfn_status write_journal(hfn_attachment *a, hotfn_error *err)
{
    hfn_journal_clear(&a->journal);
    a->journal.header->state = HFN_JOURNAL_PREPARED;
    a->journal.header->word_at = a->word_at;
    a->journal.header->frames = 0;
    return hfn_mirrors_write_journal(a) ? HOTFN_OK : hfn_report_no_memory(err, NULL);
}

static hotfn_status build_hooks(hfn_attachment *a, hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status;

    if (!choose_pages(a)) {
        return report_failed_step(a, "it has no free addresses for the counts", err);
    }
    status = create_hooks(a, err);
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_call_sites_patch(a)) {
        return report_failed_step(a, "its system calls could not be patched", err);
    }
    for (size_t i = 0; i < a->mirror_count; i++) {
        if (a->mirrors[i].plan) {
            request_hooks(a, &a->mirrors[i]);
            hfn_replaced_request(a, &a->mirrors[i]);
        }
    }
    a->stats = (hotfn_commit_stats)HOTFN_COMMIT_STATS_INIT;
    if (hotfn_hooks_commit(a->hooks, &a->stats, &why) != HOTFN_OK) {
        return report_failed_step(a, why.text, err);
    }
    status = a->is_timed ? hfn_timed_check_hooks(a, err) : HOTFN_OK;
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_stack_growth_patch(a)) {
        return report_failed_step(a, "calls that let stacks grow could not be patched", err);
    }
    if (!a->uses_gs && !hfn_fork_sites_patch(a)) {
        return report_failed_step(a, "its fork function could not be patched", err);
    }
    return write_journal(a, err);
}

/* ---- The first stop: memory. */

static bool note_pages(hfn_attachment *a, uint32_t kind, uint64_t begin, uint64_t bytes)
{
    const hfn_journal_entry entry = { kind, 0, begin, begin + page_up(bytes) };

    return hfn_journal_add(&a->journal, &entry);
}

/* The spare row is free for it meanwhile. */
static bool map_shared(hfn_attachment *a, hfn_os_file file, uint64_t wanted, uint64_t bytes)
{
    a->error = hfn_os_remote_map_file(&a->remote, file, a->pages.spare_row, wanted, page_up(bytes));
    return a->error == 0;
}

/* Core, regions and spare row are mapped as one, before the journal.  The regions stay as long as
 * the core does. */
static bool map_journal(hfn_attachment *a)
{
    uint64_t core = a->pages.core, bytes = a->pages.journal - core;

    a->error = hfn_os_remote_map(&a->remote, core, bytes);
    if (a->error != 0) {
        return false;
    }
    if (!map_shared(a, a->journal.file, a->pages.journal, a->journal.byte_count)) {
        for (int i = 0; i < UNDO_TRIES && hfn_os_remote_unmap(&a->remote, core, bytes) != 0; i++) {
        }
        return false;
    }
    a->journal.at = a->pages.journal;
    return note_pages(a, HFN_JOURNAL_CODE, core, a->pages.spare_row - core) &&
           note_pages(a, HFN_JOURNAL_PAGES, a->pages.spare_row,
                      a->pages.journal - a->pages.spare_row);
}

/* What threads without a row read. */
static bool map_zeros(hfn_attachment *a)
{
    if (!a->uses_gs) {
        return true;
    }
    a->error = hfn_os_remote_map(&a->remote, a->pages.zeros, PAGE_BYTES);
    if (a->error != 0 || !note_pages(a, HFN_JOURNAL_PAGES, a->pages.zeros, PAGE_BYTES)) {
        return false;
    }
    a->error = hfn_os_remote_make_readonly(&a->remote, a->pages.zeros, PAGE_BYTES);
    return a->error == 0;
}

static bool map_record(hfn_attachment *a)
{
    const hfn_live *live = a->launch->live;
    const hfn_section *ticks = &live->layout.sections[HFN_SECTION_TICKS];

    hfn_core_describe(a);
    if (!map_shared(a, (hfn_os_file){ hfn_live_get_fd(live) }, a->pages.record,
                    live->layout.file_bytes)) {
        return false;
    }
    if (ticks->type != 0) {
        a->error =
            hfn_os_remote_make_readonly(&a->remote, a->pages.record + ticks->offset, ticks->bytes);
    }
    return a->error == 0;
}

/* Code is made executable before it is written, through /proc/PID/mem. */
static bool map_code(hfn_attachment *a)
{
    a->error = hfn_os_remote_make_executable(&a->remote, a->pages.core, hfn_core.data_at);
    for (size_t i = 0; a->error == 0 && i < a->stub_count; i++) {
        uint64_t begin = a->stubs[i].begin, bytes = a->stubs[i].end - begin;
        a->error = hfn_os_remote_map(&a->remote, begin, bytes);
        if (a->error == 0 && !note_pages(a, HFN_JOURNAL_CODE, begin, bytes)) {
            return false;
        }
        if (a->error == 0) {
            a->error = hfn_os_remote_make_executable(&a->remote, begin, bytes);
        }
    }
    return a->error == 0;
}

static hotfn_status map_all(hfn_attachment *a, hotfn_error *err)
{
    a->error = hfn_os_remote_begin_calls(&a->remote);
    if (a->error != 0) {
        return report_failed_step(a, "it cannot make system calls", err);
    }
    if (!map_journal(a) || !map_record(a) || !map_zeros(a)) {
        return report_failed_step(a, "it cannot map the record", err);
    }
    if (!map_code(a)) {
        return report_failed_step(a, "it has no memory for the counting code", err);
    }
    return HOTFN_OK;
}

/* ---- Stopping. */

hotfn_status hfn_attachment_stop(hfn_attachment *a, hotfn_error *err)
{
    uint64_t timeout_ns = FIRST_STOP_NS;

    for (int i = 0; i < STOP_TRIES; i++, timeout_ns *= 2) {
        a->error = hfn_os_remote_stop(&a->remote, timeout_ns);
        if (a->error == 0) {
            return HOTFN_OK;
        }
        while (!hfn_os_remote_resume(&a->remote)) {
            hfn_os_remote_wait_end(a->remote.pid, 1000000);
        }
    }
    return report_failed_step(a, "its threads cannot be stopped", err);
}

void hfn_attachment_resume(hfn_attachment *a)
{
    a->enter_ns += hfn_os_remote_get_stopped_ns(&a->remote);
    while (!hfn_os_remote_resume(&a->remote)) {
        hfn_os_remote_wait_end(a->remote.pid, 1000000);
    }
}

bool hfn_attachment_choose_word(hfn_attachment *a, hotfn_error *err)
{
    return a->uses_gs || hfn_thread_word_choose(a, err);
}

hotfn_status hfn_attachment_check_threads(hfn_attachment *a, hotfn_error *err)
{
    return a->uses_gs ? hfn_call_sites_check_threads(a, err) : hfn_thread_word_check(a, err);
}

/* HOTFN_E_STATE: another try may succeed. */
static hotfn_status place_hooks(hfn_attachment *a, bool stop_first, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    if (!hfn_attachment_choose_word(a, err)) {
        return HOTFN_E_UNSUPPORTED;
    }
    status = stop_first ? hfn_attachment_stop(a, err) : build_hooks(a, err);
    if (status == HOTFN_OK) {
        status = stop_first ? build_hooks(a, err) : hfn_attachment_stop(a, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_attachment_check_threads(a, err);
    }
    if (status == HOTFN_OK) {
        status = map_all(a, err);
    }
    hfn_os_remote_end_calls(&a->remote);
    hfn_attachment_resume(a);
    return status;
}

/* The last steps before the target's code is changed. */
static hotfn_status prepare_stopped(hfn_attachment *a, hotfn_error *err)
{
    a->error = 0;
    if (hfn_journal_locate(&a->journal, &a->remote) != HFN_JOURNAL_HELD) {
        return report_failed_step(a, "hotfn's memory in it is not mapped any more", err);
    }
    if (!hfn_mirrors_drop_changed(a)) {
        return report_failed_step(a, "its code is being changed by others", err);
    }
    if (!hfn_mirror_write_stubs(a)) {
        return report_failed_step(a, "the counting code could not be written", err);
    }
    if (!hfn_mirrors_adjust_threads(a)) {
        return report_failed_step(a, "a thread in code that changes could not be moved", err);
    }
    return hfn_core_assign_rows(a)
               ? HOTFN_OK
               : report_failed_step(a, "a thread could not be given a row of counts", err);
}

static hotfn_status patch_code(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status;

    if (!hfn_core_write(a)) {
        return report_failed_step(a, "its memory cannot be written", err);
    }
    hfn_mirror_write_stubs(a);
    hfn_mirrors_touch_code(a);
    status = hfn_attachment_stop(a, err);
    if (status == HOTFN_OK) {
        status = hfn_attachment_check_threads(a, err);
    }
    if (status == HOTFN_OK) {
        status = prepare_stopped(a, err);
    }
    if (status == HOTFN_OK) {
        a->journal.header->frames = a->is_timed ? a->pages.core + hfn_core.frames_at : 0;
        a->journal.header->state = HFN_JOURNAL_ATTACHED;
        a->is_inside = hfn_mirrors_write_code(a);
        status =
            a->is_inside ? HOTFN_OK : report_failed_step(a, "its code could not be written", err);
    }
    hfn_attachment_resume(a);
    return status;
}

/* ---- Accounting. */

static void mark_refused(void *user, uint32_t hooks_module, uint32_t function, uint32_t reason,
                         uint32_t offset)
{
    hfn_attachment *a = user;

    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        if (m->hooks_module == hooks_module && m->is_dropped) {
            a->stats.refused--;
            a->stats.hooked++; /* mark_dropped has subtracted all of the module's functions */
        } else if (m->hooks_module == hooks_module) {
            hfn_live_set_function(a->launch->live, m->live_module, function, HOTFN_STATE_REFUSED,
                                  reason, offset);
        }
    }
}

static void mark_dropped(hfn_attachment *a, const hfn_mirror *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    const uint32_t *slots = hfn_live_get_slots(a->launch->live, m->live_module);

    hfn_live_get_module(a->launch->live, m->live_module, &known);
    for (uint32_t i = 0; i < known.function_count; i++) {
        a->stats.hooked -= slots[i] != HOTFN_NO_SLOT && !hfn_replaced_has(m, i);
    }
    hfn_live_set_module(a->launch->live, m->live_module, known.flags | HOTFN_MODULE_UNLOADED,
                        m->base, "was unloaded, or its code was changed, during the attach");
}

static void mark_hooked(hfn_live *live, const hfn_mirror *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    const uint32_t *slots = hfn_live_get_slots(live, m->live_module);

    hfn_live_get_module(live, m->live_module, &known);
    for (uint32_t i = 0; i < known.function_count; i++) {
        bool is_replaced = hfn_replaced_has(m, i);
        if (slots[i] != HOTFN_NO_SLOT) {
            hfn_live_set_function(live, m->live_module, i,
                                  is_replaced ? HOTFN_STATE_REFUSED : HOTFN_STATE_HOOKED,
                                  is_replaced ? HOTFN_REASON_ENGINE : 0, 0);
        }
    }
    hfn_live_set_module(live, m->live_module, known.flags | HOTFN_MODULE_LOADED, m->base, NULL);
}

static void account_hooks(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        if (m->hooks_module != UINT32_MAX && m->is_dropped) {
            mark_dropped(a, m);
        } else if (m->hooks_module != UINT32_MAX) {
            mark_hooked(a->launch->live, m);
        }
    }
    hotfn_hooks_each_refused(a->hooks, mark_refused, a);
    hfn_live_begin_process(a->launch->live);
}

/* ---- All of it. */

static hotfn_status refuse_library(const hfn_attachment *a, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "process %u has no fork function that hotfn recognises (that of glibc "
                            "on x86-64): count a build with glibc",
                            a->remote.pid);
}

static hotfn_status open_once(hfn_attachment *a, hotfn_error *err)
{
    hfn_os_remote_close(&a->remote);
    a->error = hfn_os_remote_open(&a->remote);
    if (a->error != 0) {
        return report_failed_step(a, "its memory cannot be opened", err);
    }
    if (hfn_call_sites_are_needed(a)) {
        return a->is_timed ? hfn_timed_check_modules(a, err) : hfn_call_sites_search(a, err);
    }
    if (!hfn_fork_sites_wait(a)) {
        return refuse_library(a, err);
    }
    hfn_thread_words_search(a);
    return HOTFN_OK;
}

/* A process that has just started may still replace its program: a shell, or a child of fork. */
hotfn_status hfn_attachment_open(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = open_once(a, err);

    for (int i = 1; i < BUILD_TRIES && status != HOTFN_OK; i++) {
        if (!hfn_os_remote_was_replaced(&a->remote)) {
            break;
        }
        status = open_once(a, err);
    }
    return status;
}

static hotfn_status read_modules(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = hfn_attachment_open(a, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (a->is_timed) {
        status = hfn_timed_check_modules(a, err);
        if (status != HOTFN_OK) {
            return status;
        }
    }
    if (!hfn_os_remote_each_module(a->remote.pid, add_module, a) ||
        !(a->uses_gs ? hfn_call_sites_add_mirrors(a) : hfn_fork_sites_find(a))) {
        return refuse_library(a, err);
    }
    return hfn_journal_create(&a->journal, a->remote.pid, hfn_mirrors_bound_journal(a))
               ? HOTFN_OK
               : hfn_report_no_memory(err, NULL);
}

static hotfn_status try_to_enter(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = HOTFN_E_STATE;

    for (int i = 0; i < BUILD_TRIES && status == HOTFN_E_STATE; i++) {
        if (i > 0 && (!hfn_attachment_remove(a) || hfn_os_remote_open(&a->remote) != 0)) {
            return status;
        }
        status = place_hooks(a, i == BUILD_TRIES - 1, err);
    }
    return status == HOTFN_OK ? patch_code(a, err) : status;
}

/* What only an attach needs: the mirrors take more memory than all else. */
static void free_hooks(hfn_attachment *a)
{
    hotfn_hooks_destroy(a->hooks);
    a->hooks = NULL;
    hfn_mirrors_finish(a);
}

hotfn_status hfn_attachment_enter(hfn_attachment *a, hotfn_error *err)
{
    hotfn_status status = read_modules(a, err);

    if (status == HOTFN_OK) {
        status = try_to_enter(a, err);
    }
    if (status != HOTFN_OK && hfn_os_remote_was_replaced(&a->remote)) {
        status = hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                  "process %u has ended or replaced its program (exec) meanwhile: "
                                  "attach again if it runs",
                                  a->remote.pid);
    }
    hfn_os_remote_close(&a->remote);
    if (status == HOTFN_OK) {
        account_hooks(a);
    } else {
        hfn_attachment_remove(a);
    }
    free_hooks(a);
    return status;
}
