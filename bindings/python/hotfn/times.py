# SPDX-License-Identifier: MIT
"""How long the calls of a timed run took, and who called whom.  Times are in nanoseconds, without what
the hooks themselves cost."""
from __future__ import annotations

import dataclasses
from ctypes import c_void_p
from typing import Any, Optional, Sequence, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib

TIMINGS = {0: "count-only", 1: "full", 2: "sampled"}
NOBODY = 0xFFFFFFFF      # HOTFN_NO_FUNCTION
UNKNOWN = 0xFFFFFFFFFFFFFFFF  # HOTFN_ERROR_UNKNOWN


ALLOC = 8                # HOTFN_TIMING_ALLOC


@dataclasses.dataclass(frozen=True)
class Memory:
    """What was allocated and freed, in bytes as malloc_usable_size tells them."""
    allocated_bytes: int
    allocated_blocks: int
    freed_bytes: int
    freed_blocks: int


@dataclasses.dataclass(frozen=True)
class Times:
    """A function's times; calls that had not returned have those until the record's end.  None where it is counted
    only."""
    timing: str              # full, sampled (then all but min and max are estimates), count-only
    reason: Optional[str]    # why it is counted only
    timed_calls: int
    total_ns: Optional[int]  # recursion counts once
    self_ns: Optional[int]   # without what it called
    total_error_ns: Optional[int]  # sampled: one standard error; None: total_ns is the most it can be (recursion)
    min_ns: Optional[int]
    max_ns: Optional[int]
    p50_ns: Optional[int]
    p90_ns: Optional[int]
    p99_ns: Optional[int]
    self_memory: Optional[Memory] = None   # by itself; None without --with alloc
    total_memory: Optional[Memory] = None  # with all below
    open_calls: int = 0      # of timed_calls: those that had not returned


@dataclasses.dataclass(frozen=True)
class Edge:
    """How often one function called another, by their places in Record.functions."""
    caller: Optional[int]    # None: from outside of all timed functions
    callee: int
    calls: int
    total_ns: int
    total_memory: Optional[Memory] = None  # with all below; None without --with alloc


@dataclasses.dataclass(frozen=True)
class Node:
    """A place in the call tree: a function, called through those above it."""
    parent: Optional[int]    # its place in Record.nodes, a smaller one; None: called from outside
    function: Optional[int]  # its place in Record.functions
    thread: int              # and of its thread in Record.threads
    calls: int
    total_ns: int
    self_ns: int
    self_memory: Optional[Memory]  # allocated from there; None without --with alloc


@dataclasses.dataclass(frozen=True)
class SlowCall:
    """A call that took as long as --slower-than says, or longer."""
    function: int            # its place in Record.functions
    thread: int              # and of its thread in Record.threads
    start_ns: int            # from the run's start
    duration_ns: int
    stack: Tuple[int, ...]   # the functions that it was called through, outermost first


@dataclasses.dataclass(frozen=True)
class TimeInfo:
    """What a run's timing kept, and what it cost."""
    sample_mean: int         # so many calls on average from one timed call to the next; 0: all were timed
    ticks_per_second: int
    cost_ns: float           # of a timed call
    count_cost_ns: float     # of a call that is counted only
    busy_ns: int             # all threads' time in timed functions
    nodes_merged: int        # calls that found no place of their own in the tree
    abandoned_exits: int     # calls that were left by longjmp or the like
    clock_stopped_ns: int    # so long after the start the program forbade itself the clock: only counted since; 0: not
    cost_tries: int          # cost_ns is the mean of so many, as the program ran; 0: of its start, or, sampled, its calls


def raw_info(handle: c_void_p) -> s.RecordTimeInfo:
    raw = s.RecordTimeInfo()
    check(lib.hotfn_record_get_time_info(handle, raw))
    return raw


