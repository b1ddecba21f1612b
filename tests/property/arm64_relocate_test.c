/* SPDX-License-Identifier: MIT */
/*
 * Property: moved A64 code has the effect of the original.  Code leaves the same registers, flags,
 * memory and stack whether it runs in place or with its first instructions moved and replaced by a
 * branch.  Tests every PC-relative form at every alignment and range limit, then random sequences.
 * Built separately for AArch64 and run under qemu-user.  Arguments: seed, number of sequences.
 */
#include "arch/arch.h"
#include "arch/arm64/decode.h"
#include "arch/arm64/emit_stub.h"
#include "arch/arm64/relocate.h"
#include "arm64_cpu.h"
#include "random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MIB (INT64_C(1) << 20)
#define SPACE_BYTES (512 * MIB) /* the code is in its middle */
#define LEAVE 0xD61F0380u       /* br x28        */
#define CALL 0x94000000u        /* bl              */
#define SEQUENCE_MAX 10u

static uint8_t *space;

static void put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
}

static void flush_code(uint8_t *at, size_t bytes)
{
    __builtin___clear_cache((char *)at, (char *)at + bytes);
}

/* Write the moved code to stub and the patch to code. */
static bool patch_entry(uint8_t *code, uint8_t *stub, const hfn_moved *m)
{
    uint64_t address = (uint64_t)(uintptr_t)stub;
    uint8_t original[HFN_ARM64_BYTES];

    memcpy(stub, m->bytes, m->length);
    for (uint32_t i = 0; i < m->fixup_count; i++) {
        if (!hfn_patching_arm64.fix_up(stub, address, m->fixups[i].at, m->fixups[i].end,
                                       m->fixups[i].target_rva))
            return false;
    }
    memset(code + 4, 0, m->original_bytes - 4u); /* udf: never executed */
    memcpy(original, code, sizeof original);
    hfn_arm64_emit_patch(code, original, (uint64_t)(uintptr_t)code, address);
    flush_code(stub, m->length);
    flush_code(code, m->original_bytes);
    return true;
}

static bool is_same_outcome(const outcome *a, const outcome *b)
{
    for (int i = 0; i < 32; i++) {
        if (i != 16 && i != 17 && a->state.x[i] != b->state.x[i]) {
            return false;
        }
    }
    return a->state.flags == b->state.flags &&
           memcmp(a->state.q, b->state.q, sizeof a->state.q) == 0 &&
           memcmp(a->data, b->data, sizeof a->data) == 0 &&
           memcmp(a->stack, b->stack, sizeof a->stack) == 0;
}

static void start_randomly(random_source *r, outcome *start)
{
    for (int i = 0; i < 31; i++) {
        start->state.x[i] = random_below(r, 4) ? random_u64(r) : random_below(r, 3);
    }
    for (int i = 0; i < 8; i++) {
        start->state.q[i] = random_u64(r);
    }
    for (uint32_t i = 0; i < DATA_BYTES; i++) {
        start->data[i] = (uint8_t)random_u64(r);
    }
    memcpy(start->stack, start->data, DATA_BYTES);
    start->state.flags = (uint64_t)random_below(r, 16) << 28;
    start->state.x[27] = (uint64_t)(uintptr_t)(run_data + DATA_BYTES / 2);
    start->state.x[28] = (uint64_t)(uintptr_t)cpu_leave;
    start->state.x[31] = (uint64_t)(uintptr_t)(run_stack + STACK_BYTES / 2);
}

/* ---- Every form, at its limits. */

typedef struct form {
    const char *name;
    uint32_t word;     /* with an empty field                 */
    uint32_t bits, at; /* the field, in units                 */
    int64_t unit;      /* bytes                               */
    bool is_adr;       /* its two low bits are at bit 29      */
    bool reads;        /* its target is data                  */
} form;

