/* SPDX-License-Identifier: MIT */
/* Keeps the hooks' cost within a share of the target's processor time, from outside the target
 * (docs/design/budget.md).  Each step multiplies the calls since the last one by the measured cost
 * of a call, compares the sum with the target's processor time, and sets the sampling intervals
 * (times.c). If counting alone exceeds the share, the most called functions are unhooked.  Each is
 * rehooked for a trial later; the wait doubles if the function is still over budget. */
#include "launch/budget/budget.h"

#include "arch/stub.h"
#include "base/memory.h"
#include "base/status.h"
#include "live/live.h"
#include "live/plan_channel.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS HFN_BUDGET_MS
#define STEP_NS (10 * MS)              /* between two steps                             */
#define SHORT_STEPS_UNTIL_NS (50 * MS) /* of processor time; before that steps are short */
#define MIN_INTERVAL_NS (2 * MS)       /* of processor time; a shorter step is too noisy */
#define STOP_TIMEOUT_NS (100 * MS)
#define HELD_NS MS /* delay before the next attempt to resume a thread that is still stopped */
#define MAX_WAIT_NS (30000 * MS)
#define RESET_WAIT_NS (1000 * MS)     /* a function hooked for longer starts with the min wait */
#define STEP_TIME_DIVISOR 20          /* steps take at most 1/20 of the time     */
#define DEFAULT_STOP_NS MS            /* assumed duration of the first stop      */
#define COUNTS_PART 0.7               /* of the share for counting, if calls are timed too */
#define TIMED_PART 0.9                /* of the share for counting and timing together */
#define MAX_COST_PART 0.95            /* of the time; a higher estimate must be wrong */
#define MEASURE_INTERVAL_NS (50 * MS) /* between measurements of a call's cost */
#define MIN_REHOOKED_CALLS 64u /* so many calls prove that an unhooked function is hooked again */

/* ---- Creating and destroying. */

hotfn_status hfn_budget_create(hfn_budget **out, hfn_live *live, hfn_plan_channel *channel,
                               const hotfn_env *env, hotfn_error *err)
{
    if (!out || !live || !channel) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hfn_budget *b;

    if (!hfn_live_get_budget(live) || !hfn_os_is_open(live->file)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "the record was made without a budget");
    }
    if (!hfn_os_can_change_others()) {
        snprintf(hfn_live_get_budget(live)->note, sizeof b->header->note,
                 "a hotfn built for this CPU cannot keep a budget");
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
            "a hotfn built for this CPU cannot keep a budget; use a hotfn built for x86-64, which "
            "can, also for 32-bit programs");
    }
    b = hfn_allocate_zeroed(&filled, sizeof *b);
    if (b && !(b->pages = hfn_allocate_unset(&filled, sizeof *b->pages))) {
        hfn_free_memory(&filled, b, sizeof *b);
        b = NULL;
    }
    if (!b) {
        return hfn_report_no_memory(err, NULL);
    }
    b->env = filled;
    b->live = live;
    b->channel = channel;
    b->header = hfn_live_get_budget(live);
    b->share = (double)b->header->share_ppm / 1e6;
    b->remote = (hfn_remote){ .env = filled, .memory = HFN_OS_NO_FILE };
    memset(b->pages, 0, offsetof(hfn_target_pages, bytes));
    b->pages->remote = &b->remote;
    b->means = hfn_live_get_means(live);
    b->mean = b->means ? hfn_live_time_header(live)->sample_mean : 1;
    b->mean = b->mean ? b->mean : 1;
    b->start_ns = hfn_read_le64(live->base + HFN_AT_START_NS);
    b->count_ns = hfn_budget_measure(b->means != NULL);
    b->measured_ns = hfn_os_monotonic_ns();
    b->header->count_cost_ps = (uint64_t)(b->count_ns * 1e3);
    *out = b;
    return HOTFN_OK;
}

