# SPDX-License-Identifier: MIT
"""The budget of a run (`hotfn run --budget 5%`): the time that hooks took, and the changes made to
keep it."""
from __future__ import annotations

import dataclasses
from ctypes import c_void_p
from typing import Optional, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib

LEVELS = {1: "timed", 2: "sampled", 3: "counted", 4: "unhooked"}
REASONS = {1: "over-budget", 2: "try-again"}
LOWER_BOUND = 0x100                     # HOTFN_BUDGET_LOWER_BOUND
NO_FUNCTION = 0xFFFFFFFF                # HOTFN_NO_FUNCTION


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of how the calls of a function are counted and timed."""
    at_ns: int               # since the run began
    function: Optional[int]  # its index in Record.functions; None: not in the record
    from_level: str          # timed, sampled, counted, unhooked
    to_level: str
    why: str                 # over-budget, or try-again: after a while it is hooked again
    calls_per_second: int    # per second of processor time, before the change
    cost: float              # share of processor time that its hooks took before the change


@dataclasses.dataclass(frozen=True)
class Budget:
    """The share of time that hooks were allowed to take, and the time that they took."""
    share: float             # allowed share of the program's processor time without hooks
    taken: float             # the share that was taken
    cpu_ns: int              # processor time of the program, hooks included
    cost_ns: int             # time that hooks and stops took
    timing_ns: int           # the part of cost_ns that timed calls took
    start_ns: int            # the part of cost_ns that installing the hooks took
    stops: int               # how often the program was stopped for changes
    failed_stops: int
    stopped_ns: int
    longest_stop_ns: int
    count_cost_ns: float     # cost of a counted call
    note: str                # why the budget was exceeded, or ""
    changes: Tuple[Change, ...]
    changes_lost: int        # changes that the record had no room for


def read_change(handle: c_void_p, index: int) -> Change:
    raw = s.RecordChange()
    check(lib.hotfn_record_get_change(handle, index, raw))
    return Change(at_ns=raw.at_ns, function=None if raw.function == NO_FUNCTION else raw.function,
                  from_level=LEVELS.get(raw.from_, str(raw.from_)),
                  to_level=LEVELS.get(raw.to, str(raw.to)), why=REASONS.get(raw.why, str(raw.why)),
                  calls_per_second=raw.calls_per_second, cost=raw.cost_ppm / 1e6)


def read_budget(handle: c_void_p) -> Optional[Budget]:
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
                  changes=tuple(read_change(handle, index) for index in range(raw.change_count)),
                  changes_lost=raw.changes_lost)


def is_lower_bound(handle: c_void_p, function: int) -> bool:
    """Whether the function was unhooked for a while, so that its count is a lower bound."""
    return bool(lib.hotfn_record_get_budget_state(handle, function) & LOWER_BOUND)
