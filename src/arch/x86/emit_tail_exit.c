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
    JUMP_AT = 49,
    HOME_AT = 54,
    RETURN_AT = 64,
    STEPS = 4,
};

/* exit: cmp dword [rsp], low(behind_body); jne jump
 *       cmp dword [rsp + 4], high(behind_body); jne jump
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
        0x81, 0x3c, 0x24, 0, 0, 0, 0, 0x75, JUMP_AT - 9,
        0x81, 0x7c, 0x24, 0x04, 0, 0, 0, 0, 0x75, JUMP_AT - 19,
        0xc6, 0x84, 0x24, 0, 0, 0, 0, 0x01, 0xc3,
        0x48, 0x89, 0x4c, 0x24, RCX_AT, 0x8b, 0x4c, 0x24, FLAG_AT, 0xe3, HOME_AT - 39,
        0x48, 0x8b, 0x4c, 0x24, RCX_AT, 0x48, 0x8d, 0x64, 0x24, 0,
        0xe9, 0, 0, 0, 0,
        0x48, 0x8b, 0x4c, 0x24, RCX_AT, 0x48, 0x8d, 0x64, 0x24, 0, 0xc3,
    };
    /* clang-format on */

    memcpy(out, code, sizeof code);
    hfn_write_le32(out + 3, (uint32_t)behind_body);
    hfn_write_le32(out + 13, (uint32_t)(behind_body >> 32));
    hfn_write_le32(out + 22, RETURN_ADDRESS_BYTES + argument_bytes + FLAG_AT);
    out[JUMP_AT - 1] = out[RETURN_AT - 1] = (uint8_t)room;
    hfn_write_le32(out + JUMP_AT + 1,
                   (uint32_t)(request->tail_target - (request->address + JUMP_AT + 5)));
}

void hfn_x86_add_tail_exit_shape(hfn_stub_shape *shape, uint32_t room)
{
    const hfn_stub_step own[STEPS] = { { HFN_TAIL_EXIT_END_AT, (uint8_t)room },
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