void hfn_budget_destroy(hfn_budget *b)
{
    hotfn_env env;

    if (!b) {
        return;
    }
    env = b->env;
    hfn_os_remote_resume(&b->remote);
    hfn_os_remote_finish(&b->remote);
    for (uint32_t i = 0; i < b->function_count; i++) {
        hfn_unpatch_free_record(b->functions[i].unpatch, &env);
    }
    for (uint32_t i = 0; i < b->module_count; i++) {
        hfn_patched_module_finish(&b->modules[i], &env);
    }
    hfn_free_memory(&env, b->functions, b->function_capacity * sizeof *b->functions);
    hfn_free_memory(&env, b->chosen, 2 * b->function_capacity * sizeof *b->chosen);
    hfn_free_memory(&env, b->modules, b->module_capacity * sizeof *b->modules);
    hfn_free_memory(&env, b->row, 2 * b->row_slots * sizeof *b->row);
    hfn_free_memory(&env, b->pages, sizeof *b->pages);
    hfn_free_memory(&env, b, sizeof *b);
}

/* ---- New modules and slots of the live record. */

static bool grow_functions(hfn_budget *b, uint32_t count)
{
    size_t old = b->function_capacity;
    hfn_function_budget *functions;
    uint32_t *slots;

    if (count <= b->function_capacity) {
        return true;
    }
    slots = hfn_allocate_unset(&b->env, 2 * count * sizeof *slots);
    functions = slots ? hfn_resize_memory(&b->env, b->functions, old * sizeof *functions,
                                          count * sizeof *functions)
                      : NULL;
    if (!functions) {
        hfn_free_memory(&b->env, slots, 2 * count * sizeof *slots);
        return false;
    }
    memset(functions + old, 0, (count - old) * sizeof *functions);
    if (b->called_count > 0) {
        memcpy(slots + count, b->called, b->called_count * sizeof *slots);
    }
    hfn_free_memory(&b->env, b->chosen, 2 * old * sizeof *slots);
    b->functions = functions;
    b->chosen = slots;
    b->called = slots + count;
    b->function_capacity = count;
    return true;
}

static void init_function(const hfn_budget *b, hfn_function_budget *f, uint32_t module,
                          uint32_t function)
{
    f->function = function;
    f->module = module;
    f->closest = b->means && hfn_live_is_timed(b->live, function) ? HOTFN_BUDGET_TIMED
                                                                  : HOTFN_BUDGET_COUNTED;
    f->level = f->closest;
}

/* Does nothing if the plan is not available yet; the next step then tries again. */
static void load_module_plan(hfn_budget *b, uint32_t index)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hfn_patched_module *m = &b->modules[index];
    const uint32_t *slots = hfn_live_get_slots(b->live, index);

    if (hfn_live_get_module(b->live, index, &known) != HOTFN_OK || !slots) {
        return;
    }
    if (known.load_base == 0 || known.function_count == 0) {
        return;
    }
    m->bytes = hfn_plan_channel_view_plan(b->channel, index, &m->byte_count);
    if (!m->bytes) {
        return;
    }
    if (hotfn_plan_open(&m->plan, m->bytes, m->byte_count, 0, &b->env, NULL) != HOTFN_OK) {
        hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
        return;
    }
    /* the position of a 32-bit thread cannot be read (os/remote.h) */
    b->never_rehooks |= m->plan->machine != hfn_stub_get_patching()->machine;
    m->base = known.load_base;
    m->first_function = known.first_function;
    m->function_count = known.function_count;
    for (uint32_t i = 0; i < known.function_count; i++) {
        if (slots[i] < b->function_count) {
            init_function(b, &b->functions[slots[i]], index, known.first_function + i);
        }
    }
}

static bool update_known_slots(hfn_budget *b)
{
    /* the shared counts: another thread of this process adds modules concurrently */
    uint32_t count = hfn_shared_get32(b->live->base + HFN_AT_MODULES);
    uint32_t slots = hfn_shared_get32(b->live->base + HFN_AT_SLOTS);

    if (slots > b->function_count) {
        if (!grow_functions(b, slots)) {
            return false;
        }
        b->function_count = slots;
    }
    if (count > b->module_capacity) {
        uint32_t capacity = count + 16;
        hfn_patched_module *more = hfn_resize_memory(
            &b->env, b->modules, b->module_capacity * sizeof *more, capacity * sizeof *more);
        if (!more) {
            return false;
        }
        memset(more + b->module_capacity, 0, (capacity - b->module_capacity) * sizeof *more);
        b->modules = more;
        b->module_capacity = capacity;
    }
    b->module_count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!b->modules[i].plan) {
            load_module_plan(b, i);
        }
    }
    return true;
}

