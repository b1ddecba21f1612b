# SPDX-License-Identifier: MIT
"""Records: the functions of a run with their calls and times, and the formats that they are
exported in."""
from __future__ import annotations

import builtins
import ctypes
import dataclasses
import os
import weakref
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _structs as s
from . import budgets as _budgets
from . import columns as _columns
from . import times as _times
from ._errors import NotFoundError, UnsupportedError, check, decode
from ._functions import Named, read_fields
from ._native import lib
from ._text import PathLike, demangle, encode, env, path_bytes
from .frames import Frames

STATES = {1: "hooked", 2: "refused", 3: "fragment", 4: "excluded", 5: "waiting"}
EXPORTER_ABI = 1                                                    # HOTFN_EXPORTER_ABI
NEEDS = {"flat": 1, "times": 2, "tree": 4, "events": 8}             # HOTFN_NEEDS_*
KEYS = ("default", "calls", "self", "total", "max", "alloc", "name")  # HOTFN_BY_*
UNSUPPORTED, NOT_FOUND = -5, -6                                     # HOTFN_E_*
NO_FUNCTION = 0xFFFFFFFF                                            # HOTFN_NO_FUNCTION


class Counter(ctypes.Structure):
    """The count of a function; an element of Record.counters."""
    _fields_ = [("rva", c_uint64), ("byte_count", c_uint64), ("calls", c_uint64),
                ("module", c_uint32), ("state", c_uint32), ("counted", c_uint32),
                ("reserved", c_uint32)]


@dataclasses.dataclass(frozen=True)
class Module:
    """An executable or library of the run."""
    index: int
    file: str                # last component of path
    path: str
    id: bytes                # build-id, or another identifier of the build
    load_base: Optional[int]  # address of RVA 0; None if unknown
    function_count: int
    flags: int               # HOTFN_MODULE_*
    note: str                # why it could not be hooked, or ""


@dataclasses.dataclass(frozen=True)
class Function(Named):
    """A function of a record.  calls is None if it was not counted; reason is then the reason."""
    module: str              # file name of the module
    file: str                # path of the module
    rva: int                 # bytes from the module's lowest load address
    size: int
    name: str                # the linker's (mangled) name
    names: Tuple[str, ...]   # all names of this address, the best one first
    calls: Optional[int]
    state: str               # hooked, refused, fragment, excluded, waiting
    strategy: Optional[str]
    reason: Optional[str]
    reason_text: Optional[str]
    offset: Optional[int]    # of the reason, in bytes from the entry
    index: Optional[int] = None  # its index in Record.functions; None for a function of a Frame
    _opened: Optional["_OpenRecord"] = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def display(self) -> str:
        """The readable name; "module+0x1234" for a function without a name."""
        return demangle(self.name) if self.name else f"{self.module}+{self.rva:#x}"

    @property
    def callers(self) -> Tuple["Caller", ...]:
        """The functions that call this one, most calls first; empty if the run recorded no callers
        (it was not timed, or flat).  The record must still be open."""
        if self._opened is None or self.index is None:
            return ()
        handle, raw, callers = self._opened.handle, s.RecordCaller(), []
        for position in range(lib.hotfn_record_get_caller_count(handle, self.index)):
            check(lib.hotfn_record_get_caller(handle, self.index, position, raw))
            caller = None if raw.function == NO_FUNCTION else self._opened.read_function(raw.function)
            callers.append(Caller(function=caller, calls=raw.calls))
        return tuple(callers)


@dataclasses.dataclass(frozen=True)
class Caller:
    """A caller of a function."""
    function: Optional[Function]  # None: code that is not timed
    calls: int               # calls from it; an estimate if calls were sampled