// clang-format off
static const form forms[] = {
    { "b",         0x14000000, 26, 0, 4, false, false },
    { "bl",        CALL, 26, 0, 4, false, false },
    { "b.eq",      0x54000000, 19, 5, 4, false, false },
    { "b.hi",      0x54000008, 19, 5, 4, false, false },
    { "b.le",      0x5400000D, 19, 5, 4, false, false },
    { "b.al",      0x5400000E, 19, 5, 4, false, false },
    { "cbz w1",    0x34000001, 19, 5, 4, false, false },
    { "cbz x1",    0xB4000001, 19, 5, 4, false, false },
    { "cbnz w1",   0x35000001, 19, 5, 4, false, false },
    { "cbnz x1",   0xB5000001, 19, 5, 4, false, false },
    { "tbz w1,3",  0x36180001, 14, 5, 4, false, false },
    { "tbz x1,40", 0xB6400001, 14, 5, 4, false, false },
    { "tbnz w1,0", 0x37000001, 14, 5, 4, false, false },
    { "tbnz x1,63", 0xB7F80001, 14, 5, 4, false, false },
    { "adr x2",    0x10000002, 21, 5, 1, true, false },
    { "adr x16",   0x10000010, 21, 5, 1, true, false },
    { "adr xzr",   0x1000001F, 21, 5, 1, true, false },
    { "adrp x2",   0x90000002, 21, 5, 4096, true, false },
    { "adrp x30",  0x9000001E, 21, 5, 4096, true, false },
    { "ldr w3",    0x18000003, 19, 5, 4, false, true },
    { "ldr x3",    0x58000003, 19, 5, 4, false, true },
    { "ldr x17",   0x58000011, 19, 5, 4, false, true },
    { "ldr xzr",   0x5800001F, 19, 5, 4, false, true },
    { "ldrsw x3",  0x98000003, 19, 5, 4, false, true },
    { "prfm",      0xD8000000, 19, 5, 4, false, true },
    { "ldr s0",    0x1C000000, 19, 5, 4, false, true },
    { "ldr d1",    0x5C000001, 19, 5, 4, false, true },
    { "ldr q2",    0x9C000002, 19, 5, 4, false, true },
};
// clang-format on

static uint32_t encode(const form *f, int64_t units)
{
    uint32_t value = (uint32_t)units;

    if (f->is_adr) {
        return f->word | (value & 3) << 29 | (value >> 2 & 0x7FFFF) << 5;
    }
    return f->word | (value & ((1u << f->bits) - 1)) << f->at;
}

/* Mark the target of a branch (orr x9, x9, #2; leave) or the code after it (orr x9, x9, #1;
 * leave). */
static void put_landing(uint8_t *at, bool taken)
{
    put_word(at, taken ? 0xB27F0129u : 0xB2400129u);
    put_word(at + 4, LEAVE);
    flush_code(at, 8);
}

static bool is_mapped(const uint8_t *at)
{
    return at >= space && at + 16 <= space + SPACE_BYTES;
}

typedef struct tally {
    uint64_t compared, not_tried, failed;
} tally;

/* Move the instruction; a call stays in place, to keep its return address, and is retargeted. */
static bool move_instruction(const form *f, const uint8_t *code, hfn_moved *out)
{
    uint64_t address = (uint64_t)(uintptr_t)code;
    uint32_t offset;

    if (f->word == CALL) {
        return hfn_arm64_make_retarget(code, HFN_ARM64_BYTES, address, out);
    }
    return hfn_arch_arm64.move(code, HFN_ARM64_BYTES, address, HFN_ARM64_BYTES, HFN_NO_REGISTER,
                               out, &offset) == HFN_MOVED;
}

static void check_form_at(const form *f, uint8_t *code, int64_t units, random_source *r, tally *t)
{
    uint32_t word = encode(f, units);
    uint8_t *target = code + units * f->unit;
    /* Place the stub so that the moved code reaches its targets. */
    bool before = f->bits == 26 ? units < 0 : random_below(r, 2);
    uint8_t *stub = code + (before ? -60 : 60) * MIB;
    bool branches = !f->is_adr && !f->reads;
    static outcome start, in_place, moved_run;
    hfn_moved moved;

    /* A jump to itself never ends; a load of the patched bytes is refused. */
    if ((branches && (units == 0 || !is_mapped(target))) ||
        (f->reads && units > -4 && units <= 0)) {
        t->not_tried++;
        return;
    }
    if (f->reads && is_mapped(target)) {
        for (int i = 0; i < 16; i++) {
            target[i] = (uint8_t)random_u64(r);
        }
    }
    if (branches && units != -1) {
        put_landing(target, true);
    }
    if (branches && units == -1) { /* the landing code does not fit before the branch */
        put_landing(code + 256, true);
        put_word(target, 0x14000000 | 260 / 4);
        flush_code(target, 4);
    }
    if (!branches || units < -2 || units > 2) {
        put_landing(code + 4, false);
    }
    put_word(code, word);
    flush_code(code, 4);
    start_randomly(r, &start);
    run_from(&start, code, &in_place);
    if (!move_instruction(f, code, &moved) || !patch_entry(code, stub, &moved)) {
        printf("# %s by %" PRId64 " is not moved\n", f->name, units);
        t->failed++;
        return;
    }
    run_from(&start, code, &moved_run);
    t->compared++;
    if (is_same_outcome(&in_place, &moved_run)) {
        return;
    }
    printf("# %s by %" PRId64 " at ...%03x differs: x9 %" PRIx64 " %" PRIx64 "\n", f->name, units,
           (unsigned)((uintptr_t)code & 0xFFF), in_place.state.x[9], moved_run.state.x[9]);
    t->failed++;
}