/* ---- Call counts.  Read by pread: a read through a mapping would fill the file's holes. */

static bool add_row(hfn_budget *b, uint32_t row)
{
    uint64_t at = b->live->layout.sections[HFN_SECTION_ROWS].offset +
                  (uint64_t)row * b->live->layout.row_bytes;
    uint64_t bytes = b->function_count * sizeof *b->row, done;
    if (hfn_os_read_at(b->live->file, at, b->row, bytes, &done) != 0 || done != bytes) {
        return false;
    }
    for (uint32_t i = 0; i < b->function_count; i++) {
        b->sums[i] += b->row[i];
    }
    return true;
}

static bool grow_row_buffers(hfn_budget *b)
{
    uint64_t *rows;

    if (b->function_count <= b->row_slots) {
        return true;
    }
    rows = hfn_allocate_unset(&b->env, 2 * b->function_count * sizeof *rows);
    if (!rows) {
        return false;
    }
    hfn_free_memory(&b->env, b->row, 2 * b->row_slots * sizeof *rows);
    b->row = rows;
    b->sums = rows + b->function_count;
    b->row_slots = b->function_count;
    return true;
}

/* Set each function's calls since the last complete step.  Later code visits only the functions in
 * `called`, since most functions are never called. */
static bool read_counts(hfn_budget *b, uint32_t pid)
{
    const hfn_thread_cell *cells = hfn_live_cells(b->live);
    uint32_t rows = hfn_live_rows_used(b->live);
    bool ok = true;

    if (!grow_row_buffers(b)) {
        return false;
    }
    memset(b->sums, 0, b->function_count * sizeof *b->sums);
    for (uint32_t i = 0; ok && i < rows; i++) {
        if (cells[i].pid == pid) {
            ok = add_row(b, i);
        }
    }
    for (uint32_t i = 0; i < b->function_count; i++) {
        if (b->sums[i] > 0 && !b->functions[i].was_called) {
            b->functions[i].was_called = true;
            b->called[b->called_count++] = i;
        }
    }
    for (uint32_t i = 0; i < b->called_count; i++) {
        hfn_function_budget *f = &b->functions[b->called[i]];
        uint64_t sum = b->sums[b->called[i]];
        f->calls = sum > f->last ? sum - f->last : 0;
    }
    return ok;
}

/* ---- Changing the target. */

static void set_note(hfn_budget *b, const char *problem, hfn_os_error error)
{
    b->is_stuck = true;
    snprintf(b->header->note, sizeof b->header->note, "%s: %s", problem,
             hfn_os_get_error_text(error));
}

void hfn_budget_set_level(hfn_budget *b, hfn_function_budget *f, uint32_t level, double run_ns)
{
    double cost = hfn_budget_cost(b, f), ppm = cost * 1e6 / run_ns;
    hfn_budget_change change = {
        .at_ns = hfn_os_wall_ns() - b->start_ns,
        .calls_per_second = (uint64_t)((double)f->calls * 1e9 / run_ns),
        .cost_ppm = ppm < UINT32_MAX ? (uint32_t)ppm : UINT32_MAX,
        .function = f->function,
        .from = f->level,
        .to = level,
        .why = level > f->level ? HOTFN_BUDGET_OVER_BUDGET : HOTFN_BUDGET_TRY,
    };

    hfn_live_add_change(b->live, &change);
    if (change.why == HOTFN_BUDGET_OVER_BUDGET) {
        bool again = f->wait_ns > 0 && b->header->cpu_ns - f->rehooked_ns < RESET_WAIT_NS;
        f->wait_ns = again ? 2 * f->wait_ns : HFN_BUDGET_MIN_WAIT_NS;
        f->wait_ns = f->wait_ns < MAX_WAIT_NS ? f->wait_ns : MAX_WAIT_NS;
        f->retry_ns = b->header->cpu_ns + f->wait_ns;
    } else {
        f->rehooked_ns = b->header->cpu_ns;
        f->retry_ns = f->rehooked_ns + HFN_BUDGET_MIN_WAIT_NS;
    }
    f->level = level;
}