@dataclasses.dataclass(frozen=True)
class Thread:
    """A row of counters: a thread, or several threads that used the row one after the other."""
    tid: int
    pid: int
    thread_count: int
    start_ns: int            # CLOCK_REALTIME of its first counted call, in ns
    calls: int
    name: str
    busy_ns: int             # time in timed functions; 0 if the run was not timed
    cpu_ns: int | None       # processor time of all threads of the row; None: unknown
    waited_ns: int = 0       # waited in timed functions, in addition to busy_ns; 0 if the clock does not show it


@dataclasses.dataclass(frozen=True)
class Child:
    """A program that children ran without being counted."""
    path: str
    processes: int           # number of processes that ran it
    cpu_ns: int              # their CPU time


@dataclasses.dataclass(frozen=True)
class RecordInfo:
    """The run as a whole.  Times are CLOCK_REALTIME in ns."""
    path: str
    state: str               # live, finished, killed, broken, merged
    pid: int
    exit_code: int           # 0 to 255; -N if signal N killed the program; 0 while live
    command: str
    directory: str
    tool: str
    uuid: bytes
    start_ns: int
    end_ns: Optional[int]             # None while live
    window_start_ns: Optional[int]    # when counting began; None without --after and --for
    window_end_ns: Optional[int]      # when counting ended; None without --after and --for
    module_count: int
    function_count: int
    thread_count: int
    threads_lost: int
    overwritten_count: int            # functions whose hooks other code overwrote: not counted
    unverified_count: int             # processes that still run, or whose hooks were not checked at their end
    checked_ns: Optional[int]         # when the hooks were last compared with memory
    repaired: Optional[str]  # what a repair could not save, or "nothing"; None: not repaired
    script: Optional[str] = None      # the file whose #! interpreter was counted
    became: Optional[str] = None      # the program that exec started in its place and that was not counted
    cpu_ns: Optional[int] = None      # CPU time of the program's own process
    preparation_ns: Optional[int] = None  # part of the run in which the program waited for its scan and hooks
    children: Tuple[Child, ...] = ()  # programs of children that were not counted, most CPU time first


def convert_module(raw: s.RecordModule, index: int) -> Module:
    return Module(index=index, file=decode(raw.file), path=decode(raw.path),
                  id=bytes(raw.id)[:raw.id_bytes], load_base=raw.load_base or None,
                  function_count=raw.function_count, flags=raw.flags, note=decode(raw.note))


def convert_function(raw: s.RecordFunction, module: Module, **fields: Any) -> Function:
    return Function(module=module.file, file=module.path,
                    calls=raw.calls if raw.counted else None,
                    state=STATES.get(raw.state, str(raw.state)), **read_fields(raw), **fields)


def _keep_open(_handle: c_void_p) -> None:
    pass


class _OpenRecord:
    """A hotfn_record that is closed once, by close() or when the Record and all its functions are
    gone."""

    def __init__(self, handle: int, owned: bool) -> None:
        self._handle = c_void_p(handle)
        self._finalizer = weakref.finalize(self, lib.hotfn_record_close if owned else _keep_open, c_void_p(handle))

    def __reduce__(self) -> Any:
        return type(None), ()  # a copied or pickled Function does not refer to the record

    def close(self) -> None:
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def handle(self) -> c_void_p:
        if self.closed:
            raise ValueError("the record is closed")
        return self._handle

    def read_module(self, index: int) -> Module:
        raw = s.RecordModule()
        check(lib.hotfn_record_get_module(self.handle, index, raw))
        return convert_module(raw, index)

    def read_function(self, index: int) -> Function:
        raw = s.RecordFunction()
        check(lib.hotfn_record_get_function(self.handle, index, raw))
        return convert_function(raw, self.read_module(raw.module), index=index, _opened=self)


