# SPDX-License-Identifier: MIT
"""Count the calls of functions of this very process, and time them if asked, from now on and until stopped."""
from __future__ import annotations

import ctypes
import dataclasses
import warnings
import weakref
from ctypes import c_void_p
from typing import Any, Dict, Iterable, List, Optional

from . import _structs as s
from ._errors import check, decode
from ._native import lib
from ._text import Globs, PathLike, c_texts, env, glob_list, path_bytes
from .records import Function, Record, function_of, module_of

NO_FOLLOW_DLOPEN = 1
SINGLE_THREADED = 2
FLAT = 4
MODES = {"count": 0, "time": 1}


@dataclasses.dataclass(frozen=True)
class Stats:
    """What starting a session did."""
    hooked: int
    refused: int
    stub_bytes: int
    unwind_bytes: int
    table_bytes: int
    copied_page_bytes: int
    total_ns: int


def _selection(functions: Globs, exclude: Globs, min_size: int, max_size: int) -> s.Selection:
    include, out = glob_list(functions), glob_list(exclude)
    return s.Selection(include=c_texts(include), include_count=len(include),
                       exclude=c_texts(out), exclude_count=len(out),
                       min_bytes=min_size, max_bytes=max_size)


def _times(mode: str, flat: bool, sample: Optional[int], slower_than_ns: Optional[int]) -> Dict[str, int]:
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is neither 'count' nor 'time'")
    if mode == "count" and (flat or sample is not None or slower_than_ns is not None):
        raise ValueError("flat, sample, slower_than_ns: only with mode='time'")
    if sample is not None and not 1 <= sample <= 1000000:
        raise ValueError(f"sample: one call in {sample} cannot be timed: 1 to 1000000")
    if slower_than_ns is not None and slower_than_ns < 1:
        raise ValueError("slower_than_ns: a time above 0")
    return {"mode": MODES[mode], "sample_mean": sample or 0, "slow_ns": slower_than_ns or 0}


class Frame:
    """The calls since the last look, for a program that looks at itself again and again.

        window = session.frame(10)
        while running:
            work()
            for function in window.next():
                print(function.calls, function.display)

    It costs far less than a snapshot.  Made by Session.frame(); good while the session is open.
    """

    def __init__(self, session: "Session", top: int) -> None:
        if not 0 <= top < 2**32:
            raise ValueError(f"top: {top} is no number of functions")
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_frame_create(ctypes.byref(out), session._open_handle, top, env(), error), error)
        self._session = session
        self._handle = out
        self._finalizer = weakref.finalize(self, lib.hotfn_frame_destroy, c_void_p(out.value))
        self.calls = 0
        self.called_count = 0

    def next(self) -> List[Function]:
        """End the window and begin the next one: the functions that were called most in it, with their
        calls in it.  Behind it `calls` is the sum over all functions, `called_count` how many were called."""
        self._session._open_handle  # raises if it is closed
        info, error = s.FrameInfo(), s.Error()
        check(lib.hotfn_frame_next(self._handle, info, error), error)
        self.calls, self.called_count = int(info.calls), int(info.called_count)
        return [self._function(rank) for rank in range(info.top_count)]

    def _function(self, rank: int) -> Function:
        function, module = s.RecordFunction(), s.RecordModule()
        check(lib.hotfn_frame_get_function(self._handle, rank, function, module))
        return function_of(function, module_of(module, function.module))


