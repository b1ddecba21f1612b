/* SPDX-License-Identifier: MIT */
/* Moved code that goes on: it copies what control comes to, and leaves alone what must stay where it is.
 * That copies compute the same is tests/property/relocate_test.c. */
#include "arch/x86/run_on.h"

#include "arch/arch.h"
#include "check.h"

#include "../../property/random.h"

/* A function of a test; static, so that `out` is near. */
typedef struct source {
    uint8_t bytes[512]; /* [size] */
    uint32_t size;
    uint32_t barred_from, barred_to; /* offsets */
    uint32_t head_bytes;             /* of random code: its first instruction, moved */
} source;

static bool is_barred(const void *user, uint64_t address)
{
    const source *s = user;
    uint64_t offset = address - (uint64_t)(uintptr_t)s->bytes;

    return offset >= s->barred_from && offset < s->barred_to;
}

#define SOURCE(...)                                                                                \
    {                                                                                              \
        .bytes = { __VA_ARGS__ }, .size = (uint32_t)sizeof((uint8_t[]){ __VA_ARGS__ }),            \
        .barred_to = 5                                                                             \
    }

static uint64_t address_of(const source *s, uint32_t offset)
{
    return (uint64_t)(uintptr_t)s->bytes + offset;
}

/* Its first 5 bytes moved to `address`, running on: the number of bytes. */
static uint32_t run_to(const source *s, uint64_t address, uint8_t *out)
{
    hfn_moved moved;
    uint32_t offset;
    hfn_run run = { .moved = moved.bytes, .is_barred = is_barred, .user = s };

    if (hfn_arch_x86_64.move(s->bytes, s->size, address_of(s, 0), 5, HFN_NO_REGISTER, &moved,
                             &offset) != HFN_MOVED) {
        return UINT32_MAX;
    }
    run.moved_bytes = moved.length;
    run.fixup_count = moved.fixup_count;
    memcpy(run.fixups, moved.fixups, sizeof run.fixups);
    run.begin = address_of(s, moved.original_bytes);
    run.end = address_of(s, s->size);
    return hfn_x86_run_on(&run, address, out);
}

static uint8_t out[HFN_RUN_MAX_BYTES];

static uint32_t run_of(const source *s)
{
    memset(out, 0xcc, sizeof out);
    return run_to(s, (uint64_t)(uintptr_t)out, out);
}

/* Where the jmp or jcc whose last byte is before `end` leads, as an offset in s. */
static int64_t leads_to(const source *s, uint32_t end)
{
    int32_t distance;

    memcpy(&distance, out + end - 4, 4);
    return (int64_t)((uint64_t)(uintptr_t)out + end + (uint64_t)(int64_t)distance -
                     address_of(s, 0));
}

/* mov eax, 1; add eax, edi; ret: nothing is left to go back to. */
static void a_short_function_is_copied_to_its_end(void)
{
    static const source s = SOURCE(0xb8, 1, 0, 0, 0, 0x01, 0xf8, 0xc3);

    CHECK_EQ_U64(run_of(&s), s.size);
    CHECK_MEM(out, s.bytes, s.size);
}

/* mov eax, 1; inc eax; then what must not be copied. */
static void it_goes_back_where_code_must_stay(void)
{
    static const source stay[] = {
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xe8, 0, 0, 0, 0, 0xc3),    /* call          */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xff, 0xd0, 0xc3),          /* call rax      */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0x53, 0x5b, 0xc3),          /* push rbx      */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0x48, 0x83, 0xec, 8, 0xc3), /* sub rsp, 8    */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0x48, 0x89, 0xec, 0xc3),    /* mov rsp, rbp  */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0x0f, 0x05, 0xc3),          /* syscall       */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xcc, 0xc3),                /* int3          */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xf0, 0xff, 0x07, 0xc3),    /* lock inc      */
        SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xc5, 0xf8, 0x77, 0xc3),    /* vzeroupper    */
    };

    for (uint32_t i = 0; i < sizeof stay / sizeof stay[0]; i++) {
        CHECK_EQ_U64(run_of(&stay[i]), 5 + 2 + 5);
        CHECK_MEM(out, stay[i].bytes, 7);
        CHECK_EQ_U64(out[7], 0xe9);
        CHECK_EQ_I64(leads_to(&stay[i], 12), 7);
    }
}

