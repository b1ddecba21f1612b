/* SPDX-License-Identifier: MIT */
/* Measures the cost of a hook in the launcher, in code that resembles a program (busy_probe.S): a
 * loop around a single function would hide half of the cost.  Other load on the machine can double
 * it for seconds, so the measurement is repeated and enters a moving mean. */
#include "launch/budget/budget.h"

#include "base/compiler.h"
#include "os/os.h"

#include <string.h>

#if HFN_CAN_CHANGE_OTHERS

HFN_SYSTEM_V void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind);

enum { FUNCTIONS = 64, ROUNDS = 80, TRIES = 40, FEW_TRIES = 4 };
enum { BARE = 0, COUNTED = 1, SKIPPED = 2 }; /* kinds of calls, as in busy_probe.S */

/* Measure the extra nanoseconds of a hooked call.  The minimum of several tries excludes
 * interruptions. */
static double measure_hook_ns(bool is_sampled, uint32_t tries)
{
    uint64_t slots[FUNCTIONS + FUNCTIONS / 2], *row = slots;
    const uint32_t kinds[2] = { BARE, is_sampled ? SKIPPED : COUNTED };
    double best[2] = { 1e9, 1e9 };

    memset(slots, 0x7f, sizeof slots); /* so many calls to skip that the count never reaches 0 */
    for (uint32_t i = 0; i < 2 * tries; i++) {
        uint64_t begin = hfn_os_raw_ns();
        double each;

        hfn_busy_probe(&row, ROUNDS, kinds[i & 1]);
        each = (double)(hfn_os_raw_ns() - begin) / (FUNCTIONS * ROUNDS);
        best[i & 1] = each < best[i & 1] ? each : best[i & 1];
    }
    return best[1] > best[0] ? best[1] - best[0] : 0;
}

double hfn_budget_measure(bool is_sampled)
{
    return measure_hook_ns(is_sampled, TRIES);
}

double hfn_budget_measure_again(bool is_sampled, double known_ns)
{
    double now_ns = measure_hook_ns(is_sampled, FEW_TRIES);

    now_ns = now_ns > 2 * known_ns ? 2 * known_ns : now_ns < known_ns / 2 ? known_ns / 2 : now_ns;
    return known_ns + (now_ns - known_ns) / 4;
}

#else

double hfn_budget_measure(bool is_sampled)
{
    (void)is_sampled;
    return 0;
}

double hfn_budget_measure_again(bool is_sampled, double known_ns)
{
    (void)is_sampled;
    return known_ns;
}

#endif
