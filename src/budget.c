/* SPDX-License-Identifier: MIT */
/* A budget for hooks, kept from outside (docs/design/budget.md).  Each look sums up what the calls since
 * the last one cost by the measured cost of a call, and compares that with the target's processor time.
 * If it is more than the share, the dearest functions are watched less closely, down to not at all.
 * Those come back for a try after a while, ever later if they are still too dear. */
#include "budget.h"

#include "base/memory.h"
#include "base/status.h"
#include "counters/timing.h"
#include "handover.h"
#include "os/os.h"
#include "records/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define LOOK_NS (25 * MS) /* from one look to the next              */
#define SOON_NS (5 * MS)  /* ... at the start, and after a try       */
#define SOON_UNTIL_NS (200 * MS)
#define JUDGED_NS (2 * MS) /* of processor time: less says nothing    */
#define STOP_TIMEOUT_NS (100 * MS)
#define HELD_NS MS
#define FIRST_BACK_NS (200 * MS)
#define MOST_BACK_NS (30000 * MS)
#define COOLED_NS (1000 * MS) /* who stays that long has cooled down     */
#define KEEP_SHARE 0.75       /* of the share is left to those that stay */
#define LOOK_SHARE 20         /* a look takes at most 1/20 of the time   */
#define MOST_CHANGES 512u     /* in one stop                             */
#define MOST_TRIES 32u
/* In a loop that does nothing else the processor hides most of a hook; in sqlite3 and lua, where stubs
 * compete for the instruction cache too, it was seen to cost so many times what it does there. */
#define OUTSIDE_OF_A_LOOP 1.5
#define STILL_HOOKED 64u /* calls of a function that is said to be unhooked */

typedef struct book {          /* of a slot */
    uint64_t last, calls;      /* until the last look, and since        */
    uint64_t back_ns, wait_ns; /* when it may come back; the last wait  */
    uint64_t came_ns;          /* when it came back last                */
    double rate;               /* cost when it was reduced, of the time */
    hfn_cut *cut;              /* while it is out                       */
    uint32_t function, module;
    uint32_t level;  /* HOTFN_BUDGET_*; 0: not hooked yet     */
    uint32_t wanted; /* the level to change to now            */
    bool is_fixed;   /* it cannot be changed                  */
} book;

struct hotfn_budget {
    hotfn_env env;
    hotfn_live *live;
    hotfn_handover *handover;
    hotfn_budget_header *header;
    double share;
    double cost_ns[HOTFN_BUDGET_UNHOOKED + 1]; /* of a call, by level */
    book *books;
    uint32_t book_count, book_capacity;
    hfn_cut_module *modules;
    uint32_t module_count, module_capacity;
    uint64_t *row; /* a thread's counts, [row_slots] */
    uint32_t row_slots;
    uint32_t *chosen; /* slots, [book_capacity] */
    uint32_t chosen_count;
    hfn_remote remote;
    bool is_held;  /* a thread of the target is still held           */
    bool is_stuck; /* the target cannot be changed: header.note says why */
    uint64_t cpu_ns, start_ns, step_ns, next_stop_ns;
};

/* ---- Begin and end. */

static void measure(hotfn_budget *b)
{
    const hotfn_time_header *h = hfn_live_time_header(b->live);
    double count = hfn_count_cost_ns() * OUTSIDE_OF_A_LOOP;

    b->cost_ns[HOTFN_BUDGET_COUNTED] = count;
    b->cost_ns[HOTFN_BUDGET_SAMPLED] = count;
    b->cost_ns[HOTFN_BUDGET_TIMED] = count;
    (void)h;
    b->header->count_cost_ps = (uint64_t)(count * 1e3);
}