/* Save the hooks of the functions to unhook.  A hook with unexpected bytes is never unhooked. */
static void create_unpatch_records(hfn_budget *b)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_function_budget *f = &b->functions[b->chosen[i]];
        hfn_patched_module *m = &b->modules[f->module];
        uint32_t entry;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            entry = hfn_plan_find_function(m->plan, f->function - m->first_function);
            if (entry != UINT32_MAX) {
                f->unpatch = hfn_unpatch_create_record(m, entry, b->pages, &b->env);
            }
            f->is_fixed = !f->unpatch;
        }
        if (!f->is_fixed) {
            b->chosen[kept++] = b->chosen[i];
        }
    }
    b->chosen_count = kept;
    hfn_target_pages_write_back(b->pages);
}

/* True if no thread executes the bytes that repatching would change. */
static bool are_ranges_free(hfn_budget *b)
{
    hfn_remote_range ranges[HFN_BUDGET_MAX_TRIES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        const hfn_function_budget *f = &b->functions[b->chosen[i]];
        if (f->wanted < f->level && f->unpatch && count < HFN_BUDGET_MAX_TRIES) {
            count += hfn_unpatch_get_range(f->unpatch, &ranges[count]);
        }
    }
    return count == 0 || !hfn_os_remote_is_inside(&b->remote, ranges, count);
}

static void drop_unpatch_record(hfn_budget *b, hfn_function_budget *f)
{
    hfn_unpatch_free_record(f->unpatch, &b->env);
    f->unpatch = NULL;
}

/* Unpatch and repatch the chosen functions; the target is stopped. */
static void patch_chosen(hfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_function_budget *f = &b->functions[b->chosen[i]];
        bool done = true;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_unpatch_function(f->unpatch, b->pages);
            if (!done) {
                drop_unpatch_record(b, f);
            }
        } else if (f->level == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_repatch_function(f->unpatch, b->pages);
            f->is_fixed = !done; /* its module was unloaded */
            drop_unpatch_record(b, f);
        }
        if (!done) {
            continue;
        }
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            f->rate = (double)f->calls * b->count_ns / run_ns;
            f->was_just_unhooked = true;
            hfn_budget_stop_timing(b, b->chosen[i]);
        }
        hfn_budget_set_level(b, f, f->wanted, run_ns);
        if (f->wanted == HOTFN_BUDGET_UNHOOKED && b->never_rehooks) {
            f->retry_ns = UINT64_MAX;
        }
    }
    hfn_target_pages_write_back(b->pages);
}

static void abandon_changes(hfn_budget *b)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_function_budget *f = &b->functions[b->chosen[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED) {
            drop_unpatch_record(b, f);
        } else {
            f->retry_ns = b->header->cpu_ns + HFN_BUDGET_MIN_WAIT_NS;
        }
    }
}

/* Add the stop to the cost.  Its duration begins when the first thread stops and excludes the time
 * that this thread waited for a processor on a busy machine. */
static void count_stop(hfn_budget *b, uint64_t begin_ns, hfn_os_error error)
{
    hfn_budget_header *h = b->header;
    uint64_t now_ns = hfn_os_monotonic_ns(), took_ns = hfn_os_remote_get_stopped_ns(&b->remote);

    h->stops++;
    h->failed_stops += error != 0;
    h->stopped_ns += took_ns;
    h->cost_ns += took_ns;
    h->longest_stop_ns = took_ns > h->longest_stop_ns ? took_ns : h->longest_stop_ns;
    b->next_stop_ns = now_ns + (error ? 20 : 2) * (now_ns - begin_ns);
    b->excess_ns = 0;
    if (error != 0 && !hfn_os_is_timeout(error) && !hfn_os_is_gone(error) &&
        !hfn_os_is_out_of_memory(error)) {
        set_note(b, "the target cannot be stopped for a change", error);
    }
}