class Record(Frames):
    """A record (.hfr): live, finished, killed or broken.  Close it, or use it in `with`."""

    def __init__(self, handle: int, owned: bool = True) -> None:
        """Wrap a hotfn_record, which close() frees if it is owned; see hotfn.open()."""
        self._opened = _OpenRecord(handle, owned)
        self._functions: Optional[Tuple[Function, ...]] = None
        self._counters: Any = None

    def close(self) -> None:
        """Free the record.  Functions, times and other values stay valid, except Function.callers.
        Closing it again does nothing."""
        self._opened.close()

    @property
    def closed(self) -> bool:
        return self._opened.closed

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
        return self._opened.handle

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
            threads_lost=raw.threads_lost, overwritten_count=raw.overwritten_count,
            unverified_count=raw.unverified_count, checked_ns=raw.checked_ns or None,
            repaired=decode(raw.repaired) or None, script=decode(raw.script) or None,
            became=decode(raw.became) or None, cpu_ns=raw.cpu_ns or None,
            preparation_ns=raw.preparation_ns or None,
            children=tuple(self._read_child(index) for index in range(raw.child_count)))

    def _read_child(self, index: int) -> Child:
        raw = s.RecordChild()
        check(lib.hotfn_record_get_child(self._open_handle, index, raw))
        return Child(path=decode(raw.path), processes=raw.process_count, cpu_ns=raw.cpu_ns)

    @property
    def modules(self) -> Tuple[Module, ...]:
        return tuple(self._opened.read_module(index) for index in range(self._raw_info().module_count))

    @property
    def threads(self) -> Tuple[Thread, ...]:
        threads = []
        for index in range(self._raw_info().thread_count):
            raw = s.RecordThread()
            check(lib.hotfn_record_get_thread(self._open_handle, index, raw))
            threads.append(Thread(tid=raw.tid, pid=raw.pid, thread_count=raw.thread_count,
                                  start_ns=raw.start_ns, calls=raw.calls, name=decode(raw.name),
                                  busy_ns=raw.busy_ns, cpu_ns=raw.cpu_ns or None,
                                  waited_ns=raw.waited_ns))
        return tuple(threads)

    def _count_functions(self) -> int:
        return int(self._raw_info().function_count)

    def _raw_functions(self) -> Any:
        """The functions as a ctypes array; its strings are views."""
        return _columns.read_block(self._open_handle, _columns.FUNCTIONS, s.RecordFunction, self._count_functions())

    @property
    def functions(self) -> Tuple[Function, ...]:
        """All functions of all modules, also those that were not called, by module and rva."""
        if self._functions is None:
            modules = self.modules
            self._functions = tuple(
                convert_function(raw, modules[raw.module], index=index, _opened=self._opened)
                for index, raw in enumerate(self._raw_functions()))
        return self._functions

    @property
    def time(self) -> Optional[_times.TimeInfo]:
        """How the run was timed; None if calls were only counted."""
        return _times.read_info(self._open_handle)

    @property
    def times_note(self) -> Optional[str]:
        """Why the times of the record cannot be used (an older hotfn sampled them), or None."""
        return _times.read_note(self._open_handle)

    @property
    def times(self) -> Tuple[_times.Times, ...]:
        """The times of all functions, in the order of `functions`."""
        memory = _times.has_memory(self._open_handle)
        return tuple(_times.read_times(self._open_handle, index, memory)
                     for index in range(self._raw_info().function_count))

    @property
    def edges(self) -> Tuple[_times.Edge, ...]:
        """The calls from each caller to each callee; empty without a call tree."""
        return tuple(_times.read_edges(self._open_handle))

    @property
    def nodes(self) -> Tuple[_times.Node, ...]:
        """The call tree, parents before children; empty if the run recorded none."""
        return tuple(_times.read_nodes(self._open_handle))

    @property
    def budget(self) -> Optional[_budgets.Budget]:
        """The budget of the run and the changes made to keep it; None if it had no budget."""
        return _budgets.read_budget(self._open_handle)

    def is_lower_bound(self, function: int) -> bool:
        """Whether the function at this index was unhooked for a while, so that its count is a lower
        bound."""
        return _budgets.is_lower_bound(self._open_handle, function)

    @property
    def slow_calls(self) -> Tuple[_times.SlowCall, ...]:
        """The calls that took longer than the limit of --slower-than."""
        return tuple(_times.read_slow_calls(self._open_handle))

    def find(self, name: str) -> Function:
        """The function with this name: the linker's name, or the readable name with or without its
        parameters.  NotFoundError if there is none, OptionError if the name is ambiguous."""
        index, error = c_uint32(), s.Error()
        check(lib.hotfn_record_find_function(self._open_handle, encode(name), ctypes.byref(index), error), error)
        return self._opened.read_function(index.value)

    def find_rva(self, module: Union[str, int, Module], rva: int) -> Function:
        """The function whose code contains rva of a module, which is given as file name, path,
        index or Module.  NotFoundError if there is no such module or function."""
        index = c_uint32()
        status = lib.hotfn_record_find_function_at(self._open_handle, self._find_module(module), rva,
                                                   ctypes.byref(index))
        if status == NOT_FOUND:
            raise NotFoundError(NOT_FOUND, f"no function of the module contains {rva:#x}")
        check(status)
        return self._opened.read_function(index.value)

    def _find_module(self, module: Union[str, int, Module]) -> int:
        if isinstance(module, Module):
            return module.index
        if isinstance(module, int):
            return module
        for candidate in self.modules:
            if module in (candidate.path, candidate.file):
                return candidate.index
        raise NotFoundError(NOT_FOUND, f"the record has no module {module!r}")

    def sort(self, key: str = "default") -> List[Function]:
        """All functions, sorted by a key of KEYS: calls, self or total time, max (the longest
        call), alloc (bytes that the function itself allocated) or name; by default self time, or
        calls in a run that was not timed.  Functions that were not called come last.
        UnsupportedError if the run did not record the key."""
        functions = self.functions
        return [functions[index] for index in self._sort_indices(key)]

    def _sort_indices(self, key: str) -> List[int]:
        by, count = key_number(key), self._count_functions()
        order = (c_uint32 * max(count, 1))()
        status = lib.hotfn_record_sort(self._open_handle, by, order, count)
        if status == UNSUPPORTED:
            raise UnsupportedError(status, f"the run did not record the key {key!r} (hotfn run --mode time"
                                   + (" --with alloc)" if key == "alloc" else ")"))
        check(status)
        return order[:count]

    def hot(self, n: int = 20, by: str = "default") -> List[Function]:
        """The first n functions in the order of sort(by) that were called; n = 0: all of them."""
        called: List[Function] = []
        for index in self._sort_indices(by):
            function = self._opened.read_function(index)
            if not function.calls or (n and len(called) == n):
                break
            called.append(function)
        return called

    def _count_called(self) -> int:
        """The number of functions that were called; they come first in every order."""
        order = self._sort_indices("calls")
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self._opened.read_function(order[middle]).calls:
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def total_calls(self) -> int:
        return sum(raw.calls for raw in self._raw_functions())

    @property
    def counters(self) -> Any:
        """A ctypes array of Counter, in the order of `functions`; created on first use."""
        if self._counters is None:
            functions = self._raw_functions()
            counters = (Counter * len(functions))()
            for counter, raw in zip(counters, functions):
                for name in ("rva", "byte_count", "calls", "module", "state", "counted"):
                    setattr(counter, name, getattr(raw, name))
            self._counters = counters
        return self._counters

    def to_numpy(self) -> Any:
        """`counters` as a structured numpy array that shares its memory.  Needs numpy."""
        import numpy  # type: ignore[import]
        return numpy.asarray(self.counters)

    def to_dicts(self) -> List[Dict[str, Any]]:
        """All functions as dicts, for pandas or json."""
        return [function.to_dict() for function in self.functions]

    def choose_process(self, pid: Optional[int]) -> None:
        """From now on show only the calls of this process; None: of all processes of the record."""
        check(lib.hotfn_record_choose_process(self._open_handle, pid or 0))
        self._functions = self._counters = None

    def choose_thread(self, tid: Optional[int]) -> None:
        """From now on show only the calls of this thread; None: of all threads."""
        check(lib.hotfn_record_choose_thread(self._open_handle, tid or 0))
        self._functions = self._counters = None

    def render(self, format: str, limit: int = 0, by: str = "default") -> bytes:
        """The record in a format of formats(), as bytes.  limit is the maximum number of functions,
        0 for all; by is the sort key, and the weight of stacks: calls, self, total, max or
        alloc."""
        return render(self._open_handle, format, limit, by)

    def export(self, path: PathLike, format: Optional[str] = None, limit: int = 0,
               by: str = "default") -> None:
        """Write the record to a file; by default the extension of the file selects the format."""
        data = self.render(format or find_format(path), limit, by)
        with builtins.open(path, "wb") as out:
            out.write(data)