hotfn_status hotfn_budget_create(hotfn_budget **out, hotfn_live *live, hotfn_handover *handover,
                                 const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_budget *b;

    if (!hfn_live_budget(live) || live->fd < 0)
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                        "the record was made without a budget");
    if (!hfn_os_can_change_others())
        return hfn_fail(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                        "a budget cannot be kept on this CPU yet");
    b = hfn_alloc(&filled, sizeof *b);
    if (!b)
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory for a budget");
    b->env = filled;
    b->live = live;
    b->handover = handover;
    b->header = hfn_live_budget(live);
    b->share = (double)b->header->share_ppm / 1e6;
    b->remote = (hfn_remote){ .env = filled, .memory = -1 };
    b->start_ns = hfn_get64(live->base + HFN_AT_START_NS);
    measure(b);
    *out = b;
    return HOTFN_OK;
}

void hotfn_budget_destroy(hotfn_budget *b)
{
    hotfn_env env;

    if (!b)
        return;
    env = b->env;
    hfn_os_remote_go_on(&b->remote);
    hfn_os_remote_finish(&b->remote);
    for (uint32_t i = 0; i < b->book_count; i++)
        hfn_cut_free(b->books[i].cut, &env);
    for (uint32_t i = 0; i < b->module_count; i++)
        hfn_cut_module_finish(&b->modules[i], &env);
    hfn_free(&env, b->books, b->book_capacity * sizeof *b->books);
    hfn_free(&env, b->chosen, b->book_capacity * sizeof *b->chosen);
    hfn_free(&env, b->modules, b->module_capacity * sizeof *b->modules);
    hfn_free(&env, b->row, b->row_slots * sizeof *b->row);
    hfn_free(&env, b, sizeof *b);
}

/* ---- What there is: modules that came, slots that were handed out. */

static bool more_books(hotfn_budget *b, uint32_t count)
{
    size_t old = b->book_capacity;
    book *books;
    uint32_t *chosen;

    if (count <= b->book_capacity)
        return true;
    books = hfn_resize(&b->env, b->books, old * sizeof *books, count * sizeof *books);
    if (!books)
        return false;
    b->books = books;
    memset(books + old, 0, (count - old) * sizeof *books);
    chosen = hfn_resize(&b->env, b->chosen, old * sizeof *chosen, count * sizeof *chosen);
    if (!chosen) {
        b->books = hfn_resize(&b->env, books, count * sizeof *books, old * sizeof *books);
        return false;
    }
    b->chosen = chosen;
    b->book_capacity = count;
    return true;
}

/* False: try again later. */
static bool learn_module(hotfn_budget *b, uint32_t index)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hfn_cut_module *m = &b->modules[index];
    const uint32_t *slots = hotfn_live_slots(b->live, index);

    if (hotfn_live_get_module(b->live, index, &known) != HOTFN_OK || !slots)
        return false;
    if (known.load_base == 0 || known.function_count == 0)
        return known.function_count == 0;
    m->bytes = hfn_handover_view_plan(b->handover, index, &m->byte_count);
    if (!m->bytes ||
        hotfn_plan_open(&m->plan, m->bytes, m->byte_count, 0, &b->env, NULL) != HOTFN_OK)
        return false;
    m->base = known.load_base;
    m->first_function = known.first_function;
    m->function_count = known.function_count;
    for (uint32_t i = 0; i < known.function_count; i++)
        if (slots[i] < b->book_count) {
            b->books[slots[i]].function = known.first_function + i;
            b->books[slots[i]].module = index;
            b->books[slots[i]].level = HOTFN_BUDGET_COUNTED;
        }
    return true;
}

static bool learn(hotfn_budget *b)
{
    uint32_t count = hotfn_live_module_count(b->live);

    if (b->live->slot_count > b->book_count) {
        if (!more_books(b, b->live->slot_count))
            return false;
        b->book_count = b->live->slot_count;
    }
    if (count > b->module_capacity) {
        uint32_t capacity = count + 16;
        hfn_cut_module *more = hfn_resize(&b->env, b->modules, b->module_capacity * sizeof *more,
                                          capacity * sizeof *more);
        if (!more)
            return false;
        memset(more + b->module_capacity, 0, (capacity - b->module_capacity) * sizeof *more);
        b->modules = more;
        b->module_capacity = capacity;
    }
    b->module_count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!b->modules[i].plan)
            learn_module(b, i);
    return true;
}

