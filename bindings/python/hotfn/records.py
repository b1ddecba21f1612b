# SPDX-License-Identifier: MIT
"""What a run left behind: the functions with their calls, and how to get them out again."""
from __future__ import annotations

import builtins
import ctypes
import dataclasses
import os
import weakref
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _structs as s
from . import budgets as _budgets
from . import times as _times
from ._errors import check, decode
from ._functions import Named, fields_of
from ._native import lib
from ._text import PathLike, env, path_bytes

STATES = {1: "hooked", 2: "refused", 3: "fragment", 4: "excluded", 5: "waiting"}
EXPORTER_ABI = 1                                                    # HOTFN_EXPORTER_ABI
NEEDS = {"flat": 1, "times": 2, "tree": 4, "events": 8}             # HOTFN_NEEDS_*
ORDERS = ("default", "calls", "self", "total", "max", "alloc")      # HOTFN_BY_*


class Counter(ctypes.Structure):
    """One function's count, as it lies in Record.counters."""
    _fields_ = [("rva", c_uint64), ("byte_count", c_uint64), ("calls", c_uint64),
                ("module", c_uint32), ("state", c_uint32), ("counted", c_uint32),
                ("reserved", c_uint32)]


@dataclasses.dataclass(frozen=True)
class Module:
    """An executable or library of the run."""
    index: int
    file: str                # the last component of path
    path: str
    id: bytes                # build-id or what stands for it
    load_base: Optional[int]  # address of RVA 0; None if unknown
    function_count: int
    flags: int               # HOTFN_MODULE_*
    note: str                # why it could not be hooked, or ""


@dataclasses.dataclass(frozen=True)
class Function(Named):
    """A function of a record.  calls is None where it was not counted (reason says why)."""
    module: str              # the module's file name
    file: str                # and its path
    rva: int                 # bytes from the module's lowest load address
    size: int
    name: str                # the linker's (mangled) name
    names: Tuple[str, ...]   # all names of this address, the best one first
    calls: Optional[int]
    state: str               # hooked, refused, fragment, excluded, waiting
    strategy: Optional[str]
    reason: Optional[str]
    reason_text: Optional[str]
    offset: Optional[int]    # where the reason stands, bytes from the entry


@dataclasses.dataclass(frozen=True)
class Thread:
    """A row of counters: a thread, or several that followed each other."""
    tid: int
    pid: int
    thread_count: int
    start_ns: int            # CLOCK_REALTIME of its first counted call
    calls: int
    name: str
    busy_ns: int             # in timed functions; 0: not timed


@dataclasses.dataclass(frozen=True)
class RecordInfo:
    """What the run was.  Times are CLOCK_REALTIME in ns; None where there is none."""
    path: str
    state: str               # live, finished, killed, broken, merged
    pid: int
    exit_code: int           # 0..255, -signal if killed by one
    command: str
    directory: str
    tool: str
    uuid: bytes
    start_ns: int
    end_ns: Optional[int]
    window_start_ns: Optional[int]
    window_end_ns: Optional[int]
    module_count: int
    function_count: int
    thread_count: int
    threads_lost: int
    repaired: Optional[str]  # what hotfn repair lost of it ("nothing"); None: it was not repaired


def module_of(raw: s.RecordModule, index: int) -> Module:
    return Module(index=index, file=decode(raw.file), path=decode(raw.path),
                  id=bytes(raw.id)[:raw.id_bytes], load_base=raw.load_base or None,
                  function_count=raw.function_count, flags=raw.flags, note=decode(raw.note))


def function_of(raw: s.RecordFunction, module: Module) -> Function:
    return Function(module=module.file, file=module.path,
                    calls=raw.calls if raw.counted else None,
                    state=STATES.get(raw.state, str(raw.state)), **fields_of(raw))


def _keep_open(_handle: c_void_p) -> None:
    pass


