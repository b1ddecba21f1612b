# SPDX-License-Identifier: MIT
"""Start a program with hotfn's agent inside, or attach to a process; wait, and open the record."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import shutil
import tempfile
import time
import warnings
import weakref
from ctypes import c_char_p, c_uint32, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._errors import check, decode
from ._native import lib
from ._options import make_selection, make_times
from ._text import Globs, PathLike, c_texts, encode, env, glob_list, log_message, path_or_none
from .records import Function, Record

FLAGS = {"flat": 0x1, "events": 0x2, "memory": 0x4, "follow": 0x8, "durable": 0x10, "perf_map": 0x20,
         "no_cache": 0x40, "force_map": 0x80, "quiet_agent": 0x100,
         "found": 0x800}  # HOTFN_LAUNCH_*
STATES = {1: "running", 2: "ended", 3: "finished"}
LOG_WARNING = 2              # HOTFN_LOG_WARNING
MAX_REMAINING = 1024
MAX_SLICE_NS = 200_000_000   # Python runs signal handlers between two slices of a wait


@dataclasses.dataclass(frozen=True)
class LaunchInfo:
    """The state of a launched program."""
    state: str               # running, ended, finished (the record is written)
    pid: int
    exit_code: Optional[int]  # 0 to 255; -N if signal N killed it; None while it runs
    joined: bool             # the program has hooked itself; otherwise nothing was counted
    hooked: int              # functions hooked when the program started
    refused: int             # functions whose hook failed then
    hook_ns: int             # time that this took
    run_ns: int              # from the start of the program to its end, or until now
    attach_stop_ns: int = 0  # attached: how long the threads were stopped for that
    detach_stop_ns: int = 0  # and when it was detached from
    preparation_ns: int = 0  # part of run_ns in which the program waited for its scan and its hooks


@dataclasses.dataclass(frozen=True)
class AttachCheck:
    """One condition of an attach."""
    name: str
    holds: bool
    text: str  # one sentence; if it does not hold, with what to do


@dataclasses.dataclass(frozen=True)
class Switched:
    """What switch() has changed."""
    matched: int           # hooked functions that the globs match
    switched: int          # of these, those that were in another mode before
    count_only: int        # mode "time": their hooks can only count
    busy: int              # still off, since a thread was inside their first bytes: try again
    foreign: int           # unchanged, since other code has changed their bytes
    processes: int         # processes that were changed: the program and its forks
    failed_processes: int  # processes that could not be stopped
    stop_ns: int           # the total time for which their threads were stopped


MODES = {"off": 1, "count": 2, "time": 3}  # HOTFN_SWITCH_*


def _make_order(mode: str, functions: Globs, exclude: Globs, modules: Globs) -> s.SwitchOrder:
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    globs, selection = glob_list(modules), make_selection(functions, exclude, 0, 0)
    return s.SwitchOrder(mode=MODES[mode], selection=ctypes.pointer(selection), modules=c_texts(globs),
                         module_count=len(globs))


def _make_switched(raw: s.SwitchResult) -> Switched:
    return Switched(matched=raw.matched_count, switched=raw.switched_count, count_only=raw.count_only_count,
                    busy=raw.busy_count, foreign=raw.foreign_count, processes=raw.process_count,
                    failed_processes=raw.failed_process_count, stop_ns=raw.stop_ns)


class _Log:
    """Collects the warnings of the library, which also come from threads of the launch."""

    def __init__(self) -> None:
        self._texts: List[str] = []
        self.callback = s.LogFn(self._append)

    def _append(self, _user: Any, level: int, text: bytes) -> None:
        log_message(level, text)
        if level <= LOG_WARNING:
            self._texts.append(decode(text))

    def add(self, text: str) -> None:
        self._texts.append(text)

    def warn(self) -> None:
        """Report the warnings at the caller of wait(), run() or `with`, which call _wait_and_finish()."""
        while self._texts:
            warnings.warn(self._texts.pop(0), stacklevel=4)


def _free(handle: c_void_p, _log: _Log, folder: Optional[str]) -> None:
    """_log is an argument so that its callback exists as long as the launch."""
    lib.hotfn_launch_destroy(handle)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


class Run:
    """A program that hotfn.run() has started.

    record      the finished record once the program has ended, before that a new one with the
                counts so far
    exit_code   0 to 255; -N if signal N killed the program; None while it runs
    """

    def __init__(self, options: s.LaunchOptions, log: _Log, folder: Optional[str],
                 pid: Optional[int] = None) -> None:
        out, error, services = c_void_p(), s.Error(), s.Env(log_fn=log.callback)
        if pid is None:
            status = lib.hotfn_launch_start(ctypes.byref(out), options, services, error)
        else:
            status = lib.hotfn_launch_attach(ctypes.byref(out), pid, options, services, error)
        check(status, error)
        self._handle, self._log = out, log
        self._finalizer = weakref.finalize(self, _free, c_void_p(out.value), log, folder)
        self._finished: Optional[Record] = None
        self._last_info: Optional[LaunchInfo] = None
        self._remaining: Tuple[int, ...] = ()

    def __repr__(self) -> str:
        info = self.info
        return f"<hotfn.Run of process {info.pid}, {info.state}, {info.hooked} functions hooked at its start>"

    @property
    def _open_handle(self) -> c_void_p:
        if not self._finalizer.alive:
            raise ValueError("the run is closed")
        return self._handle

    def _get_raw_info(self) -> s.LaunchInfo:
        raw = s.LaunchInfo()
        check(lib.hotfn_launch_get_info(self._open_handle, raw))
        return raw

    @property
    def info(self) -> LaunchInfo:
        if self._finalizer.alive or self._last_info is None:
            raw = self._get_raw_info()
            state = STATES.get(raw.state, str(raw.state))
            self._last_info = LaunchInfo(state=state, pid=raw.pid,
                                         exit_code=None if state == "running" else raw.exit_code,
                                         joined=bool(raw.is_joined), hooked=raw.hooked_count,
                                         refused=raw.refused_count, hook_ns=raw.hook_ns, run_ns=raw.run_ns,
                                         attach_stop_ns=raw.attach_stop_ns, detach_stop_ns=raw.detach_stop_ns,
                                         preparation_ns=raw.preparation_ns)
        return self._last_info

    @property
    def exit_code(self) -> Optional[int]:
        return self.info.exit_code

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until the program has ended, write its record and return its exit code.
        TimeoutError if it still runs after `timeout` seconds."""
        return self._wait_and_finish(timeout)

    def _wait_and_finish(self, timeout: Optional[float]) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while self.info.state == "running":
            remaining_ns = MAX_SLICE_NS if end is None else max(0, int((end - time.monotonic()) * 1e9))
            error = s.Error()
            check(lib.hotfn_launch_wait(self._open_handle, min(remaining_ns, MAX_SLICE_NS), error), error)
            self._log.warn()
            if self.info.state == "running" and remaining_ns == 0:
                raise TimeoutError(f"process {self.info.pid} still runs after {timeout} seconds")
        if self.info.state == "ended":
            self._finish()
            self.close()
        self._log.warn()
        assert self.info.exit_code is not None
        return self.info.exit_code

    def _finish(self) -> None:
        error = s.Error()
        self._remaining = self._find_remaining()
        status = lib.hotfn_launch_finish(self._open_handle, error)
        kept = self._get_raw_info().record_path
        if status != 0 and kept:
            error.text = (error.text + b"; the record was written to " + kept)[:511]
        check(status, error)
        if not self.info.joined:
            self._log.add("the program ended before it was hooked: nothing was counted")
        self._finished = self._open_record()

    def _find_remaining(self) -> Tuple[int, ...]:
        pids = (c_uint32 * MAX_REMAINING)()
        return tuple(pids[:lib.hotfn_launch_find_remaining(pids, self._open_handle, MAX_REMAINING)])

    @property
    def remaining(self) -> Tuple[int, ...]:
        """Processes that were counted and still ran when the program had ended; their later calls
        are not in the record."""
        return self._remaining

    def _open_record(self) -> Record:
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_launch_open_record(ctypes.byref(out), self._open_handle, error), error)
        assert out.value
        return Record(out.value)

    @property
    def record(self) -> Record:
        return self._finished if self._finished is not None else self._open_record()

    def hot(self, n: int = 20, by: str = "default") -> List[Function]:
        """The n hottest functions so far, or of the whole run once it has ended; see Record.hot."""
        return self.record.hot(n, by)

    def switch(self, mode: str, *, functions: Globs = None, exclude: Globs = None,
               modules: Globs = None) -> Switched:
        """Switch hooked functions while the program runs: "off" restores their bytes, so that they cost nothing,
        "count" counts their calls, "time" also times them if the run does.  None: all."""
        raw, error = s.SwitchResult(), s.Error()
        order = _make_order(mode, functions, exclude, modules)
        check(lib.hotfn_launch_switch(self._open_handle, order, raw, error), error)
        return _make_switched(raw)

    def close(self) -> None:
        """Free the launch, as wait() does in the end.  A program that still runs continues without
        being counted.  The finished record stays open."""
        if self._finalizer.alive:
            self._last_info = self.info
            self._finalizer()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, *_exception: Any) -> None:
        """Wait for the program unless an exception is raised, then close."""
        try:
            if kind is None and self._finalizer.alive:
                self._wait_and_finish(None)
        finally:
            self.close()