/* ---- What was called.  By pread: reading holes through a mapping would fill them. */

static bool add_row(hotfn_budget *b, uint32_t row)
{
    uint64_t at = b->live->layout.sections[HFN_SECTION_ROWS].offset +
                  (uint64_t)row * b->live->layout.row_bytes;
    size_t bytes = b->book_count * sizeof *b->row;

    if (pread(b->live->fd, b->row, bytes, (off_t)at) != (ssize_t)bytes)
        return false;
    for (uint32_t i = 0; i < b->book_count; i++)
        b->books[i].calls += b->row[i];
    return true;
}

/* calls become those since the last judged look. */
static bool read_counts(hotfn_budget *b, uint32_t pid)
{
    const hotfn_thread_cell *cells = hfn_live_cells(b->live);
    uint32_t rows = hfn_live_rows_used(b->live);
    bool held = true;

    if (b->book_count > b->row_slots) {
        uint64_t *more =
            hfn_resize(&b->env, b->row, b->row_slots * sizeof *more, b->book_count * sizeof *more);
        if (!more)
            return false;
        b->row = more;
        b->row_slots = b->book_count;
    }
    for (uint32_t i = 0; i < b->book_count; i++)
        b->books[i].calls = 0;
    for (uint32_t i = 0; held && i < rows; i++)
        if (cells[i].pid == pid)
            held = add_row(b, i);
    for (uint32_t i = 0; i < b->book_count; i++)
        b->books[i].calls -=
            b->books[i].calls < b->books[i].last ? b->books[i].calls : b->books[i].last;
    return held;
}

/* ---- What it costs, and who is to be watched less closely. */

static double cost_at(const hotfn_budget *b, const book *f, uint32_t level)
{
    return level ? (double)f->calls * b->cost_ns[level] : 0;
}

static double cost_of(const hotfn_budget *b, const book *f)
{
    return cost_at(b, f, f->level);
}

static const hotfn_budget *compared; /* qsort has no word for it; steps come from one thread */

static int by_cost(const void *left, const void *right)
{
    double a = cost_of(compared, &compared->books[*(const uint32_t *)left]);
    double c = cost_of(compared, &compared->books[*(const uint32_t *)right]);

    return (a < c) - (a > c);
}

/* The closest level at which it takes no more than half of what those that stay may take. */
static uint32_t level_for(const hotfn_budget *b, const book *f, double allowed)
{
    uint32_t level = f->level + 1;

    while (level < HOTFN_BUDGET_UNHOOKED && cost_at(b, f, level) > allowed / 2)
        level++;
    return level;
}

static void choose_reductions(hotfn_budget *b, double cost, double run_ns)
{
    double allowed = b->share * KEEP_SHARE * run_ns;
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->book_count; i++)
        if (!b->books[i].is_fixed && b->books[i].calls > 0 && b->books[i].level > 0 &&
            b->books[i].level < (b->is_stuck ? HOTFN_BUDGET_COUNTED : HOTFN_BUDGET_UNHOOKED))
            b->chosen[count++] = i;
    compared = b;
    qsort(b->chosen, count, sizeof *b->chosen, by_cost);
    for (uint32_t i = 0; i < count && i < MOST_CHANGES && cost > allowed; i++) {
        book *f = &b->books[b->chosen[i]];
        f->wanted = level_for(b, f, allowed);
        if (b->is_stuck && f->wanted == HOTFN_BUDGET_UNHOOKED)
            f->wanted = HOTFN_BUDGET_COUNTED;
        cost -= cost_of(b, f) - cost_at(b, f, f->wanted);
        b->chosen_count++;
    }
}