class Record:
    """A record (.hfr): live, finished, killed or broken.  Close it, or use it in `with`."""

    def __init__(self, handle: int, owned: bool = True) -> None:
        """Wrap a hotfn_record, and close it in the end if it is owned; use hotfn.open(path)."""
        self._handle = c_void_p(handle)
        self._finalizer = weakref.finalize(self, lib.hotfn_record_close if owned else _keep_open, c_void_p(handle))
        self._functions: Optional[Tuple[Function, ...]] = None
        self._counters: Any = None

    def close(self) -> None:
        """Release it.  What was taken out of it stays good.  A second time does nothing."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<hotfn.Record, closed>"
        info = self.info
        return f"<hotfn.Record of {info.command!r}, {info.state}, {info.function_count} functions>"

    @property
    def _open_handle(self) -> c_void_p:
        if self.closed:
            raise ValueError("the record is closed")
        return self._handle

    def _raw_info(self) -> s.RecordInfo:
        raw = s.RecordInfo()
        check(lib.hotfn_record_get_info(self._open_handle, raw))
        return raw

    @property
    def info(self) -> RecordInfo:
        raw = self._raw_info()
        return RecordInfo(
            path=decode(raw.path), state=decode(lib.hotfn_record_get_state_name(raw.state)), pid=raw.pid,
            exit_code=raw.exit_code, command=decode(raw.command), directory=decode(raw.directory),
            tool=decode(raw.tool), uuid=bytes(raw.uuid), start_ns=raw.start_ns,
            end_ns=raw.end_ns or None, window_start_ns=raw.window_start_ns or None,
            window_end_ns=raw.window_end_ns or None, module_count=raw.module_count,
            function_count=raw.function_count, thread_count=raw.thread_count,
            threads_lost=raw.threads_lost, repaired=decode(raw.repaired) or None)

    def _module(self, index: int) -> Module:
        raw = s.RecordModule()
        check(lib.hotfn_record_get_module(self._open_handle, index, raw))
        return module_of(raw, index)

    @property
    def modules(self) -> Tuple[Module, ...]:
        return tuple(self._module(index) for index in range(self._raw_info().module_count))

    @property
    def threads(self) -> Tuple[Thread, ...]:
        threads = []
        for index in range(self._raw_info().thread_count):
            raw = s.RecordThread()
            check(lib.hotfn_record_get_thread(self._open_handle, index, raw))
            threads.append(Thread(tid=raw.tid, pid=raw.pid, thread_count=raw.thread_count,
                                  start_ns=raw.start_ns, calls=raw.calls, name=decode(raw.name),
                                  busy_ns=raw.busy_ns))
        return tuple(threads)

    def _raw_functions(self) -> Iterator[s.RecordFunction]:
        """Each function in one struct that is filled anew; its strings are views."""
        raw = s.RecordFunction()
        for index in range(self._raw_info().function_count):
            check(lib.hotfn_record_get_function(self._open_handle, index, raw))
            yield raw

    @property
    def functions(self) -> Tuple[Function, ...]:
        """Every function of every module, called or not, by module and rva."""
        if self._functions is None:
            modules = self.modules
            self._functions = tuple(function_of(raw, modules[raw.module])
                                    for raw in self._raw_functions())
        return self._functions

    @property
    def time(self) -> Optional[_times.TimeInfo]:
        """What the run's timing kept; None if it counted only."""
        return _times.info_of(self._open_handle)

    @property
    def times_note(self) -> Optional[str]:
        """Why the record's times are not read (a sample of an older hotfn), if it has some; else None."""
        return _times.note_of(self._open_handle)

    @property
    def times(self) -> Tuple[_times.Times, ...]:
        """Each function's times, in the order of `functions`."""
        memory = _times.keeps_memory(self._open_handle)
        return tuple(_times.times_of(self._open_handle, index, memory)
                     for index in range(self._raw_info().function_count))

    @property
    def edges(self) -> Tuple[_times.Edge, ...]:
        """Who called whom; empty without a call tree."""
        return tuple(_times.edges_of(self._open_handle))

    @property
    def nodes(self) -> Tuple[_times.Node, ...]:
        """The call tree, each place before what it called; empty where none was kept."""
        return tuple(_times.nodes_of(self._open_handle))

    @property
    def budget(self) -> Optional[_budgets.Budget]:
        """What was done to keep the budget of a run with --budget; None if it had none."""
        return _budgets.budget_of(self._open_handle)

    def is_lower_bound(self, function: int) -> bool:
        """Is the count of the function at that place of `functions` one, as it was unhooked for a while?"""
        return _budgets.is_lower_bound(self._open_handle, function)

    @property
    def slow_calls(self) -> Tuple[_times.SlowCall, ...]:
        """The calls that took too long, of a run with --slower-than."""
        return tuple(_times.slow_calls_of(self._open_handle))

    def hot(self, n: int = 20, by: str = "calls") -> List[Function]:
        """The n hottest functions, by calls, total or self time, or by alloc: the bytes that they allocated
        by themselves; 0 means all that were called."""
        if by != "calls":
            return self._hot_by_time(n, by)
        count = self._raw_info().function_count
        order = (c_uint32 * max(count, 1))()
        check(lib.hotfn_record_sort(self._open_handle, ORDERS.index("calls"), order))
        functions = self.functions
        called = [functions[index] for index in order[:count] if functions[index].calls]
        return called[:n] if n else called

    def _hot_by_time(self, n: int, by: str) -> List[Function]:
        if by not in ("total", "self", "alloc"):
            raise ValueError(f"hot by calls, total, self or alloc, not {by!r}")
        if by == "alloc" and not _times.keeps_memory(self._open_handle):
            raise ValueError("the run did not keep who allocated what (--with alloc)")
        timed = [(times.self_memory.allocated_bytes if by == "alloc" and times.self_memory
                  else getattr(times, by + "_ns"), index)
                 for index, times in enumerate(self.times) if times.total_ns is not None]
        functions = self.functions
        found = [functions[index] for _, index in sorted(timed, reverse=True)]
        return found[:n] if n else found

    @property
    def total_calls(self) -> int:
        return sum(function.calls or 0 for function in self.functions)

    @property
    def counters(self) -> Any:
        """A ctypes array of Counter, in the order of `functions`; made once."""
        if self._counters is None:
            counters = (Counter * self._raw_info().function_count)()
            for counter, raw in zip(counters, self._raw_functions()):
                for name in ("rva", "byte_count", "calls", "module", "state", "counted"):
                    setattr(counter, name, getattr(raw, name))
            self._counters = counters
        return self._counters

    def to_numpy(self) -> Any:
        """`counters` as a structured numpy array over the same memory (numpy is needed here only)."""
        import numpy  # type: ignore[import]
        return numpy.asarray(self.counters)

    def to_dicts(self) -> List[Dict[str, Any]]:
        """Every function as a dict, for a table of pandas or for json."""
        return [function.to_dict() for function in self.functions]

    def choose_process(self, pid: Optional[int]) -> None:
        """Count only what this process did from now on; None: all processes of the record."""
        check(lib.hotfn_record_choose_process(self._open_handle, pid or 0))
        self._functions = self._counters = None

    def choose_thread(self, tid: Optional[int]) -> None:
        """Count only what this thread did from now on; None: all threads."""
        check(lib.hotfn_record_choose_thread(self._open_handle, tid or 0))
        self._functions = self._counters = None

    def render(self, format: str, limit: int = 0, by: str = "default") -> bytes:
        """The record in a format of formats(), as bytes; limit 0 lists everything.  by is what comes first
        and what stacks weigh: calls, self, total, max or alloc."""
        return render(self._open_handle, format, limit, by)

    def export(self, path: PathLike, format: Optional[str] = None, limit: int = 0,
               by: str = "default") -> None:
        """Write it to a file; without a format the file's extension decides."""
        data = self.render(format or format_of(path), limit, by)
        with builtins.open(path, "wb") as out:
            out.write(data)