class Session:
    """Hooks in this process; one session at a time.

        with hotfn.Session(modules=["libsqlite3*"], functions="sqlite3*") as session:
            work()
        for function in session.hot(10):
            print(function.calls, function.display)

    modules    globs on module file names; None: the main program
    functions  globs on function names; None: all.  exclude wins over it.
    min_size, max_size  of functions, in bytes; 0: no limit
    map        a linker map that gives the main program's names
    durable    keep the record in this file while running, should the process die
    cache_folder  keep scans there, so that the next start need not read the code again
    mode       "count", or "time": how long calls take, too (record.times, .edges, .nodes)
    flat       with "time": times by function only, no call tree
    sample     with "time": one call in so many is timed, at random; all are counted
    slower_than_ns  with "time": each call that takes longer is kept (record.slow_calls)

    Made, it has scanned but hooked nothing.  Entering `with`, or start(), hooks; leaving it, or
    stop(), puts every byte back.  Behind `with` the counts stay in `record`, and a glob that matched
    nothing is warned of.
    """

    def __init__(self, modules: Globs = None, functions: Globs = None, *, exclude: Globs = None,
                 min_size: int = 0, max_size: int = 0, durable: Optional[PathLike] = None, map: Optional[PathLike] = None,
                 follow_dlopen: bool = True, single_threaded: bool = False,
                 cache_folder: Optional[PathLike] = None, mode: str = "count", flat: bool = False,
                 sample: Optional[int] = None, slower_than_ns: Optional[int] = None) -> None:
        times = _times(mode, flat, sample, slower_than_ns)
        names = glob_list(modules)
        selection = _selection(functions, exclude, min_size, max_size)
        flags = ((0 if follow_dlopen else NO_FOLLOW_DLOPEN)
                 | (SINGLE_THREADED if single_threaded else 0) | (FLAT if flat else 0))
        options = s.SessionOptions(**times, flags=flags, modules=c_texts(names), module_count=len(names),
                                   selection=ctypes.pointer(selection),
                                   durable_path=path_bytes(durable) if durable else None,
                                   map_path=path_bytes(map) if map else None,
                                   cache_folder=path_bytes(cache_folder) if cache_folder else None)
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_session_create(ctypes.byref(out), options, env(), error), error)
        self._handle = out
        self._finalizer = weakref.finalize(self, lib.hotfn_session_destroy, c_void_p(out.value))
        self._last: Optional[Record] = None
        self._globs = (names, glob_list(functions))
        self.stats: Optional[Stats] = None
        self.running = False

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped" if self._finalizer.alive else "closed"
        hooked = self.stats.hooked if self.stats else 0
        modules = ", ".join(decode(glob) for glob in self._globs[0]) or "the main program"
        return f"<hotfn.Session of {modules}, {state}, {hooked} functions hooked at its start>"

    @property
    def _open_handle(self) -> c_void_p:
        if not self._finalizer.alive:
            raise ValueError("the session is closed")
        return self._handle

    def start(self) -> Stats:
        """Hook.  What could not be hooked is in the record, with its reason."""
        raw, error = s.SessionStats(), s.Error()
        check(lib.hotfn_session_start(self._open_handle, error), error)
        self.running = True
        check(lib.hotfn_session_get_stats(self._open_handle, raw))
        self.stats = Stats(**{field.name: getattr(raw, field.name)
                              for field in dataclasses.fields(Stats)})
        return self.stats

    def stop(self) -> None:
        """Put every byte back; a warning reports hooks that could not be removed.  The session may be
        started again and adds to the same counts."""
        raw, error = s.SessionStats(), s.Error()
        check(lib.hotfn_session_stop(self._open_handle, error), error)
        self.running = False
        check(lib.hotfn_session_get_stats(self._open_handle, raw))
        if raw.remaining_status != 0:
            reason = decode(lib.hotfn_status_get_name(raw.remaining_status))
            warnings.warn(f"{raw.remaining} hooks could not be removed ({reason}); they count nowhere", stacklevel=2)

    def snapshot(self) -> Record:
        """What was counted until now, as a record of its own."""
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_session_snapshot(ctypes.byref(out), self._open_handle, error), error)
        assert out.value
        return Record(out.value)

    def frame(self, top: int = 20) -> "Frame":
        """A window that begins now: which functions are called most from one look to the next."""
        return Frame(self, top)

    def save(self, path: PathLike) -> None:
        """Write what was counted until now to path, as a finished record."""
        error = s.Error()
        check(lib.hotfn_session_save(self._open_handle, path_bytes(path), error), error)

    @property
    def record(self) -> Record:
        """The final counts once the session is closed, a new snapshot before."""
        return self._last if self._last is not None else self.snapshot()

    def hot(self, n: int = 20, by: str = "calls") -> List[Function]:
        """The n functions that were called most until now, or until the session was closed; by="self" or "total":
        that took longest."""
        return self.record.hot(n, by)

    def close(self) -> None:
        """Stop if running, keep the final counts in `record`, release the rest."""
        if not self._finalizer.alive:
            return
        try:
            if self.running:
                self.stop()
            self._last = self.snapshot()
            if self.stats is not None:
                self._warn_of_globs_in_vain(self._last)
        finally:
            self._finalizer()

    def _warn_of_globs_in_vain(self, record: Record) -> None:
        """As `hotfn run` does at its end: most often it is a slip of the pen."""
        def in_vain(glob: bytes, texts: Iterable[str]) -> bool:
            return not any(lib.hotfn_glob_match(glob, text.encode("utf-8", "surrogateescape")) == 1 for text in texts)

        for glob in self._globs[0]:
            if in_vain(glob, (text for module in record.modules for text in (module.file, module.path))):
                warnings.warn(f"modules: '{decode(glob)}' matches no module that was loaded", stacklevel=4)
        for glob in self._globs[1]:
            if in_vain(glob, (text for function in record.functions for text in (*function.names, function.display))):
                warnings.warn(f"functions: '{decode(glob)}' matches no function", stacklevel=4)

    def __enter__(self) -> "Session":
        if not self.running:
            self.start()
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()
