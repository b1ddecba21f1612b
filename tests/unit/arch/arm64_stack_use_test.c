/* SPDX-License-Identifier: MIT */
/* Follows the stack and the return address through A64 functions, in the same way as the proof that
 * a function may be timed.  Each case is straight-line code; its outcome is the first other than
 * HFN_STACK_OK. */
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
    hfn_stack_outcome outcome = HFN_STACK_OK;

    hfn_arm64_begin_stack(&state);
    for (uint32_t i = 0; i < count && outcome == HFN_STACK_OK; i++) {
        uint8_t bytes[4];
        for (int k = 0; k < 4; k++) {
            bytes[k] = (uint8_t)(words[i] >> 8 * k);
        }
        outcome = hfn_arm64_step_stack(bytes, sizeof bytes, UINT64_C(4) * i, &state);
    }
    return outcome;
}

#define FOLLOW(...)                                                                                \
    follow((const uint32_t[]){ __VA_ARGS__ },                                                      \
           (uint32_t)(sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)))
#define EXPECT_OK(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_OK)
#define EXPECT_CALLER(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_TOUCHES_CALLER)
#define EXPECT_RETURN(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_TOUCHES_RETURN)
#define EXPECT_LOST(...) CHECK_EQ_U64(FOLLOW(__VA_ARGS__), HFN_STACK_LOST)

static void functions_that_stay_in_their_frame_are_accepted(void)
{
    EXPECT_OK(RET);
    EXPECT_OK(STP_FRAME, MOV_X29_SP, BL, LDP_FRAME, RET);
    EXPECT_OK(0xD503233F, STP_FRAME, BL, LDP_FRAME, 0xD50323BF, RET);   /* paciasp .. autiasp     */
    EXPECT_OK(0xD503233F, STP_FRAME, BL, LDP_FRAME, 0xD65F0BFF);        /* retaa                  */
    EXPECT_OK(0xDAC103FE, STP_FRAME, BL, LDP_FRAME, 0xDAC113FE, RET);   /* pacia x30, sp .. autia */
    EXPECT_OK(0xF81E0FFE, BL, 0xF84207FE, RET);                         /* str x30, [sp, #-32]!   */
    EXPECT_OK(0xD10083FF, 0xA9017BFD, BL, 0xA9417BFD, 0x910083FF, RET); /* sub sp; stp .. add sp  */
    EXPECT_OK(0xD14007FF, 0xF90003FE, BL, 0xF94003FE, 0x914007FF, RET); /* sub sp, sp, #4096      */
    EXPECT_OK(0xF9400400, 0x8B010000, RET);                             /* ldr x0, [x0, #8]; add  */
}

static void tag_stores_do_not_store_return_addresses(void)
{
    EXPECT_OK(0xD93FF860, RET);             /* stg x0, [x3, #-16]; bits 10..14, Rt2 of stp: 30 */
    EXPECT_OK(0xD9FFC860, 0xD9600000, RET); /* stz2g x0, [x3, #-64]; ldg x0, [x0] */
    EXPECT_OK(0xD10083FF, 0xD92027FF, RET); /* sub sp, sp, #32; stg sp, [sp], #32 */
    EXPECT_CALLER(0xD9200BE0);              /* stg x0, [sp] */
    EXPECT_CALLER(0xD10043FF, 0xD9A00BE0);  /* sub sp, sp, #16; st2g x0, [sp] */
    EXPECT_LOST(STP_FRAME, 0xD9A00BFF, LDP_FRAME, RET); /* st2g sp, [sp]: may overwrite the saved
                                                         * x30 */
}

static void sp_must_be_restored_before_return(void)
{
    EXPECT_LOST(STP_FRAME, BL, RET);
    EXPECT_LOST(BL, RET); /* x30 is overwritten */
    EXPECT_LOST(0xD10083FF, RET);
    EXPECT_LOST(0x910083FF, RET);                  /* add sp, sp, #32: above the entry */
    EXPECT_LOST(0x9100001F);                       /* mov sp, x0 */
    EXPECT_LOST(STP_FRAME, LDP_FRAME, 0xD65F0000); /* ret x0 */
    EXPECT_LOST(0x04A0E3E0);                       /* cntb x0: SVE */
}

