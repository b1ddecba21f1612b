/* SPDX-License-Identifier: MIT */
/* Timed calls with a signal at each instruction, or at one of them, whose handler makes a timed
 * call. */
#include "counters/timed_row.h"
#include "counters/timing/counter_mode.h"
#include "counters/trap_flag.h"

#include "check.h"

#include <signal.h>

#if defined(CAN_STEP)

static void enter(hfn_time_frame *f, uint32_t slot)
{
    memset(f, 0xA5, sizeof *f); /* a stub writes the slot only */
    f->slot = slot;
    hfn_counter_enter(HFN_PASS(f));
}

static void leave(hfn_time_frame *f)
{
    hfn_counter_exit(HFN_PASS(f));
}

static uint64_t interrupts;

static void on_step(int number)
{
    hfn_time_frame f;

    (void)number;
    interrupts++;
    enter(&f, 9);
    leave(&f);
}

static void a_handlers_calls_at_any_instruction_keep_the_sums(void)
{
    struct sigaction action = { .sa_handler = on_step };

    sigaction(SIGTRAP, &action, NULL);
    for (int kind = 0; kind < 4;
         kind++) { /* by C and by the entries, without and with histograms */
        hfn_time_frame frames[2];
        timed.header.cost_inside_ticks = 5 * 256;
        timed_start(kind % 2 ? HOTFN_TIMING_HISTOGRAMS : 0);
        hfn_time_state *t = timed_use(0);
        interrupts = 0;
        trap_flag_set();
        enter(&frames[1], 1);
        for (volatile int i = 0; kind < 2 && i < 5; i++) {
            enter(&frames[0], 2);
            leave(&frames[0]);
        }
        if (kind >= 2) {
            hfn_time_probe(2, hfn_counter_enter_entry, hfn_counter_exit_entry, 5);
        }
        leave(&frames[1]);
        trap_flag_clear();
        CHECK(interrupts > 400);
        CHECK_EQ_U64(timed_calls_of(1), 1);
        CHECK_EQ_U64(timed_calls_of(2), 5);
        CHECK_EQ_U64(timed_calls_of(9), interrupts);
        timed_is_complete(t);
        CHECK_EQ_U64(t->depth, 0);
        CHECK_EQ_U64(t->node, t->root);
        CHECK_EQ_U64(timed.header.abandoned_exits, 0);
        timed_forget();
    }
    signal(SIGTRAP, SIG_DFL);
}

static volatile int steps_left;

/* Stops single-stepping after the last step, because each step enters the kernel twice. */
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

/* One signal at any instruction, also between the reading of the clock and its use.  In a 32-bit
 * program, a signal between the reads of a tick's two words sees a time in the future if the high
 * word changes then (every 1.5 s). */
static void a_handlers_call_does_not_turn_the_clock_back(void)
{
    struct sigaction action = { .sa_sigaction = on_last_step, .sa_flags = SA_SIGINFO };

    sigaction(SIGTRAP, &action, NULL);
    for (int kind = 1; kind < 3; kind++) {
        int steps = 1;

        for (bool reached = true; reached; steps++) {
            hfn_time_frame frame;

            timed_start(steps % 2 ? HOTFN_TIMING_HISTOGRAMS : 0);
            timed_use(0);
            uint64_t begin = hfn_time_now();
            steps_left = steps;
            trap_flag_set();
            if (kind == 2) {
                hfn_time_probe(2, hfn_counter_enter_entry, hfn_counter_exit_entry, 1);
            } else {
                enter(&frame, 2);
                leave(&frame);
            }
            trap_flag_clear();
            reached = steps_left <= 0;
            if (sizeof(void *) == 8 || begin >> 32 == hfn_time_now() >> 32) {
                CHECK_EQ_U64(timed.header.clock_went_back, 0);
            }
            CHECK_EQ_U64(timed_calls_of(9), reached);
            timed_forget();
        }
        CHECK(steps > 50);
    }
    signal(SIGTRAP, SIG_DFL);
}
#else
static void signals_at_each_instruction_are_not_tested_here(void)
{
    puts("# signals at each instruction: x86 only, and not under thread sanitizer");
}
#endif

static const check_test tests[] = {
#if defined(CAN_STEP)
    CHECK_TEST(a_handlers_calls_at_any_instruction_keep_the_sums),
    CHECK_TEST(a_handlers_call_does_not_turn_the_clock_back),
#else
    CHECK_TEST(signals_at_each_instruction_are_not_tested_here),
#endif
};
CHECK_MAIN(tests)
