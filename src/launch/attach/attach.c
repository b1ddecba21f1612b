/* SPDX-License-Identifier: MIT */
/* Attaching to a process as a kind of launch: the same options, record and states, but the program
 * is not a child of this process, and runs on afterwards. */
#include "launch/attach/attached.h"

#include "base/status.h"
#include "launch/attach/release.h"
#include "os/os.h"
#include "scan/file_stamp.h"

#include <string.h>

enum { MAX_WORDS = 256, COMMAND_BYTES = 4096, WAIT_NS = 100000000 };

/* ---- Options. */

static hotfn_status check_options(const hotfn_launch_options *o, hotfn_error *err)
{
    const uint32_t flags = HOTFN_LAUNCH_NO_CACHE | HOTFN_LAUNCH_FORCE_MAP | HOTFN_LAUNCH_DURABLE |
                           HOTFN_LAUNCH_FLAT | HOTFN_LAUNCH_BY_HOOK;
    const uint32_t costly = HOTFN_LAUNCH_EVENTS | HOTFN_LAUNCH_ALLOC;
    const char *refused =
        o->target_glob  ? "name the process itself, not a target"
        : o->kit_path   ? "a kit serves only a launch"
        : o->budget_ppm ? "no budget is kept"
        : o->runtime    ? "a runtime's functions need a launch"
        : o->after_ns   ? "counting begins at once (no after_ns)"
        : o->send_to || o->flags & costly || o->clock == HOTFN_LAUNCH_CLOCK_CPU
            ? "its times are those of the tick clock, which serves neither events nor allocated "
              "memory"
        : (o->flags & ~flags) ? "a flag of the launch does not apply"
                              : hfn_attachment_find_refusal(o);

    return refused ? hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                      "a process that runs already is attached to: %s", refused)
                   : HOTFN_OK;
}

/* ---- The target. */

static bool read_main(void *user, const hfn_remote_module *module)
{
    hotfn_launch *l = user;
    hfn_os_file_info file;

    if (!module->is_main) {
        return true;
    }
    for (uint32_t i = 0; i < module->code_count; i++) {
        l->target.text_bytes += module->code[i].end - module->code[i].begin;
    }
    if (strlen(module->path) < sizeof l->target.image) {
        memcpy(l->target.image, module->path, strlen(module->path) + 1);
        memcpy(l->target.file, module->path, strlen(module->path) + 1);
    }
    if (module->is_available && hfn_os_get_path_info(module->path, &file) == 0) {
        l->target.device = file.device;
        l->target.inode = file.inode;
    }
    return false;
}

bool hfn_attachment_describe_module(const hfn_remote_module *module, hfn_plan_request *out)
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

/* The words of a process's command, for the record. */
typedef struct command_words {
    char text[COMMAND_BYTES];
    const char *words[MAX_WORDS + 1];
} command_words;

static void read_command(uint32_t pid, command_words *out)
{
    size_t bytes = hfn_os_remote_read_command(pid, out->text, sizeof out->text - 1), at = 0;
    uint32_t count = 0;

    out->text[bytes] = 0;
    while (at < bytes && count < MAX_WORDS) {
        out->words[count++] = out->text + at;
        at += strlen(out->text + at) + 1;
    }
    /* A program that sets its title, as redis-server does, leaves empty words behind it. */
    while (count > 0 && !out->words[count - 1][0]) {
        count--;
    }
    if (count == 0) {
        out->words[count++] = "?";
    }
    out->words[count] = NULL;
}

/* ---- Entering. */

