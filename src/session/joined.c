/* SPDX-License-Identifier: MIT */
/* A session in the target of a launcher: it joins the launcher's live record and installs the
 * launcher's plans. */
#include "session/joined.h"
#include "base/status.h"
#include "os/os.h"
#include "session/session.h"

#include <stdio.h>
#include <string.h>

/* Map the plan of a module, or find its earlier mapping.  A plan stays mapped until the session
 * ends, so a program that loads and unloads a module again and again does not accumulate
 * mappings. */
static const hfn_mapped_plan *map_plan(hotfn_session *s, uint32_t module)
{
    hfn_mapped_plan *plan = s->plans;
    while (plan && plan->live_module != module) {
        plan = plan->next;
    }
    if (!plan) {
        plan = hfn_arena_alloc(&s->texts, sizeof *plan);
        if (!plan) {
            return NULL;
        }
        plan->live_module = module;
        plan->bytes = hfn_plan_client_map_plan(&s->client, module, &plan->byte_count);
        plan->next = s->plans;
        s->plans = plan;
    }
    return plan->bytes ? plan : NULL;
}

/* Request the plan from the launcher, which scans outside of this process. */
static void request_plan(void *user, const hfn_plan_request *request, bool is_main,
                         uint32_t *live_module, const void **plan, uint64_t *plan_bytes)
{
    hotfn_session *s = user;
    hfn_plan_request asked = *request;
    asked.kind = is_main ? HFN_PLAN_REQUEST_MAIN : HFN_PLAN_REQUEST_MODULE;
    *live_module = hfn_plan_client_request(&s->client, &asked);
    if (*live_module == UINT32_MAX) {
        return;
    }
    const hfn_mapped_plan *mapped = map_plan(s, *live_module);
    if (mapped) {
        *plan = mapped->bytes;
        *plan_bytes = mapped->byte_count;
    }
}

/* Unmap the plans and leave the channel, after the hooks that use the plans were removed. */
static void leave_channel(hotfn_session *s)
{
    for (hfn_mapped_plan *plan = s->plans; plan; plan = plan->next) {
        if (plan->bytes) {
            hfn_os_unmap((uint64_t)(uintptr_t)plan->bytes, plan->byte_count);
        }
    }
    s->plans = NULL;
    hfn_plan_client_leave(&s->client);
}

/* ---- Names of stubs for perf and other tools: a line `address size name` per stub. */

typedef struct perf_map {
    hotfn_session *session;
    hfn_os_file file;
    size_t used;
    char buffer[8192];
} perf_map;

static void flush_map(perf_map *map)
{
    hfn_os_write_next(map->file, map->buffer, map->used);
    map->used = 0;
}

static void write_stub_name(void *user, uint64_t address, uint32_t byte_count,
                            uint32_t hooks_module, uint32_t function_index)
{
    perf_map *map = user;
    const hfn_process *p = &map->session->process;
    uint32_t live_module = UINT32_MAX;
    for (size_t i = 0; i < p->loaded_count; i++) {
        if (p->loaded[i].hooks_module == hooks_module) {
            live_module = p->loaded[i].live_module;
        }
    }
    if (map->used + 1024 > sizeof map->buffer) {
        flush_map(map);
    }
    const char *name = live_module == UINT32_MAX
                           ? NULL
                           : hfn_live_get_function_name(p->live, live_module, function_index);
    int n = snprintf(map->buffer + map->used, 1024, "%llx %x hotfn:stub:%.900s\n",
                     (unsigned long long)address, byte_count, name ? name : "?");
    map->used += n > 0 && n < 1024 ? (size_t)n : 0;
}

static void write_perf_map(hotfn_session *s, const char *path)
{
    perf_map map = { .session = s };
    if (hfn_os_open_file(&map.file, path, HFN_OS_WRITE | HFN_OS_APPEND | HFN_OS_PRIVATE) != 0) {
        hfn_log_message(&s->env, HOTFN_LOG_WARNING, "%s: the names of stubs cannot be written",
                        path);
        return;
    }
    hotfn_hooks_each_stub(s->process.hooks, write_stub_name, &map);
    flush_map(&map);
    hfn_os_close_file(map.file);
}

/* ---- Programs that follow, and children. */

