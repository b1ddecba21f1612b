# SPDX-License-Identifier: MIT
"""The times of functions, callers, call trees and slow calls of a timed run.  Times are in
nanoseconds and exclude the cost of the hooks."""
from __future__ import annotations

import dataclasses
from ctypes import c_void_p
from typing import Any, Optional, Sequence, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib

TIMINGS = {0: "count-only", 1: "full", 2: "sampled"}
NO_INDEX = 0xFFFFFFFF    # HOTFN_NO_FUNCTION
TICKERS = (None, "spins", "one-processor", "quota")  # HOTFN_TICKER_*
UNKNOWN = 0xFFFFFFFFFFFFFFFF  # HOTFN_ERROR_UNKNOWN
ALLOC = 8                # HOTFN_TIMING_ALLOC
WAITING = 512            # HOTFN_TIMING_WAITING


@dataclasses.dataclass(frozen=True)
class Memory:
    """Allocated and freed memory; bytes are those that malloc_usable_size returns."""
    allocated_bytes: int
    allocated_blocks: int
    freed_bytes: int
    freed_blocks: int


@dataclasses.dataclass(frozen=True)
class Times:
    """The times of a function, None if its calls were only counted.  A call that has not returned
    is timed until the end of the record."""
    timing: str              # full, sampled (all times but min and max are estimates), count-only
    reason: Optional[str]    # why its calls were only counted
    timed_calls: int
    total_ns: Optional[int]  # a recursive call is part of its outermost call; None: less than its error
    self_ns: Optional[int]   # without the time of timed callees; None: less than its error
    total_error_ns: Optional[int]  # with a tick clock or sampling: one standard error; otherwise the cost that
                                   # was subtracted for hooks; None: unknown, total_ns is an upper bound
    self_error_ns: Optional[int]
    max_ns: Optional[int]
    p50_ns: Optional[int]    # None: no histogram, or below the clock's resolution
    p90_ns: Optional[int]
    p99_ns: Optional[int]
    self_memory: Optional[Memory] = None   # by the function itself; None without --with alloc
    total_memory: Optional[Memory] = None  # callees included
    open_calls: int = 0      # the timed calls that have not returned
    waited_ns: Optional[int] = None        # in the function itself, not on a processor; not part of self_ns
    total_waited_ns: Optional[int] = None  # callees included: part of total_ns; None: not known by this clock