/* The same, but nothing can be copied; or what moves moves the stack pointer. */
static void it_says_so_when_nothing_is_gained(void)
{
    static const source none[] = {
        SOURCE(0xb8, 1, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xc3),             /* a call at once          */
        SOURCE(0x55, 0x48, 0x89, 0xe5, 0x90, 0xff, 0xc0, 0x5d, 0xc3), /* push rbp; mov rbp, rsp */
        SOURCE(0xff, 0xc0, 0xff, 0xc0, 0xc3),                         /* ends among what moves   */
        SOURCE(0xeb, 3, 0x90, 0x90, 0x90, 0xff, 0xc0, 0xc3),          /* no way leads to its end */
    };

    for (uint32_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_EQ_U64(run_of(&none[i]), 0);
    }
}

/* Another function's first bytes, which a patch overwrites, and what lies behind the function's end. */
static void it_does_not_enter_what_it_may_not(void)
{
    static source s = SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xc3);
    static source past;

    past = s;
    s.barred_from = 9;
    s.barred_to = 11;
    CHECK_EQ_U64(run_of(&s), 5 + 4 + 5);
    CHECK_EQ_I64(leads_to(&s, 14), 9);
    past.size = 10; /* in the middle of an instruction */
    CHECK_EQ_U64(run_of(&past), 5 + 4 + 5);
    CHECK_EQ_I64(leads_to(&past, 14), 9);
    past.size = 9; /* between two */
    CHECK_EQ_U64(run_of(&past), 5 + 4 + 5);
    CHECK_EQ_I64(leads_to(&past, 14), 9);
}

/* test edi, edi; je +3 (moved); mov eax, esi; ret; 0: xor eax, eax; ret */
static void both_ways_of_a_moved_branch_are_copied(void)
{
    static const source s =
        SOURCE(0x85, 0xff, 0x0f, 0x84, 3, 0, 0, 0, 0x89, 0xf0, 0xc3, 0x31, 0xc0, 0xc3);

    CHECK_EQ_U64(run_of(&s), s.size);
    CHECK_MEM(out, s.bytes, s.size);
}

/* mov eax, 1; test edi, edi; je 1f; jmp 2f; 1: xor eax, eax; ret; int3; 2: inc eax; ret */
static void jumps_and_both_ways_of_branches_are_followed(void)
{
    static const source s = SOURCE(0xb8, 1, 0, 0, 0, 0x85, 0xff, 0x74, 2, 0xeb, 4, 0x31, 0xc0, 0xc3,
                                   0xcc, 0xff, 0xc0, 0xc3);
    static const uint8_t copy[] = { 0xb8, 1,    0,    0,    0,    0x85, 0xff, 0x74,
                                    3,    0xff, 0xc0, 0xc3, 0x31, 0xc0, 0xc3 };

    CHECK_EQ_U64(run_of(&s), sizeof copy);
    CHECK_MEM(out, copy, sizeof copy);
}

/* mov ecx, 9; 5: dec ecx; jne 5; ret: the loop stays in the copy, by a short jump. */
static void loops_stay_inside(void)
{
    static const source s =
        SOURCE(0xb9, 9, 0, 0, 0, 0xff, 0xc9, 0x0f, 0x85, 0xf8, 0xff, 0xff, 0xff, 0xc3);
    static const uint8_t copy[] = { 0xb9, 9, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };

    CHECK_EQ_U64(run_of(&s), sizeof copy);
    CHECK_MEM(out, copy, sizeof copy);
}