class Attached(Run):
    """A process that hotfn.attach() has attached to.  At the end of `with` it is detached from."""

    def detach(self) -> None:
        """Restore the process's code and write the record.  Does nothing if that is done already."""
        if self._finalizer.alive and self.info.state == "running":
            error = s.Error()
            check(lib.hotfn_launch_detach(self._open_handle, error), error)
        if self._finalizer.alive:
            self._wait_and_finish(None)

    def __enter__(self) -> "Attached":
        return self

    def __exit__(self, kind: Any, *_exception: Any) -> None:
        """Detach, and write the record unless an exception is raised."""
        try:
            if kind is None:
                self.detach()
        finally:
            self.close()


def _make_command(command: Sequence[PathLike]) -> Any:
    if isinstance(command, (str, bytes)) or not command:
        raise ValueError("command: must be a list of a program and its arguments")
    words = [os.fsencode(word) for word in command]
    return (c_char_p * (len(words) + 1))(*words, None)


CLOCKS = ("auto", "tick", "cpu")  # HOTFN_LAUNCH_CLOCK_*


def _make_ppm(budget: Optional[float]) -> int:
    if budget is None:
        return 0
    if not 1e-6 <= budget <= 1:
        raise ValueError(f"budget: {budget} is not a share of time above 0 and at most 1")
    return round(budget * 1e6)


