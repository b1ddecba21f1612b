/* SPDX-License-Identifier: MIT */
/*
 * Property: the values of dead registers have no effect.  If a random sequence is run again with a
 * different value in a dead register, the final registers (including that one), flags, memory and
 * stack are the same.  Arguments: seed, number of sequences.
 */
#include "arch/x86/scratch.h"
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

#define CANDIDATES 0x0FC7u

typedef struct tally {
    uint64_t dead, live, proven; /* proven: live registers that made a difference */
} tally;

static void make_round(const stage *s, random_source *r, sequence *seq, cpu_state *start,
                       outcome *before)
{
    uint64_t code = (uint64_t)(uintptr_t)s->code;

    memset(s->code, 0xCC, PAGE);
    seq_make(seq, r, code, (uint64_t)(uintptr_t)s->data);
    memcpy(s->code, seq->bytes, seq->size);
    put_leave(s->code + seq->size);
    start_randomly(s, seq, r, start, before);
}

/* True if the register's initial value changes the outcome. */
static bool makes_difference(const stage *s, random_source *r, cpu_state start,
                             const outcome *before, const outcome *first, uint32_t number)
{
    static outcome second;

    start.registers[number] ^=
        random_below(r, 2) ? random_u64(r) : UINT64_C(1) << random_below(r, 64);
    run_from(s, &start, before, s->code, &second);
    if (second.signal != 0) { /* the final registers were not stored */
        second.state.registers[number] = first->state.registers[number];
    }
    return !is_same_outcome(first, &second);
}

static bool check_one(const stage *s, uint64_t seed, uint64_t round, void *tallied)
{
    tally *t = tallied;
    random_source r = random_seed(seed * 1000003 + round);
    static sequence seq;
    static outcome before, first;
    cpu_state start = { { 0 }, 0, 0, 0, 0 };
    uint64_t code = (uint64_t)(uintptr_t)s->code;
    bool ok = true;

    make_round(s, &r, &seq, &start, &before);
    run_from(s, &start, &before, s->code, &first);
    uint32_t dead = hfn_x86_find_dead_registers(s->code, PAGE, code, code);
    for (uint32_t number = 0; number < 16; number++) {
        bool is_dead = dead >> number & 1;
        bool counts = seq.keep_rcx && number == 1; /* a loop counter: the loop might not end */
        if (!(CANDIDATES >> number & 1) || counts || (!is_dead && random_below(&r, 4))) {
            continue;
        }
        bool differs = makes_difference(s, &r, start, &before, &first, number);
        t->dead += is_dead;
        t->live += !is_dead;
        t->proven += !is_dead && differs;
        if (!is_dead || !differs) {
            continue;
        }
        ok = false;
        printf("# seed %" PRIu64 " round %" PRIu64 ": register %u is read\n#  ", seed, round,
               number);
        print_bytes(&seq);
    }
    return ok;
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
    printf("# %" PRIu64 " dead, %" PRIu64 " not, %" PRIu64 " of them proven\n", t.dead, t.live,
           t.proven);
    failed += t.dead < run.count / 8 || t.proven < run.count / 8;
    printf("%sok 1 values_of_dead_registers_make_no_difference\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