static void frame_pointer_restores_sp_of_unknown_depth(void)
{
    /* sub sp, sp, x0; bl; mov sp, x29 */
    EXPECT_OK(STP_FRAME, MOV_X29_SP, 0xCB2063FF, BL, 0x910003BF, LDP_FRAME, RET);
    /* sub x9, sp, #64; and sp, x9, #-64; mov sp, x29 */
    EXPECT_OK(STP_FRAME, MOV_X29_SP, 0xD10103E9, 0x927AE53F, BL, 0x910003BF, LDP_FRAME, RET);
    EXPECT_LOST(STP_FRAME, MOV_X29_SP, 0xCB2063FF, LDP_FRAME, RET);
}

static void accesses_to_the_callers_frame_are_found(void)
{
    EXPECT_OK(STP_FRAME, 0xF9400FE0, LDP_FRAME, RET); /* ldr x0, [sp, #24]        */
    EXPECT_CALLER(STP_FRAME, 0x910083E1);             /* add x1, sp, #32: va_list */
    EXPECT_OK(STP_FRAME, 0x910043E1, LDP_FRAME, RET); /* add x1, sp, #16          */
    EXPECT_CALLER(STP_FRAME, 0xA941FFE0);             /* ldp x0, xzr, [sp, #24]: crosses the CFA */
    EXPECT_CALLER(STP_FRAME, 0x910043E1, 0xF8410420); /* ldr x0, [x1], #16: x1 reaches the CFA */
    EXPECT_CALLER(STP_FRAME, 0xF8617BE0);             /* ldr x0, [sp, x1, lsl #3] */
    EXPECT_LOST(STP_FRAME, 0x910043E1, 0x8B020C21, 0xF9400022); /* add x1, x1, x2, lsl #3; ldr */
    EXPECT_CALLER(0x910003E0);                                  /* mov x0, sp               */
    EXPECT_CALLER(0xF94007A0);              /* ldr x0, [x29, #8]: x29 is the caller's */
    EXPECT_CALLER(0xAA1D03E0);              /* mov x0, x29              */
    EXPECT_CALLER(0xF94027E0 + (1u << 10)); /* ldr x0, [sp, #80]: beyond the copied words */
    EXPECT_CALLER(0x4C407C00 | 31u << 5);   /* ld1 {v0.2d}, [sp]: structures */
    EXPECT_CALLER(0xC85F7FE0);              /* ldxr x0, [sp]                 */
}

#define EXPECT_ARGUMENTS(bytes, ...)                                                               \
    do {                                                                                           \
        EXPECT_OK(__VA_ARGS__);                                                                    \
        CHECK_EQ_U64(state.argument_bytes, bytes);                                                 \
    } while (0)

static void arguments_at_known_places_are_measured(void)
{
    EXPECT_ARGUMENTS(0, STP_FRAME, 0xF9400FE0, LDP_FRAME, RET);
    EXPECT_ARGUMENTS(8, 0xF94003E0, RET);                                   /* ldr x0, [sp]       */
    EXPECT_ARGUMENTS(4, 0xB94003E0, RET);                                   /* ldr w0, [sp]       */
    EXPECT_ARGUMENTS(80, 0xF94027E0, RET);                                  /* ldr x0, [sp, #72]  */
    EXPECT_ARGUMENTS(8, STP_FRAME, 0xF94013E0, LDP_FRAME, RET);             /* ldr x0, [sp, #32]  */
    EXPECT_ARGUMENTS(8, STP_FRAME, MOV_X29_SP, 0xF94013A0, LDP_FRAME, RET); /* ldr x0, [x29, #32] */
    EXPECT_ARGUMENTS(8, STP_FRAME, 0x910043E1, 0xF9400822, LDP_FRAME,
                     RET); /* add x1, sp, #16; ldr x2, [x1, #16] */
    EXPECT_ARGUMENTS(16, STP_FRAME, 0x3DC007E0, 0x3DC00BE0, LDP_FRAME,
                     RET); /* ldr q0, [sp, #16]; q0, [sp, #32] */
    EXPECT_ARGUMENTS(16, STP_FRAME, 0xA9420BE1, LDP_FRAME, RET); /* ldp x1, x2, [sp, #32]  */
    EXPECT_CALLER(STP_FRAME, 0xF90013E0); /* str x0, [sp, #32]: the caller may read it */
    EXPECT_CALLER(STP_FRAME, 0x910043E1, 0x9A801021, 0xF9400822); /* csel x1, x1, x0, ne; ldr */
    EXPECT_CALLER(0xF90003FE); /* str x30, [sp]: outside the frame */
    EXPECT_CALLER(0xF85FC3E0); /* ldur x0, [sp, #-4]: crosses the CFA */
}

