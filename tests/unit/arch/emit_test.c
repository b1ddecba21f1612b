/* SPDX-License-Identifier: MIT */
/* The bounded writer of machine code. */
#include "arch/x86/emit.h"

#include "check.h"

static void a_full_writer_writes_nothing_more(void)
{
    uint8_t bytes[8] = { 0 };
    hfn_x86_writer w = hfn_x86_begin_writer(bytes, 6);

    hfn_x86_put_u8(&w, 0x90);
    hfn_x86_put_jump_if(&w, 4); /* 6 bytes do not fit */
    CHECK(w.full);
    CHECK_EQ_U64(w.length, 1);
    hfn_x86_put_u8(&w, 0x90);
    CHECK_EQ_U64(w.length, 1);
    CHECK_MEM(bytes, "\x90\0\0\0\0\0\0\0", 8);
}

static void branch_writers_return_the_field_offset(void)
{
    uint8_t bytes[16] = { 0 };
    hfn_x86_writer w = hfn_x86_begin_writer(bytes, sizeof bytes);
    uint32_t jump = hfn_x86_put_jump(&w), jump_if = hfn_x86_put_jump_if(&w, 5);

    CHECK_EQ_U64(jump, 1);
    CHECK_EQ_U64(jump_if, 7);
    hfn_x86_replace_u32(&w, jump, 0x11223344);
    hfn_x86_replace_u32(&w, jump_if, 0xFFFFFFFE);
    CHECK_MEM(bytes, "\xE9\x44\x33\x22\x11\x0F\x85\xFE\xFF\xFF\xFF", 11);
    CHECK(!w.full);
}

static const check_test tests[] = {
    CHECK_TEST(a_full_writer_writes_nothing_more),
    CHECK_TEST(branch_writers_return_the_field_offset),
};
CHECK_MAIN(tests)
