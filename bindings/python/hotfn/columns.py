# SPDX-License-Identifier: MIT
"""Records as columns for numpy and pandas: arrays that the library fills in one call, no object for each
element."""
from __future__ import annotations

import ctypes
import sys
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from . import _structs as s
from ._errors import check
from ._native import lib
from .times import shows_waiting

FUNCTIONS, TIMINGS, EDGES, NODES = range(4)             # HOTFN_ARRAY_*
LINKER, READABLE = range(2)                             # HOTFN_NAMES_*
TIMING_NAMES = ("count-only", "full", "sampled")        # HOTFN_TIMING_*
STATES = ("", "hooked", "refused", "fragment", "excluded", "waiting")  # HOTFN_STATE_*
BELOW = {"p50_ns": 1, "p90_ns": 2, "p99_ns": 4}         # bits of hotfn_record_timing.below
NAMES_BYTES = 1 << 20
PIECE = 4096             # elements that are read in one call
NO_INDEX = 0xFFFFFFFF                                   # HOTFN_NO_FUNCTION, HOTFN_NO_NODE
UNKNOWN = 0xFFFFFFFFFFFFFFFF                            # HOTFN_ERROR_UNKNOWN
FIELDS = ("module", "state", "rva", "byte_count", "calls", "counted")
TIMES = ("total_ns", "self_ns", "total_error_ns", "self_error_ns", "max_ns")
WAITED = ("waited_ns", "total_waited_ns")


def report_missing(what: str, package: str) -> ImportError:
    """The error names the Python, because a package is often installed for another one."""
    return ImportError(f"{what} {package}, which {sys.executable or 'this Python'} does not have (Debian's "
                       f"/usr/bin/python3: python3-{package}; otherwise: pip install {package})")


def load_numpy() -> Any:
    """The module; ImportError with a remedy if it is missing."""
    try:
        import numpy  # type: ignore[import]
    except ImportError:
        raise report_missing("columns and graphs of records need", "numpy") from None
    return numpy


def read_block(handle: c_void_p, kind: int, struct: Any, count: int) -> Any:
    """The elements of a kind as a ctypes array."""
    block = (struct * count)()
    check(lib.hotfn_record_get_array(handle, kind, 0, count, ctypes.cast(block, c_void_p), ctypes.sizeof(struct)))
    return block


def view_block(block: Any) -> Any:
    """The numbers of an array of structs as a structured numpy array that shares its memory."""
    numpy = load_numpy()
    struct = block._type_
    kinds = {c_uint32: "u4", c_uint64: "u8"}
    fields = [(field[0], kinds[field[1]]) for field in struct._fields_ if field[1] in kinds]
    return numpy.frombuffer(block, dtype=numpy.dtype({
        "names": [name for name, _ in fields], "formats": [kind for _, kind in fields],
        "offsets": [getattr(struct, name).offset for name, _ in fields], "itemsize": ctypes.sizeof(struct)}),
        count=len(block))


def read_pieces(handle: c_void_p, kind: int, struct: Any, count: int) -> Iterator[Tuple[slice, Any]]:
    """(place, numbers) of all elements of a kind, in pieces that stay in the processor's cache; numbers is a
    structured numpy array whose memory the next piece reuses."""
    block = (struct * min(count, PIECE))()
    piece = view_block(block)
    for first in range(0, count, PIECE):
        length = min(PIECE, count - first)
        check(lib.hotfn_record_get_array(handle, kind, first, length, ctypes.addressof(block), ctypes.sizeof(struct)))
        yield slice(first, first + length), piece[:length]


def read_fields(handle: c_void_p, kind: int, struct: Any, count: int, names: Sequence[str]) -> Dict[str, Any]:
    """{field: numpy array} of all elements of a kind."""
    numpy = load_numpy()
    kinds = view_block((struct * 0)()).dtype
    columns = {name: numpy.empty(count, dtype=kinds[name]) for name in names}
    for place, piece in read_pieces(handle, kind, struct, count):
        for name in names:
            columns[name][place] = piece[name]
    return columns


class NameReader:
    """Reads names of functions into one buffer, which grows for a linker's name that is longer."""

    def __init__(self, handle: c_void_p):
        self.handle, self.text = handle, ctypes.create_string_buffer(NAMES_BYTES)

    def read(self, kind: int, first: int, count: int) -> bytes:
        """The names of functions [first, first + count), each followed by NUL."""
        pieces, end = [], first + count
        while first < end:
            written, used = c_uint32(end - first), c_uint64(len(self.text))
            status = lib.hotfn_record_get_names(self.handle, kind, first, ctypes.byref(written), self.text,
                                                ctypes.byref(used))
            if status == -10:  # HOTFN_E_LIMIT
                self.text = ctypes.create_string_buffer(2 * len(self.text))
                continue
            check(status)
            pieces.append(ctypes.string_at(self.text, used.value))
            first += written.value
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_names(handle: c_void_p, kind: int, count: int) -> bytes:
    """The names of all functions, each followed by NUL."""
    return NameReader(handle).read(kind, 0, count)


