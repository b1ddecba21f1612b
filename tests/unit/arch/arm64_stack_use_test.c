/* SPDX-License-Identifier: MIT */
/* A64: what instructions do with the stack and with the return address, as the proof that a function may
 * be timed needs it.  Each case is a whole straight function; the answer is its first that is not fine. */
#include "arch/arm64/stack_use.h"

#include "check.h"

#define RET 0xD65F03C0u
#define STP_FRAME 0xA9BE7BFDu /* stp x29, x30, [sp, #-32]! */
#define LDP_FRAME 0xA8C27BFDu /* ldp x29, x30, [sp], #32   */
#define MOV_X29_SP 0x910003FDu
#define BL 0x94000010u
#define WORDS_MAX 16u

static hfn_stack_state state;

static hfn_stack_outcome follow(const uint32_t *words, uint32_t count)
{
    hfn_stack_outcome answer = HFN_STACK_OK;

    hfn_arm64_begin_stack(&state);
    for (uint32_t i = 0; i < count && answer == HFN_STACK_OK; i++) {
        uint8_t bytes[4];
        for (int k = 0; k < 4; k++) {
            bytes[k] = (uint8_t)(words[i] >> 8 * k);
        }
        answer = hfn_arm64_step_stack(bytes, sizeof bytes, UINT64_C(4) * i, &state);
    }
    return answer;
}

#define FOLLOW(...)                                                                                \
    follow((const uint32_t[]){ __VA_ARGS__ },                                                      \
           (uint32_t)(sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)))
#define FINE(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_OK)
#define CALLER(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_TOUCHES_CALLER)
#define RETURNS(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_TOUCHES_RETURN)
#define LOST(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_LOST)

static void plain_functions_are_followed(void)
{
    FINE(RET);
    FINE(STP_FRAME, MOV_X29_SP, BL, LDP_FRAME, RET);
    FINE(0xD503233F, STP_FRAME, BL, LDP_FRAME, 0xD50323BF, RET);   /* paciasp .. autiasp     */
    FINE(0xD503233F, STP_FRAME, BL, LDP_FRAME, 0xD65F0BFF);        /* retaa                  */
    FINE(0xDAC103FE, STP_FRAME, BL, LDP_FRAME, 0xDAC113FE, RET);   /* pacia x30, sp .. autia */
    FINE(0xF81E0FFE, BL, 0xF84207FE, RET);                         /* str x30, [sp, #-32]!   */
    FINE(0xD10083FF, 0xA9017BFD, BL, 0xA9417BFD, 0x910083FF, RET); /* sub sp; stp .. add sp  */
    FINE(0xD14007FF, 0xF90003FE, BL, 0xF94003FE, 0x914007FF, RET); /* sub sp, sp, #4096      */
    FINE(0xF9400400, 0x8B010000, RET);                             /* ldr x0, [x0, #8]; add  */
}

static void tags_of_memory_are_no_return_addresses(void)
{
    FINE(0xD93FF860, RET);             /* stg x0, [x3, #-16]: its bits 10 to 14 are a 30 */
    FINE(0xD9FFC860, 0xD9600000, RET); /* stz2g x0, [x3, #-64]; ldg x0, [x0] */
    FINE(0xD10083FF, 0xD92027FF, RET); /* sub sp, sp, #32; stg sp, [sp], #32 (two of 16) */
    CALLER(0xD9200BE0);                /* stg x0, [sp] */
    CALLER(0xD10043FF, 0xD9A00BE0);    /* sub sp, sp, #16; st2g x0, [sp] */
    LOST(STP_FRAME, 0xD9A00BFF, LDP_FRAME, RET); /* st2g sp, [sp]: may be stz2g to where x30 is */
}

static void the_stack_must_come_back(void)
{
    LOST(STP_FRAME, BL, RET);
    LOST(BL, RET); /* x30 is gone */
    LOST(0xD10083FF, RET);
    LOST(0x910083FF, RET);                  /* add sp, sp, #32: above the entry */
    LOST(0x9100001F);                       /* mov sp, x0 */
    LOST(STP_FRAME, LDP_FRAME, 0xD65F0000); /* ret x0 */
    LOST(0x04A0E3E0);                       /* cntb x0: SVE */
}

static void a_stack_of_unknown_depth_is_left_by_the_frame_pointer(void)
{
    /* sub sp, sp, x0; bl; mov sp, x29 */
    FINE(STP_FRAME, MOV_X29_SP, 0xCB2063FF, BL, 0x910003BF, LDP_FRAME, RET);
    /* sub x9, sp, #64; and sp, x9, #-64; mov sp, x29 */
    FINE(STP_FRAME, MOV_X29_SP, 0xD10103E9, 0x927AE53F, BL, 0x910003BF, LDP_FRAME, RET);
    LOST(STP_FRAME, MOV_X29_SP, 0xCB2063FF, LDP_FRAME, RET);
}