@dataclasses.dataclass(frozen=True)
class Format:
    """A format that records can be exported in."""
    name: str
    extension: str
    about: str


def formats() -> Tuple[Format, ...]:
    """The formats of Record.export and Record.render, registered ones included."""
    found = []
    for index in range(lib.hotfn_exporter_get_count()):
        raw = s.ExporterInfo()
        check(lib.hotfn_exporter_get(index, raw))
        found.append(Format(decode(raw.name), decode(raw.extension), decode(raw.about)))
    return tuple(found)


_registered: List[Any] = []  # the library uses exporters until the process ends


def register_exporter(name: str, function: Callable[[Record, Callable[[bytes], None]], None],
                      extension: Optional[str] = None, about: str = "", needs: str = "flat") -> None:
    """Add a format: function(record, write) calls write(data) for each part of the output.

    needs: "flat", "times", "tree" or "events"; records without this data are refused.  If the
    function raises an exception, the export fails with its text, and Record.export writes no file.
    """
    def export(_user: Any, handle: int, _options: Any, write: Any, write_user: Any, error: Any) -> int:
        record = Record(handle, owned=False)

        def write_bytes(data: bytes) -> None:
            if write(write_user, ctypes.cast(ctypes.c_char_p(data), c_void_p), len(data)) != 0:
                raise OSError("the output could not be written")

        try:
            function(record, write_bytes)
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


