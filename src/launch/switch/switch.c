/* SPDX-License-Identifier: MIT */
/*
 * Carries out an order: patches are removed and written from outside, as the budget does it
 * (launch/budget/unpatch.c), so the target needs no agent for it and pays nothing.
 *
 *   running   find the bytes of each hook, unless they are known
 *   stopped   for each process of the target, and GROUP functions at a time: change the bytes
 *
 *     TIMED <--(the instruction that leads to the timing tail)--> COUNTED
 *     both  <--(patches of the entry and of the calls)----------> UNHOOKED
 *
 * A function is hooked again only while no thread is inside the bytes that its patch replaces; it
 * is tried again for a while.  Functions that a tracer of methods has replaced follow at the end
 * of each stop (methods.c).  Only bytes that are as expected are changed, so a process that runs
 * another program, or whose hooks are gone, is left alone.
 */
#include "launch/switch/switch.h"

#include "arch/stub.h"
#include "base/memory.h"
#include "base/status.h"
#include "launch/attach/attached.h"
#include "launch/launch.h"
#include "os/local_socket.h"
#include "os/os.h"

#include <string.h>

enum { GROUP = 1024, TRIES = 25, PASSES = 4 };
#define STOP_TIMEOUT_NS UINT64_C(200000000)
#define PAUSE_NS UINT64_C(4000000)

typedef struct process_list {
    const hotfn_env *env;
    uint32_t *pids;
    size_t count, capacity;
    int fd;
    bool ok;
} process_list;

/* One order. */
typedef struct change {
    hotfn_launch *launch;
    hfn_switch *s;
    process_list processes;
    hfn_target_pages *pages;
    hotfn_switch_result result;
    hfn_os_error error;    /* of the latest stop that failed */
    const uint32_t *group; /* functions that are changed now */
    uint32_t group_count;
    bool is_replaced_busy; /* a thread is inside a function that is replaced again */
    hfn_remote_range ranges[GROUP];
} change;

/* ---- Processes. */

static void add_process(process_list *list, uint32_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->pids[i] == pid) {
            return;
        }
    }
    if (!hfn_grow_array(list->env, (void **)&list->pids, &list->capacity, list->count + 1,
                        sizeof *list->pids)) {
        list->ok = false;
        return;
    }
    list->pids[list->count++] = pid;
}

static void add_sharer(void *user, uint32_t pid)
{
    process_list *list = user;

    if (hfn_os_process_maps_file(pid, list->fd)) {
        add_process(list, pid);
    }
}

/* The program, and the processes that it has forked: all that map its record.  A durable record has
 * another name, but names its processes. */
static bool find_processes(change *c)
{
    process_list *list = &c->processes;
    const hfn_thread_cell *cells = hfn_live_cells(c->s->live);

    list->env = &c->launch->env;
    list->fd = hfn_live_get_fd(c->s->live);
    list->ok = true;
    if (!c->launch->options.target_glob) {
        add_process(list, c->launch->child.pid);
    }
    for (uint32_t i = 0; i < hfn_live_rows_used(c->s->live); i++) {
        if (cells[i].pid != 0 && cells[i].pid != c->launch->child.pid) {
            add_sharer(list, cells[i].pid);
        }
    }
    hfn_os_remote_each_sharer(HFN_RECORD_MEMORY_NAME, add_sharer, list);
    return list->ok;
}

/* ---- Finding the bytes. */

static void find_bytes(change *c, hfn_switched *f)
{
    const hotfn_env *env = &c->launch->env;
    const hotfn_launch *l = c->launch;

    if (!f->hook) {
        c->s->modules[f->module].uncounts = l->attachment && hfn_attachment_uncounts(l->attachment);
        f->hook = hfn_unpatch_create_record(&c->s->modules[f->module], f->entry, c->pages, env);
    }
    if (f->hook && f->can_time && !f->timing) {
        f->timing = hfn_unpatch_create_timing(f->hook->stub, c->pages, env);
    }
}

static void find_replaced_hooks(change *c)
{
    for (uint32_t i = 0; i < c->s->replaced_count; i++) {
        hfn_switched_replaced *r = &c->s->replaced[i];
        if (!r->hook) {
            r->hook = hfn_unpatch_create_record(&c->s->modules[r->module], r->entry, c->pages,
                                                &c->launch->env);
        }
    }
}