static void check_form(const form *f, random_source *r, tally *t)
{
    int64_t limit = INT64_C(1) << (f->bits - 1);

    for (uint32_t alignment = 0; alignment < 4096; alignment += alignment < 64 ? 4 : 332) {
        uint8_t *code = space + SPACE_BYTES / 2 + alignment;
        int64_t edges[] = { -limit, -limit + 1, -limit + 2, -limit / 2, -5,        -4,
                            -3,     -2,         -1,         0,          1,         2,
                            3,      4,          5,          limit / 2,  limit - 2, limit - 1 };
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
            check_form_at(f, code, edges[i], r, t);
        }
        for (int i = 0; i < 4; i++) {
            check_form_at(f, code, (int64_t)(random_u64(r) % (uint64_t)(2 * limit)) - limit, r, t);
        }
    }
}

static bool every_form_at_its_limits(random_source *r)
{
    bool good = true;

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        tally t = { 0, 0, 0 };
        check_form(&forms[i], r, &t);
        printf("# %-10s %" PRIu64 " compared, %" PRIu64 " not tried, %" PRIu64 " failed\n",
               forms[i].name, t.compared, t.not_tried, t.failed);
        good = good && t.failed == 0 && t.compared > 0;
    }
    return good;
}

/* ---- Random sequences. */

typedef struct sequence {
    uint32_t words[SEQUENCE_MAX];
    uint32_t count;
} sequence;

/* Not x16 and x17, which are undefined at an entry. */
static uint32_t any_reg(random_source *r)
{
    return random_below(r, 16);
}

static uint32_t random_branch(random_source *r, uint32_t here, uint32_t count)
{
    int32_t distance = (int32_t)(1 + random_below(r, count - here));
    uint32_t field = ((uint32_t)distance & 0x7FFFF) << 5;

    switch (random_below(r, 4)) {
    case 0: return 0x54000000 | field | random_below(r, 15);
    case 1:
        return 0x34000000 | random_below(r, 2) << 31 | random_below(r, 2) << 24 | field |
               any_reg(r);
    case 2:
        return 0x36000000 | random_below(r, 2) << 24 | random_below(r, 32) << 19 |
               ((uint32_t)distance & 0x3FFF) << 5 | any_reg(r);
    default: return 0x14000000 | (uint32_t)distance;
    }
}

/* Loads from the 64 bytes of literals before the code. */
static uint32_t random_literal(random_source *r, uint32_t here)
{
    static const uint32_t loads[] = { 0x18000000, 0x58000000, 0x98000000, 0xD8000000,
                                      0x1C000000, 0x5C000000, 0x9C000000 };
    uint32_t kind = random_below(r, 7);
    int32_t distance = -(int32_t)(here + 4 + random_below(r, 12));
    uint32_t reg = kind < 4 ? any_reg(r) : random_below(r, 4);

    return loads[kind] | ((uint32_t)distance & 0x7FFFF) << 5 | reg;
}

static uint32_t random_memory(random_source *r)
{
    uint32_t rt = any_reg(r), scaled = random_below(r, 16) << 10;

    switch (random_below(r, 5)) {
    case 0: return 0xF9400000 | scaled | 27u << 5 | rt;                /* ldr x, [x27, #] */
    case 1: return 0xF9000000 | scaled | 27u << 5 | rt;                /* str             */
    case 2: return 0xA9BF0000 | any_reg(r) << 10 | 31u << 5 | rt;      /* stp x, x, [sp, #-16]! */
    case 3: return 0xA8C10000 | ((rt + 1) & 15) << 10 | 31u << 5 | rt; /* ldp x, x, [sp], #16 */
    default: return 0x39400000 | scaled | 27u << 5 | rt;               /* ldrb            */
    }
}