/* x1 is 16 bytes below the CFA; ldr x3, [x2, #16] reaches the caller's frame. */
#define TAKE_ADDRESS STP_FRAME, 0x910043E1 /* add x1, sp, #16 */
#define USE 0xF9400843u                    /* ldr x3, [x2, #16] */

static void copied_addresses_are_followed(void)
{
    EXPECT_CALLER(TAKE_ADDRESS, 0x9E670020, 0x9E660002, USE); /* fmov d0, x1; fmov x2, d0 */
    EXPECT_CALLER(TAKE_ADDRESS, 0xF9000FE1, 0xF9400FE2, USE); /* str x1, [sp, #24]; ldr x2 */
    EXPECT_CALLER(TAKE_ADDRESS, 0x9E670020, 0xFD000FE0, 0xF9400FE2, USE); /* str d0; ldr x2 */
    EXPECT_CALLER(TAKE_ADDRESS, 0xAA0103E2, BL, USE);                     /* mov x2, x1; bl */
    EXPECT_OK(TAKE_ADDRESS, 0xF9000FE1, 0xF9400FE2, 0xF9400043, LDP_FRAME, RET); /* ldr x3, [x2] */
}

static void computed_addresses_are_unknown(void)
{
    EXPECT_LOST(TAKE_ADDRESS, 0xCB0103E2, USE);             /* neg x2, x1          */
    EXPECT_LOST(TAKE_ADDRESS, 0xAA2103E2, USE);             /* mvn x2, x1          */
    EXPECT_LOST(TAKE_ADDRESS, 0xB27D0022, USE);             /* orr x2, x1, #8      */
    EXPECT_LOST(TAKE_ADDRESS, 0xD27D0022, USE);             /* eor x2, x1, #8      */
    EXPECT_LOST(TAKE_ADDRESS, 0xDAC00C22, USE);             /* rev x2, x1          */
    EXPECT_LOST(TAKE_ADDRESS, 0x9B037C22, USE);             /* mul x2, x1, x3      */
    EXPECT_LOST(TAKE_ADDRESS, 0xDA811422, USE);             /* csneg x2, x1, x1    */
    EXPECT_LOST(TAKE_ADDRESS, 0x93C10022, USE);             /* extr x2, x1, x1, #0 */
    EXPECT_LOST(TAKE_ADDRESS, 0xAA0103E2, 0xF2800002, USE); /* mov x2, x1; movk x2, #0 */
    EXPECT_LOST(TAKE_ADDRESS, 0xCB0103E0, 0xF9000060);      /* neg x0, x1; str x0, [x3] */
    /* sub x2, sp, #8; sub x2, x1, x2; ldr x3, [x0, x2]: compilers fold this difference */
    EXPECT_LOST(TAKE_ADDRESS, 0xD10023E2, 0xCB020022, 0xF8626803);
    EXPECT_OK(TAKE_ADDRESS, 0x927DF021, 0xD10023E2, 0xCB020022, 0xF8626803, LDP_FRAME,
              RET); /* and x1, x1, #-8 before it */
}

