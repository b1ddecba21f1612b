/* SPDX-License-Identifier: MIT */
/* Functions that call each other in circles share a number, and no others do: against plain reachability, on
 * random graphs. */
#include "../../property/random.h"
#include "check.h"
#include "profile/times_sum.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SLOTS = 24, EDGES = 60 };

static int by_caller(const void *a, const void *b)
{
    const hfn_edge_sum *left = a, *right = b;

    return (left->caller > right->caller) - (left->caller < right->caller);
}

static void make_graph(random_source *r, hfn_time_sums *sums, bool reaches[SLOTS][SLOTS])
{
    sums->edge_count = random_below(r, EDGES);
    for (uint32_t i = 0; i < sums->edge_count; i++) {
        uint32_t caller = random_below(r, SLOTS), callee = random_below(r, SLOTS);
        bool outside = random_below(r, 10) == 0;
        sums->edges[i] =
            (hfn_edge_sum){ .caller = outside ? HOTFN_NO_SLOT : caller, .callee = callee };
        if (!outside) {
            reaches[caller][callee] = true;
        }
    }
    qsort(sums->edges, sums->edge_count, sizeof *sums->edges, by_caller);
    for (uint32_t k = 0; k < SLOTS; k++) { /* Warshall's */
        for (uint32_t i = 0; i < SLOTS; i++) {
            for (uint32_t j = 0; j < SLOTS; j++) {
                reaches[i][j] |= reaches[i][k] && reaches[k][j];
            }
        }
    }
}

static bool check_graph(uint64_t seed)
{
    random_source r = random_seed(seed);
    hfn_slot_sum slots[SLOTS] = { { .calls = 0 } };
    hfn_edge_sum edges[EDGES];
    hfn_time_sums sums = {
        .env = hfn_env_fill(NULL), .slots = slots, .slot_count = SLOTS, .edges = edges
    };
    bool reaches[SLOTS][SLOTS] = { { false } }, fine = true;

    make_graph(&r, &sums, reaches);
    fine &= CHECK(hfn_time_find_cycles(&sums));
    for (uint32_t i = 0; i < SLOTS && fine; i++) {
        for (uint32_t j = 0; j < SLOTS && fine; j++) {
            bool together = i == j || (reaches[i][j] && reaches[j][i]);
            fine &= CHECK_EQ_U64(slots[i].cycle == slots[j].cycle, together);
        }
    }
    return fine;
}

static void circles_are_what_leads_there_and_back(void)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        if (!check_graph(seed)) {
            printf("#   with seed %" PRIu64 "\n", seed);
            return;
        }
    }
}

static void a_long_chain_takes_no_stack(void)
{
    enum { LONG = 1 << 20 };
    hfn_time_sums sums = { .env = hfn_env_fill(NULL), .slot_count = LONG, .edge_count = LONG };

    sums.slots = calloc(LONG, sizeof *sums.slots);
    sums.edges = calloc(LONG, sizeof *sums.edges);
    for (uint32_t i = 0; i < LONG; i++) {
        sums.edges[i].caller = i;
        sums.edges[i].callee = (i + 1) % LONG;
    }
    CHECK(hfn_time_find_cycles(&sums));
    CHECK_EQ_U64(sums.slots[0].cycle, sums.slots[LONG - 1].cycle);
    free(sums.edges);
    free(sums.slots);
}

static const check_test tests[] = {
    CHECK_TEST(circles_are_what_leads_there_and_back),
    CHECK_TEST(a_long_chain_takes_no_stack),
};
CHECK_MAIN(tests)