/* mov ecx, 9; inc ecx; jne 0: counted by the patch that stands there. */
static void a_jump_to_the_own_entry_leads_there(void)
{
    static const source s = SOURCE(0xb9, 9, 0, 0, 0, 0xff, 0xc1, 0x75, 0xf7, 0xc3);

    static source unbarred;

    CHECK_EQ_U64(run_of(&s), 5 + 2 + 6 + 1);
    CHECK_EQ_I64(leads_to(&s, 13), 0);
    unbarred = s;
    unbarred.barred_to = 0; /* what moved is not copied twice */
    CHECK_EQ_U64(run_of(&unbarred), 5 + 2 + 6 + 1);
    CHECK_EQ_I64(leads_to(&unbarred, 13), 0);
}

/* mov eax, 1; 5: jmp 5 */
static void a_jump_to_itself_ends(void)
{
    static const source s = SOURCE(0xb8, 1, 0, 0, 0, 0xeb, 0xfe);

    CHECK_EQ_U64(run_of(&s), 0);
}

/* mov eax, 1; mov edx, [rip + 0x40]; lea rcx, [rip - 7]; ret */
static void data_is_reached_from_the_copy(void)
{
    static const source s = SOURCE(0xb8, 1, 0, 0, 0, 0x8b, 0x15, 0x40, 0, 0, 0, 0x48, 0x8d, 0x0d,
                                   0xf9, 0xff, 0xff, 0xff, 0xc3);

    CHECK_EQ_U64(run_of(&s), s.size);
    CHECK_EQ_I64(leads_to(&s, 11), 11 + 0x40);
    CHECK_EQ_I64(leads_to(&s, 18), 18 - 7);
}

static void too_far_away_is_refused(void)
{
    static const source s = SOURCE(0xb8, 1, 0, 0, 0, 0xff, 0xc0, 0xe8, 0, 0, 0, 0, 0xc3);

    CHECK_EQ_U64(run_to(&s, address_of(&s, 0) + (UINT64_C(1) << 32), out), 0);
}

/* jne over and over: the copy ends, within its bounds. */
static void long_code_ends_the_copy(void)
{
    static source s = SOURCE(0xb8, 1, 0, 0, 0);
    uint32_t bytes;

    for (s.size = 5; s.size < 400; s.size += 6) {
        static const uint8_t branch[] = { 0x0f, 0x85, 0, 2, 0, 0 };
        memcpy(s.bytes + s.size, branch, sizeof branch);
    }
    bytes = run_of(&s);
    CHECK(bytes > 100 && bytes <= HFN_RUN_MAX_BYTES);
    if (bytes < 5) {
        return;
    }
    CHECK_EQ_U64(out[bytes - 5], 0xe9);
    CHECK(leads_to(&s, bytes) > 100 && leads_to(&s, bytes) < 400);
}

/* ---- Any code: copy and original are walked side by side, over both sides of each branch. */

enum { PAIRS_MAX = 1024, HOPS_MAX = 64 };

/* The copy at `copy` must do what the function does from `original` on. */
typedef struct pair {
    uint64_t copy, original;
} pair;

typedef struct comparison {
    const source *s;
    uint32_t run_bytes;
    pair pairs[PAIRS_MAX];
    uint32_t count;
} comparison;

static bool is_in(uint64_t address, const uint8_t *bytes, uint32_t size)
{
    return address - (uint64_t)(uintptr_t)bytes < size;
}

static hfn_instruction read_at(uint64_t address)
{
    hfn_instruction in = { .flow = HFN_FLOW_STOP };

    hfn_arch_x86_64.decode((const uint8_t *)(uintptr_t)address, 15, address, 0, &in);
    return in;
}

/* Where plain jumps within these bytes lead on to; 0 if they lead round and round. */
static uint64_t behind_jumps(uint64_t address, const uint8_t *bytes, uint32_t size)
{
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        if (!is_in(address, bytes, size) || read_at(address).flow != HFN_FLOW_JUMP) {
            return address;
        }
        address = read_at(address).target;
    }
    return 0;
}