def split_names(names: bytes) -> List[str]:
    """The inverse of joining names, each followed by NUL."""
    return names.decode("utf-8", "surrogateescape").split("\0")[:-1]


def make_objects(values: Sequence[Any]) -> Any:
    """A numpy array of Python objects."""
    numpy = load_numpy()
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def read_symbols_and_names(handle: c_void_p, count: int) -> Tuple[Any, Any]:
    """The linker's and the readable names of all functions, as numpy arrays: one array if they are equal.  They are
    read in pieces that stay in the processor's cache."""
    numpy = load_numpy()
    reader, symbols = NameReader(handle), numpy.empty(count, dtype=object)
    names = symbols
    for first in range(0, count, PIECE):
        length = min(PIECE, count - first)
        place = slice(first, first + length)
        linker, readable = reader.read(LINKER, first, length), reader.read(READABLE, first, length)
        symbols[place] = split_names(linker)
        if linker != readable and names is symbols:
            names = symbols.copy()
        if names is not symbols:
            names[place] = symbols[place] if linker == readable else split_names(readable)
    return symbols, names


def read_display_names(handle: c_void_p, count: int) -> Any:
    """The readable names of all functions, as a numpy array."""
    return make_objects(split_names(read_names(handle, READABLE, count)))


def choose_texts(texts: Sequence[str], indices: Any) -> Any:
    """texts[index] for each index; equal texts are one object."""
    return make_objects(texts).take(indices)


def make_known(values: Any, unknown: Any) -> Any:
    """Numbers as floats; NaN where `unknown` is true."""
    numpy = load_numpy()
    known = values.astype(float)
    known[unknown] = numpy.nan
    return known


def make_time_columns(count: int, names: Sequence[str]) -> Dict[str, Any]:
    """Times are rows of one array: for a large one numpy requests large pages, and the first access to a small page
    costs more than the numbers in it."""
    numpy = load_numpy()
    columns: Dict[str, Any] = {"timing": numpy.empty(count, dtype="u4"), "timed_calls": numpy.empty(count, dtype="u8")}
    columns.update(zip(names, numpy.empty((len(names), count))))
    return columns


def fill_times(columns: Dict[str, Any], place: slice, raw: Any) -> None:
    """Store RecordTiming or RecordThreadTiming; a time that is not known is NaN."""
    numpy = load_numpy()
    untimed = raw["timed_calls"] == 0
    no_percentiles = untimed | (raw["p99_ns"] == 0) if "below" in raw.dtype.names else untimed
    for name, values in columns.items():
        column = values[place]    # contiguous, so that it is compared faster than a field of structs
        column[...] = raw[name]
        if name in TIMES:
            numpy.copyto(column, numpy.nan, where=untimed | (column == (UNKNOWN if name.endswith("error_ns") else 0)))
        elif name in WAITED:
            numpy.copyto(column, numpy.nan, where=untimed)
        elif name in BELOW:
            numpy.copyto(column, numpy.nan, where=no_percentiles | (raw["below"] & BELOW[name] != 0))


def _choose_waited(handle: c_void_p) -> Sequence[str]:
    return WAITED if shows_waiting(handle) else ()


def read_times(handle: c_void_p, count: int) -> Dict[str, Any]:
    columns = make_time_columns(count, (*TIMES, *BELOW, *_choose_waited(handle)))
    for place, raw in read_pieces(handle, TIMINGS, s.RecordTiming, count):
        fill_times(columns, place, raw)
    columns["timing"] = choose_texts(TIMING_NAMES, columns["timing"])
    return columns


def read_functions(handle: c_void_p, files: List[str], count: int, is_timed: bool) -> Dict[str, Any]:
    """{column: numpy array} of all functions."""
    raw = read_fields(handle, FUNCTIONS, s.RecordFunction, count, FIELDS)
    symbols, names = read_symbols_and_names(handle, count)
    columns = {
        "name": names,
        "module": choose_texts([*files, ""], raw["module"]),
        "calls": make_known(raw["calls"], raw["counted"] == 0),
        "rva": raw["rva"],
        "size": raw["byte_count"],
        "state": choose_texts(STATES, raw["state"]),
        "symbol": symbols,
    }
    if is_timed:
        columns.update(read_times(handle, count))
    return columns


def _read_thread(handle: c_void_p, thread: int) -> Any:
    """What one thread called, as a structured numpy array."""
    count = c_uint32()
    check(lib.hotfn_record_get_thread_timings(handle, thread, None, ctypes.sizeof(s.RecordThreadTiming), 0,
                                              ctypes.byref(count)))
    block = (s.RecordThreadTiming * count.value)()
    check(lib.hotfn_record_get_thread_timings(handle, thread, block, ctypes.sizeof(s.RecordThreadTiming),
                                              len(block), ctypes.byref(count)))
    return view_block(block)


