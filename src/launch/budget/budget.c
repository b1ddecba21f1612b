/* SPDX-License-Identifier: MIT */
/* A budget for hooks, kept from outside (docs/design/budget.md).  Each look sums up what the calls since
 * the last one cost by the measured cost of a call, and compares that with the target's processor time.
 * How many calls are timed follows at each look (budget_times.c).  If counts alone take more than the share,
 * hooks of the most called functions go; they come back for a try after a while, ever later if they are still
 * too dear. */
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
#define LOOK_NS (10 * MS) /* from one look to the next              */
#define SOON_UNTIL_NS (50 * MS)
#define JUDGED_NS (2 * MS) /* of processor time: less says nothing    */
#define STOP_TIMEOUT_NS (100 * MS)
#define HELD_NS MS
#define MOST_BACK_NS (30000 * MS)
#define COOLED_NS (1000 * MS) /* who stays that long has cooled down     */
#define LOOK_SHARE 20         /* a look takes at most 1/20 of the time   */
#define STOP_NS MS            /* what a stop takes, as long as none was */
#define COUNTS_PART 0.7       /* of the share, where calls are timed too */
#define TIMED_PART 0.9        /* of the share, with the counts: a word changes it */
#define MOST_PART 0.95        /* of the time: more is a wrong reckoning */
#define MEASURED_NS (50 * MS) /* what a call costs is measured again */
#define STILL_HOOKED 64u      /* calls of a function that is said to be unhooked */

/* ---- Begin and end. */

hotfn_status hotfn_budget_create(hotfn_budget **out, hotfn_live *live, hotfn_handover *handover,
                                 const hotfn_env *env, hotfn_error *err)
{
    if (!out || !live || !handover) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_budget *b;

    if (!hfn_live_budget(live) || !hfn_os_is_open(live->file)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "the record was made without a budget");
    }
    if (!hfn_os_can_change_others()) {
        snprintf(hfn_live_budget(live)->note, sizeof b->header->note,
                 "not by a hotfn built for this CPU");
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
            "a hotfn built for this CPU keeps no budget; the one for x86-64 does so for 32-bit "
            "programs too");
    }
    b = hfn_allocate_zeroed(&filled, sizeof *b);
    if (b && !(b->pages = hfn_allocate_unset(&filled, sizeof *b->pages))) {
        hfn_free_memory(&filled, b, sizeof *b);
        b = NULL;
    }
    if (!b) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for a budget");
    }
    b->env = filled;
    b->live = live;
    b->handover = handover;
    b->header = hfn_live_budget(live);
    b->share = (double)b->header->share_ppm / 1e6;
    b->remote = (hfn_remote){ .env = filled, .memory = HFN_OS_NO_FILE };
    memset(b->pages, 0, offsetof(hfn_cut_pages, bytes));
    b->pages->remote = &b->remote;
    b->means = hfn_live_means(live);
    b->mean = b->means ? hfn_live_time_header(live)->sample_mean : 1;
    b->mean = b->mean ? b->mean : 1;
    b->start_ns = hfn_read_le64(live->base + HFN_AT_START_NS);
    b->count_ns = hfn_budget_measure(b->means != NULL);
    b->measured_ns = hfn_os_monotonic_ns();
    b->header->count_cost_ps = (uint64_t)(b->count_ns * 1e3);
    *out = b;
    return HOTFN_OK;
}

void hotfn_budget_destroy(hotfn_budget *b)
{
    hotfn_env env;

    if (!b) {
        return;
    }
    env = b->env;
    hfn_os_remote_resume(&b->remote);
    hfn_os_remote_finish(&b->remote);
    for (uint32_t i = 0; i < b->book_count; i++) {
        hfn_cut_free(b->books[i].cut, &env);
    }
    for (uint32_t i = 0; i < b->module_count; i++) {
        hfn_cut_module_finish(&b->modules[i], &env);
    }
    hfn_free_memory(&env, b->books, b->book_capacity * sizeof *b->books);
    hfn_free_memory(&env, b->chosen, 2 * b->book_capacity * sizeof *b->chosen);
    hfn_free_memory(&env, b->modules, b->module_capacity * sizeof *b->modules);
    hfn_free_memory(&env, b->row, 2 * b->row_slots * sizeof *b->row);
    hfn_free_memory(&env, b->pages, sizeof *b->pages);
    hfn_free_memory(&env, b, sizeof *b);
}

