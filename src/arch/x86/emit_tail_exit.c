/* SPDX-License-Identifier: MIT */
/*
 * A tail exit precedes a timing stub whose function ends with a tail jump to a function that must
 * not run behind the stub's frame.  The tail jump is patched to lead here.
 *
 * If the call runs behind the stub's frame, which the return address shows, the tail exit sets a
 * flag in the frame and returns into the stub.  The stub runs the exit probe and enters the tail
 * exit again, which removes the frame and jumps to the tail target.  The target finds stack and
 * return address as without a stub, and calls and returns stay paired for the processor's return
 * predictor.  A call without a frame (a skipped call, a call that began before the hook, a jump
 * into the middle of the function) jumps to the target at once.
 *
 * Flags may change at a jump to a function, whose entry reads none, but not at a return.
 */
#include "arch/x86/emit_stub.h"

#include "base/byte_order.h"

#include <string.h>

enum {
    RETURN_ADDRESS_BYTES = 8,
    FLAG_AT = 36, /* in the frame: upper half of hfn_time_frame.slot, 0 before */
    RCX_AT = 24,  /* in the frame: scratch space for rcx                       */
    PUSHED_AT = 1,
    LEA_END_AT = 8,
    POPPED_AT = 14,
    JNE_END_AT = 16,
    JRCXZ_END_AT = 36,
    JUMP_AT = 46,
    HOME_AT = 51,
    RETURN_AT = 61,
    STEPS = 6,
};

/* No address of the stub itself is in the code: an attach writes stubs elsewhere and copies them.
 *
 * exit: push rcx; lea rcx, [rip + behind_body]; cmp [rsp + 8], rcx; pop rcx; jne jump
 *       mov byte [rsp + 8 + arguments + 36], 1; ret
 * end:  mov [rsp + 24], rcx; mov ecx, [rsp + 36]; jrcxz home
 *       mov rcx, [rsp + 24]; lea rsp, [rsp + room]
 * jump: jmp tail_target
 * home: mov rcx, [rsp + 24]; lea rsp, [rsp + room]; ret */
void hfn_x86_emit_tail_exit(uint8_t *out, const hfn_stub_request *request, uint64_t behind_body,
                            uint32_t room, uint32_t argument_bytes)
{
    /* clang-format off */
    static const uint8_t code[HFN_TAIL_EXIT_BYTES] = {
        0x51, 0x48, 0x8d, 0x0d, 0, 0, 0, 0, 0x48, 0x39, 0x4c, 0x24, RETURN_ADDRESS_BYTES, 0x59,
        0x75, JUMP_AT - JNE_END_AT,
        0xc6, 0x84, 0x24, 0, 0, 0, 0, 0x01, 0xc3,
        0x48, 0x89, 0x4c, 0x24, RCX_AT, 0x8b, 0x4c, 0x24, FLAG_AT, 0xe3, HOME_AT - JRCXZ_END_AT,
        0x48, 0x8b, 0x4c, 0x24, RCX_AT, 0x48, 0x8d, 0x64, 0x24, 0,
        0xe9, 0, 0, 0, 0,
        0x48, 0x8b, 0x4c, 0x24, RCX_AT, 0x48, 0x8d, 0x64, 0x24, 0, 0xc3,
    };
    /* clang-format on */

    memcpy(out, code, sizeof code);
    hfn_write_le32(out + LEA_END_AT - 4, (uint32_t)(behind_body - (request->address + LEA_END_AT)));
    hfn_write_le32(out + JNE_END_AT + 3, RETURN_ADDRESS_BYTES + argument_bytes + FLAG_AT);
    out[JUMP_AT - 1] = out[RETURN_AT - 1] = (uint8_t)room;
    hfn_write_le32(out + JUMP_AT + 1,
                   (uint32_t)(request->tail_target - (request->address + JUMP_AT + 5)));
}

void hfn_x86_add_tail_exit_shape(hfn_stub_shape *shape, uint32_t room)
{
    const hfn_stub_step own[STEPS] = { { PUSHED_AT, RETURN_ADDRESS_BYTES },
                                       { POPPED_AT, 0 },
                                       { HFN_TAIL_EXIT_END_AT, (uint8_t)room },
                                       { JUMP_AT, 0 },
                                       { HOME_AT, (uint8_t)room },
                                       { RETURN_AT, 0 } };

    memmove(shape->steps + STEPS, shape->steps, shape->step_count * sizeof *shape->steps);
    memcpy(shape->steps, own, sizeof own);
    shape->step_count += STEPS;
    for (uint32_t i = STEPS; i < shape->step_count; i++) {
        if (shape->steps[i].lowered_bytes != HFN_STUB_PUSHES) {
            shape->steps[i].at += HFN_TAIL_EXIT_BYTES;
        }
    }
    shape->head_bytes += HFN_TAIL_EXIT_BYTES;
    shape->entry_at += HFN_TAIL_EXIT_BYTES;
}