static void apply_changes(hfn_budget *b, double run_ns)
{
    uint64_t begin_ns;
    hfn_os_error error = hfn_os_remote_open(&b->remote);

    if (error != 0) {
        set_note(b, "the target's memory cannot be changed", error);
        return;
    }
    create_unpatch_records(b);
    if (b->chosen_count > 0) {
        begin_ns = hfn_os_monotonic_ns();
        error = hfn_os_remote_stop(&b->remote, STOP_TIMEOUT_NS);
        if (error == 0 && are_ranges_free(b)) {
            patch_chosen(b, run_ns);
        } else {
            abandon_changes(b);
        }
        count_stop(b, begin_ns, error);
        b->is_held = !hfn_os_remote_resume(&b->remote);
    }
    hfn_os_remote_close(&b->remote);
}

/* ---- A step. */

/* If an unhooked function is counted again, its module was reloaded and hooked anew: update its
 * level. */
static void detect_rehooked(hfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->called_count; i++) {
        hfn_function_budget *f = &b->functions[b->called[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->calls < MIN_REHOOKED_CALLS ||
            f->was_just_unhooked) {
            f->was_just_unhooked = false;
            continue;
        }
        drop_unpatch_record(b, f);
        hfn_budget_set_level(b, f, HOTFN_BUDGET_COUNTED, run_ns);
    }
}

static double get_mean_stop_ns(const hfn_budget *b)
{
    return b->header->stops ? (double)b->header->stopped_ns / b->header->stops
                            : (double)DEFAULT_STOP_NS;
}

/* Choose the functions to unhook or rehook.  Unhooking waits until the excess since the last stop
 * is as large as the cost of a stop: the excess will probably recur, and the saving then pays for
 * the stop. */
static void choose_changes(hfn_budget *b, double counting_ns, double allowed_ns, bool is_over)
{
    bool too_costly = counting_ns > allowed_ns;

    b->excess_ns = too_costly ? b->excess_ns + counting_ns - allowed_ns : 0;
    b->chosen_count = 0;
    if (b->is_stuck || hfn_os_monotonic_ns() < b->next_stop_ns) {
        return;
    }
    if (too_costly && b->excess_ns > get_mean_stop_ns(b)) {
        hfn_budget_choose_unhooked(b, counting_ns, allowed_ns);
    } else if (!is_over) {
        hfn_budget_choose_retried(b, get_mean_stop_ns(b));
    }
}

/* The header shows the mean cost of all calls counted so far. */
static double compute_counting_cost(hfn_budget *b)
{
    double calls = 0, counting_ns;

    for (uint32_t i = 0; i < b->called_count; i++) {
        if (b->functions[b->called[i]].level < HOTFN_BUDGET_UNHOOKED) {
            calls += (double)b->functions[b->called[i]].calls;
        }
    }
    counting_ns = calls * b->count_ns;
    b->counted_calls += calls;
    b->total_counting_ns += counting_ns;
    if (b->counted_calls > 0) {
        b->header->count_cost_ps = (uint64_t)(b->total_counting_ns / b->counted_calls * 1e3);
    }
    return counting_ns;
}

static void measure_again(hfn_budget *b, uint64_t now_ns)
{
    if (now_ns - b->measured_ns < MEASURE_INTERVAL_NS) {
        return;
    }
    b->measured_ns = now_ns;
    b->count_ns = hfn_budget_measure_again(b->means != NULL, b->count_ns);
}

/* Returns the duration of the target's start if the agent reported it since the last step, else 0.
 * It is reported once, and again after exec(). */
static double take_new_start_ns(hfn_budget *b)
{
    uint64_t took_ns = hfn_plan_channel_get_start_ns(b->channel, b->remote.pid);

    if (took_ns == 0 || took_ns == b->startup_ns) {
        return 0;
    }
    b->startup_ns = took_ns;
    return (double)took_ns;
}