/* ---- What there is: modules that came, slots that were handed out. */

static bool more_books(hotfn_budget *b, uint32_t count)
{
    size_t old = b->book_capacity;
    hfn_book *books;
    uint32_t *slots;

    if (count <= b->book_capacity) {
        return true;
    }
    slots = hfn_allocate_unset(&b->env, 2 * count * sizeof *slots);
    books = slots ? hfn_resize_memory(&b->env, b->books, old * sizeof *books, count * sizeof *books)
                  : NULL;
    if (!books) {
        hfn_free_memory(&b->env, slots, 2 * count * sizeof *slots);
        return false;
    }
    memset(books + old, 0, (count - old) * sizeof *books);
    if (b->called_count > 0) {
        memcpy(slots + count, b->called, b->called_count * sizeof *slots);
    }
    hfn_free_memory(&b->env, b->chosen, 2 * old * sizeof *slots);
    b->books = books;
    b->chosen = slots;
    b->called = slots + count;
    b->book_capacity = count;
    return true;
}

static void begin_book(const hotfn_budget *b, hfn_book *f, uint32_t module, uint32_t function)
{
    f->function = function;
    f->module = module;
    f->closest = b->means && hfn_live_is_timed(b->live, function) ? HOTFN_BUDGET_TIMED
                                                                  : HOTFN_BUDGET_COUNTED;
    f->level = f->closest;
}

/* False: try again later. */
static bool learn_module(hotfn_budget *b, uint32_t index)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hfn_cut_module *m = &b->modules[index];
    const uint32_t *slots = hotfn_live_slots(b->live, index);

    if (hotfn_live_get_module(b->live, index, &known) != HOTFN_OK || !slots) {
        return false;
    }
    if (known.load_base == 0 || known.function_count == 0) {
        return known.function_count == 0;
    }
    m->bytes = hfn_handover_view_plan(b->handover, index, &m->byte_count);
    if (!m->bytes) {
        return false;
    }
    if (hotfn_plan_open(&m->plan, m->bytes, m->byte_count, 0, &b->env, NULL) != HOTFN_OK) {
        hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
        return false;
    }
    /* where a 32-bit thread stands nobody looks (os/remote.h) */
    b->only_go |= m->plan->machine != hfn_stub_get_patching()->machine;
    m->base = known.load_base;
    m->first_function = known.first_function;
    m->function_count = known.function_count;
    for (uint32_t i = 0; i < known.function_count; i++) {
        if (slots[i] < b->book_count) {
            begin_book(b, &b->books[slots[i]], index, known.first_function + i);
        }
    }
    return true;
}

static bool learn(hotfn_budget *b)
{
    /* as published: another thread of this process adds modules meanwhile */
    uint32_t count = hfn_shared_get32(b->live->base + HFN_AT_MODULES);
    uint32_t slots = hfn_shared_get32(b->live->base + HFN_AT_SLOTS);

    if (slots > b->book_count) {
        if (!more_books(b, slots)) {
            return false;
        }
        b->book_count = slots;
    }
    if (count > b->module_capacity) {
        uint32_t capacity = count + 16;
        hfn_cut_module *more = hfn_resize_memory(
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
            learn_module(b, i);
        }
    }
    return true;
}

/* ---- What was called.  By pread: reading holes through a mapping would fill them. */

static bool add_row(hotfn_budget *b, uint32_t row)
{
    uint64_t at = b->live->layout.sections[HFN_SECTION_ROWS].offset +
                  (uint64_t)row * b->live->layout.row_bytes;
    uint64_t bytes = b->book_count * sizeof *b->row, done;
    if (hfn_os_read_at(b->live->file, at, b->row, bytes, &done) != 0 || done != bytes) {
        return false;
    }
    for (uint32_t i = 0; i < b->book_count; i++) {
        b->sums[i] += b->row[i];
    }
    return true;
}