static hotfn_status enter_process(hotfn_launch *l, uint32_t pid, hotfn_error *err)
{
    hotfn_status status;

    status = hfn_release_before_attach(pid, l->options.record_path, &l->env, err);
    if (status != HOTFN_OK) {
        return status;
    }
    l->child.pid = pid;
    hfn_os_remote_each_module(pid, read_main, l);
    l->attachment = hfn_attachment_create(&l->env, l, pid);
    if (!l->attachment) {
        return hfn_report_no_memory(err, NULL);
    }
    status = hfn_target_check_attached(&l->target, &l->env, err);
    if (status == HOTFN_OK) {
        status = hfn_launch_open_inputs(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_launch_create_record(l, err);
    }
    if (status == HOTFN_OK) {
        l->is_clock_free = false; /* nothing in the process may read the processor's counter */
        status = hfn_launch_start_ticker(l, err);
    }
    if (status == HOTFN_OK) {
        hfn_live_set_pid(l->live, pid);
        hfn_launch_choose_cache(l);
        hfn_switch_start(l); /* from the first counted call on, hotfn ctl finds it and waits */
        hfn_switch_pause(l);
        status = hfn_attachment_enter(l->attachment, err);
        hfn_switch_resume(l);
    }
    return status;
}

hotfn_status hotfn_launch_attach(hotfn_launch **out, uint32_t pid,
                                 const hotfn_launch_options *options, const hotfn_env *env,
                                 hotfn_error *err)
{
    hotfn_launch_options taken = HOTFN_LAUNCH_OPTIONS_INIT;
    command_words command;
    hotfn_status status = HOTFN_OK;
    hotfn_launch *l;

    if (!out) {
        return hfn_report_null(err, __func__);
    }
    l = hfn_launch_new(env);
    if (!l) {
        return hfn_report_no_memory(err, NULL);
    }
    if (!hfn_copy_options(&taken, sizeof taken, options)) {
        status =
            hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "unknown launch option");
    }
    taken.size = sizeof taken;
    read_command(pid, &command);
    taken.command = command.words;
    if (status == HOTFN_OK) {
        status = check_options(&taken, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_launch_set_options(l, &taken, err);
    }
    if (status == HOTFN_OK) {
        status = enter_process(l, pid, err);
    }
    if (status != HOTFN_OK) {
        hfn_launch_free(l);
        return status;
    }
    hfn_launch_begin(l);
    hfn_patch_watch_start(l);
    *out = l;
    return HOTFN_OK;
}

/* ---- While it runs, and its end. */

static void end_attachment(hotfn_launch *l)
{
    hfn_switch_stop(l);
    hfn_patch_watch_stop(l, false);
    hfn_plan_service_stop(l);
    l->end_ns = hfn_os_monotonic_ns();
    hfn_ticker_stop(&l->ticker);
    l->state = HOTFN_LAUNCH_ENDED;
}

hotfn_status hotfn_launch_detach(hotfn_launch *l, hotfn_error *err)
{
    hotfn_status status;

    if (!l) {
        return hfn_report_null(err, __func__);
    }
    if (!l->attachment || l->target.is_outside || l->state != HOTFN_LAUNCH_RUNNING) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                l->attachment && !l->target.is_outside
                                    ? "the process is detached from already"
                                    : "the program was started, not attached to");
    }
    hfn_switch_pause(l);
    hfn_patch_watch_stop(l, true);
    status = hfn_attachment_leave(l->attachment, err);
    hfn_switch_resume(l);
    if (status == HOTFN_OK) {
        end_attachment(l);
    } else {
        hfn_patch_watch_start(l);
    }
    return status;
}

hotfn_status hfn_attachment_wait(hotfn_launch *l, uint64_t timeout_ns, hotfn_error *err)
{
    uint64_t begin_ns = hfn_os_monotonic_ns(), now_ns = begin_ns, wait_ns;
    uint64_t stop_ns = l->options.for_ns ? l->begin_ns + l->options.for_ns : UINT64_MAX;

    while (l->state == HOTFN_LAUNCH_RUNNING) {
        if (now_ns >= stop_ns) {
            return hotfn_launch_detach(l, err);
        }
        if (now_ns - begin_ns >= timeout_ns) {
            return HOTFN_OK;
        }
        wait_ns = timeout_ns - (now_ns - begin_ns);
        wait_ns = wait_ns < stop_ns - now_ns ? wait_ns : stop_ns - now_ns;
        if (hfn_os_remote_wait_end(l->child.pid, wait_ns < WAIT_NS ? wait_ns : WAIT_NS)) {
            end_attachment(l);
            hfn_attachment_release_forked(l->attachment);
        } else if (hfn_attachment_was_removed(l->attachment)) {
            end_attachment(l);
        }
        now_ns = hfn_os_monotonic_ns();
    }
    return HOTFN_OK;
}
