/* SPDX-License-Identifier: MIT */
/*
 * Compares the patches in processes of the run with memory while they run, once a second or, with
 * very many functions, for at most a 50th of a processor's time.  The time is that of the thread:
 * on a busy machine a look that waits for a processor would delay the next one by 50 times as much,
 * and the hooks would seem never to be compared.  A process compares them itself
 * when it ends, but not if it is killed.  A process that was attached to has nothing that compares
 * them, so they are compared once more before they are removed.
 *
 * The processes: the program that was started or attached to, unless another one is the target; and
 * those that have rows in the record.
 */
#include "base/status.h"
#include "launch/attach/attached.h"
#include "launch/launch.h"
#include "launch/watched_process.h"
#include "os/clock.h"
#include "os/hot_path.h"
#include "os/memory.h"

#include <string.h>

#define FIRST_NS UINT64_C(100000000)
#define INTERVAL_NS UINT64_C(1000000000)
#define MAX_SHARE 50u

enum { MAX_PROCESSES = 64 }; /* those that come later are not watched */

struct hfn_patch_watch {
    hfn_patch_look look;
    hfn_plan_channel *channel;
    hfn_watcher watcher;
    uint32_t pid; /* of the program; 0: another one is the target */
    hfn_watched_plan *plans;
    uint32_t plan_capacity;
    hfn_watched_process *processes[MAX_PROCESSES];
    uint32_t process_count;
};

/* ---- Plans. */

static void close_plan(hfn_watched_plan *p)
{
    if (p->bytes) {
        hotfn_plan_destroy(p->plan);
        hfn_os_unmap((uint64_t)(uintptr_t)p->bytes, p->byte_count);
    }
    *p = (hfn_watched_plan){ 0 };
}

static void open_plan(hfn_patch_watch *w, hfn_watched_plan *p, uint32_t module)
{
    p->bytes = hfn_plan_channel_view_plan(w->channel, module, &p->byte_count);
    if (p->bytes &&
        hotfn_plan_open(&p->plan, p->bytes, p->byte_count, 0, &w->look.env, NULL) != HOTFN_OK) {
        p->plan = NULL;
        close_plan(p);
    }
}

static bool open_plans(hfn_patch_watch *w)
{
    uint32_t count = hfn_shared_get32(w->look.live->base + HFN_AT_MODULES);

    if (count > w->plan_capacity) {
        hfn_watched_plan *more = hfn_resize_memory(
            &w->look.env, w->plans, w->plan_capacity * sizeof *more, count * sizeof *more);
        if (!more) {
            return false;
        }
        memset(more + w->plan_capacity, 0, (count - w->plan_capacity) * sizeof *more);
        w->plans = more;
        w->plan_capacity = count;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!w->plans[i].plan) {
            open_plan(w, &w->plans[i], i);
        }
    }
    w->look.plans = w->plans;
    w->look.plan_count = count;
    return true;
}

/* ---- Processes. */

static hfn_watched_process *find_process(const hfn_patch_watch *w, uint32_t pid)
{
    for (uint32_t i = 0; i < w->process_count; i++) {
        if (w->processes[i]->remote.pid == pid) {
            return w->processes[i];
        }
    }
    return NULL;
}

static hfn_watched_process *add_process(hfn_patch_watch *w, uint32_t pid)
{
    hfn_watched_process *p =
        w->process_count < MAX_PROCESSES ? hfn_allocate_zeroed(&w->look.env, sizeof *p) : NULL;

    if (p) {
        p->remote = (hfn_remote){ .env = hfn_env_fill(&w->look.env),
                                  .pid = pid,
                                  .is_child = pid == w->pid && !w->look.is_removed,
                                  .memory = HFN_OS_NO_FILE };
        w->processes[w->process_count++] = p;
    }
    return p;
}

static void list_process(hfn_patch_watch *w, uint32_t pid, uint32_t process)
{
    hfn_watched_process *p = find_process(w, pid);

    if (!p) {
        p = add_process(w, pid);
    }
    if (!p) {
        return;
    }
    if (process != 0 && p->process != process) { /* another program has the same id now */
        if (p->process != 0) {
            hfn_watched_process_forget(p, &w->look.env);
        }
        p->process = process;
    }
    p->is_listed = true;
}