static bool more_rows(hotfn_budget *b)
{
    uint64_t *rows;

    if (b->book_count <= b->row_slots) {
        return true;
    }
    rows = hfn_allocate_unset(&b->env, 2 * b->book_count * sizeof *rows);
    if (!rows) {
        return false;
    }
    hfn_free_memory(&b->env, b->row, 2 * b->row_slots * sizeof *rows);
    b->row = rows;
    b->sums = rows + b->book_count;
    b->row_slots = b->book_count;
    return true;
}

/* calls become those since the last judged look.  Most functions are never called: later steps pass over them. */
static bool read_counts(hotfn_budget *b, uint32_t pid)
{
    const hfn_thread_cell *cells = hfn_live_cells(b->live);
    uint32_t rows = hfn_live_rows_used(b->live);
    bool held = true;

    if (!more_rows(b)) {
        return false;
    }
    memset(b->sums, 0, b->book_count * sizeof *b->sums);
    for (uint32_t i = 0; held && i < rows; i++) {
        if (cells[i].pid == pid) {
            held = add_row(b, i);
        }
    }
    for (uint32_t i = 0; i < b->book_count; i++) {
        if (b->sums[i] > 0 && !b->books[i].was_called) {
            b->books[i].was_called = true;
            b->called[b->called_count++] = i;
        }
    }
    for (uint32_t i = 0; i < b->called_count; i++) {
        hfn_book *f = &b->books[b->called[i]];
        uint64_t sum = b->sums[b->called[i]];
        f->calls = sum > f->last ? sum - f->last : 0;
    }
    return held;
}

/* ---- Changing. */

static void set_note(hotfn_budget *b, const char *what, hfn_os_error error)
{
    b->is_stuck = true;
    snprintf(b->header->note, sizeof b->header->note, "%s: %s", what, hfn_os_get_error_text(error));
}

void hfn_budget_note(hotfn_budget *b, hfn_book *f, uint32_t level, double run_ns)
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

    hfn_live_note_change(b->live, &change);
    if (change.why == HOTFN_BUDGET_OVER_BUDGET) {
        bool again = f->wait_ns > 0 && b->header->cpu_ns - f->came_ns < COOLED_NS;
        f->wait_ns = again ? 2 * f->wait_ns : HFN_BUDGET_BACK_NS;
        f->wait_ns = f->wait_ns < MOST_BACK_NS ? f->wait_ns : MOST_BACK_NS;
        f->back_ns = b->header->cpu_ns + f->wait_ns;
    } else {
        f->came_ns = b->header->cpu_ns;
        f->back_ns = f->came_ns + HFN_BUDGET_BACK_NS;
    }
    f->level = level;
}

/* What stands in the target for those that go; who stands otherwise than it was made stays. */
static void prepare_cuts(hotfn_budget *b)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_book *f = &b->books[b->chosen[i]];
        hfn_cut_module *m = &b->modules[f->module];
        uint32_t entry;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            entry = hfn_plan_find_function(m->plan, f->function - m->first_function);
            if (entry != UINT32_MAX) {
                f->cut = hfn_cut_make(m, entry, b->pages, &b->env);
            }
            f->is_fixed = !f->cut;
        }
        if (!f->is_fixed) {
            b->chosen[kept++] = b->chosen[i];
        }
    }
    b->chosen_count = kept;
    hfn_cut_pages_finish(b->pages);
}

/* Is any thread where a hook would come? */
static bool way_is_free(hotfn_budget *b)
{
    hfn_remote_range ranges[HFN_BUDGET_TRIES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        const hfn_book *f = &b->books[b->chosen[i]];
        if (f->wanted < f->level && f->cut && count < HFN_BUDGET_TRIES) {
            count += hfn_cut_range(f->cut, &ranges[count]);
        }
    }
    return count == 0 || !hfn_os_remote_is_inside(&b->remote, ranges, count);
}

static void drop_cut(hotfn_budget *b, hfn_book *f)
{
    hfn_cut_free(f->cut, &b->env);
    f->cut = NULL;
}

