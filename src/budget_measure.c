/* SPDX-License-Identifier: MIT */
/* What a hook costs here: measured by the parent, in code like a program's (busy_probe.S), where a loop
 * around a single function would hide half of it. */
#include "budget.h"

#include "base/compiler.h"
#include "os/os.h"

#include <string.h>

#if HFN_CAN_CHANGE_OTHERS

void hfn_busy_probe(uint64_t **row, uint64_t rounds, uint64_t kind);

enum { FUNCTIONS = 64, ROUNDS = 80, TRIES = 100, BARE = 0, COUNTED = 1, PASSED = 2 };

/* The least of some tries is without interruptions. */
double hfn_budget_measure(bool is_sampled)
{
    uint64_t slots[FUNCTIONS + FUNCTIONS / 2], *row = slots;
    const uint32_t kinds[2] = { BARE, is_sampled ? PASSED : COUNTED };
    double best[2] = { 1e9, 1e9 };

    memset(slots, 0x7f, sizeof slots); /* so many calls are passed over */
    for (uint32_t i = 0; i < 2 * TRIES; i++) {
        uint64_t begin = hfn_os_raw_ns();
        double each;

        hfn_busy_probe(&row, ROUNDS, kinds[i & 1]);
        each = (double)(hfn_os_raw_ns() - begin) / (FUNCTIONS * ROUNDS);
        best[i & 1] = each < best[i & 1] ? each : best[i & 1];
    }
    return best[1] > best[0] ? best[1] - best[0] : 0;
}

#else

double hfn_budget_measure(bool is_sampled)
{
    (void)is_sampled;
    return 0;
}

#endif