def info_of(handle: c_void_p) -> Optional[TimeInfo]:
    raw = raw_info(handle)
    if not raw.flags:
        return None
    return TimeInfo(sample_mean=raw.sample_mean, ticks_per_second=raw.ticks_per_second,
                    cost_ns=raw.cost_inside_ns + raw.cost_outside_ns,
                    count_cost_ns=raw.count_cost_ns, busy_ns=raw.busy_ns,
                    nodes_merged=raw.nodes_merged, abandoned_exits=raw.abandoned_exits,
                    clock_stopped_ns=raw.clock_stopped_ns, cost_tries=raw.cost_tries)


def note_of(handle: c_void_p) -> Optional[str]:
    raw = raw_info(handle)
    return f"offset {raw.note_offset}: {decode(raw.note)}" if raw.note else None


def keeps_memory(handle: c_void_p) -> bool:
    return bool(raw_info(handle).flags & ALLOC)


def memory_of(cell: s.AllocCell, there: bool) -> Optional[Memory]:
    return Memory(cell.allocated_bytes, cell.allocated_blocks, cell.freed_bytes,
                  cell.freed_blocks) if there else None


def times_of(handle: c_void_p, index: int, memory: bool) -> Times:
    raw = s.RecordTiming()
    check(lib.hotfn_record_get_timing(handle, index, raw))
    told = raw.timed_calls > 0

    def known(name: str, there: Any = True) -> Optional[int]:
        value: int = getattr(raw, name)
        return value if told and there else None
    return Times(timing=TIMINGS.get(raw.timing, str(raw.timing)),
                 reason=decode(raw.reason) or None, timed_calls=raw.timed_calls,
                 total_ns=known("total_ns"), self_ns=known("self_ns"),
                 total_error_ns=known("total_error_ns", raw.timing == 2 and raw.total_error_ns != UNKNOWN), min_ns=known("min_ns"),
                 max_ns=known("max_ns"), p50_ns=known("p50_ns", raw.p99_ns),
                 p90_ns=known("p90_ns", raw.p99_ns), p99_ns=known("p99_ns", raw.p99_ns),
                 self_memory=memory_of(raw.self_alloc, memory),
                 total_memory=memory_of(raw.total_alloc, memory), open_calls=raw.open_calls)


def known_place(place: int) -> Optional[int]:
    return None if place == NOBODY else place


def edges_of(handle: c_void_p) -> Sequence[Edge]:
    raw, memory, edges = s.RecordEdge(), keeps_memory(handle), []
    for index in range(raw_info(handle).edge_count):
        check(lib.hotfn_record_get_edge(handle, index, raw))
        edges.append(Edge(caller=known_place(raw.caller), callee=raw.callee, calls=raw.calls,
                          total_ns=raw.total_ns, total_memory=memory_of(raw.total_alloc, memory)))
    return edges


def nodes_of(handle: c_void_p) -> Sequence[Node]:
    raw, memory, nodes = s.RecordNode(), keeps_memory(handle), []
    for index in range(raw_info(handle).node_count):
        check(lib.hotfn_record_get_node(handle, index, raw))
        nodes.append(Node(parent=known_place(raw.parent), function=known_place(raw.function),
                          thread=raw.thread, calls=raw.calls, total_ns=raw.total_ns,
                          self_ns=raw.self_ns, self_memory=memory_of(raw.self_alloc, memory)))
    return nodes


def stack_of(handle: c_void_p, node: int) -> Tuple[int, ...]:
    raw, stack = s.RecordNode(), []
    while node != NOBODY:
        check(lib.hotfn_record_get_node(handle, node, raw))
        if raw.function != NOBODY:
            stack.append(raw.function)
        node = raw.parent
    return tuple(reversed(stack))


def slow_calls_of(handle: c_void_p) -> Sequence[SlowCall]:
    raw, calls = s.RecordSlowCall(), []
    for index in range(raw_info(handle).slow_count):
        check(lib.hotfn_record_get_slow_call(handle, index, raw))
        calls.append(SlowCall(function=raw.function, thread=raw.thread, start_ns=raw.start_ns,
                              duration_ns=raw.duration_ns, stack=stack_of(handle, raw.node)))
    return calls