/* The target is stopped. */
static void change_all(hotfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_book *f = &b->books[b->chosen[i]];
        bool done = true;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_cut_take_out(f->cut, b->pages);
            if (!done) {
                drop_cut(b, f);
            }
        } else if (f->level == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_cut_put_in(f->cut, b->pages);
            f->is_fixed = !done; /* its module went */
            drop_cut(b, f);
        }
        if (!done) {
            continue;
        }
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            f->rate = (double)f->calls * b->count_ns / run_ns;
            f->is_just_out = true;
            hfn_budget_time_none(b, b->chosen[i]);
        }
        hfn_budget_note(b, f, f->wanted, run_ns);
        if (f->wanted == HOTFN_BUDGET_UNHOOKED && b->only_go) {
            f->back_ns = UINT64_MAX;
        }
    }
    hfn_cut_pages_finish(b->pages);
}

static void give_up(hotfn_budget *b)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        hfn_book *f = &b->books[b->chosen[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED) {
            drop_cut(b, f);
        } else {
            f->back_ns = b->header->cpu_ns + HFN_BUDGET_BACK_NS;
        }
    }
}

/* From when the first thread stood.  What a busy machine takes to let it, or us, run again is no work of ours. */
static void count_stop(hotfn_budget *b, uint64_t begin_ns, hfn_os_error error)
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

static void change(hotfn_budget *b, double run_ns)
{
    uint64_t begin_ns;
    hfn_os_error error = hfn_os_remote_open(&b->remote);

    if (error != 0) {
        set_note(b, "the target's memory cannot be changed", error);
        return;
    }
    prepare_cuts(b);
    if (b->chosen_count > 0) {
        begin_ns = hfn_os_monotonic_ns();
        error = hfn_os_remote_stop(&b->remote, STOP_TIMEOUT_NS);
        if (error == 0 && way_is_free(b)) {
            change_all(b, run_ns);
        } else {
            give_up(b);
        }
        count_stop(b, begin_ns, error);
        b->is_held = !hfn_os_remote_resume(&b->remote);
    }
    hfn_os_remote_close(&b->remote);
}

/* ---- A look. */

/* Calls of what is said to be unhooked: its module was loaded again, and hooked. */
static void see_hooked_again(hotfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->called_count; i++) {
        hfn_book *f = &b->books[b->called[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->calls < STILL_HOOKED || f->is_just_out) {
            f->is_just_out = false;
            continue;
        }
        drop_cut(b, f);
        hfn_budget_note(b, f, HOTFN_BUDGET_COUNTED, run_ns);
    }
}

static double stop_price(const hotfn_budget *b)
{
    return b->header->stops ? (double)b->header->stopped_ns / b->header->stops : (double)STOP_NS;
}

/* Whose hooks go or come, once what is saved by it pays for the stop: who has paid too much for as long as
 * the stop takes may expect to pay it again. */
static void choose(hotfn_budget *b, double counts, double allowed, bool is_over)
{
    bool too_many = counts > allowed;

    b->excess_ns = too_many ? b->excess_ns + counts - allowed : 0;
    b->chosen_count = 0;
    if (b->is_stuck || hfn_os_monotonic_ns() < b->next_stop_ns) {
        return;
    }
    if (too_many && b->excess_ns > stop_price(b)) {
        hfn_budget_reduce(b, counts, allowed);
    } else if (!is_over) {
        hfn_budget_raise(b, stop_price(b));
    }
}

/* The header tells the mean of all calls. */
static double counts_took(hotfn_budget *b)
{
    double calls = 0, counts;

    for (uint32_t i = 0; i < b->called_count; i++) {
        if (b->books[b->called[i]].level < HOTFN_BUDGET_UNHOOKED) {
            calls += (double)b->books[b->called[i]].calls;
        }
    }
    counts = calls * b->count_ns;
    b->counted_calls += calls;
    b->counts_ns += counts;
    if (b->counted_calls > 0) {
        b->header->count_cost_ps = (uint64_t)(b->counts_ns / b->counted_calls * 1e3);
    }
    return counts;
}

