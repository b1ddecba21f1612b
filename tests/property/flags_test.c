/* SPDX-License-Identifier: MIT */
/*
 * Property: dead flags have no effect.  If flags_live returns false and a random sequence is run
 * again with different flags, the final registers, memory and stack are the same.  Arguments: seed,
 * number of sequences.
 */
#include "arch/arch.h"
#include "cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)
int main(void)
{
    return 77; /* needs this CPU */
}
#else

typedef struct tally {
    uint64_t dead, live, proven; /* proven: live flags that made a difference */
} tally;

static bool check_one(const stage *s, uint64_t seed, uint64_t round, void *counts)
{
    tally *t = counts;
    random_source r = random_seed(seed * 1000003 + round);
    static sequence seq;
    static outcome before, first, second;
    cpu_state start = { { 0 }, 0, 0, 0, 0 };
    const hfn_flag_reads nowhere = { .at_return = false };
    uint64_t code = (uint64_t)(uintptr_t)s->code, leaves_to;

    seq_make(&seq, &r, code, (uint64_t)(uintptr_t)s->data);
    memcpy(s->code, seq.bytes, seq.size);
    put_leave(s->code + seq.size);
    start_randomly(s, &seq, &r, &start, &before);
    run_from(s, &start, &before, s->code, &first);
    start.flags ^= random_u64(&r) & 0x8C5; /* AF is not tracked */
    run_from(s, &start, &before, s->code, &second);
    first.state.flags = second.state.flags = 0; /* the final flags may differ */
    bool equal = is_same_outcome(&first, &second);
    bool live = hfn_arch_x86_64.flags_live(s->code, PAGE, code, code, &nowhere, &leaves_to);
    t->live += live;
    t->dead += !live;
    t->proven += live && !equal;
    if (live || equal) {
        return true;
    }
    printf("# seed %" PRIu64 " round %" PRIu64 ": flags are read\n#  ", seed, round);
    print_bytes(&seq);
    return false;
}

int main(int argc, char **argv)
{
    random_run run = random_parse_run(argc, argv, 50000);
    tally t = { 0, 0, 0 };
    stage s;

    if (!make_stage(&s)) {
        return 77; /* no memory that is writable and executable here */
    }
    printf("1..1\n");
    int failed = count_failures(&s, run, check_one, &t);
    printf("# %" PRIu64 " dead, %" PRIu64 " live, %" PRIu64 " of them proven\n", t.dead, t.live,
           t.proven);
    failed += t.dead < run.count / 8 || t.proven < run.count / 100;
    printf("%sok 1 dead_flags_make_no_difference\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
