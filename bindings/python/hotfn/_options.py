# SPDX-License-Identifier: MIT
"""The options that sessions and launches have in common: selected functions and times."""
from __future__ import annotations

import dataclasses
from typing import Optional

from . import _structs as s
from ._text import Globs, c_texts, glob_list

MODES = {"count": 0, "time": 1}
MAX_SAMPLING_INTERVAL = 1000000


@dataclasses.dataclass(frozen=True)
class TimeOptions:
    mode: int
    interval: int            # mean sampling interval in calls; 0: every call is timed
    slow_ns: int             # keep each call that takes longer; 0: none


def make_selection(functions: Globs, exclude: Globs, min_size: int, max_size: int) -> s.Selection:
    included, excluded = glob_list(functions), glob_list(exclude)
    return s.Selection(include=c_texts(included), include_count=len(included),
                       exclude=c_texts(excluded), exclude_count=len(excluded),
                       min_bytes=min_size, max_bytes=max_size)


def make_times(mode: str, flat: bool, sample: Optional[int], slower_than_ns: Optional[int]) -> TimeOptions:
    """Check the options about times, which ctypes would truncate silently."""
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is neither 'count' nor 'time'")
    if mode == "count" and (flat or sample is not None or slower_than_ns is not None):
        raise ValueError("flat, sample, slower_than_ns: only with mode='time'")
    if sample is not None and not 1 <= sample <= MAX_SAMPLING_INTERVAL:
        raise ValueError(f"sample: {sample} is not between 1 and {MAX_SAMPLING_INTERVAL}")
    if slower_than_ns is not None and slower_than_ns < 1:
        raise ValueError("slower_than_ns: must be above 0")
    return TimeOptions(mode=MODES[mode], interval=sample or 0, slow_ns=slower_than_ns or 0)