@dataclasses.dataclass(frozen=True)
class Edge:
    """The calls of one function by another; functions are indices in Record.functions."""
    caller: Optional[int]    # None: code that is not timed
    callee: int
    calls: int
    total_ns: int
    total_memory: Optional[Memory] = None  # callees included; None without --with alloc


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of the call tree: a function, called through the functions of its ancestors."""
    parent: Optional[int]    # its index in Record.nodes, smaller than this one; None: a root
    function: Optional[int]  # its index in Record.functions
    thread: int              # index of the thread in Record.threads
    calls: int
    total_ns: int
    self_ns: int
    self_memory: Optional[Memory]  # allocated by the node itself; None without --with alloc
    waited_ns: int = 0       # in the function itself, not on a processor; not part of self_ns


@dataclasses.dataclass(frozen=True)
class SlowCall:
    """A call that took at least as long as the limit of --slower-than."""
    function: int            # its index in Record.functions
    thread: int              # index of the thread in Record.threads
    start_ns: int            # since the run began
    duration_ns: int
    stack: Tuple[int, ...]   # functions from the outermost caller to this one


@dataclasses.dataclass(frozen=True)
class TimeInfo:
    """How a run was timed, and the cost of timing."""
    sample_mean: int         # mean sampling interval in calls; 0: every call was timed
    ticks_per_second: int
    cost_ns: float           # cost of a timed call
    count_cost_ns: float     # cost of a counted call
    busy_ns: int             # time of all threads in timed functions
    nodes_merged: int        # calls for which the call tree had no room
    abandoned_exits: int     # calls that were left without a return, for example by longjmp
    clock_stopped_ns: int    # ns since the run began at which the program disabled the time stamp
                             # counter; later calls were only counted; 0: never
    ticker: Optional[str]    # the thread that advances the tick clock: it "spins" on an idle processor,
                             # or sleeps because of "one-processor" or a "quota"; None: no tick clock,
                             # the counter is read at the entry and exit of each call
    ticker_cpu_ns: int       # processor time of the ticker, which is not the program's
    tick_error_ns: float     # a time of T ns has a standard error of sqrt(T * tick_error_ns)
    coarse_share: float      # share of the run in which ticks were at least 16 us apart
    missing_share: float     # share of the run in which no tick came for at least 10 ms
    waiting_stopped_ns: int  # ns since the run began at which the program filtered its system calls;
                             # from then on its times include waiting; 0: never
    call_stack_bytes: int    # stack that a timed call uses until it returns; 0: not known
    waited_ns: Optional[int]  # when threads were in timed functions, but not on a processor; not part of
                              # busy_ns; None: not known by this clock


def get_raw_info(handle: c_void_p) -> s.RecordTimeInfo:
    raw = s.RecordTimeInfo()
    check(lib.hotfn_record_get_time_info(handle, raw))
    return raw


def read_info(handle: c_void_p) -> Optional[TimeInfo]:
    raw = get_raw_info(handle)
    if not raw.flags:
        return None
    return TimeInfo(sample_mean=raw.sample_mean, ticks_per_second=raw.ticks_per_second,
                    cost_ns=raw.cost_inside_ns + raw.cost_outside_ns,
                    count_cost_ns=raw.count_cost_ns, busy_ns=raw.busy_ns,
                    call_stack_bytes=raw.call_stack_bytes,
                    nodes_merged=raw.nodes_merged, abandoned_exits=raw.abandoned_exits,
                    clock_stopped_ns=raw.clock_stopped_ns,
                    ticker=TICKERS[raw.ticker], ticker_cpu_ns=raw.ticker_cpu_ns,
                    tick_error_ns=raw.tick_error_ns, coarse_share=raw.coarse_share,
                    missing_share=raw.missing_share, waiting_stopped_ns=raw.waiting_stopped_ns,
                    waited_ns=raw.waited_ns if raw.flags & WAITING else None)


def read_note(handle: c_void_p) -> Optional[str]:
    raw = get_raw_info(handle)
    return f"offset {raw.note_offset}: {decode(raw.note)}" if raw.note else None


def has_memory(handle: c_void_p) -> bool:
    return bool(get_raw_info(handle).flags & ALLOC)


def shows_waiting(handle: c_void_p) -> bool:
    return bool(get_raw_info(handle).flags & WAITING)


def convert_memory(cell: s.AllocCell, is_recorded: bool) -> Optional[Memory]:
    return Memory(cell.allocated_bytes, cell.allocated_blocks, cell.freed_bytes,
                  cell.freed_blocks) if is_recorded else None


def read_times(handle: c_void_p, index: int, memory: bool) -> Times:
    raw, waits = s.RecordTiming(), shows_waiting(handle)
    check(lib.hotfn_record_get_timing(handle, index, raw))

    def known(name: str, is_known: Any = True) -> Optional[int]:
        value: int = getattr(raw, name)
        return value if raw.timed_calls > 0 and is_known else None
    return Times(timing=TIMINGS.get(raw.timing, str(raw.timing)),
                 reason=decode(raw.reason) or None, timed_calls=raw.timed_calls,
                 total_ns=known("total_ns", raw.total_ns), self_ns=known("self_ns", raw.self_ns),
                 total_error_ns=known("total_error_ns", raw.total_error_ns != UNKNOWN),
                 self_error_ns=known("self_error_ns", raw.self_error_ns != UNKNOWN),
                 max_ns=known("max_ns", raw.max_ns),
                 p50_ns=known("p50_ns", raw.p99_ns and not raw.below & 1),
                 p90_ns=known("p90_ns", raw.p99_ns and not raw.below & 2),
                 p99_ns=known("p99_ns", raw.p99_ns and not raw.below & 4),
                 self_memory=convert_memory(raw.self_alloc, memory),
                 total_memory=convert_memory(raw.total_alloc, memory), open_calls=raw.open_calls,
                 waited_ns=known("waited_ns", waits), total_waited_ns=known("total_waited_ns", waits))


def known_index(index: int) -> Optional[int]:
    return None if index == NO_INDEX else index


def read_edges(handle: c_void_p) -> Sequence[Edge]:
    raw, memory, edges = s.RecordEdge(), has_memory(handle), []
    for index in range(get_raw_info(handle).edge_count):
        check(lib.hotfn_record_get_edge(handle, index, raw))
        edges.append(Edge(caller=known_index(raw.caller), callee=raw.callee, calls=raw.calls,
                          total_ns=raw.total_ns, total_memory=convert_memory(raw.total_alloc, memory)))
    return edges


def read_nodes(handle: c_void_p) -> Sequence[Node]:
    raw, memory, nodes = s.RecordNode(), has_memory(handle), []
    for index in range(get_raw_info(handle).node_count):
        check(lib.hotfn_record_get_node(handle, index, raw))
        nodes.append(Node(parent=known_index(raw.parent), function=known_index(raw.function),
                          thread=raw.thread, calls=raw.calls, total_ns=raw.total_ns,
                          self_ns=raw.self_ns, self_memory=convert_memory(raw.self_alloc, memory),
                          waited_ns=raw.waited_ns))
    return nodes


def read_stack(handle: c_void_p, node: int) -> Tuple[int, ...]:
    raw, stack = s.RecordNode(), []
    while node != NO_INDEX:
        check(lib.hotfn_record_get_node(handle, node, raw))
        if raw.function != NO_INDEX:
            stack.append(raw.function)
        node = raw.parent
    return tuple(reversed(stack))


def read_slow_calls(handle: c_void_p) -> Sequence[SlowCall]:
    raw, calls = s.RecordSlowCall(), []
    for index in range(get_raw_info(handle).slow_count):
        check(lib.hotfn_record_get_slow_call(handle, index, raw))
        calls.append(SlowCall(function=raw.function, thread=raw.thread, start_ns=raw.start_ns,
                              duration_ns=raw.duration_ns, stack=read_stack(handle, raw.node)))
    return calls