static void measure_again(hotfn_budget *b, uint64_t now_ns)
{
    if (now_ns - b->measured_ns < MEASURED_NS) {
        return;
    }
    b->measured_ns = now_ns;
    b->count_ns = hfn_budget_measure_again(b->means != NULL, b->count_ns);
}

/* What the target said of its start since the last look: once, but for exec(). */
static double start_took(hotfn_budget *b)
{
    uint64_t took_ns = hfn_handover_start_ns(b->handover, b->remote.pid);

    if (took_ns == 0 || took_ns == b->started_ns) {
        return 0;
    }
    b->started_ns = took_ns;
    return (double)took_ns;
}

/* What hooks took since the last look, noted; in all. */
static double note_cost(hotfn_budget *b, double counts, double run_ns)
{
    double timing = hfn_budget_timing(b, b->remote.pid), start = start_took(b);
    double cost = counts + timing + start, most = MOST_PART * run_ns;
    double part = cost > most ? most / cost : 1;

    b->header->cost_ns += (uint64_t)(part * cost);
    b->header->timing_ns += (uint64_t)(part * timing);
    b->header->start_ns += (uint64_t)(part * start);
    b->header->cpu_ns += (uint64_t)run_ns;
    return part * cost;
}

static void judge(hotfn_budget *b, uint64_t passed_ns)
{
    double run_ns = (double)passed_ns, counts, cost, share_ns, counts_ns;
    bool is_over;

    see_hooked_again(b, run_ns);
    counts = counts_took(b);
    cost = note_cost(b, counts, run_ns);
    share_ns = hfn_budget_allowed(b, run_ns - cost);
    counts_ns = b->means ? COUNTS_PART * share_ns : share_ns;
    is_over = cost > share_ns;
    choose(b, counts, counts_ns, is_over);
    if (b->means) {
        double kept = b->is_stuck || counts < counts_ns ? counts : counts_ns;
        hfn_budget_time(b, TIMED_PART * share_ns - kept, is_over, run_ns);
    }
    for (uint32_t i = 0; i < b->called_count; i++) {
        b->books[b->called[i]].last += b->books[b->called[i]].calls;
    }
}

/* The child itself if it counts, else the first process below it that does (--target). */
static void watch(hotfn_budget *b, uint32_t child)
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
    b->cpu_ns = b->timed_ticks = b->timed_ends = b->started_ns = 0;
    for (uint32_t i = 0; i < b->book_count; i++) {
        b->books[i].last = 0;
    }
}

uint64_t hotfn_budget_step(hotfn_budget *b, uint32_t pid)
{
    if (!b) {
        return UINT64_MAX;
    }

    uint64_t begin_ns = hfn_os_thread_cpu_ns(), cpu_ns, passed_ns, wait_ns = LOOK_NS, took_ns;

    if (b->is_held && !hfn_os_remote_resume(&b->remote)) {
        return HELD_NS;
    }
    b->is_held = false;
    watch(b, pid);
    pid = b->remote.pid;
    if (pid == 0) {
        return HFN_BUDGET_SOON_NS; /* nobody counts yet */
    }
    cpu_ns = hfn_os_get_process_cpu_ns(pid);
    if (cpu_ns < b->cpu_ns + JUDGED_NS || !learn(b) || b->book_count == 0 || !read_counts(b, pid)) {
        return HFN_BUDGET_SOON_NS;
    }
    passed_ns = cpu_ns - b->cpu_ns;
    b->cpu_ns = cpu_ns;
    measure_again(b, hfn_os_monotonic_ns());
    judge(b, passed_ns);
    took_ns = hfn_os_thread_cpu_ns() - begin_ns;
    if (b->chosen_count > 0) {
        change(b, (double)passed_ns);
        wait_ns = HFN_BUDGET_SOON_NS;
    }
    if (b->is_held) {
        return HELD_NS;
    }
    if (b->header->cpu_ns < SOON_UNTIL_NS) {
        wait_ns = HFN_BUDGET_SOON_NS;
    }
    return wait_ns > LOOK_SHARE * took_ns ? wait_ns : LOOK_SHARE * took_ns;
}
