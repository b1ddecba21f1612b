/* SPDX-License-Identifier: MIT */
/* A session in the target of a launcher: it joins the launcher's live record and installs the launcher's
 * plans. */
#include "base/status.h"
#include "os/os.h"
#include "session/session.h"

#include <stdio.h>
#include <string.h>

/* Map the plan of a module, or find its earlier mapping.  A plan stays mapped for good, so a program that
 * loads and unloads a module again and again does not accumulate mappings. */
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
        plan->bytes = hfn_handover_map_plan(&s->link, module, &plan->byte_count);
        plan->next = s->plans;
        s->plans = plan;
    }
    return plan->bytes ? plan : NULL;
}

/* Request the plan from the launcher, which scans outside of this process. */
static void request_plan(void *user, const hotfn_request *request, bool is_main,
                         uint32_t *live_module, const void **plan, uint64_t *plan_bytes)
{
    hotfn_session *s = user;
    hotfn_request question = *request;
    question.kind = is_main ? HOTFN_REQUEST_MAIN : HOTFN_REQUEST_MODULE;
    *live_module = hfn_handover_ask(&s->link, &question);
    if (*live_module == UINT32_MAX) {
        return;
    }
    const hfn_mapped_plan *mapped = map_plan(s, *live_module);
    if (mapped) {
        *plan = mapped->bytes;
        *plan_bytes = mapped->byte_count;
    }
}

static void leave_channel(hotfn_session *s)
{
    hfn_handover_leave(&s->link);
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
                           : hotfn_live_function_name(p->live, live_module, function_index);
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

/* ---- Joining. */

static hotfn_status join_launcher(hotfn_session *s, const hotfn_join_options *o, hotfn_error *err)
{
    uint64_t begin_ns = hfn_os_thread_cpu_ns();
    hotfn_status status = hfn_session_claim(s, err);
    if (status == HOTFN_OK) {
        status = hotfn_live_join(&s->live, o->live_path, &s->env, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_handover_join(&s->link, o->handover_path, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_session_start(s, err);
    }
    if (status == HOTFN_OK) {
        hfn_handover_tell_stats(&s->link, &s->process.stats);
        hfn_handover_tell_start(&s->link, hfn_os_get_process_id(),
                                hfn_os_thread_cpu_ns() - begin_ns);
    }
    return status;
}

hotfn_status hotfn_session_join(hotfn_session **out, const hotfn_join_options *options,
                                const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }

    hotfn_join_options o;
    if (!hfn_copy_options(&o, sizeof o, options) || o.flags & ~HFN_SESSION_FLAGS || !o.live_path ||
        !o.handover_path) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown or missing join option");
    }
    hotfn_session *s = hfn_session_new(env);
    if (!s) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory");
    }
    s->flags = o.flags;
    s->source = (hfn_plan_source){ request_plan, s };
    s->release = leave_channel;
    /* Copied: plans of modules that are loaded later are mapped by this path. */
    const char *path = hfn_arena_copy(&s->texts, o.handover_path, strlen(o.handover_path));
    hotfn_join_options kept = o;
    kept.handover_path = path;
    hotfn_status status =
        path ? join_launcher(s, &kept, err)
             : hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory");
    if (status != HOTFN_OK) {
        hotfn_session_destroy(s);
        return status;
    }
    if (o.perf_map_path) {
        void *paused = hotfn_counters_pause();
        write_perf_map(s, o.perf_map_path);
        hotfn_counters_resume(paused);
    }
    *out = s;
    return HOTFN_OK;
}