static void find_hooks(change *c, uint32_t pid)
{
    hfn_remote remote = { .env = c->launch->env, .pid = pid, .memory = HFN_OS_NO_FILE };

    if (hfn_os_remote_open(&remote) == 0) {
        c->pages->remote = &remote;
        for (uint32_t i = 0; i < c->group_count; i++) {
            find_bytes(c, &c->s->functions[c->group[i]]);
        }
        find_replaced_hooks(c);
        hfn_target_pages_write_back(c->pages);
        hfn_os_remote_close(&remote);
    }
    hfn_os_remote_finish(&remote);
}

/* ---- Changing them. */

static bool needs_hook(const hfn_switched *f)
{
    return f->wanted != HOTFN_BUDGET_UNHOOKED && f->level == HOTFN_BUDGET_UNHOOKED;
}

/* Mark the functions in [begin, end) of the group that a thread is inside of. */
static void mark_busy(change *c, const hfn_remote *remote, uint32_t begin, uint32_t end)
{
    uint32_t count = 0, middle = begin + (end - begin) / 2;

    for (uint32_t i = begin; i < end; i++) {
        const hfn_switched *f = &c->s->functions[c->group[i]];
        if (f->hook && needs_hook(f)) {
            count += hfn_unpatch_get_range(f->hook, &c->ranges[count]);
        }
    }
    if (count == 0 || !hfn_os_remote_is_inside(remote, c->ranges, count)) {
        return;
    }
    if (end - begin == 1) {
        c->s->functions[c->group[begin]].is_busy = true;
        return;
    }
    mark_busy(c, remote, begin, middle);
    mark_busy(c, remote, middle, end);
}

/* True if bytes were changed. */
static bool change_function(const change *c, const hfn_switched *f)
{
    bool times = f->wanted == HOTFN_BUDGET_TIMED, is_changed = false;

    if (!f->hook || (f->can_time && !f->timing && f->wanted == HOTFN_BUDGET_COUNTED)) {
        return false;
    }
    if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
        return hfn_unpatch_function(f->hook, c->pages);
    }
    if (f->timing) {
        is_changed = times ? hfn_repatch_function(f->timing, c->pages)
                           : hfn_unpatch_function(f->timing, c->pages);
    }
    return f->level == HOTFN_BUDGET_UNHOOKED ? hfn_repatch_function(f->hook, c->pages) : is_changed;
}

/* Bytes that already have the wanted state are left alone. */
static void change_replaced(change *c, const hfn_remote *remote)
{
    hfn_remote_range range;

    c->is_replaced_busy = false;
    for (uint32_t i = 0; i < c->s->replaced_count && c->s->has_methods; i++) {
        const hfn_unpatch_record *hook = c->s->replaced[i].hook;
        if (!hook) {
            continue;
        }
        if (c->s->is_restored) {
            hfn_unpatch_function(hook, c->pages);
        } else if (hfn_unpatch_get_range(hook, &range) &&
                   hfn_os_remote_is_inside(remote, &range, 1)) {
            c->is_replaced_busy = true;
        } else {
            hfn_repatch_function(hook, c->pages);
        }
    }
}

/* The levels in the record change while the target is stopped: when the target ends, it compares
 * its patches with these levels. */
static void change_stopped(change *c, hfn_remote *remote)
{
    mark_busy(c, remote, 0, c->group_count);
    for (uint32_t i = 0; i < c->group_count; i++) {
        hfn_switched *f = &c->s->functions[c->group[i]];
        if (!f->is_busy && change_function(c, f)) {
            f->is_done = true;
            hfn_live_set_level(c->s->live, c->group[i], f->wanted);
        }
    }
    change_replaced(c, remote);
    hfn_target_pages_write_back(c->pages);
}

/* A program that was started is a child, also if it is attached to at its entry point. */
static bool is_child(const hotfn_launch *l, uint32_t pid)
{
    return pid == l->child.pid && (!l->attachment || l->target.is_outside);
}