static void expect_pair(comparison *c, uint64_t copy, uint64_t original)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->pairs[i].copy == copy && c->pairs[i].original == original) {
            return;
        }
    }
    if (c->count < PAIRS_MAX) {
        c->pairs[c->count++] = (pair){ copy, original };
    }
}

/* One step of both; false if they do not do the same. */
static bool steps_alike(comparison *c, pair p)
{
    uint64_t copy = behind_jumps(p.copy, out, c->run_bytes);
    uint64_t original = behind_jumps(p.original, c->s->bytes, c->s->size);

    if (!is_in(copy, out, c->run_bytes)) {
        return behind_jumps(copy, c->s->bytes, c->s->size) == original;
    }
    hfn_instruction a = read_at(copy), b = read_at(original);
    const uint8_t *x = (const uint8_t *)(uintptr_t)copy, *y = (const uint8_t *)(uintptr_t)original;
    if (a.flow != b.flow || is_barred(c->s, original) != is_in(copy, out, c->s->head_bytes)) {
        return false;
    }
    if (a.flow == HFN_FLOW_JUMP_IF) {
        expect_pair(c, a.target, b.target);
        expect_pair(c, copy + a.length, original + b.length);
        return ((x[a.relative_at - 1] ^ y[b.relative_at - 1]) & 15) == 0;
    }
    if (a.length != b.length || a.relative_at != b.relative_at ||
        (a.relative_at ? memcmp(x, y, a.relative_at) != 0 || a.target != b.target
                       : memcmp(x, y, a.length) != 0)) {
        return false;
    }
    if (a.flow == HFN_FLOW_NEXT) {
        expect_pair(c, copy + a.length, original + b.length);
    }
    return a.flow == HFN_FLOW_NEXT || a.flow == HFN_FLOW_RETURN || a.flow == HFN_FLOW_JUMP_INDIRECT;
}

static bool runs_alike(const source *s, uint32_t run_bytes)
{
    static comparison c;

    c = (comparison){ .s = s, .run_bytes = run_bytes };
    expect_pair(&c, (uint64_t)(uintptr_t)out, address_of(s, 0));
    for (uint32_t i = 0; i < c.count; i++) {
        if (!steps_alike(&c, c.pairs[i])) {
            return false;
        }
    }
    return c.count < PAIRS_MAX;
}

static const struct shape {
    const char *bytes;
    uint8_t size, field; /* bytes of a branch's field, which ends it; 0: it is none */
} shapes[] = {
    { "\xff\xc0", 2, 0 },                 /* inc eax               */
    { "\x01\xf0", 2, 0 },                 /* add eax, esi          */
    { "\x48\x8d\x4f\x08", 4, 0 },         /* lea rcx, [rdi + 8]    */
    { "\xb9\x01\x02\x03\x04", 5, 0 },     /* mov ecx, imm32        */
    { "\x8b\x15\x40\x00\x00\x00", 6, 0 }, /* mov edx, [rip + 0x40] */
    { "\x3b\x54\x8f\x10", 4, 0 },         /* cmp edx, [rdi + rcx * 4 + 16] */
    { "\x74\x00", 2, 1 },                 /* je                    */
    { "\x0f\x8f\x00\x00\x00\x00", 6, 4 }, /* jg                    */
    { "\x0f\x82\x00\x00\x00\x00", 6, 4 }, /* jb                    */
    { "\xe9\x00\x00\x00\x00", 5, 4 },     /* jmp                   */
    { "\xeb\x00", 2, 1 },                 /* jmp                   */
    { "\xc3", 1, 0 },                     /* ret                   */
    { "\x53", 1, 0 },                     /* push rbx              */
    { "\xe2\x00", 2, 1 },                 /* loop                  */
    { "\xff\xe0", 2, 0 },                 /* jmp rax               */
};