static void computed_addresses_are_not_passed(void)
{
    enum { SUB_X9 = (int)0xD1006FE9, SUB_X19 = (int)0xD1006FF3 }; /* sub x9, sp, #27 */
    enum { REV_X9 = (int)0xDAC00D29, REV_X19 = (int)0xDAC00E73 };

    EXPECT_LOST((uint32_t)SUB_X9, (uint32_t)REV_X9, BL);
    EXPECT_LOST((uint32_t)SUB_X19, (uint32_t)REV_X19, BL); /* a callee may read x19 */
    EXPECT_LOST((uint32_t)SUB_X19, 0xCB1303F3, BL); /* neg x19, x19 */
    EXPECT_OK(STP_FRAME, (uint32_t)SUB_X9, BL, LDP_FRAME, RET);
    /* ldp x0, x1, [sp, #16]: may be a pointer into the frame; add x1, x0, x1 */
    EXPECT_OK(STP_FRAME, 0x910043E0, 0xF9000BE0, 0xA94107E0, 0x8B010001, 0x39400020, BL);
}

static void address_of_the_frame_record_is_not_passed(void)
{
    EXPECT_CALLER(STP_FRAME, MOV_X29_SP, 0xAA1D03E0, BL); /* mov x0, x29 */
    EXPECT_CALLER(STP_FRAME, 0x910003E1, 0xF9000001);     /* mov x1, sp; str x1, [x0] */
}

static void a_function_that_saves_x30_in_a_pair_is_not_outlined(void)
{
    static const struct {
        uint8_t bytes[4];
        bool saves;
    } cases[] = {
        { { 0xFD, 0x7B, 0xBE, 0xA9 }, true },  /* stp x29, x30, [sp, #-32]! */
        { { 0xFD, 0x7B, 0x42, 0xA9 }, true },  /* ldp x29, x30, [sp, #32]   */
        { { 0xFE, 0x4F, 0x01, 0xA9 }, true },  /* stp x30, x19, [sp, #16]   */
        { { 0xFE, 0x0F, 0x1F, 0xF8 }, false }, /* str x30, [sp, #-16]!      */
        { { 0xF3, 0x53, 0x01, 0xA9 }, false }, /* stp x19, x20, [sp, #16]   */
        { { 0x1E, 0x78, 0x01, 0xAD }, false }, /* stp q30, q30, [x0, #32]   */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(hfn_arm64_saves_link(cases[i].bytes, 4) == cases[i].saves);
    }
}

static void return_address_may_be_saved_but_not_read(void)
{
    EXPECT_RETURN(0xAA1E03E0);            /* mov x0, x30              */
    EXPECT_RETURN(0xF900001E);            /* str x30, [x0]            */
    EXPECT_RETURN(0xA905781D);            /* stp x29, x30, [x0, #80]: setjmp */
    EXPECT_RETURN(0xCA0203C0);            /* eor x0, x30, x2          */
    EXPECT_RETURN(0xCA1E0040);            /* eor x0, x2, x30          */
    EXPECT_RETURN(0xEB0003DF);            /* cmp x30, x0              */
    EXPECT_RETURN(0xB400005E);            /* cbz x30                  */
    EXPECT_RETURN(STP_FRAME, 0xF94007E0); /* ldr x0, [sp, #8]         */
    EXPECT_RETURN(STP_FRAME, 0xA9400BE1); /* ldp x1, x2, [sp]         */
    EXPECT_RETURN(0x9E6703C0);            /* fmov d0, x30             */
    EXPECT_RETURN(0xD51BD05E);            /* msr tpidr_el0, x30       */
    EXPECT_OK(0xAA0003FE, 0xAA1E03E1);    /* mov x30, x0; mov x1, x30 */
    EXPECT_OK(0x4E60D7DE, RET);           /* fadd v30.2d, v30.2d, v0.2d */
    EXPECT_OK(STP_FRAME, BL, LDP_FRAME, 0xF81F0FE0, 0xF94003E1, 0xF84107E0,
              RET); /* the save slot may be reused */
}