static uint32_t random_arithmetic(random_source *r)
{
    static const uint32_t kinds[] = { 0x8B000000, 0xAB000000, 0xCB000000, 0xEB000000, 0x8A000000,
                                      0xCA000000, 0xEA000000, 0x9A000000, 0xBA000000, 0x2B000000,
                                      0x9A800400, 0x9B007C00, 0xFA400800, 0x5A800000 };
    uint32_t kind = kinds[random_below(r, sizeof kinds / sizeof kinds[0])];

    if (kind == 0xFA400800) { /* ccmp xn, #imm5, #nzcv, cond */
        return kind | random_below(r, 32) << 16 | random_below(r, 15) << 12 | any_reg(r) << 5 |
               random_below(r, 16);
    }
    return kind | any_reg(r) << 16 | any_reg(r) << 5 | any_reg(r);
}

static void make_sequence(sequence *s, random_source *r)
{
    s->count = 1 + random_below(r, SEQUENCE_MAX);
    for (uint32_t i = 0; i < s->count; i++) {
        switch (random_below(r, 8)) {
        case 0:
        case 1: s->words[i] = random_branch(r, i, s->count); break;
        case 2: s->words[i] = random_literal(r, i); break;
        case 3: s->words[i] = random_memory(r); break;
        case 4: /* adr, adrp */
            s->words[i] = 0x10000000 | random_below(r, 2) << 31 | random_below(r, 4) << 29 |
                          random_below(r, 1 << 19) << 5 | any_reg(r);
            break;
        default: s->words[i] = random_arithmetic(r); break;
        }
    }
}

/* Compare a random sequence run in place and moved.  The stack has room for all its pushes and
 * pops. */
static bool check_sequence(uint64_t seed, uint64_t round, tally *t)
{
    random_source r = random_seed(seed * 1000003 + round);
    static outcome start, in_place, moved_run;
    uint8_t *code = space + SPACE_BYTES / 2 + 4 * random_below(&r, 2048) + 64;
    uint8_t *stub =
        code + (random_below(&r, 2) ? -1 : 1) * (int64_t)(1 + random_below(&r, 120)) * MIB;
    hfn_moved moved;
    uint32_t offset;
    sequence s;

    make_sequence(&s, &r);
    uint32_t patched = 1 + random_below(&r, s.count < 6 ? s.count : 6);
    for (int i = -64; i < 0; i++) {
        code[i] = (uint8_t)random_u64(&r);
    }
    for (uint32_t i = 0; i < s.count; i++) {
        put_word(code + 4 * i, s.words[i]);
    }
    put_word(code + 4 * s.count, LEAVE);
    flush_code(code, 4 * s.count + 4);
    start_randomly(&r, &start);
    run_from(&start, code, &in_place);
    hfn_move_result result = hfn_arch_arm64.move(code, 4 * s.count, (uint64_t)(uintptr_t)code,
                                                 4 * patched, HFN_NO_REGISTER, &moved, &offset);
    /* Too long, or every scratch register may be named by an instruction. */
    if (result == HFN_MOVE_TOO_LONG || (result == HFN_MOVE_IMPOSSIBLE && patched > 1)) {
        t->not_tried++;
        return true;
    }
    if (result == HFN_MOVED && patch_entry(code, stub, &moved)) {
        run_from(&start, code, &moved_run);
        t->compared++;
        if (is_same_outcome(&in_place, &moved_run)) {
            return true;
        }
    }
    printf("# seed %" PRIu64 " round %" PRIu64 " patched %u, move %d:", seed, round, patched,
           result);
    for (uint32_t i = 0; i < s.count; i++) {
        printf(" %08" PRIx32, s.words[i]);
    }
    printf("\n");
    return false;
}

int main(int argc, char **argv)
{
    random_run run = random_parse_run(argc, argv, 20000);
    random_source r = random_seed(run.seed);
    tally t = { 0, 0, 0 };

    space = mmap(NULL, SPACE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        return 77;
    }
    printf("1..2\n");
    bool forms_good = every_form_at_its_limits(&r);
    printf("%sok 1 every_form_at_every_alignment_and_limit_computes_what_the_original_did\n",
           forms_good ? "" : "not ");
    for (uint64_t round = 0; round < run.count && t.failed < 5; round++) {
        t.failed += !check_sequence(run.seed, round, &t);
    }
    printf("# %" PRIu64 " compared, %" PRIu64 " not tried\n", t.compared, t.not_tried);
    bool good = t.failed == 0 && t.compared > run.count * 9 / 10;
    printf("%sok 2 moved_sequences_compute_what_the_original_did\n", good ? "" : "not ");
    return forms_good && good ? 0 : 1;
}