/* A program that has called exec has other code, and perhaps no hooks. */
static bool executes_another(const hfn_thread_cell *cells, uint32_t count, uint32_t pid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (cells[i].pid == pid && (cells[i].row_variable & HFN_ROW_EXECUTES)) {
            return true;
        }
    }
    return false;
}

static void list_processes(hfn_patch_watch *w)
{
    const hfn_thread_cell *cells = hfn_live_cells(w->look.live);
    uint32_t used = hfn_live_rows_used(w->look.live);
    uint32_t pid_namespace = hfn_os_hot_process_namespace();

    for (uint32_t i = 0; i < w->process_count; i++) {
        w->processes[i]->is_listed = false;
    }
    if (w->pid != 0 && !executes_another(cells, used, w->pid)) {
        list_process(w, w->pid, 0);
    }
    for (uint32_t i = 0; i < used; i++) {
        if (cells[i].tid != 0 && cells[i].tid != UINT32_MAX && cells[i].pid != 0 &&
            cells[i].pid_namespace == pid_namespace &&
            !(cells[i].row_variable & HFN_ROW_EXECUTES)) {
            list_process(w, cells[i].pid, cells[i].process);
        }
    }
}

static void remove_process(hfn_patch_watch *w, uint32_t index)
{
    hfn_watched_process *p = w->processes[index];

    hfn_watched_process_forget(p, &w->look.env);
    hfn_os_remote_finish(&p->remote);
    hfn_free_memory(&w->look.env, p, sizeof *p);
    w->processes[index] = w->processes[--w->process_count];
}

/* ---- A look. */

static void look_at_all(hfn_patch_watch *w)
{
    bool all_in_place = true;

    if (!open_plans(w)) {
        return;
    }
    list_processes(w);
    for (uint32_t i = w->process_count; i-- > 0;) {
        if (!w->processes[i]->is_listed) {
            remove_process(w, i);
        } else {
            all_in_place &= hfn_watched_process_look(w->processes[i], &w->look);
        }
    }
    if (all_in_place && w->process_count > 0) {
        hfn_live_set_checked(w->look.live, hfn_os_wall_ns());
    }
}

static void watch_patches(void *user)
{
    hfn_patch_watch *w = user;
    uint64_t wait_ns = w->look.is_removed ? 1 : FIRST_NS;

    while (hfn_watcher_sleep(&w->watcher, wait_ns)) {
        uint64_t begin_ns = hfn_os_thread_cpu_ns();
        look_at_all(w);
        uint64_t spent_ns = hfn_os_thread_cpu_ns() - begin_ns;
        wait_ns = spent_ns * MAX_SHARE > INTERVAL_NS ? spent_ns * MAX_SHARE : INTERVAL_NS;
    }
}

/* ---- Start and end. */

static bool was_removed(const void *user)
{
    return hfn_attachment_was_removed(user);
}

void hfn_patch_watch_start(hotfn_launch *l)
{
    if (!hfn_os_can_change_others()) {
        return; /* the memory of another process cannot be read here */
    }
    hfn_patch_watch *w = hfn_allocate_zeroed(&l->env, sizeof *w);
    if (!w) {
        return;
    }
    w->look = (hfn_patch_look){ .env = l->env,
                                .live = l->live,
                                .is_removed = l->attachment ? was_removed : NULL,
                                .user = l->attachment };
    w->channel = l->channel;
    w->pid = l->options.target_glob ? 0 : l->child.pid;
    l->patch_watch = w;
    if (!hfn_watcher_start(&w->watcher, watch_patches, w)) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "no thread can be started: hooks are not compared while the program runs");
    }
}

void hfn_patch_watch_stop(hotfn_launch *l, bool with_last_look)
{
    hfn_patch_watch *w = l->patch_watch;

    if (!w) {
        return;
    }
    hfn_watcher_stop(&w->watcher);
    w->look.is_last = with_last_look;
    if (with_last_look) {
        look_at_all(w);
    }
    while (w->process_count > 0) {
        remove_process(w, w->process_count - 1);
    }
    for (uint32_t i = 0; i < w->plan_capacity; i++) {
        close_plan(&w->plans[i]);
    }
    hfn_free_memory(&w->look.env, w->plans, w->plan_capacity * sizeof *w->plans);
    l->patch_watch = NULL;
    hfn_free_memory(&l->env, w, sizeof *w);
}