@dataclasses.dataclass(frozen=True)
class Format:
    """A format that records can be written in."""
    name: str
    extension: str
    about: str


def formats() -> Tuple[Format, ...]:
    """What Record.export can write."""
    found = []
    for index in range(lib.hotfn_exporter_get_count()):
        raw = s.ExporterInfo()
        check(lib.hotfn_exporter_get(index, raw))
        found.append(Format(decode(raw.name), decode(raw.extension), decode(raw.about)))
    return tuple(found)


_registered: List[Any] = []  # the library keeps exporters until the process ends


def register_exporter(name: str, function: Callable[[Record, Callable[[bytes], None]], None],
                      extension: Optional[str] = None, about: str = "", needs: str = "flat") -> None:
    """Add a format: function(record, write) calls write(data) for each part of the output.

    needs: "flat", "times", "tree" or "events"; a record without it is refused.  An exception of the
    function fails the export and its text is the error; nothing is written to the file then.
    """
    def export(_user: Any, handle: int, _options: Any, write: Any, write_user: Any, error: Any) -> int:
        record = Record(handle, owned=False)

        def put(data: bytes) -> None:
            if write(write_user, ctypes.cast(ctypes.c_char_p(data), c_void_p), len(data)) != 0:
                raise OSError("the output could not be written whole")

        try:
            function(record, put)
        except Exception as problem:
            error.contents.text = f"{type(problem).__name__}: {problem}".encode()[:511]
            return -8  # HOTFN_E_STATE
        finally:
            record.close()
        return 0

    exporter = s.Exporter(abi_version=EXPORTER_ABI, needs=NEEDS[needs], name=name.encode(),
                          extension=(extension or "." + name).encode(), about=about.encode(),
                          write=s.ExporterWriteFn(export))
    error = s.Error()
    check(lib.hotfn_exporter_register(exporter, error), error)
    _registered.append(exporter)


def format_of(path: PathLike) -> str:
    """The format that belongs to a file's extension."""
    extension = os.path.splitext(os.fsdecode(path))[1]
    known = {format.extension: format.name for format in formats()}
    if extension not in known:
        raise ValueError(f"no format has the extension {extension!r}; give one of "
                         + ", ".join(sorted(known.values())))
    return known[extension]


def render(handle: c_void_p, format: str, limit: int, by: str = "default") -> bytes:
    if by not in ORDERS:
        raise ValueError(f"no order {by!r}; there are: {', '.join(ORDERS)}")
    chunks: List[bytes] = []

    def take(_user: Any, data: int, byte_count: int) -> int:
        chunks.append(ctypes.string_at(data, byte_count))
        return 0

    error = s.Error()
    write = s.WriteFn(take)
    check(lib.hotfn_export(handle, format.encode(), s.ExportOptions(limit=limit, by=ORDERS.index(by)), write, None,
                           env(), error), error)
    return b"".join(chunks)


def open(path: PathLike) -> Record:
    """Read the record at path: of a live, a finished or a killed run alike."""
    out, error = c_void_p(), s.Error()
    check(lib.hotfn_record_open(ctypes.byref(out), path_bytes(path), env(), error), error)
    assert out.value
    return Record(out.value)


def repair(source: PathLike, target: PathLike) -> str:
    """Make a clean record out of what can be read at source; the answer says what was lost."""
    lost, error = ctypes.create_string_buffer(1024), s.Error()
    check(lib.hotfn_record_repair(path_bytes(source), path_bytes(target), lost, len(lost), env(),
                                  error), error)
    return decode(lost.value)