def read_functions_by_thread(handle: c_void_p, threads: Sequence[Any], functions: Dict[str, Any],
                             is_timed: bool) -> Dict[str, Any]:
    """{column: numpy array} with an element for each function and thread that called it."""
    numpy = load_numpy()
    parts = [_read_thread(handle, index) for index in range(len(threads))]
    lengths = [len(part) for part in parts]
    raw = numpy.concatenate(parts) if parts else view_block((s.RecordThreadTiming * 0)())
    thread = numpy.repeat(numpy.arange(len(threads)), lengths)
    columns = {
        "name": functions["name"].take(raw["function"]),
        "module": functions["module"].take(raw["function"]),
        "thread": thread,
        "thread_name": choose_texts([owner.name for owner in threads] or [""], thread),
        "tid": numpy.repeat(numpy.array([owner.tid for owner in threads], dtype="u4"), lengths),
        "calls": raw["calls"].copy(),
        "thread_cpu_ns": numpy.repeat(numpy.array([owner.cpu_ns for owner in threads], dtype=float), lengths),
        "function": raw["function"].copy(),
    }
    if is_timed:
        times = make_time_columns(len(raw), (*TIMES, *_choose_waited(handle)))
        fill_times(times, slice(None), raw)
        columns.update({**times, "timing": choose_texts(TIMING_NAMES, times["timing"])})
    return columns


def read_threads(threads: Sequence[Any]) -> Dict[str, Any]:
    """{column: numpy array} of the threads."""
    numpy = load_numpy()
    columns: Dict[str, Any] = {"name": make_objects([thread.name for thread in threads])}
    for name in ("tid", "pid", "thread_count", "start_ns", "calls", "busy_ns"):
        columns[name] = numpy.array([getattr(thread, name) for thread in threads], dtype="u8")
    columns["cpu_ns"] = numpy.array([thread.cpu_ns for thread in threads], dtype=float)
    return columns


def _choose_names(names: Any, indices: Any) -> Any:
    """Names of functions; None for HOTFN_NO_FUNCTION."""
    return make_objects([*names, None]).take(indices.clip(max=len(names)))


def read_edges(handle: c_void_p, functions: Dict[str, Any], count: int) -> Dict[str, Any]:
    """{column: numpy array} of the edges, with names."""
    raw = read_fields(handle, EDGES, s.RecordEdge, count, ("caller", "callee", "calls", "total_ns"))
    return {
        "caller": _choose_names(functions["name"], raw["caller"]),
        "callee": _choose_names(functions["name"], raw["callee"]),
        "calls": raw["calls"], "total_ns": raw["total_ns"],
        "caller_module": _choose_names(functions["module"], raw["caller"]),
        "callee_module": _choose_names(functions["module"], raw["callee"]),
    }


def find_depths(parents: Any) -> Any:
    """The depth of each node, 0 for a root; a parent has a lower index than its callees."""
    numpy = load_numpy()
    depths = numpy.zeros(len(parents), dtype="u4")
    at = numpy.flatnonzero(parents >= 0)
    ancestors = parents[at]
    while len(at):
        depths[at] += 1
        below = parents[ancestors] >= 0
        at, ancestors = at[below], parents[ancestors[below]]
    return depths


def read_tree(handle: c_void_p, functions: Dict[str, Any], threads: Sequence[Any], count: int) -> Dict[str, Any]:
    """{column: numpy array} of the nodes of the chosen threads; parent is the index of an element, -1 for
    a root."""
    numpy = load_numpy()
    raw = read_fields(handle, NODES, s.RecordNode, count,
                      ("parent", "function", "thread", "calls", "total_ns", "self_ns", "waited_ns"))
    chosen = raw["thread"] < len(threads)     # a node and its callees belong to one thread
    places = numpy.cumsum(chosen) - 1
    raw = {name: values[chosen] for name, values in raw.items()}
    parents = numpy.where(raw["parent"] == NO_INDEX, -1,
                          places.take(raw["parent"], mode="clip") if len(places) else 0).astype("i8")
    return {
        "parent": parents,
        "depth": find_depths(parents),
        "name": _choose_names(functions["name"], raw["function"]),
        "module": _choose_names(functions["module"], raw["function"]),
        "thread": raw["thread"],
        "thread_name": choose_texts([thread.name for thread in threads] or [""], raw["thread"]),
        "calls": raw["calls"], "total_ns": raw["total_ns"], "self_ns": raw["self_ns"],
        "waited_ns": raw["waited_ns"],
    }


def make_frame(columns: Dict[str, Any]) -> Any:
    """A pandas DataFrame; ImportError with a remedy if pandas is missing."""
    try:
        import pandas  # type: ignore[import]
    except ImportError:
        raise report_missing("data frames need", "pandas") from None
    return pandas.DataFrame(columns, copy=False)