def find_format(path: PathLike) -> str:
    """The name of the format that has the extension of path."""
    extension = os.path.splitext(os.fsdecode(path))[1]
    known = {format.extension: format.name for format in formats()}
    if extension not in known:
        raise ValueError(f"no format has the extension {extension!r}; choose a format: "
                         + ", ".join(sorted(known.values())))
    return known[extension]


def key_number(key: str) -> int:
    if key not in KEYS:
        raise ValueError(f"{key!r} is not a sort key; choose one of {', '.join(KEYS)}")
    return KEYS.index(key)


def render(handle: c_void_p, format: str, limit: int, by: str = "default") -> bytes:
    options = s.ExportOptions(limit=limit, by=key_number(by))
    chunks: List[bytes] = []

    def append_chunk(_user: Any, data: int, byte_count: int) -> int:
        chunks.append(ctypes.string_at(data, byte_count))
        return 0

    error = s.Error()
    write = s.WriteFn(append_chunk)
    check(lib.hotfn_export(handle, format.encode(), options, write, None, env(), error), error)
    return b"".join(chunks)


def open(path: PathLike) -> Record:
    """Open the record at path; the program may still run, or have ended or been killed."""
    out, error = c_void_p(), s.Error()
    check(lib.hotfn_record_open(ctypes.byref(out), path_bytes(path), env(), error), error)
    assert out.value
    return Record(out.value)


def repair(source: PathLike, target: PathLike) -> str:
    """Write what can be read of a damaged record at source as a finished record at target; return
    what was lost."""
    lost, error = ctypes.create_string_buffer(1024), s.Error()
    check(lib.hotfn_record_repair(path_bytes(source), path_bytes(target), lost, len(lost), env(),
                                  error), error)
    return decode(lost.value)