def _make_ns(name: str, duration: float) -> int:
    if not 0 <= duration < 1e9:
        raise ValueError(f"{name}: {duration} is not a duration in seconds")
    return round(duration * 1e9)


def run(command: Sequence[PathLike], *, record: Optional[PathLike] = None, modules: Globs = None,
        functions: Globs = None, exclude: Globs = None, min_size: int = 0, max_size: int = 0,
        mode: str = "count", clock: str = "auto", flat: bool = False, sample: Optional[int] = None,
        slower_than_ns: Optional[int] = None, memory: bool = False, events: bool = False,
        budget: Optional[float] = None, after: float = 0, duration: float = 0, follow: bool = False,
        target: Optional[str] = None, list: Optional[PathLike] = None, map: Optional[PathLike] = None,
        force_map: bool = False, kit: Optional[PathLike] = None, symbol_dirs: Sequence[PathLike] = (),
        durable: bool = False, perf_map: bool = False, found: bool = False, cache: bool = True,
        cache_folder: Optional[PathLike] = None, agent: Optional[PathLike] = None, quiet_agent: bool = False,
        max_threads: int = 0, max_places: int = 0, runtime: Optional[str] = None, send_to: Optional[str] = None,
        watch: Optional[str] = None, wait: bool = True) -> Run:
    """Run a program and count the calls of its functions, as `hotfn run` does.

        for function in hotfn.run(["sqlite3", "a.db", ".dump"], record="dump.hfr").hot(10):
            print(function.calls, function.display)

    command         the program and its arguments
    record          file of the record; None: no file, only Run.record
    modules         globs on file names of modules; None: the program itself
    functions       globs on function names; None: all functions
    exclude         globs on names of functions that are not hooked, also if `functions` matches
                    them
    min_size, max_size  bounds of the size of functions in bytes; 0: no bound
    mode            "count"; or "time" to measure how long calls take
    clock           with "time": "tick", a clock that costs a load but advances only every few
                    microseconds; "cpu", the processor's counter; or "auto", tick unless events or
                    allocated memory are recorded
    flat, memory, events  with "time": keep no call tree; record allocated memory; record entries
                          and exits
    sample          with "time": mean sampling interval in calls; every call is counted
    slower_than_ns  with "time": keep each call that takes longer (Record.slow_calls)
    budget          share of the program's time that hooks may take, for example 0.05
    after, duration  seconds after which counting begins, and how long it lasts; 0: at once, until
                     the end
    follow          count the children of the program too
    target          glob: count the descendant whose file matches, instead of the program
    list, map, kit  function list, linker map (of another build with force_map), folder made by
                    `hotfn kit`
    symbol_dirs     folders with separate debug files
    durable         keep the record in its file while the program runs
    found           also hook functions of stripped programs that only calls and pointers show
    perf_map        write the names of stubs to /tmp/perf-PID.map
    cache, cache_folder  whether scans are kept for the next run, and where
    agent           hotfn-agent.so; None: search for it beside libhotfn
    quiet_agent     the agent writes nothing to the program's stderr
    max_threads, max_places  room for so many threads at one time, for so many places in call trees;
                    0: by the memory there is
    runtime         "python": also count the functions of the Python program that runs in it;
                    "objc": the methods of an Objective-C program; "com": those of COM objects;
                    "art": filter the method trace of a virtual machine of Android
    watch           with "art": glob; trace only calls of methods that match and take longer than
                    slower_than_ns
    send_to         send entries and exits as they happen to a `hotfn listen`: "udp:HOST:PORT" or
                    "unix:PATH"; implies mode "time" and events
    wait            wait for the end of the program; otherwise call Run.wait() or use `with`

    The program inherits stdin, stdout and stderr.  Warnings of the library are Python warnings.
    """
    times = make_times(mode, flat, sample, None if watch else slower_than_ns)
    if clock not in CLOCKS:
        raise ValueError(f"clock: {clock!r} is none of {', '.join(CLOCKS)}")
    chosen = {"flat": flat, "events": events, "memory": memory, "follow": follow, "durable": durable,
              "perf_map": perf_map, "no_cache": not cache, "force_map": force_map, "quiet_agent": quiet_agent,
              "found": found}
    globs, dirs = glob_list(modules), [os.fsencode(folder) for folder in symbol_dirs]
    selection = make_selection(functions, exclude, min_size, max_size)
    fields: Dict[str, Any] = {
        "flags": sum(FLAGS[name] for name, is_set in chosen.items() if is_set),
        "command": _make_command(command), "modules": c_texts(globs), "module_count": len(globs),
        "mode": times.mode, "clock": CLOCKS.index(clock), "sample_interval": times.interval, "slow_ns": slower_than_ns if watch and slower_than_ns else times.slow_ns,
        "selection": ctypes.pointer(selection), "target_glob": encode(target) if target else None,
        "list_path": path_or_none(list), "map_path": path_or_none(map), "kit_path": path_or_none(kit),
        "symbol_dirs": c_texts(dirs), "symbol_dir_count": len(dirs), "after_ns": _make_ns("after", after),
        "for_ns": _make_ns("duration", duration), "budget_ppm": _make_ppm(budget),
        "cache_folder": path_or_none(cache_folder), "agent_path": path_or_none(agent),
        "max_threads": max_threads, "max_places": max_places,
        "runtime": encode(runtime) if runtime else None,
        "send_to": encode(send_to) if send_to else None, "watch": encode(watch) if watch else None}
    started = _start(fields, record)
    if wait:
        try:
            started._wait_and_finish(None)
        except BaseException:
            started.close()
            raise
    return started