/* Returns false if the process could not be stopped. */
static bool change_process(change *c, uint32_t pid)
{
    hfn_remote remote = { .env = c->launch->env,
                          .pid = pid,
                          .is_child = is_child(c->launch, pid),
                          .memory = HFN_OS_NO_FILE };
    hfn_os_error error = hfn_os_remote_open(&remote);

    if (error == 0) {
        c->pages->remote = &remote;
        error = hfn_os_remote_stop(&remote, STOP_TIMEOUT_NS);
        if (error == 0) {
            change_stopped(c, &remote);
        }
        c->result.stop_ns += hfn_os_remote_get_stopped_ns(&remote);
        while (!hfn_os_remote_resume(&remote)) {
            hfn_os_remote_wait_end(pid, 1000000);
        }
        hfn_os_remote_close(&remote);
    }
    hfn_os_remote_finish(&remote);
    c->error = error != 0 && !hfn_os_is_gone(error) ? error : c->error;
    return error == 0;
}

/* ---- Groups. */

static bool clear_busy(const change *c)
{
    bool was_busy = c->is_replaced_busy;

    for (uint32_t i = 0; i < c->group_count; i++) {
        hfn_switched *f = &c->s->functions[c->group[i]];
        was_busy |= f->is_busy;
        f->is_busy = false;
    }
    return was_busy;
}

static void refuse_busy(const change *c)
{
    for (uint32_t i = 0; i < c->group_count; i++) {
        hfn_switched *f = &c->s->functions[c->group[i]];
        f->is_refused |= f->is_busy;
        f->is_busy = false;
    }
}

/* Try until the process was stopped and no thread is inside a function that is hooked again.
 * Returns false if it could not be stopped, or has ended. */
static bool change_group_in(change *c, uint32_t pid)
{
    bool was_stopped = false, is_open = true;

    find_hooks(c, pid);
    for (int n = 0; n < TRIES && is_open; n++) {
        if (n > 0 && hfn_os_remote_wait_end(pid, PAUSE_NS)) {
            break;
        }
        is_open = !change_process(c, pid);
        was_stopped |= !is_open;
        is_open |= n + 1 < TRIES && clear_busy(c);
    }
    refuse_busy(c);
    return was_stopped;
}

/* Change all functions in one process. */
static void change_in(change *c, uint32_t pid)
{
    bool is_good = true;
    size_t i = 0;

    do {
        size_t left = c->s->chosen_count - i;
        c->group = c->s->chosen + i;
        c->group_count = left < GROUP ? (uint32_t)left : GROUP;
        is_good = change_group_in(c, pid);
        i += GROUP;
    } while (i < c->s->chosen_count && is_good);
    if (is_good) {
        c->result.process_count++;
    } else if (!hfn_os_process_is_gone(pid)) {
        c->result.failed_process_count++;
    }
}

static void count_changed(change *c)
{
    for (size_t i = 0; i < c->s->chosen_count; i++) {
        hfn_switched *f = &c->s->functions[c->s->chosen[i]];

        if (f->is_refused) {
            c->result.busy_count++;
        } else if (f->is_done) {
            f->level = f->wanted;
            c->result.switched_count++;
        } else {
            c->result.foreign_count++;
        }
    }
}

/* ---- The order. */

static uint32_t get_wanted(const hfn_switched *f, uint32_t mode)
{
    return mode == HOTFN_SWITCH_OFF                   ? HOTFN_BUDGET_UNHOOKED
           : mode == HOTFN_SWITCH_TIME && f->can_time ? HOTFN_BUDGET_TIMED
                                                      : HOTFN_BUDGET_COUNTED;
}

/* Keep the functions whose level changes, in the order in which the selection has found them. */
static void drop_unchanged(change *c, uint32_t mode)
{
    hfn_switch *s = c->s;
    size_t kept = 0;

    c->result.matched_count = (uint32_t)s->chosen_count;
    for (size_t i = 0; i < s->chosen_count; i++) {
        hfn_switched *f = &s->functions[s->chosen[i]];
        f->wanted = (uint8_t)get_wanted(f, mode);
        f->is_done = f->is_busy = f->is_refused = false;
        c->result.count_only_count += mode == HOTFN_SWITCH_TIME && !f->can_time;
        if (f->wanted != f->level) {
            s->chosen[kept++] = s->chosen[i];
        }
    }
    s->chosen_count = kept;
}

