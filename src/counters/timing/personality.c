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

int hfn_time_personality(int version, int actions, uint64_t exception_class, void *exception,
                         void *context)
{
    (void)version, (void)exception_class, (void)exception;
    if (actions & ACTION_CLEANUP) {
        end_passed_call(context);
    }
    return CONTINUE_UNWIND;
}