static void the_callers_frame_is_seen(void)
{
    FINE(STP_FRAME, 0xF9400FE0, LDP_FRAME, RET); /* ldr x0, [sp, #24]        */
    CALLER(STP_FRAME, 0x910083E1);               /* add x1, sp, #32: va_list */
    FINE(STP_FRAME, 0x910043E1, LDP_FRAME, RET); /* add x1, sp, #16          */
    CALLER(STP_FRAME, 0xA941FFE0);               /* ldp x0, xzr, [sp, #24]: crosses */
    CALLER(STP_FRAME, 0x910043E1, 0xF8410420);   /* ldr x0, [x1], #16: up to it */
    CALLER(STP_FRAME, 0xF8617BE0);               /* ldr x0, [sp, x1, lsl #3] */
    CALLER(STP_FRAME, 0x910043E1, 0x8B020C21);   /* add x1, x1, x2, lsl #3   */
    CALLER(0x910003E0);                          /* mov x0, sp               */
    CALLER(0xF94007A0);                          /* ldr x0, [x29, #8]: x29 is the caller's */
    CALLER(0xAA1D03E0);                          /* mov x0, x29              */
    CALLER(0xF94027E0 + (1u << 10)); /* ldr x0, [sp, #80]: one word more than is copied */
    CALLER(0x4C407C00 | 31u << 5);   /* ld1 {v0.2d}, [sp]: structures */
    CALLER(0xC85F7FE0);              /* ldxr x0, [sp]                 */
}

#define ARGUMENTS(bytes, ...)                                                                      \
    do {                                                                                           \
        FINE(__VA_ARGS__);                                                                         \
        CHECK_EQ_U64(state.argument_bytes, bytes);                                                 \
    } while (0)

static void arguments_at_known_places_are_noted(void)
{
    ARGUMENTS(0, STP_FRAME, 0xF9400FE0, LDP_FRAME, RET);
    ARGUMENTS(8, 0xF94003E0, RET);                                   /* ldr x0, [sp]       */
    ARGUMENTS(4, 0xB94003E0, RET);                                   /* ldr w0, [sp]       */
    ARGUMENTS(80, 0xF94027E0, RET);                                  /* ldr x0, [sp, #72]  */
    ARGUMENTS(8, STP_FRAME, 0xF94013E0, LDP_FRAME, RET);             /* ldr x0, [sp, #32]  */
    ARGUMENTS(8, STP_FRAME, MOV_X29_SP, 0xF94013A0, LDP_FRAME, RET); /* ldr x0, [x29, #32] */
    ARGUMENTS(8, STP_FRAME, 0x910043E1, 0xF9400822, LDP_FRAME,
              RET); /* add x1, sp, #16; ldr x2, [x1, #16] */
    ARGUMENTS(16, STP_FRAME, 0x3DC007E0, 0x3DC00BE0, LDP_FRAME,
              RET);                                       /* ldr q0, [sp, #16]; q0, [sp, #32] */
    ARGUMENTS(16, STP_FRAME, 0xA9420BE1, LDP_FRAME, RET); /* ldp x1, x2, [sp, #32]  */
    ARGUMENTS(8, STP_FRAME, 0xF90013E0, LDP_FRAME,
              RET); /* str x0, [sp, #32]: it is the function's own */
    ARGUMENTS(8, STP_FRAME, 0x910043E1, 0x9A801021, 0xF9400822, LDP_FRAME,
              RET);      /* csel x1, x1, x0, ne */
    RETURNS(0xF90003FE); /* str x30, [sp]: not above the entry */
    CALLER(0xF85FC3E0);  /* ldur x0, [sp, #-4]: crosses */
}

static void frame_records_show_what_no_outliner_made(void)
{
    static const struct {
        uint8_t bytes[4];
        bool keeps;
    } cases[] = {
        { { 0xFD, 0x7B, 0xBE, 0xA9 }, true },  /* stp x29, x30, [sp, #-32]! */
        { { 0xFD, 0x7B, 0x42, 0xA9 }, true },  /* ldp x29, x30, [sp, #32]   */
        { { 0xFE, 0x4F, 0x01, 0xA9 }, true },  /* stp x30, x19, [sp, #16]   */
        { { 0xFE, 0x0F, 0x1F, 0xF8 }, false }, /* str x30, [sp, #-16]!      */
        { { 0xF3, 0x53, 0x01, 0xA9 }, false }, /* stp x19, x20, [sp, #16]   */
        { { 0x1E, 0x78, 0x01, 0xAD }, false }, /* stp q30, q30, [x0, #32]   */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(hfn_arm64_saves_link(cases[i].bytes, 4) == cases[i].keeps);
    }
}