static bool has_work(const change *c)
{
    return c->s->chosen_count > 0 || (c->s->has_methods && c->s->replaced_count > 0);
}

/* A process that was forked meanwhile, before its parent was changed, is found in the next pass. */
static hotfn_status change_chosen(change *c, hotfn_error *err)
{
    process_list *list = &c->processes;
    size_t next = 0;

    for (int pass = 0; pass < PASSES && has_work(c); pass++) {
        if (!find_processes(c)) {
            return hfn_report_no_memory(err, NULL);
        }
        for (; next < list->count; next++) {
            change_in(c, list->pids[next]);
        }
    }
    count_changed(c);
    if (has_work(c) && c->result.process_count == 0) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "process %u could not be stopped for the change (%s): try again",
                                c->launch->child.pid,
                                c->error ? hfn_os_get_error_text(c->error) : "it has ended");
    }
    return HOTFN_OK;
}

static hotfn_status refuse_order(hotfn_error *err, hotfn_status status, const char *text)
{
    return hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "%s", text);
}

static hotfn_status check_launch(const hotfn_launch *l, const hotfn_switch_order *order,
                                 hotfn_error *err)
{
    if (!hfn_os_can_change_others() || !hfn_os_has_local_sockets()) {
        return refuse_order(err, HOTFN_E_UNSUPPORTED, "functions can be switched on Linux only");
    }
    if (l->target.machine == HOTFN_MACHINE_X86 &&
        hfn_stub_get_patching()->machine != HOTFN_MACHINE_X86) {
        return refuse_order(
            err, HOTFN_E_UNSUPPORTED,
            "functions of 32-bit programs cannot be switched: choose them at the start "
            "(-f, -x)");
    }
    if (order->mode == HOTFN_SWITCH_COUNT && l->timing && !hfn_stub_has_edits()) {
        return refuse_order(
            err, HOTFN_E_UNSUPPORTED,
            "on this CPU a timed function can be switched off, and on again by --mode time, "
            "but not to counting");
    }
    if (l->options.budget_ppm) {
        return refuse_order(err, HOTFN_E_STATE,
                            "the budget of this run decides which functions are hooked: start it "
                            "without --budget to switch them");
    }
    if (order->mode == HOTFN_SWITCH_TIME && !l->timing) {
        return refuse_order(
            err, HOTFN_E_UNSUPPORTED,
            "this run only counts, and its hooks cannot time: start it with --mode time, "
            "and switch its functions to count until their times are needed");
    }
    return HOTFN_OK;
}

static void free_change(change *c)
{
    hotfn_env env = c->launch->env;

    hfn_free_memory(&env, c->processes.pids, c->processes.capacity * sizeof *c->processes.pids);
    hfn_free_memory(&env, c->pages, sizeof *c->pages);
    hfn_free_memory(&env, c, sizeof *c);
}

static change *create_change(hotfn_launch *l)
{
    change *c = hfn_allocate_zeroed(&l->env, sizeof *c);

    if (!c) {
        return NULL;
    }
    c->launch = l;
    c->s = &l->switching;
    c->result = (hotfn_switch_result)HOTFN_SWITCH_RESULT_INIT;
    c->pages = hfn_allocate_unset(&l->env, sizeof *c->pages);
    if (!c->pages) {
        free_change(c);
        return NULL;
    }
    memset(c->pages, 0, offsetof(hfn_target_pages, bytes));
    return c;
}

/* Carry out the order for the functions that are chosen. */
static hotfn_status change_selected(hotfn_launch *l, uint32_t mode, hotfn_switch_result *out,
                                    hotfn_error *err)
{
    change *c = create_change(l);
    hotfn_status status;

    if (!c) {
        return hfn_report_no_memory(err, NULL);
    }
    drop_unchanged(c, mode);
    status = change_chosen(c, err);
    if (status == HOTFN_OK) {
        status = hfn_copy_result(out, &c->result, sizeof c->result);
    }
    free_change(c);
    return status;
}