/* Add the hooks' cost since the last step to the header.  Returns that cost. */
static double record_cost(hfn_budget *b, double counting_ns, double run_ns)
{
    double timing = hfn_budget_get_timing_cost(b, b->remote.pid), start = take_new_start_ns(b);
    double cost = counting_ns + timing + start, max_cost = MAX_COST_PART * run_ns;
    double part = cost > max_cost ? max_cost / cost : 1;

    b->header->cost_ns += (uint64_t)(part * cost);
    b->header->timing_ns += (uint64_t)(part * timing);
    b->header->start_ns += (uint64_t)(part * start);
    b->header->cpu_ns += (uint64_t)run_ns;
    return part * cost;
}

static void account_interval(hfn_budget *b, uint64_t passed_ns)
{
    double run_ns = (double)passed_ns, counting_ns, cost, share_ns, allowed_ns;
    bool is_over;

    detect_rehooked(b, run_ns);
    counting_ns = compute_counting_cost(b);
    cost = record_cost(b, counting_ns, run_ns);
    share_ns = hfn_budget_allowed(b, run_ns - cost);
    allowed_ns = b->means ? COUNTS_PART * share_ns : share_ns; /* for counting alone */
    is_over = cost > share_ns;
    choose_changes(b, counting_ns, allowed_ns, is_over);
    if (b->means) {
        double kept_ns = b->is_stuck || counting_ns < allowed_ns ? counting_ns : allowed_ns;
        hfn_budget_set_intervals(b, TIMED_PART * share_ns - kept_ns, is_over, run_ns);
    }
    for (uint32_t i = 0; i < b->called_count; i++) {
        b->functions[b->called[i]].last += b->functions[b->called[i]].calls;
    }
}

/* Select the process whose budget is enforced: the child itself if it has a row, otherwise the
 * first descendant that has one (--target). */
static void select_process(hfn_budget *b, uint32_t child)
{
    const hfn_thread_cell *cells = hfn_live_cells(b->live);
    uint32_t rows = hfn_live_rows_used(b->live), found = 0;

    for (uint32_t i = 0; i < rows && found != child; i++) {
        if (cells[i].pid == child || found == 0) {
            found = cells[i].pid;
        }
    }
    if (found == 0 || found == b->remote.pid) {
        return;
    }
    b->remote.pid = found;
    b->remote.is_child = found == child;
    b->cpu_ns = b->timed_calls = b->startup_ns = 0;
    for (uint32_t i = 0; i < b->function_count; i++) {
        b->functions[i].last = 0;
    }
}

uint64_t hfn_budget_step(hfn_budget *b, uint32_t pid)
{
    if (!b) {
        return UINT64_MAX;
    }

    uint64_t begin_ns = hfn_os_thread_cpu_ns(), cpu_ns, passed_ns, wait_ns = STEP_NS, took_ns;

    if (b->is_held && !hfn_os_remote_resume(&b->remote)) {
        return HELD_NS;
    }
    b->is_held = false;
    select_process(b, pid);
    pid = b->remote.pid;
    if (pid == 0) {
        return HFN_BUDGET_SHORT_STEP_NS; /* no process has counted a call yet */
    }
    cpu_ns = hfn_os_get_process_cpu_ns(pid);
    if (cpu_ns < b->cpu_ns + MIN_INTERVAL_NS || !update_known_slots(b) || b->function_count == 0 ||
        !read_counts(b, pid)) {
        return HFN_BUDGET_SHORT_STEP_NS;
    }
    passed_ns = cpu_ns - b->cpu_ns;
    b->cpu_ns = cpu_ns;
    measure_again(b, hfn_os_monotonic_ns());
    account_interval(b, passed_ns);
    took_ns = hfn_os_thread_cpu_ns() - begin_ns;
    if (b->chosen_count > 0) {
        apply_changes(b, (double)passed_ns);
        wait_ns = HFN_BUDGET_SHORT_STEP_NS;
    }
    if (b->is_held) {
        return HELD_NS;
    }
    if (b->header->cpu_ns < SHORT_STEPS_UNTIL_NS) {
        wait_ns = HFN_BUDGET_SHORT_STEP_NS;
    }
    return wait_ns > STEP_TIME_DIVISOR * took_ns ? wait_ns : STEP_TIME_DIVISOR * took_ns;
}
