/* SPDX-License-Identifier: MIT */
/* Offsets and constants for arch/x86/timed_probes.S.  gen_offsets.py compiles this file to assembly
 * and makes timing_offsets.h from the strings in it that begin with "->". */
#include "counters/timing/engine.h"

#define CONSTANT(name, value) __asm__ volatile("\n.ascii \"->" #name " %c0\"" : : "i"(value))
#define OFFSET(name, type, field) CONSTANT(name, offsetof(type, field))

void list_offsets(void);
void list_offsets(void)
{
    OFFSET(ENGINE_THREAD_AT, hfn_time_engine, thread_at);
    OFFSET(ENGINE_LOG_AT, hfn_time_engine, log_at);
    OFFSET(ENGINE_CLOCK, hfn_time_engine, clock);
    OFFSET(ENGINE_TICK, hfn_time_engine, tick);
    OFFSET(ENGINE_SESSION, hfn_time_engine, session);
    OFFSET(ENGINE_HINTS_AT, hfn_time_engine, hints_at);
    OFFSET(ENGINE_NODES, hfn_time_engine, nodes);
    OFFSET(ENGINE_FLAGS, hfn_time_engine, flags);
    OFFSET(ENGINE_ENTER_COST, hfn_time_engine, enter_cost);
    OFFSET(ENGINE_EXIT_COST, hfn_time_engine, exit_cost);
    CONSTANT(CLOCK_STOPPED, HFN_CLOCK_STOPPED);
    CONSTANT(CLOCK_TSC, HOTFN_CLOCK_TSC);
    CONSTANT(FLAG_EVENTS, HOTFN_TIMING_EVENTS);
    CONSTANT(FLAGS_OF_LENGTHS, HOTFN_TIMING_EVENTS | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_SLOW);

    OFFSET(HOOK_TICKS, hfn_time_state, hook_ticks);
    OFFSET(LAST_TICK, hfn_time_state, last_tick);
    OFFSET(DEPTH, hfn_time_state, depth);
    OFFSET(CURRENT_NODE, hfn_time_state, node);
    OFFSET(STARTED, hfn_time_state, started);
    OFFSET(OPEN_FRAMES, hfn_time_state, open_frames);

    OFFSET(NODE_PARENT, hfn_time_node, parent);
    OFFSET(NODE_SLOT, hfn_time_node, slot);
    OFFSET(NODE_CALLS, hfn_time_node, calls);
    OFFSET(NODE_TOTAL, hfn_time_node, total_ticks);
    CONSTANT(NODE_BYTES, sizeof(hfn_time_node));
    CONSTANT(NODE_SHIFT, __builtin_ctz(sizeof(hfn_time_node)));
    CONSTANT(PARENT_FACTOR, HFN_HINT_PARENT_FACTOR);
    CONSTANT(SLOT_FACTOR, HFN_HINT_SLOT_FACTOR);
    CONSTANT(HINT_SHIFT, 32 - HFN_HINT_BITS);

    CONSTANT(LOG_CAPACITY, HFN_LOG_CAPACITY);
    CONSTANT(LOG_BYTES, sizeof(hfn_open_call));
    CONSTANT(LOG_SHIFT, __builtin_ctz(sizeof(hfn_open_call)));
    OFFSET(LOG_FRAME, hfn_open_call, frame);
    OFFSET(LOG_START, hfn_open_call, start);
    OFFSET(LOG_CALL_WORD, hfn_open_call, call_word);

    CONSTANT(CELLS, sizeof(hfn_time_state));
    CONSTANT(CELL_SHIFT, __builtin_ctz(sizeof(hfn_time_cell)));
    OFFSET(CELL_MAX, hfn_time_cell, max_ticks);
    CONSTANT(CALL_SLOT, HFN_CALL_SLOT);

    OFFSET(START, hfn_time_frame, start);
    OFFSET(CALLER, hfn_time_frame, caller);
    OFFSET(PLACE, hfn_time_frame, depth);
    OFFSET(CALL_WORD, hfn_time_frame, call_word);
    OFFSET(SLOT, hfn_time_frame, slot);
}