static hotfn_status split_methods(hotfn_launch *l, const hotfn_switch_order *order,
                                  hotfn_error *err)
{
    hotfn_switch_result unused = HOTFN_SWITCH_RESULT_INIT;
    hotfn_status status;

    return hfn_switch_split_methods(l, order, &status, err)
               ? change_selected(l, order->mode, &unused, err)
               : status;
}

/* A method that gets its function after the target has received the order obeys the order; the
 * second selection finds the methods that got theirs before. */
static hotfn_status select_functions(hotfn_launch *l, const hotfn_switch_order *order,
                                     hotfn_error *err)
{
    hotfn_status status = hfn_switch_select(&l->switching, order, &l->env, err); /* checks it */

    if (status == HOTFN_OK) {
        status = hfn_switch_order_methods(l, order, err);
    }
    if (status == HOTFN_OK && l->switching.has_methods) {
        status = hfn_switch_select(&l->switching, order, &l->env, err);
    }
    return status;
}

static hotfn_status run_order(hotfn_launch *l, const hotfn_switch_order *order,
                              hotfn_switch_result *out, hotfn_error *err)
{
    hfn_switch *s = &l->switching;
    hotfn_status status;

    if (!s->live || (l->attachment && hfn_attachment_was_removed(l->attachment))) {
        return refuse_order(err, HOTFN_E_STATE,
                            "the run has ended: no function is hooked any more");
    }
    status = split_methods(l, order, err);
    if (status == HOTFN_OK) {
        status = select_functions(l, order, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (s->chosen_count == 0 && !s->has_methods) {
        return refuse_order(
            err, HOTFN_E_NOT_FOUND,
            "no hooked function matches (hotfn report RECORD lists those that are)");
    }
    return change_selected(l, order->mode, out, err);
}

hotfn_status hotfn_launch_switch(hotfn_launch *l, const hotfn_switch_order *order,
                                 hotfn_switch_result *out, hotfn_error *err)
{
    hotfn_switch_order taken;
    hotfn_switch_result unused = HOTFN_SWITCH_RESULT_INIT;
    hotfn_status status;

    if (!l || !order) {
        return hfn_report_null(err, __func__);
    }
    if (!hfn_copy_options(&taken, sizeof taken, order) || taken.mode < HOTFN_SWITCH_OFF ||
        taken.mode > HOTFN_SWITCH_TIME || (taken.module_count > 0 && !taken.modules)) {
        return refuse_order(err, HOTFN_E_OPTION, "unknown option of the order");
    }
    status = check_launch(l, &taken, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hfn_os_lock_mutex(&l->switching.lock);
    status = run_order(l, &taken, out ? out : &unused, err);
    hfn_os_unlock_mutex(&l->switching.lock);
    return status;
}

/* ---- The life of the state. */

void hfn_switch_init(hfn_switch *s)
{
    s->listener = HFN_OS_NO_LISTENER;
    hfn_os_init_mutex(&s->lock);
}

void hfn_switch_finish(hfn_switch *s)
{
    hfn_os_destroy_mutex(&s->lock);
}

void hfn_switch_forget(hfn_switch *s, const hotfn_env *env)
{
    for (size_t i = 0; i < s->function_capacity; i++) {
        hfn_unpatch_free_record(s->functions[i].hook, env);
        hfn_unpatch_free_record(s->functions[i].timing, env);
    }
    hfn_switch_forget_methods(s, env);
    for (size_t i = 0; i < s->module_capacity; i++) {
        hfn_patched_module_finish(&s->modules[i], env);
    }
    hfn_free_memory(env, s->functions, s->function_capacity * sizeof *s->functions);
    hfn_free_memory(env, s->modules, s->module_capacity * sizeof *s->modules);
    hfn_free_memory(env, s->chosen, s->chosen_capacity * sizeof *s->chosen);
    s->functions = NULL;
    s->modules = NULL;
    s->chosen = NULL;
    s->function_capacity = s->module_capacity = s->chosen_capacity = s->chosen_count = 0;
    s->live = NULL;
    s->channel = NULL;
}

void hfn_switch_pause(hotfn_launch *l)
{
    hfn_os_lock_mutex(&l->switching.lock);
}

void hfn_switch_resume(hotfn_launch *l)
{
    hfn_os_unlock_mutex(&l->switching.lock);
}