/* One instruction that moves, of 5 or 6 bytes; then any.  Branches lead to the begin of any. */
static source random_code(random_source *r)
{
    enum { MOST = 64, SHAPES = sizeof shapes / sizeof shapes[0], FIRST = 3 };
    uint32_t at[MOST], shape[MOST], count = 4 + (uint32_t)(random_u64(r) % (MOST - 4));
    uint32_t plain = 6 + (uint32_t)(random_u64(r) % 10);
    static const uint8_t first[FIRST] = { 3, 4, 7 };
    source s = { .size = 0 };

    for (uint32_t i = 0; i < count; i++) {
        shape[i] = (uint32_t)(random_u64(r) % (random_u64(r) % plain ? 11 : SHAPES));
        if (i == 0) {
            shape[i] = first[random_u64(r) % FIRST];
        }
        at[i] = s.size;
        memcpy(s.bytes + s.size, shapes[shape[i]].bytes, shapes[shape[i]].size);
        s.size += shapes[shape[i]].size;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = at[i] + shapes[shape[i]].size, field = shapes[shape[i]].field;
        int32_t distance = (int32_t)(at[random_u64(r) % count] - end);
        if (field == 1 && (distance < -128 || distance > 127)) {
            distance = 0;
        }
        memcpy(s.bytes + end - field, &distance, field);
    }
    s.barred_to = s.head_bytes = shapes[shape[0]].size;
    return s;
}

static void any_copy_does_what_the_function_does(void)
{
    static source s;
    random_source r = random_from(1);
    uint32_t copied = 0, wrong = 0, spilt = 0;

    for (uint32_t round = 0; round < 4000; round++) {
        s = random_code(&r);
        uint32_t bytes = run_of(&s);
        copied += bytes > 0;
        wrong += bytes > 0 && !runs_alike(&s, bytes);
        spilt += bytes > HFN_RUN_MAX_BYTES;
        for (uint32_t i = bytes; bytes > 0 && i < HFN_RUN_MAX_BYTES; i++) {
            spilt += out[i] != 0xcc;
        }
    }
    CHECK_EQ_U64(wrong, 0);
    CHECK_EQ_U64(spilt, 0);
    CHECK(copied > 2000);
}

static void a_copy_has_64_pieces_or_192_bytes_and_what_is_over_the_latter(void)
{
    static source s = SOURCE(0xb8, 1, 0, 0, 0);

    memset(s.bytes + 5, 0x90, 400);
    s.size = 405;
    CHECK_EQ_U64(run_of(&s), 5 + 63 + 5); /* the 64th is the jump */
    CHECK_EQ_I64(leads_to(&s, 5 + 63 + 5), 5 + 63);
    for (uint32_t at = 5; at < 405; at += 10) {
        memcpy(s.bytes + at, "\x48\xb9", 2); /* mov rcx, imm64 */
    }
    CHECK_EQ_U64(run_of(&s), 5 + 200 + 5);
    CHECK_EQ_I64(leads_to(&s, 5 + 200 + 5), 5 + 200);
}

static const check_test tests[] = {
    CHECK_TEST(a_short_function_is_copied_to_its_end),
    CHECK_TEST(it_goes_back_where_code_must_stay),
    CHECK_TEST(it_says_so_when_nothing_is_gained),
    CHECK_TEST(it_does_not_enter_what_it_may_not),
    CHECK_TEST(both_ways_of_a_moved_branch_are_copied),
    CHECK_TEST(jumps_and_both_ways_of_branches_are_followed),
    CHECK_TEST(loops_stay_inside),
    CHECK_TEST(a_jump_to_the_own_entry_leads_there),
    CHECK_TEST(a_jump_to_itself_ends),
    CHECK_TEST(data_is_reached_from_the_copy),
    CHECK_TEST(too_far_away_is_refused),
    CHECK_TEST(long_code_ends_the_copy),
    CHECK_TEST(a_copy_has_64_pieces_or_192_bytes_and_what_is_over_the_latter),
    CHECK_TEST(any_copy_does_what_the_function_does),
};
CHECK_MAIN(tests)