hotfn_status hfn_session_request_image(const char *channel_path, hfn_run_files *out,
                                       hotfn_error *err)
{
    hfn_plan_client client = { 0 };
    hfn_plan_request request = { .kind = HFN_PLAN_REQUEST_IMAGE };
    hotfn_status status = hfn_plan_client_join(&client, channel_path, err);

    if (status != HOTFN_OK) {
        return status;
    }
    hfn_os_get_program_name(request.path, sizeof request.path);
    if (!hfn_plan_client_request_image(&client, &request, out)) {
        status = hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                  "the launcher has no record for this program");
    }
    hfn_plan_client_leave(&client);
    return status;
}

uint32_t hfn_session_report_exec(uint32_t pid, const char *path, bool is_own)
{
    hotfn_session *s = hfn_session_current();
    return s && s->client.shared ? hfn_plan_client_report_exec(&s->client, pid, path, is_own)
                                 : UINT32_MAX;
}

void hfn_session_report_exec_failed(uint32_t number)
{
    hotfn_session *s = hfn_session_current();
    if (s && s->client.shared && number != UINT32_MAX) {
        hfn_plan_client_report_exec_failed(&s->client, number);
    }
}

/* ---- Joining. */

static hotfn_status join_launcher(hotfn_session *s, const hfn_join_options *o, hotfn_error *err)
{
    uint64_t begin_ns = hfn_os_thread_cpu_ns();
    hotfn_status status = hfn_session_claim(s, err);
    if (status == HOTFN_OK) {
        status = hfn_live_join(&s->live, o->live_path, &s->env, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_plan_client_join(&s->client, o->channel_path, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_session_start(s, err);
    }
    if (status == HOTFN_OK) {
        hfn_plan_client_report_stats(&s->client, &s->process.stats);
        hfn_plan_client_report_start(&s->client, hfn_os_get_process_id(),
                                     hfn_os_thread_cpu_ns() - begin_ns);
    }
    return status;
}

hotfn_status hfn_session_join(hotfn_session **out, const hfn_join_options *options,
                              const hotfn_env *env, hotfn_error *err)
{
    hfn_join_options kept = *options;
    hotfn_status status;
    hotfn_session *s;

    if (kept.flags & ~HFN_SESSION_FLAGS || !kept.live_path || !kept.channel_path) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown flag, or no path of the live record or the plan channel");
    }
    s = hfn_session_new(env);
    if (!s) {
        return hfn_report_no_memory(err, NULL);
    }
    s->flags = kept.flags;
    s->runtime = kept.runtime;
    s->source = (hfn_plan_source){ .find = request_plan, .user = s };
    s->release = leave_channel;
    /* The session copies the path, because it maps the plans of modules that are loaded later. */
    kept.channel_path = hfn_arena_copy(&s->texts, kept.channel_path, strlen(kept.channel_path));
    status = kept.channel_path ? join_launcher(s, &kept, err) : hfn_report_no_memory(err, NULL);
    if (status != HOTFN_OK) {
        hotfn_session_destroy(s);
        return status;
    }
    if (kept.perf_map_path) {
        void *paused = hotfn_counters_pause();
        write_perf_map(s, kept.perf_map_path);
        hotfn_counters_resume(paused);
    }
    *out = s;
    return HOTFN_OK;
}

/* ---- Leaving. */

static hotfn_status remove_hooks(hfn_process *p, hotfn_error *err)
{
    enum { ATTEMPTS = 20 };
    hotfn_status status = HOTFN_E_STATE;

    hfn_process_begin_change(p);
    for (int i = 0; i < ATTEMPTS && status == HOTFN_E_STATE; i++) {
        status = hotfn_hooks_remove(p->hooks, err);
    }
    hfn_process_end_change(p);
    return status;
}

hotfn_status hfn_session_leave(hotfn_session **session, hotfn_error *err)
{
    hotfn_session *s = *session;
    hotfn_error why = HOTFN_ERROR_INIT;
    hotfn_status status;
    void *paused = hotfn_counters_pause();

    hfn_session_verify(); /* the patches are compared while they are in place */
    status = remove_hooks(&s->process, &why);
    if (status == HOTFN_E_STATE || status == HOTFN_E_NO_MEMORY) {
        hfn_session_revoke_verified();
        hotfn_counters_resume(paused);
        return hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "%s", why.text);
    }
    if (!hfn_process_wait_outside(s->process.hooks)) {
        hotfn_counters_resume(paused);
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "its code is restored, but a thread stays in code of hotfn");
    }
    hotfn_session_destroy(s);
    *session = NULL;
    hotfn_counters_resume(paused);
    if (status != HOTFN_OK) {
        hfn_report_error(err, HOTFN_OK, NULL, HOTFN_NO_OFFSET, "%s", why.text);
    }
    return HOTFN_OK;
}
