# SPDX-License-Identifier: MIT
"""What a run with a budget (`hotfn run --budget 5%`) did to keep it: which functions were watched less
closely, when and why."""
from __future__ import annotations

import dataclasses
from ctypes import c_void_p
from typing import Optional, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib

LEVELS = {1: "timed", 2: "sampled", 3: "counted", 4: "unhooked"}
REASONS = {1: "too-dear", 2: "try-again"}
LEVEL_BITS, AT_LEAST = 0xFF, 0x100      # HOTFN_BUDGET_*
NOBODY = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Change:
    """A function is watched otherwise from then on."""
    at_ns: int               # from the run's start
    function: Optional[int]  # its place in Record.functions; None: it is not there any more
    from_level: str          # timed, sampled, counted, unhooked
    to_level: str
    why: str                 # too-dear, or try-again: it may have cooled down
    calls_per_second: int    # of the program's processor time, just before
    cost: float              # the share of that time that its hooks took


@dataclasses.dataclass(frozen=True)
class Budget:
    """What the hooks might take, and what they took."""
    share: float             # of the program's processor time without hooks
    taken: float
    cpu_ns: int              # the processor time that was looked at
    cost_ns: int             # of it the hooks' (counts and the next two), and how long the program was stopped
    timing_ns: int           # timed calls
    start_ns: int            # putting the hooks in
    stops: int
    failed_stops: int
    stopped_ns: int
    longest_stop_ns: int
    count_cost_ns: float     # of a call that is counted
    note: str                # why the budget could not be kept, or ""
    changes: Tuple[Change, ...]
    changes_lost: int        # that found no room in the record


def change_of(handle: c_void_p, index: int) -> Change:
    raw = s.RecordChange()
    check(lib.hotfn_record_get_change(handle, index, raw))
    return Change(at_ns=raw.at_ns, function=None if raw.function == NOBODY else raw.function,
                  from_level=LEVELS.get(raw.from_, str(raw.from_)),
                  to_level=LEVELS.get(raw.to, str(raw.to)), why=REASONS.get(raw.why, str(raw.why)),
                  calls_per_second=raw.calls_per_second, cost=raw.cost_ppm / 1e6)


def budget_of(handle: c_void_p) -> Optional[Budget]:
    raw = s.RecordBudget()
    check(lib.hotfn_record_get_budget(handle, raw))
    if not raw.share_ppm:
        return None
    hooks = max(raw.cost_ns - raw.stopped_ns, 0)
    bare = raw.cpu_ns - hooks
    return Budget(share=raw.share_ppm / 1e6, taken=raw.cost_ns / bare if bare > 0 else 0.0,
                  cpu_ns=raw.cpu_ns, cost_ns=raw.cost_ns,
                  timing_ns=raw.timing_ns, start_ns=raw.start_ns, stops=raw.stops,
                  failed_stops=raw.failed_stops, stopped_ns=raw.stopped_ns,
                  longest_stop_ns=raw.longest_stop_ns, count_cost_ns=raw.count_cost_ns,
                  note=decode(raw.note),
                  changes=tuple(change_of(handle, index) for index in range(raw.change_count)),
                  changes_lost=raw.changes_lost)


def is_lower_bound(handle: c_void_p, function: int) -> bool:
    """Was it unhooked for a while, so that calls are missing?"""
    return bool(lib.hotfn_record_get_budget_state(handle, function) & AT_LEAST)