/* Those that were out long enough, as far as what is left of the budget pays for a try. */
static void choose_tries(hotfn_budget *b)
{
    const hotfn_budget_header *h = b->header;
    double left = b->share * (double)(h->cpu_ns - h->cost_ns) - (double)h->cost_ns;

    for (uint32_t i = 0; i < b->book_count && b->chosen_count < MOST_TRIES; i++) {
        book *f = &b->books[i];
        double price = f->rate * 2 * SOON_NS + (b->chosen_count == 0 ? 2 * (double)MS : 0);
        if (!f->cut || f->back_ns > h->cpu_ns || price > left)
            continue;
        left -= price;
        f->wanted = HOTFN_BUDGET_COUNTED;
        b->chosen[b->chosen_count++] = i;
    }
}

/* ---- Changing. */

static void set_note(hotfn_budget *b, const char *what, int error)
{
    b->is_stuck = true;
    snprintf(b->header->note, sizeof b->header->note, "%s: %s", what, strerror(error));
}

static void note_change(hotfn_budget *b, book *f, double run_ns)
{
    double cost = cost_of(b, f);
    hotfn_budget_change change = {
        .at_ns = hfn_os_wall_ns() - b->start_ns,
        .calls_per_second = (uint64_t)((double)f->calls * 1e9 / run_ns),
        .cost_ppm = (uint32_t)(cost * 1e6 / run_ns),
        .function = f->function,
        .from = f->level,
        .to = f->wanted,
        .why = f->wanted > f->level ? HOTFN_BUDGET_TOO_DEAR : HOTFN_BUDGET_TRY,
    };

    hfn_live_note_change(b->live, &change);
    if (change.why == HOTFN_BUDGET_TOO_DEAR) {
        bool again = f->wait_ns > 0 && b->header->cpu_ns - f->came_ns < COOLED_NS;
        f->wait_ns = again ? 2 * f->wait_ns : FIRST_BACK_NS;
        f->wait_ns = f->wait_ns < MOST_BACK_NS ? f->wait_ns : MOST_BACK_NS;
        f->back_ns = b->header->cpu_ns + f->wait_ns;
        f->rate = cost / run_ns;
    } else {
        f->came_ns = b->header->cpu_ns;
    }
    f->level = f->wanted;
}

/* What stands in the target for those that go; who stands otherwise than it was made stays. */
static void prepare_cuts(hotfn_budget *b)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        book *f = &b->books[b->chosen[i]];
        hfn_cut_module *m = &b->modules[f->module];
        uint32_t entry;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            entry = hfn_plan_find_function(m->plan, f->function - m->first_function);
            if (entry != UINT32_MAX)
                f->cut = hfn_cut_make(m, entry, &b->remote, &b->env);
            f->is_fixed = !f->cut;
        }
        if (!f->is_fixed)
            b->chosen[kept++] = b->chosen[i];
    }
    b->chosen_count = kept;
}

/* Is any thread where a hook would come? */
static bool way_is_free(hotfn_budget *b)
{
    hfn_remote_range ranges[MOST_TRIES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chosen_count; i++) {
        const book *f = &b->books[b->chosen[i]];
        if (f->wanted < f->level && f->cut && count < MOST_TRIES)
            count += hfn_cut_range(f->cut, &ranges[count]);
    }
    return count == 0 || !hfn_os_remote_stands_in(&b->remote, ranges, count);
}

static void drop_cut(hotfn_budget *b, book *f)
{
    hfn_cut_free(f->cut, &b->env);
    f->cut = NULL;
}

/* The target is stopped. */
static void change_all(hotfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        book *f = &b->books[b->chosen[i]];
        bool done = true;
        if (f->wanted == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_cut_take_out(f->cut, &b->remote);
            if (!done)
                drop_cut(b, f);
        } else if (f->level == HOTFN_BUDGET_UNHOOKED) {
            done = hfn_cut_put_in(f->cut, &b->remote);
            f->is_fixed = !done; /* its module went */
            drop_cut(b, f);
        }
        if (done)
            note_change(b, f, run_ns);
    }
}

