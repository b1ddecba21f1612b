/* SPDX-License-Identifier: MIT */
/* Finds the instructions of an x86-64 stub that lead into its timing tail (emit_stub.c), and the
 * bytes with which its calls are only counted.  Each is one instruction, so a thread may be
 * anywhere in the stub when it is replaced; a call that is open still ends at the exit probe. */
#include "arch/x86/emit_stub.h"

#include "base/byte_order.h"

#include <string.h>

/* From the entry of a stub, in instructions without (first) and with a scratch register. */
enum { TIME_AT = 20, TIME_SCRATCH_AT = 21, SKIP_AT = 19, SKIP_SCRATCH_AT = 21 };
enum { LEA_BYTES = 5, ENTER_END = 19, CALL_BYTES = 5, SKIP_BYTES = 7, JUMP_BYTES = 2 };

static bool has_bytes(const uint8_t *at, const void *bytes, uint32_t count)
{
    return memcmp(at, bytes, count) == 0;
}

/* lea rsp, [rsp - room]; mov qword [rsp + 32], slot; call enter; push ...; (lea rsp, [rsp - home]);
 * call body: the first instruction becomes `jmp body`. */
static bool find_time(hfn_stub_edit *out, const uint8_t *entry, uint32_t at, uint32_t count)
{
    static const uint8_t lower[] = { 0x48, 0x8d, 0x64, 0x24 }; /* and a distance */
    uint32_t call = at + ENTER_END;

    if (call + CALL_BYTES > count || !has_bytes(entry + at, lower, sizeof lower) ||
        !has_bytes(entry + at + LEA_BYTES, "\x48\xc7\x44\x24\x20", 5)) {
        return false;
    }
    while (call + HFN_STUB_PUSH_BYTES + CALL_BYTES <= count &&
           has_bytes(entry + call, "\xff\x74\x24", 3)) {
        call += HFN_STUB_PUSH_BYTES;
    }
    if (call + LEA_BYTES + CALL_BYTES <= count && has_bytes(entry + call, lower, sizeof lower)) {
        call += LEA_BYTES;
    }
    if (entry[call] != 0xe8) {
        return false;
    }
    *out = (hfn_stub_edit){ .at = (uint8_t)at, .byte_count = LEA_BYTES };
    memcpy(out->timed, entry + at, LEA_BYTES);
    out->counted[0] = 0xe9;
    hfn_write_le32(out->counted + 1,
                   call + CALL_BYTES + hfn_read_le32(entry + call + 1) - (at + LEA_BYTES));
    return true;
}

/* sub dword [row + skip], 1; (pop rcx); jb tail: both `sub` and `jb` become no-operations (Intel
 * SDM vol. 2, NOP). */
static uint32_t find_sample(hfn_stub_edit out[2], const uint8_t *entry, uint32_t count)
{
    static const uint8_t nop7[] = { 0x0f, 0x1f, 0x80, 0, 0, 0, 0 };
    static const uint8_t nop8[] = { 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };
    static const uint8_t nop2[] = { 0x66, 0x90 };
    bool is_plain = count >= SKIP_AT + SKIP_BYTES + 1 + JUMP_BYTES &&
                    has_bytes(entry + SKIP_AT, "\x83\xa9", 2) && entry[SKIP_AT + 6] == 1 &&
                    entry[SKIP_AT + SKIP_BYTES] == 0x59;
    bool has_scratch =
        count >= SKIP_SCRATCH_AT + SKIP_BYTES + 1 + JUMP_BYTES &&
        (entry[SKIP_SCRATCH_AT] & 0xfe) == 0x40 && entry[SKIP_SCRATCH_AT + 1] == 0x83 &&
        (entry[SKIP_SCRATCH_AT + 2] & 0xf8) == 0xa8 && entry[SKIP_SCRATCH_AT + 7] == 1;
    uint32_t at = is_plain ? SKIP_AT : SKIP_SCRATCH_AT, jump = at + SKIP_BYTES + 1;

    if ((!is_plain && !has_scratch) || entry[jump] != 0x72) {
        return 0;
    }
    out[0] = (hfn_stub_edit){ .at = (uint8_t)jump, .byte_count = JUMP_BYTES };
    memcpy(out[0].timed, entry + jump, JUMP_BYTES);
    memcpy(out[0].counted, nop2, JUMP_BYTES);
    out[1] =
        (hfn_stub_edit){ .at = (uint8_t)at, .byte_count = is_plain ? SKIP_BYTES : SKIP_BYTES + 1 };
    memcpy(out[1].timed, entry + at, out[1].byte_count);
    memcpy(out[1].counted, is_plain ? nop7 : nop8, out[1].byte_count);
    return 2;
}

uint32_t hfn_x86_find_timing(hfn_stub_edit out[HFN_STUB_MAX_EDITS], const uint8_t *entry,
                             uint32_t count)
{
    if (find_time(out, entry, TIME_AT, count) || find_time(out, entry, TIME_SCRATCH_AT, count)) {
        return 1;
    }
    return find_sample(out, entry, count);
}
