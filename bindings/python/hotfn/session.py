# SPDX-License-Identifier: MIT
"""Count the calls of functions of this process, and optionally time them, between a start and a
stop."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import warnings
import weakref
from ctypes import c_void_p
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib
from ._options import make_selection, make_times
from ._text import Globs, PathLike, c_texts, encode, glob_list, path_bytes, path_or_none, silent_env
from .records import Function, Record, convert_function, convert_module

NO_FOLLOW_DLOPEN = 1
SINGLE_THREADED = 2
FLAT = 4
TICKER = 8
BACKGROUND = 16
ZONES = 32
GROUP_OFF = 1                                      # HOTFN_GROUP_OFF
FRAME_TIMES = 1                                    # HOTFN_FRAME_TIMES
FRAME_KEYS = {"calls": 1, "self": 2, "total": 3}   # HOTFN_BY_*


@dataclasses.dataclass(frozen=True)
class Stats:
    """What the start of a session did."""
    hooked: int
    refused: int
    stub_bytes: int
    unwind_bytes: int
    table_bytes: int
    copied_page_bytes: int
    total_ns: int


@dataclasses.dataclass(frozen=True)
class FrameTimes:
    """The times of a function in a frame, of all threads or of one."""
    total_ns: int            # with the functions that it called
    self_ns: int             # without those that are timed
    timed_calls: int         # that ended in the frame, or are open at its end
    tid: Optional[int]       # of the thread; None: of all threads
    thread: str              # the thread's name


class Frame:
    """The hot functions between two points of time, for example during one frame of a game.

        frame = session.frame(10, spike_factor=3)
        while running:
            work()
            for function in frame.next():
                print(function.calls, function.display)
            if frame.is_spike:
                frame.save(f"spike{frame.number}.hfr")

    Without times and spikes it is much cheaper than a snapshot.  Session.frame() creates it; it is
    valid while the session is open.
    """

    def __init__(self, session: "Session", top: int, times: bool, by: str, spike_ms: Optional[float],
                 spike_factor: Optional[float]) -> None:
        if not 0 <= top < 2**32:
            raise ValueError(f"top: {top} is not a number of functions")
        if by not in FRAME_KEYS:
            raise ValueError(f"by: {by!r} is none of {', '.join(FRAME_KEYS)}")
        options = s.FrameOptions(top_count=top, by=FRAME_KEYS[by], flags=FRAME_TIMES if times else 0,
                                 spike_ns=round((spike_ms or 0) * 1e6),
                                 spike_percent=round((spike_factor or 0) * 100))
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_frame_create(ctypes.byref(out), session._open_handle, options, silent_env(), error), error)
        self._session = session
        self._handle = out
        self._finalizer = weakref.finalize(self, lib.hotfn_frame_destroy, c_void_p(out.value))
        self.calls = 0
        self.called_count = 0
        self.number = -1
        self.duration_ns = self.median_ns = self.cpu_ns = 0
        self.is_spike = False

    def next(self) -> List[Function]:
        """End the frame and begin the next one.  Returns the hot functions of the ended frame with
        their calls in it.  Afterwards these attributes describe that frame: `calls` of all
        functions, `called_count` (functions that were called), `number` (from 0), `duration_ns`,
        `median_ns` (of the frames before it; 0: none), `cpu_ns` (processor time of all threads),
        `is_spike`."""
        self._session._open_handle  # raises ValueError if the session is closed
        info, error = s.FrameInfo(), s.Error()
        check(lib.hotfn_frame_next(self._handle, info, error), error)
        self.calls, self.called_count = int(info.calls), int(info.called_count)
        self.number, self.is_spike = int(info.number), bool(info.is_spike)
        self.duration_ns, self.median_ns, self.cpu_ns = info.duration_ns, info.median_ns, info.cpu_ns
        return [self._read_function(position) for position in range(info.top_count)]

    def _read_function(self, position: int) -> Function:
        function, module = s.RecordFunction(), s.RecordModule()
        check(lib.hotfn_frame_get_function(self._handle, position, function, module))
        return convert_function(function, convert_module(module, function.module))


    def times(self, position: int) -> Tuple[FrameTimes, List[FrameTimes]]:
        """The times in the ended frame of the function that next() returned at position: of all threads, and of
        each thread in which it was timed.  Needs frame(times=True)."""
        raw = s.FrameTimes()
        check(lib.hotfn_frame_get_times(self._handle, position, raw))
        whole, threads = convert_frame_times(raw), []
        for index in range(raw.thread_count):
            one = s.FrameTimes()
            check(lib.hotfn_frame_get_thread_times(self._handle, position, index, one))
            threads.append(convert_frame_times(one))
        return whole, threads

    def save(self, path: PathLike) -> None:
        """Write the frame that ended last to path as a record of its own, with its times, call tree and slow calls
        if the session times calls.  Needs frame(times=True, spike_ms=...) or spike_factor."""
        error = s.Error()
        check(lib.hotfn_frame_save(self._handle, path_bytes(path), error), error)


def convert_frame_times(raw: s.FrameTimes) -> FrameTimes:
    return FrameTimes(total_ns=raw.total_ns, self_ns=raw.self_ns, timed_calls=raw.timed_calls,
                      tid=raw.tid or None, thread=decode(raw.name))


def make_groups(groups: Mapping[str, Globs], off_groups: Set[str]) -> "ctypes.Array[s.Group]":
    unknown = off_groups.difference(groups)
    if unknown:
        raise ValueError(f"off_groups: {', '.join(sorted(unknown))}: no such group")
    return (s.Group * len(groups))(*(
        s.Group(name=encode(name), flags=GROUP_OFF if name in off_groups else 0,
                selection=ctypes.pointer(make_selection(globs, None, 0, 0)))
        for name, globs in groups.items()))


def set_thread_name(name: str) -> None:
    """Name the calling thread in records and for the system's tools, with at most 15 bytes.  The main thread's name
    is also that of the process."""
    error = s.Error()
    check(lib.hotfn_thread_set_name(encode(name), error), error)


class Session:
    """Hooks in this process.  A process has one session at a time.

        with hotfn.Session(modules=["libsqlite3*"], functions="sqlite3*") as session:
            work()
        for function in session.hot(10):
            print(function.calls, function.display)

    modules         globs on file names of modules; None: the main program
    functions       globs on function names; None: all functions
    exclude         globs on names of functions that are not hooked, also if `functions` matches
                    them
    min_size, max_size  bounds of the size of functions in bytes; 0: no bound
    map             linker map with the names of the main program
    durable         file that keeps the record while the session runs, also if the process dies
    cache_folder    folder where scans are kept for the next start
    background      read and scan the modules in a thread; start() waits for it
    mode            "count"; or "time" to measure how long calls take (record.times, .edges, .nodes)
    flat            with "time": keep times per function only, without callers and call tree
    ticker          with "time": keep a tick clock in threads of libhotfn, which costs less than reading
                    the counter at both ends of each call
    sample          with "time": mean sampling interval in calls; every call is counted
    slower_than_ns  with "time": keep each call that takes longer (record.slow_calls)
    groups          functions that switch() switches on and off together: a dict of names and globs
    off_groups      names of groups that are off at first
    zones           make room for zone() and message(): up to 1024 different names

    The constructor scans the modules and hooks nothing.  Entering `with`, or start(), hooks;
    leaving `with`, or stop(), restores all bytes.  Afterwards `record` has the final counts.  A
    warning reports each glob that matches nothing.
    """

    def __init__(self, modules: Globs = None, functions: Globs = None, *, exclude: Globs = None,
                 min_size: int = 0, max_size: int = 0, durable: Optional[PathLike] = None, map: Optional[PathLike] = None,
                 follow_dlopen: bool = True, single_threaded: bool = False,
                 cache_folder: Optional[PathLike] = None, mode: str = "count", flat: bool = False,
                 ticker: bool = False, background: bool = False,
                 sample: Optional[int] = None, slower_than_ns: Optional[int] = None,
                 groups: Optional[Mapping[str, Globs]] = None, off_groups: Iterable[str] = (),
                 zones: bool = False) -> None:
        times = make_times(mode, flat, sample, slower_than_ns)
        names = glob_list(modules)
        selection = make_selection(functions, exclude, min_size, max_size)
        flags = ((0 if follow_dlopen else NO_FOLLOW_DLOPEN)
                 | (SINGLE_THREADED if single_threaded else 0) | (FLAT if flat else 0)
                 | (TICKER if ticker else 0)
                 | (BACKGROUND if background else 0) | (ZONES if zones else 0))
        group_list = make_groups(groups or {}, set(off_groups))
        options = s.SessionOptions(mode=times.mode, sample_mean=times.interval, slow_ns=times.slow_ns,
                                   flags=flags, modules=c_texts(names), module_count=len(names),
                                   selection=ctypes.pointer(selection),
                                   durable_path=path_or_none(durable),
                                   map_path=path_or_none(map),
                                   cache_folder=path_or_none(cache_folder),
                                   groups=group_list, group_count=len(group_list))
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_session_create(ctypes.byref(out), options, silent_env(), error), error)
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
        return f"<hotfn.Session of {modules}, {state}, {hooked} functions hooked>"

    @property
    def _open_handle(self) -> c_void_p:
        if not self._finalizer.alive:
            raise ValueError("the session is closed")
        return self._handle

    def start(self) -> Stats:
        """Hook the functions.  The record has the reason of each that could not be hooked."""
        raw, error = s.SessionStats(), s.Error()
        check(lib.hotfn_session_start(self._open_handle, error), error)
        self.running = True
        check(lib.hotfn_session_get_stats(self._open_handle, raw))
        self.stats = Stats(**{field.name: getattr(raw, field.name)
                              for field in dataclasses.fields(Stats)})
        return self.stats

    def stop(self) -> None:
        """Restore all bytes; a warning reports hooks that could not be removed.  The session may be
        started again and then adds to the same counts."""
        raw, error = s.SessionStats(), s.Error()
        check(lib.hotfn_session_stop(self._open_handle, error), error)
        self.running = False
        check(lib.hotfn_session_get_stats(self._open_handle, raw))
        if raw.remaining_status != 0:
            reason = decode(lib.hotfn_status_get_name(raw.remaining_status))
            warnings.warn(f"{raw.remaining} hooks could not be removed ({reason}); their calls are not counted", stacklevel=2)

    def snapshot(self) -> Record:
        """A record of the counts so far, which later calls do not change."""
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_session_snapshot(ctypes.byref(out), self._open_handle, error), error)
        assert out.value
        return Record(out.value)

    def frame(self, top: int = 20, *, times: bool = False, by: str = "calls",
              spike_ms: Optional[float] = None, spike_factor: Optional[float] = None) -> "Frame":
        """Begin a frame; its next() returns the `top` first functions of each frame.

        times         also measure the functions' times in each frame (mode="time")
        by            "calls", or with times "self" or "total"
        spike_ms      a frame that takes longer is a spike
        spike_factor  so is a frame that takes longer than so many times the median of the frames before it
        """
        return Frame(self, top, times, by, spike_ms, spike_factor)

    def switch(self, group: str, on: bool) -> None:
        """Switch a group of functions on or off.  The code of functions that are off has its original bytes; they
        keep their counts.  A function in several groups is off if all of them are."""
        error = s.Error()
        check(lib.hotfn_session_switch_group(self._open_handle, encode(group), int(on), error), error)

    @contextlib.contextmanager
    def zone(self, name: str) -> Iterator[None]:
        """A part of the program that is counted and timed like a function: `with session.zone("load"):`.  Needs
        zones=True; does nothing while the session does not run."""
        zone = s.Zone()
        lib.hotfn_zone_begin(zone, self._open_handle, encode(name))
        try:
            yield
        finally:
            lib.hotfn_zone_end(zone)

    def message(self, text: str) -> None:
        """Record a message at this place of the call tree, as a function "message: TEXT".  Needs zones=True."""
        error = s.Error()
        check(lib.hotfn_zone_add_message(self._open_handle, encode(text), error), error)

    def save(self, path: PathLike) -> None:
        """Write the counts so far to path as a finished record; the session continues."""
        error = s.Error()
        check(lib.hotfn_session_save(self._open_handle, path_bytes(path), error), error)

    @property
    def record(self) -> Record:
        """The final counts once the session is closed; a new snapshot before that."""
        return self._last if self._last is not None else self.snapshot()

    def hot(self, n: int = 20, by: str = "default") -> List[Function]:
        """The n hottest functions so far, or of a closed session; see Record.hot."""
        return self.record.hot(n, by)

    def close(self) -> None:
        """Stop the session if it runs, and free it.  `record` keeps the final counts."""
        if not self._finalizer.alive:
            return
        try:
            if self.running:
                self.stop()
            self._last = self.snapshot()
            if self.stats is not None:
                self._warn_of_unmatched_globs(self._last)
        finally:
            self._finalizer()

    def _warn_of_unmatched_globs(self, record: Record) -> None:
        """Warn of each glob that matches nothing, which is usually a misspelled name."""
        def matches(glob: bytes, texts: Iterable[str]) -> bool:
            return any(lib.hotfn_glob_match(glob, encode(text)) == 1 for text in texts)

        for glob in self._globs[0]:
            if not matches(glob, (text for module in record.modules for text in (module.file, module.path))):
                warnings.warn(f"modules: '{decode(glob)}' matches no module that was loaded", stacklevel=4)
        for glob in self._globs[1]:
            if not matches(glob, (text for function in record.functions
                                  for text in (*function.names, function.display))):
                warnings.warn(f"functions: '{decode(glob)}' matches no function", stacklevel=4)

    def __enter__(self) -> "Session":
        if not self.running:
            self.start()
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()
