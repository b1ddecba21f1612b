/* SPDX-License-Identifier: MIT */
/* Timed calls with a signal at each instruction, or at one of them, whose handler makes a timed call too. */
#include "counters/timed_row.h"
#include "counters/trap_flag.h"

#include "check.h"

#include <signal.h>

#if defined(CAN_STEP)

static void enter(hfn_time_frame *f, uint32_t slot, bool full)
{
    memset(f, 0xA5, sizeof *f); /* a stub writes the slot only */
    f->slot = slot;
    if (full) {
        hfn_time_enter_full(f);
    } else {
        hfn_time_enter(f);
    }
}

static void leave(hfn_time_frame *f, bool full)
{
    if (full) {
        hfn_time_exit_full(f);
    } else {
        hfn_time_exit(f);
    }
}

static uint64_t struck;

static void on_step(int number)
{
    hfn_time_frame f;

    (void)number;
    struck++;
    enter(&f, 9, true);
    leave(&f, true);
}

/* Five, on the thread's stack: as C does them or by way of the entries. */
static void call_within(hfn_time_frame *frame, bool full, bool by_entries)
{
    if (by_entries) {
        hfn_time_probe(2, hfn_time_enter_entry, hfn_time_exit_entry, 5);
        return;
    }
    for (volatile int i = 0; i < 5; i++) {
        enter(frame, 2, full);
        leave(frame, full);
    }
}

static void a_handlers_calls_at_any_instruction_keep_the_sums(void)
{
    struct sigaction action = { .sa_handler = on_step };

    sigaction(SIGTRAP, &action, NULL);
    for (int kind = 0; kind < 4; kind++) {
        bool full = kind == 1 || kind == 3;
        hfn_time_frame frames[2], *outer = &frames[1], *inner = &frames[0];
        timed_start(HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS);
        hfn_time.looks = kind == 3 ? 0 : HFN_LOOKS_NEVER;
        hfn_time_state *t = timed_use(0);
        struck = 0;
        trap_flag_set();
        enter(outer, 1, full);
        call_within(inner, full, kind == 2);
        leave(outer, full);
        trap_flag_clear();
        CHECK(struck > 500);
        CHECK_EQ_U64(timed_cell(t, 1)->timed_calls, 1);
        CHECK_EQ_U64(timed_cell(t, 2)->timed_calls, 5);
        CHECK_EQ_U64(timed_cell(t, 9)->timed_calls, struck);
        /* What passes in a handler, or while it strikes, may count once more: for whom it struck, or outside. */
        CHECK(timed_own_sum(t) + t->outside.self_ticks >= t->last_tick - t->first_tick);
        CHECK(timed_own_sum(t) + t->outside.self_ticks <= 2 * (t->last_tick - t->first_tick));
        CHECK_EQ_U64(t->depth, 0);
        CHECK_EQ_U64(t->current, 0);
        CHECK_EQ_U64(timed.header.abandoned_exits, 0);
        /* the handler's: all others are interrupted */
        CHECK(timed.header.seen_ends <= (kind == 3 ? 2 * struck : 0));
        CHECK(timed.header.seen_ends >= (kind == 3 ? struck : 0));
        timed_forget();
    }
    signal(SIGTRAP, SIG_DFL);
}

static volatile int steps_left;

/* And no more steps after it: each costs the kernel's way here and back. */
static void on_last_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;

    (void)info;
    if (--steps_left > 0) {
        return;
    }
    at->uc_mcontext.gregs[REG_EFL] &= ~0x100;
    on_step(number);
}

/* Wherever it strikes once: also between the clock's reading and its use, where it strikes most.  In 32 bits a strike
 * between a tick's two words, where the high one changes (each 1.5 s), finds a tick to come and says so. */
static void a_handlers_call_does_not_turn_the_clock_back(void)
{
    struct sigaction action = { .sa_sigaction = on_last_step, .sa_flags = SA_SIGINFO };

    sigaction(SIGTRAP, &action, NULL);
    for (int kind = 1; kind < 3; kind++) {
        int steps = 1;

        for (bool reached = true; reached; steps++) {
            hfn_time_frame frame;

            timed_start(HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS);
            hfn_time_state *t = timed_use(0);
            uint64_t begin = hfn_time_now();
            steps_left = steps;
            trap_flag_set();
            if (kind == 2) {
                hfn_time_probe(2, hfn_time_enter_entry, hfn_time_exit_entry, 1);
            } else {
                enter(&frame, 2, true);
                leave(&frame, true);
            }
            trap_flag_clear();
            reached = steps_left <= 0;
            if (sizeof(void *) == 8 || begin >> 32 == hfn_time_now() >> 32) {
                CHECK_EQ_U64(timed.header.clock_went_back, 0);
            }
            CHECK_EQ_U64(timed_cell(t, 9)->timed_calls, reached);
            timed_forget();
        }
        CHECK(steps > 50);
    }
    signal(SIGTRAP, SIG_DFL);
}
#else
static void nobody_steps_here(void)
{
    puts("# signals at each instruction: x86 only, and not under thread sanitizer");
}
#endif

static const check_test tests[] = {
#if defined(CAN_STEP)
    CHECK_TEST(a_handlers_calls_at_any_instruction_keep_the_sums),
    CHECK_TEST(a_handlers_call_does_not_turn_the_clock_back),
#else
    CHECK_TEST(nobody_steps_here),
#endif
};
CHECK_MAIN(tests)
