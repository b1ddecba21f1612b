/* SPDX-License-Identifier: MIT */
/* Moved code that goes on: it copies what control comes to, and leaves alone what must stay where it is.
 * That copies compute the same is tests/property/relocate_test.c. */
#include "arch/x86/run_on.h"

#include "arch/arch.h"
#include "check.h"

/* A function of a test; static, so that `out` is near. */
typedef struct source {
    uint8_t bytes[512]; /* [size] */
    uint32_t size;
    uint32_t barred_from, barred_to; /* offsets */
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
                             &offset) != HFN_MOVED)
        return UINT32_MAX;
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
    };

    for (uint32_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK_EQ_U64(run_of(&none[i]), 0);
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
}

/* test edi, edi; je +3 (moved); mov eax, esi; ret; 0: xor eax, eax; ret */
static void both_ways_of_a_moved_branch_are_copied(void)
{
    static const source s =
        SOURCE(0x85, 0xff, 0x0f, 0x84, 3, 0, 0, 0, 0x89, 0xf0, 0xc3, 0x31, 0xc0, 0xc3);

    CHECK_EQ_U64(run_of(&s), s.size);
    CHECK_MEM(out, s.bytes, s.size);
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

    CHECK_EQ_U64(run_of(&s), 5 + 2 + 6 + 1);
    CHECK_EQ_I64(leads_to(&s, 13), 0);
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
    if (bytes < 5)
        return;
    CHECK_EQ_U64(out[bytes - 5], 0xe9);
    CHECK(leads_to(&s, bytes) > 100 && leads_to(&s, bytes) < 400);
}

static const check_test tests[] = {
    CHECK_TEST(a_short_function_is_copied_to_its_end),
    CHECK_TEST(it_goes_back_where_code_must_stay),
    CHECK_TEST(it_says_so_when_nothing_is_gained),
    CHECK_TEST(it_does_not_enter_what_it_may_not),
    CHECK_TEST(both_ways_of_a_moved_branch_are_copied),
    CHECK_TEST(loops_stay_inside),
    CHECK_TEST(a_jump_to_the_own_entry_leads_there),
    CHECK_TEST(a_jump_to_itself_ends),
    CHECK_TEST(data_is_reached_from_the_copy),
    CHECK_TEST(too_far_away_is_refused),
    CHECK_TEST(long_code_ends_the_copy),
};
CHECK_MAIN(tests)
