# SPDX-License-Identifier: MIT
"""Find the hot functions of a program by counting every call, without rebuilding it.

    run = hotfn.run(["sqlite3", "a.db", ".dump"])  count the calls of a program
    with hotfn.attach(pid) as run: time.sleep(10)  count those of a process that runs already
    record = hotfn.open("run.hfr")                 open the record of a run
    scan = hotfn.scan("/usr/bin/sqlite3")          find the functions that can be hooked
    with hotfn.Session(modules="libm.so*") as s:   count the calls of this process
    with hotfn.Hooks() as hooks:                   replace functions of this process

The package calls libhotfn through ctypes; it has no compiled part.
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
from . import plot
from ._native import lib as _lib
from ._text import demangle
from .budgets import Budget, Change
from .hooks import Call, Hooks
from .launch import AttachCheck, Attached, LaunchInfo, Run, Switched, attach, check_attach, ctl, detach, run
from .push import Pushed, PushError, push
from .records import (
    Caller,
    Child,
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
from .session import Frame, Session, Stats, set_thread_name
from .times import Edge, Memory, Node, SlowCall, TimeInfo, Times
from .tree import TreeNode
from .verdicts import Scan, Verdict, scan

__version__: str = _lib.hotfn_get_version().decode()

__all__ = [
    "AttachCheck",
    "Attached",
    "Budget",
    "Call",
    "Caller",
    "Change",
    "Child",
    "Counter",
    "DeniedError",
    "Edge",
    "FileError",
    "Format",
    "FormatError",
    "Frame",
    "Function",
    "Hooks",
    "HotfnError",
    "LaunchInfo",
    "LimitError",
    "Memory",
    "MismatchError",
    "Module",
    "NoMemoryError",
    "Node",
    "NotFoundError",
    "OptionError",
    "PushError",
    "Pushed",
    "Record",
    "RecordInfo",
    "Run",
    "Scan",
    "Session",
    "SlowCall",
    "StateError",
    "Stats",
    "Switched",
    "Thread",
    "TimeInfo",
    "Times",
    "TreeNode",
    "UnsupportedError",
    "Verdict",
    "attach",
    "check_attach",
    "ctl",
    "demangle",
    "detach",
    "formats",
    "plot",
    "push",
    "register_exporter",
    "repair",
    "run",
    "scan",
    "set_thread_name",
]
