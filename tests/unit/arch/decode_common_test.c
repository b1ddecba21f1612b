/* SPDX-License-Identifier: MIT */
/* Compares the common decoder with Zydis for every opcode, ModRM and SIB form that it decodes,
 * with prefixes. */
#include "arch/x86/decode_common.h"

#include "arch/every_opcode.h"
#include "arch/x86/decode.h"

#define RVA 0x1000
#define LINK_BASE 0x400000

static uint64_t known_count;

static int equal(const hfn_instruction *a, const hfn_instruction *b)
{
    return a->length == b->length && a->flow == b->flow && a->relative_at == b->relative_at &&
           a->relative_bytes == b->relative_bytes && a->is_padding == b->is_padding &&
           a->is_landing_pad == b->is_landing_pad &&
           a->reads_memory_relative == b->reads_memory_relative &&
           a->takes_address == b->takes_address && a->through_table == b->through_table &&
           a->target == b->target;
}

static void compare(const uint8_t *bytes)
{
    hfn_instruction common, full;

    if (!hfn_x86_decode_common(bytes, 16, RVA, LINK_BASE, &common)) {
        return;
    }
    known_count++;
    if (hfn_x86_decode_fully(HFN_X86_64, bytes, 16, RVA, LINK_BASE, &full) &&
        equal(&common, &full)) {
        return;
    }
    CHECK(!"the same result as Zydis");
    check_print_bytes("for", bytes, 16);
}

static void compare_prefixed(const uint8_t *prefixes, uint32_t count, uint8_t rex)
{
    uint8_t bytes[32];

    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(0x91 - 0x0F * i);
    }
    memcpy(bytes, prefixes, count);
    if (rex) {
        bytes[count++] = rex;
    }
    each_encoding(bytes, count, compare);
}

static void common_decoder_agrees_with_zydis(void)
{
    static const uint8_t rexes[] = { 0, 0x40, 0x41, 0x48, 0x4F };
    static const uint8_t prefixes[][2] = {
        { 0 }, { 1, 0x66 }, { 1, 0xF2 }, { 1, 0xF3 }, { 1, 0x64 }
    };

    for (uint32_t i = 0; i < sizeof rexes; i++) {
        for (uint32_t k = 0; k < 5; k++) {
            compare_prefixed(prefixes[k] + 1, prefixes[k][0], rexes[i]);
        }
    }
    CHECK(known_count > 2000000);
}

static void common_decoder_agrees_on_several_prefixes(void)
{
    static const uint8_t pairs[][3] = { { 0x66, 0x66, 0x2E }, { 0x66, 0xF2, 0x66 },
                                        { 0xF3, 0xF2, 0x66 }, { 0x2E, 0x66, 0x64 },
                                        { 0xF2, 0x66, 0xF3 }, { 0x66, 0x48, 0x66 } };

    for (uint32_t i = 0; i < 6; i++) {
        compare_prefixed(pairs[i], 2, 0);
        compare_prefixed(pairs[i], 3, 0x48);
    }
}

static void rare_instructions_are_left_to_zydis(void)
{
    static const uint8_t rare[][16] = {
        { 0xC5, 0xF8, 0x28, 0xC1 },       /* vmovaps xmm0, xmm1 */
        { 0xF0, 0x48, 0x0F, 0xB1, 0x0F }, /* lock cmpxchg [rdi], rcx */
        { 0xF3, 0x48, 0xAB },             /* rep stosq */
        { 0xD9, 0xC0 },                   /* fld st(0) */
        { 0xE3, 0x05 },                   /* jrcxz */
        { 0x66, 0xE9, 0, 0, 0, 0 },       /* data16 jmp */
    };
    hfn_instruction in;

    for (uint32_t i = 0; i < 6; i++) {
        CHECK(!hfn_x86_decode_common(rare[i], 16, RVA, 0, &in));
        CHECK(hfn_x86_decode(HFN_X86_64, rare[i], 16, RVA, 0, &in));
    }
}

static void fewer_than_fifteen_bytes_are_refused(void)
{
    static const uint8_t nop[16] = { 0x90 };
    hfn_instruction in;

    CHECK(!hfn_x86_decode_common(nop, 14, RVA, 0, &in));
    CHECK(hfn_x86_decode_common(nop, 15, RVA, 0, &in));
    CHECK(hfn_x86_decode(HFN_X86_64, nop, 1, RVA, 0, &in));
}

static const check_test tests[] = {
    CHECK_TEST(common_decoder_agrees_with_zydis),
    CHECK_TEST(common_decoder_agrees_on_several_prefixes),
    CHECK_TEST(rare_instructions_are_left_to_zydis),
    CHECK_TEST(fewer_than_fifteen_bytes_are_refused),
};
CHECK_MAIN(tests)