static void give_up(hotfn_budget *b)
{
    for (uint32_t i = 0; i < b->chosen_count; i++) {
        book *f = &b->books[b->chosen[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED)
            drop_cut(b, f);
        else
            f->back_ns = b->header->cpu_ns + FIRST_BACK_NS;
    }
}

static void change(hotfn_budget *b, double run_ns)
{
    hotfn_budget_header *h = b->header;
    uint64_t begin_ns = hfn_os_monotonic_ns(), took_ns;
    int error = hfn_os_remote_open(&b->remote);

    if (error != 0) {
        set_note(b, "the target's memory cannot be changed", error);
        return;
    }
    prepare_cuts(b);
    if (b->chosen_count > 0) {
        begin_ns = hfn_os_monotonic_ns();
        error = hfn_os_remote_stop(&b->remote, STOP_TIMEOUT_NS);
        if (error == 0 && way_is_free(b))
            change_all(b, run_ns);
        else
            give_up(b);
        b->is_held = !hfn_os_remote_go_on(&b->remote);
        took_ns = hfn_os_monotonic_ns() - begin_ns;
        h->stops++;
        h->failed_stops += error != 0;
        h->stopped_ns += took_ns;
        h->cost_ns += took_ns;
        h->longest_stop_ns = took_ns > h->longest_stop_ns ? took_ns : h->longest_stop_ns;
        b->next_stop_ns = begin_ns + (error ? 20 * took_ns : 2 * took_ns);
        if (error != 0 && error != ETIMEDOUT && error != ESRCH)
            set_note(b, "the target cannot be stopped for a change", error);
    }
    hfn_os_remote_close(&b->remote);
}

/* ---- A look. */

/* Calls of what is said to be unhooked: its module was loaded again, and hooked. */
static void see_hooked_again(hotfn_budget *b, double run_ns)
{
    for (uint32_t i = 0; i < b->book_count; i++) {
        book *f = &b->books[i];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->calls < STILL_HOOKED)
            continue;
        f->wanted = HOTFN_BUDGET_COUNTED;
        drop_cut(b, f);
        note_change(b, f, run_ns);
    }
}

static void judge(hotfn_budget *b, uint64_t passed_ns)
{
    double cost = 0, run_ns = (double)passed_ns;

    see_hooked_again(b, run_ns);
    for (uint32_t i = 0; i < b->book_count; i++)
        cost += cost_of(b, &b->books[i]);
    cost = cost < 0.95 * run_ns ? cost : 0.95 * run_ns;
    b->header->cpu_ns += passed_ns;
    b->header->cost_ns += (uint64_t)cost;
    b->chosen_count = 0;
    if (hfn_os_monotonic_ns() >= b->next_stop_ns) {
        if (cost > b->share * (run_ns - cost))
            choose_reductions(b, cost, run_ns - cost);
        else if (!b->is_stuck)
            choose_tries(b);
    }
    if (b->chosen_count > 0)
        change(b, run_ns);
    for (uint32_t i = 0; i < b->book_count; i++)
        b->books[i].last += b->books[i].calls;
}

uint64_t hotfn_budget_step(hotfn_budget *b, uint32_t pid)
{
    uint64_t begin_ns = hfn_os_monotonic_ns(), cpu_ns, wait_ns = LOOK_NS, took_ns;

    b->remote.pid = pid;
    if (b->is_held && !hfn_os_remote_go_on(&b->remote))
        return HELD_NS;
    b->is_held = false;
    cpu_ns = hfn_os_process_cpu_ns(pid);
    if (cpu_ns < b->cpu_ns + JUDGED_NS || !learn(b) || b->book_count == 0 || !read_counts(b, pid))
        return SOON_NS;
    b->chosen_count = 0;
    judge(b, cpu_ns - b->cpu_ns);
    b->cpu_ns = cpu_ns;
    if (b->is_held)
        return HELD_NS;
    if (b->chosen_count > 0 || b->header->cpu_ns < SOON_UNTIL_NS)
        wait_ns = SOON_NS;
    took_ns = hfn_os_monotonic_ns() - begin_ns;
    return wait_ns > LOOK_SHARE * took_ns ? wait_ns : LOOK_SHARE * took_ns;
}