def attach(pid: int, *, record: Optional[PathLike] = None, modules: Globs = None, functions: Globs = None,
           exclude: Globs = None, min_size: int = 0, max_size: int = 0, mode: str = "count", flat: bool = False,
           sample: Optional[int] = None, slower_than_ns: Optional[int] = None, duration: float = 0,
           list: Optional[PathLike] = None, symbol_dirs: Sequence[PathLike] = (), cache: bool = True,
           cache_folder: Optional[PathLike] = None) -> Attached:
    """Count or time the calls of a process that runs already, as `hotfn attach` does.

        with hotfn.attach(pid) as run:
            time.sleep(10)
        print(run.hot(10))

    pid       of the process, which runs on afterwards
    duration  seconds after which Attached.wait() detaches; 0: until detach(), or the end of `with`

    The other arguments are those of hotfn.run().
    """
    globs, dirs = glob_list(modules), [os.fsencode(folder) for folder in symbol_dirs]
    selection = make_selection(functions, exclude, min_size, max_size)
    times = make_times(mode, flat, sample, slower_than_ns)
    fields: Dict[str, Any] = {
        "flags": (0 if cache else FLAGS["no_cache"]) | (FLAGS["flat"] if flat else 0), "mode": times.mode,
        "sample_interval": times.interval, "slow_ns": times.slow_ns, "modules": c_texts(globs), "module_count": len(globs),
        "selection": ctypes.pointer(selection), "list_path": path_or_none(list), "symbol_dirs": c_texts(dirs),
        "symbol_dir_count": len(dirs), "for_ns": _make_ns("duration", duration),
        "cache_folder": path_or_none(cache_folder)}
    attached = _start(fields, record, pid)
    assert isinstance(attached, Attached)
    return attached