static void the_return_address_is_kept_and_not_looked_at(void)
{
    RETURNS(0xAA1E03E0);            /* mov x0, x30              */
    RETURNS(0xF900001E);            /* str x30, [x0]            */
    RETURNS(0xA905781D);            /* stp x29, x30, [x0, #80]: setjmp */
    RETURNS(0xCA0203C0);            /* eor x0, x30, x2          */
    RETURNS(0xCA1E0040);            /* eor x0, x2, x30          */
    RETURNS(0xEB0003DF);            /* cmp x30, x0              */
    RETURNS(0xB400005E);            /* cbz x30                  */
    RETURNS(STP_FRAME, 0xF94007E0); /* ldr x0, [sp, #8]         */
    RETURNS(STP_FRAME, 0xA9400BE1); /* ldp x1, x2, [sp]         */
    RETURNS(0x9E6703C0);            /* fmov d0, x30             */
    RETURNS(0xD51BD05E);            /* msr tpidr_el0, x30       */
    FINE(0xAA0003FE, 0xAA1E03E1);   /* mov x30, x0; mov x1, x30 */
    FINE(0x4E60D7DE, RET);          /* fadd v30.2d, v30.2d, v0.2d */
    FINE(STP_FRAME, BL, LDP_FRAME, 0xF81F0FE0, 0xF94003E1, 0xF84107E0,
         RET); /* the place is free again */
}

static void a_child_on_this_stack_is_not_timed(void)
{
    LOST(0xD2801B88, 0xD4000001, RET); /* mov x8, #220; svc: clone, vfork */
    LOST(0x52803668, 0xD4000001, RET); /* mov w8, #435: clone3            */
    FINE(0xD2800808, 0xD4000001, RET); /* mov x8, #64: write              */
}

static void a_call_leaves_saved_registers(void)
{
    FINE(STP_FRAME, 0x910043F3, BL, 0xF9000260, LDP_FRAME,
         RET); /* add x19, sp, #16; bl; str x0, [x19] */
    CHECK_EQ_U64(FOLLOW(STP_FRAME, 0x910043F3, BL), HFN_STACK_OK);
    CHECK(state.at[19] == -16 && state.at[0] == HFN_STACK_UNKNOWN);
    CHECK(state.at[HFN_ARM64_RETURN_PLACE] == -24);
}

static void an_own_address_that_is_kept_or_compared_is_noted(void)
{
    enum { KEPT = HFN_FRAME_ADDRESS_STORED, COMPARED = HFN_FRAME_ADDRESS_COMPARED };

#define OWN STP_FRAME, 0x910043E8          /* add x8, sp, #16 */
    FINE(OWN, 0xF9003008, LDP_FRAME, RET); /* str x8, [x0, #96] */
    CHECK_EQ_U64(state.frame_address, KEPT);
    FINE(OWN, 0xA9002008, LDP_FRAME, RET); /* stp x8, x8, [x0] */
    CHECK_EQ_U64(state.frame_address, KEPT);
    FINE(OWN, 0xF9000BE8, 0xF9003009, LDP_FRAME, RET); /* str x8, [sp, #16]; str x9, [x0, #96] */
    CHECK_EQ_U64(state.frame_address, 0);
    FINE(OWN, 0xEB08013F, LDP_FRAME, RET); /* cmp x9, x8 */
    CHECK_EQ_U64(state.frame_address, COMPARED);
    FINE(OWN, 0xEB09011F, LDP_FRAME, RET); /* cmp x8, x9 */
    CHECK_EQ_U64(state.frame_address, COMPARED);
    FINE(OWN, 0xEB08011F, 0xAB09011F, LDP_FRAME, RET); /* cmp x8, x8; cmn x8, x9 */
    CHECK_EQ_U64(state.frame_address, 0);
#undef OWN
}

static const check_test tests[] = {
    CHECK_TEST(plain_functions_are_followed),
    CHECK_TEST(tags_of_memory_are_no_return_addresses),
    CHECK_TEST(the_stack_must_come_back),
    CHECK_TEST(a_stack_of_unknown_depth_is_left_by_the_frame_pointer),
    CHECK_TEST(the_callers_frame_is_seen),
    CHECK_TEST(arguments_at_known_places_are_noted),
    CHECK_TEST(frame_records_show_what_no_outliner_made),
    CHECK_TEST(the_return_address_is_kept_and_not_looked_at),
    CHECK_TEST(a_child_on_this_stack_is_not_timed),
    CHECK_TEST(a_call_leaves_saved_registers),
    CHECK_TEST(an_own_address_that_is_kept_or_compared_is_noted),
};
CHECK_MAIN(tests)