static void the_stack_is_unknown_after_a_clone_system_call(void)
{
    EXPECT_LOST(0xD2801B88, 0xD4000001, RET); /* mov x8, #220; svc: clone, vfork */
    EXPECT_LOST(0x52803668, 0xD4000001, RET); /* mov w8, #435: clone3            */
    EXPECT_OK(0xD2800808, 0xD4000001, RET);   /* mov x8, #64: write              */
}

static void calls_preserve_callee_saved_registers(void)
{
    EXPECT_OK(STP_FRAME, 0x910043F3, BL, 0xF9000260, LDP_FRAME,
              RET); /* add x19, sp, #16; bl; str x0, [x19] */
    CHECK_EQ_U64(FOLLOW(STP_FRAME, 0x910043F3, BL), HFN_STACK_OK);
    CHECK(state.at[19] == -16 && state.at[0] == HFN_STACK_UNRELATED);
    CHECK(state.at[HFN_ARM64_RETURN_PLACE] == -24);
}

static void frame_addresses_stored_or_compared_are_noted(void)
{
    enum { STORED = HFN_FRAME_ADDRESS_STORED, COMPARED = HFN_FRAME_ADDRESS_COMPARED };

#define MAKE_ADDRESS STP_FRAME, 0x910043E8               /* add x8, sp, #16 */
    EXPECT_OK(MAKE_ADDRESS, 0xF9003008, LDP_FRAME, RET); /* str x8, [x0, #96] */
    CHECK_EQ_U64(state.frame_address, STORED);
    EXPECT_OK(MAKE_ADDRESS, 0xA9002008, LDP_FRAME, RET); /* stp x8, x8, [x0] */
    CHECK_EQ_U64(state.frame_address, STORED);
    EXPECT_OK(MAKE_ADDRESS, 0xF9000BE8, 0xF9003009, LDP_FRAME, RET); /* str x8, [sp, #16]; str
                                                                      * x9, [x0, #96] */
    CHECK_EQ_U64(state.frame_address, 0);
    EXPECT_OK(MAKE_ADDRESS, 0xEB08013F, LDP_FRAME, RET); /* cmp x9, x8 */
    CHECK_EQ_U64(state.frame_address, COMPARED);
    EXPECT_OK(MAKE_ADDRESS, 0xEB09011F, LDP_FRAME, RET); /* cmp x8, x9 */
    CHECK_EQ_U64(state.frame_address, COMPARED);
    EXPECT_OK(MAKE_ADDRESS, 0xEB08011F, 0xAB09011F, LDP_FRAME, RET); /* cmp x8, x8; cmn x8, x9 */
    CHECK_EQ_U64(state.frame_address, 0);
#undef MAKE_ADDRESS
}

static const check_test tests[] = {
    CHECK_TEST(functions_that_stay_in_their_frame_are_accepted),
    CHECK_TEST(tag_stores_do_not_store_return_addresses),
    CHECK_TEST(sp_must_be_restored_before_return),
    CHECK_TEST(frame_pointer_restores_sp_of_unknown_depth),
    CHECK_TEST(accesses_to_the_callers_frame_are_found),
    CHECK_TEST(arguments_at_known_places_are_measured),
    CHECK_TEST(copied_addresses_are_followed),
    CHECK_TEST(computed_addresses_are_unknown),
    CHECK_TEST(address_of_the_frame_record_is_not_passed),
    CHECK_TEST(computed_addresses_are_not_passed),
    CHECK_TEST(a_function_that_saves_x30_in_a_pair_is_not_outlined),
    CHECK_TEST(return_address_may_be_saved_but_not_read),
    CHECK_TEST(the_stack_is_unknown_after_a_clone_system_call),
    CHECK_TEST(calls_preserve_callee_saved_registers),
    CHECK_TEST(frame_addresses_stored_or_compared_are_noted),
};
CHECK_MAIN(tests)
