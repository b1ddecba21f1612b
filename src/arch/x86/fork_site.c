/* SPDX-License-Identifier: MIT */
/* The stub of a fork site (arch/stub.h):
 *
 *     b8 38 00 00 00                mov    $56, %eax
 *     0f 05                         syscall
 *     48 89 c1                      mov    %rax, %rcx
 *     e3 05                         jrcxz  child
 *     e9 rel32                      jmp    site + 7
 *   child:
 *     64 48 c7 04 25 disp32 imm32   movq   $0, %fs:word
 *     e9 rel32                      jmp    site + 7
 */
#include "arch/stub.h"

#include "base/byte_order.h"

#include <string.h>

static const uint8_t site_bytes[HFN_FORK_SITE_BYTES] = { 0xb8, 0x38, 0, 0, 0, 0x0f, 0x05 };

bool hfn_is_fork_site(const uint8_t bytes[HFN_FORK_SITE_BYTES])
{
    return memcmp(bytes, site_bytes, sizeof site_bytes) == 0;
}

void hfn_write_fork_site(uint8_t out[HFN_FORK_SITE_BYTES])
{
    memcpy(out, site_bytes, sizeof site_bytes);
}

static void put_jump(uint8_t *out, uint64_t at, uint64_t target)
{
    out[0] = 0xe9;
    hfn_write_le32(out + 1, (uint32_t)(target - (at + 5)));
}

void hfn_emit_fork_patch(uint8_t out[HFN_FORK_PATCH_BYTES], uint64_t site, uint64_t stub)
{
    put_jump(out, site, stub);
}

void hfn_emit_fork_stub(uint8_t out[HFN_FORK_STUB_BYTES], uint64_t stub, uint64_t site,
                        int32_t word_at)
{
    static const uint8_t test[] = { 0x48, 0x89, 0xc1, 0xe3, 0x05 };
    static const uint8_t store[] = { 0x64, 0x48, 0xc7, 0x04, 0x25 };
    uint64_t behind = site + HFN_FORK_SITE_BYTES;

    memcpy(out, site_bytes, sizeof site_bytes);
    memcpy(out + 7, test, sizeof test);
    put_jump(out + 12, stub + 12, behind);
    memcpy(out + 17, store, sizeof store);
    hfn_write_le32(out + 22, (uint32_t)word_at);
    hfn_write_le32(out + 26, 0);
    put_jump(out + 30, stub + 30, behind);
}