def check_attach(pid: int) -> List[AttachCheck]:
    """The conditions of hotfn.attach(pid), as `hotfn doctor PID` prints them; attach() would try it if all hold.
    The process's threads are stopped for a moment, unless an earlier condition does not hold."""
    found: List[AttachCheck] = []

    def keep(_user: Any, name: bytes, status: int, text: bytes) -> None:
        found.append(AttachCheck(name=decode(name), holds=status == 0, text=decode(text)))

    error = s.Error()
    status = lib.hotfn_launch_check_attach(pid, s.AttachCheckFn(keep), None, env(), error)
    if status != 0 and all(condition.holds for condition in found):
        check(status, error)
    return found


def detach(pid: int, *, record: Optional[PathLike] = None) -> float:
    """Restore the code of a process that another hotfn has attached to, as `hotfn detach` does.

    record  receives the counts of a hotfn that was killed; if it still runs, it writes its record itself

    Returns for how many seconds the threads of the process were stopped.
    """
    stop_ns, error = ctypes.c_uint64(), s.Error()
    path = None if record is None else os.fsencode(record)
    check(lib.hotfn_launch_release(pid, path, ctypes.byref(stop_ns), env(), error), error)
    return stop_ns.value / 1e9


def ctl(target: Union[int, PathLike], mode: str, *, functions: Globs = None, exclude: Globs = None,
        modules: Globs = None) -> Switched:
    """Switch functions of a program that another hotfn counts, as `hotfn ctl` does; see Run.switch().

    target  the number of a process that is counted, or the path of its record
    """
    raw, error = s.SwitchResult(), s.Error()
    order = _make_order(mode, functions, exclude, modules)
    path, pid = (None, target) if isinstance(target, int) else (os.fsencode(target), 0)
    check(lib.hotfn_switch_functions(path, pid, order, raw, env(), error), error)
    return _make_switched(raw)


def _start(fields: Dict[str, Any], record: Optional[PathLike], pid: Optional[int] = None) -> Run:
    """Start, or attach to process pid, with the fields of LaunchOptions.  Without a path the record is in a
    temporary folder until the Run is closed; an open record is a copy in memory."""
    folder = None if record is not None else tempfile.mkdtemp(prefix="hotfn-")
    path = os.fsencode(record if record is not None else os.path.join(str(folder), "run.hfr"))
    try:
        options = s.LaunchOptions(record_path=path, **fields)
        return Run(options, _Log(), folder) if pid is None else Attached(options, _Log(), folder, pid)
    except BaseException:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        raise
