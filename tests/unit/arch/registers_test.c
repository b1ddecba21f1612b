/* SPDX-License-Identifier: MIT */
/* Compares the register use of common instructions with Zydis' for every opcode, ModRM and SIB
 * form, with prefixes. */
#include "arch/x86/registers.h"

#include "arch/every_opcode.h"
#include "arch/x86/decode.h"

static uint64_t known_count;

static void compare(const uint8_t *bytes)
{
    hfn_instruction in;
    hfn_x86_register_use common = { 0, 0 };
    hfn_x86_effects full;

    if (!hfn_x86_decode_fully(HFN_X86_64, bytes, 16, 0, 0, &in) ||
        !hfn_x86_find_common_register_use(bytes, in.length, &common)) {
        return;
    }
    known_count++;
    if (hfn_x86_decode_effects(HFN_X86_64, bytes, in.length, 0, &full) && !full.opaque &&
        common.kills == full.kills && common.reads == (full.reads & ~full.kills)) {
        return;
    }
    CHECK_EQ_U64(common.kills, full.kills);
    CHECK_EQ_U64(common.reads, full.reads & ~full.kills);
    check_print_bytes("for", bytes, 16);
}

static void common_register_use_agrees_with_zydis(void)
{
    static const uint8_t prefixes[] = { 0, 0x66, 0xF2, 0xF3, 0x64, 0x67 };

    for (uint32_t p = 0; p < sizeof prefixes; p++) {
        for (uint32_t rex = 0x3F; rex < 0x50 && check_failures < 10; rex++) {
            uint8_t bytes[32] = { 0 };
            uint32_t at = 0;
            if (prefixes[p] != 0) {
                bytes[at++] = prefixes[p];
            }
            if (rex >= 0x40) {
                bytes[at++] = (uint8_t)rex;
            }
            each_encoding(bytes, at, compare);
        }
    }
    printf("# %llu encodings\n", (unsigned long long)known_count);
    CHECK(known_count > 300000);
}

static const check_test tests[] = {
    CHECK_TEST(common_register_use_agrees_with_zydis),
};
CHECK_MAIN(tests)
