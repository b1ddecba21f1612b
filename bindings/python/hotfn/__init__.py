# SPDX-License-Identifier: MIT
"""Which functions of a program are hot, counted call by call, without rebuilding it.

    record = hotfn.open("run.hfr")                what `hotfn run` left behind
    scan = hotfn.scan("/usr/bin/sqlite3")         what can be hooked, and why not
    with hotfn.Session(modules="libm.so*") as s:  count in this very process

The package talks to libhotfn through ctypes; it has no compiled part.
"""
from ._errors import (
    DeniedError,
    FileError,
    FormatError,
    HotfnError,
    LimitError,
    MismatchError,
    NoMemoryError,
    NotFoundError,
    OptionError,
    StateError,
    UnsupportedError,
)
from ._native import lib as _lib
from ._text import demangle
from .budgets import Budget, Change
from .records import (
    Counter,
    Format,
    Function,
    Module,
    Record,
    RecordInfo,
    Thread,
    formats,
    open,
    register_exporter,
    repair,
)
from .session import Session, Stats, Frame
from .times import Edge, Memory, Node, SlowCall, TimeInfo, Times
from .verdicts import Scan, Verdict, scan

__version__: str = _lib.hotfn_get_version().decode()

__all__ = [
    "Budget", "Change", "Counter", "DeniedError", "Edge", "FileError", "Format", "FormatError", "Function", "HotfnError",
    "LimitError", "Memory", "MismatchError", "Module", "NoMemoryError", "Node", "NotFoundError",
    "OptionError",
    "Record", "RecordInfo", "Scan", "Session", "SlowCall", "StateError", "Stats", "Thread", "TimeInfo", "Times",
    "UnsupportedError", "Verdict", "Frame", "demangle", "formats", "open", "register_exporter", "repair", "scan",
]
