/* SPDX-License-Identifier: MIT */
/*
 * The personality of stubs: an exception that passes a timed call ends it.
 *
 * libgcc's unwinder passes its context, which has the stack pointer in the stub's frame.  A static
 * libgcc's _Unwind_GetCFA cannot be called from here, and another unwinder has another context.
 * Therefore a word of the context is only used if the frame of an open call of this thread lies
 * there.  Where no address is found, the exception passes the innermost open call: unwinding goes
 * from the inside to the outside.
 */
#include "counters/thread_row.h"
#include "counters/timing/open_calls.h"
#include "os/core_unwind.h"

/* Itanium C++ ABI, 1.6.2 (Personality Routine). */
enum { ACTION_CLEANUP = 2, CONTINUE_UNWIND = 8 };

/* Open calls that are compared, and the lowest value that may be an address. */
enum { MAX_COMPARED = 256, LOWEST_ADDRESS = 65536 };

/* Arguments may lie between the stub's stack pointer and the frame. */
static bool is_frame_of(uint64_t frame, uint64_t stack_pointer)
{
    return frame - stack_pointer <= HFN_MAX_BELOW_FRAME;
}

static uint64_t find_frame(hfn_time_state *t, uint64_t stack_pointer)
{
    const hfn_open_call *log = hfn_open_calls_of(t);

    for (uint32_t i = t->depth; i > 0 && i + MAX_COMPARED > t->depth; i--) {
        if (i <= HFN_LOG_CAPACITY && is_frame_of(log[i - 1].frame, stack_pointer)) {
            return log[i - 1].frame;
        }
    }
    return 0;
}

static bool is_address(uint64_t word)
{
    return word % sizeof(uintptr_t) == 0 && word >= LOWEST_ADDRESS && word >> 47 == 0;
}

static void end_passed_call(const uintptr_t *context)
{
    uint64_t stack_pointer = context[HFN_UNWIND_CFA_AT_WORD], frame;

    if (!hfn_thread_row || !hfn_time_is_on()) {
        return;
    }
    frame = find_frame(hfn_time_state_of(hfn_thread_row), stack_pointer);
    if (frame != 0 || !is_address(stack_pointer)) {
        hfn_time_leave(frame);
    }
}

/* The core counts the frames of stubs; also a call that is not timed has one, if its stub calls the
 * probes.  The frame exists while the function's body runs, so if the return address, which follows
 * the CFA in libgcc's context, is behind a call of the stub's own end.  From another unwinder's
 * context it is not known: then the frame stays counted. */
#ifdef HFN_CORE
static void count_passed_frame(const uintptr_t *context)
{
    enum { CALL_OPCODE = 0xe8, CALL_BYTES = 5, MAX_STUB_BYTES = 256 };
    uintptr_t pc = context[HFN_UNWIND_CFA_AT_WORD + 1];
    const uint8_t *call = (const uint8_t *)pc - CALL_BYTES;
    uint32_t distance;

    if (!hfn_core_find_region(pc)) {
        return;
    }
    distance = call[1] | (uint32_t)call[2] << 8 | (uint32_t)call[3] << 16 | (uint32_t)call[4] << 24;
    if (call[0] == CALL_OPCODE && distance < MAX_STUB_BYTES) { /* the gates lie before the stubs */
        hfn_count_frames(hfn_thread_row, -1);
    }
}
#else
static void count_passed_frame(const uintptr_t *context)
{
    (void)context;
}
#endif

int hfn_time_personality(int version, int actions, uint64_t exception_class, void *exception,
                         void *context)
{
    (void)version, (void)exception_class, (void)exception;
    if (actions & ACTION_CLEANUP) {
        end_passed_call(context);
        count_passed_frame(context);
    }
    return CONTINUE_UNWIND;
}
