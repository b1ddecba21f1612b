/* SPDX-License-Identifier: MIT */
/*
 * Property: moved code has the effect of the original.  A random sequence leaves the same
 * registers, flags, memory and stack whether it runs in place, or with its first instructions moved
 * and its first bytes overwritten by a jump, as a patch does.  Arguments: seed, number of
 * sequences.
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

static void put_rel32(uint8_t *at, const uint8_t *end, uint64_t target)
{
    uint32_t distance = (uint32_t)(target - (uint64_t)(uintptr_t)end);

    memcpy(at, &distance, sizeof distance);
}

/* Write moved code with its fields filled in. */
static void put_moved(uint8_t *stub, const hfn_moved *moved)
{
    memcpy(stub, moved->bytes, moved->length);
    for (uint32_t i = 0; i < moved->fixup_count; i++) {
        put_rel32(stub + moved->fixups[i].at, stub + moved->fixups[i].end,
                  moved->fixups[i].target_rva);
    }
}

static void patch_entry(const stage *s, const uint8_t *stub, uint32_t patch_bytes)
{
    memset(s->code, 0xCC, patch_bytes);
    s->code[0] = 0xE9;
    put_rel32(s->code + 1, s->code + 5, (uint64_t)(uintptr_t)stub);
}

static void report_failure(uint64_t seed, uint64_t round, const sequence *seq, uint32_t patch_bytes,
                           const char *what)
{
    printf("# seed %" PRIu64 " round %" PRIu64 " patch %u: %s\n#  ", seed, round, patch_bytes,
           what);
    print_bytes(seq);
}

/* May the entry be patched?  Verdicts refuse functions with a branch into the patch, so
 * sequences with such a loop are not tried. */
static bool is_patch_allowed(const sequence *seq, uint32_t covered)
{
    for (uint32_t i = 0; i < seq->branch_count; i++) {
        uint32_t at = seq->branches[i].at;
        uint32_t target = at + 1 + (uint32_t)(int8_t)seq->bytes[at];
        if (seq->branches[i].backward && at >= covered && target > 0 && target < covered) {
            return false;
        }
    }
    return true;
}

typedef struct tally {
    uint64_t compared, refused, faulted;
} tally;

static bool check_one(const stage *s, uint64_t seed, uint64_t round, void *counts)
{
    tally *t = counts;
    random_source r = random_seed(seed * 1000003 + round);
    static sequence seq;
    static outcome before, in_place, moved_run;
    cpu_state start = { { 0 }, 0, 0, 0, 0 };
    hfn_moved moved;
    uint32_t offset = 0, patch_bytes = 5 + random_below(&r, 8);
    uint8_t *stub = random_below(&r, 2) ? s->moved_near : s->moved_far;
    uint64_t code = (uint64_t)(uintptr_t)s->code;

    seq_make(&seq, &r, code, (uint64_t)(uintptr_t)s->data);
    if (patch_bytes > seq.size) {
        patch_bytes = seq.size < 5 ? 5 : seq.size;
    }
    memcpy(s->code, seq.bytes, seq.size);
    memset(s->code + seq.size, 0x90, 16); /* nops, so that every patch fits */
    put_leave(s->code + seq.size + 16);
    hfn_move_result result =
        hfn_arch_x86_64.move(s->code, PAGE, code, patch_bytes, HFN_NO_REGISTER, &moved, &offset);
    if (result != HFN_MOVED || !is_patch_allowed(&seq, moved.original_bytes)) {
        t->refused++;
        if (result == HFN_MOVED || result == HFN_MOVE_TOO_LONG) {
            return true;
        }
        report_failure(seed, round, &seq, patch_bytes, "refused");
        return false;
    }
    start_randomly(s, &seq, &r, &start, &before);
    run_from(s, &start, &before, s->code, &in_place);
    put_moved(stub, &moved);
    patch_entry(s, stub, patch_bytes);
    run_from(s, &start, &before, s->code, &moved_run);
    t->compared++;
    t->faulted += in_place.signal != 0;
    if (is_same_outcome(&in_place, &moved_run)) {
        return true;
    }
    report_failure(seed, round, &seq, patch_bytes, "differs");
    printf("# signals %d %d, flags %" PRIx64 " %" PRIx64 "\n", in_place.signal, moved_run.signal,
           in_place.state.flags, moved_run.state.flags);
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
    printf("# %" PRIu64 " compared, %" PRIu64 " not tried, %" PRIu64 " faulted alike\n", t.compared,
           t.refused, t.faulted);
    failed += t.compared < run.count / 2 || t.faulted > t.compared / 100;
    printf("%sok 1 moved_code_computes_what_the_original_did\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
