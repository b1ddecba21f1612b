# SPDX-License-Identifier: MIT
"""Records as columns for numpy and pandas: one pass over the functions, no object for each of them."""
from __future__ import annotations

import ctypes
import html
from ctypes import c_void_p
from typing import Any, Dict, List, Tuple

from . import _structs as s
from ._errors import check, decode
from ._native import lib

TIMINGS = ("count-only", "full", "sampled")             # HOTFN_TIMING_*
STATES = ("", "hooked", "refused", "fragment", "excluded", "waiting")  # HOTFN_STATE_*
BELOW = {"p50_ns": 1, "p90_ns": 2, "p99_ns": 4}         # bits of hotfn_record_timing.below
NAME_BYTES = 4096
UNKNOWN = 0xFFFFFFFFFFFFFFFF                            # HOTFN_ERROR_UNKNOWN
LIMIT = -10                                             # HOTFN_E_LIMIT
TIMES = ("total_ns", "self_ns", "total_error_ns", "self_error_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns")


def _make_view(block: Any, struct: Any) -> Any:
    """The numbers of an array of structs as a structured numpy array that shares its memory."""
    import numpy  # type: ignore[import]
    kinds = {ctypes.c_uint32: "u4", ctypes.c_uint64: "u8"}
    fields = [(field[0], kinds[field[1]]) for field in struct._fields_ if field[1] in kinds]
    return numpy.frombuffer(block, dtype=numpy.dtype({
        "names": [name for name, _ in fields], "formats": [kind for _, kind in fields],
        "offsets": [getattr(struct, name).offset for name, _ in fields], "itemsize": ctypes.sizeof(struct)}))


def _read_names(handle: c_void_p, block: Any) -> Tuple[Any, Any]:
    """The readable names and the linker's."""
    import numpy
    text = ctypes.create_string_buffer(NAME_BYTES)
    names, symbols = (numpy.empty(len(block), dtype=object) for _ in range(2))
    for index, raw in enumerate(block):
        symbols[index] = decode(raw.name)
        check_name(lib.hotfn_record_get_display_name(handle, index, text, NAME_BYTES))
        names[index] = decode(text.value)
    return names, symbols


def check_name(status: int) -> None:
    """Raise an exception unless the name was written, if only in part."""
    if status != LIMIT:
        check(status)


def _fill(block: Any, read: Any, handle: c_void_p) -> Any:
    for index, raw in enumerate(block):
        check(read(handle, index, raw))
    return block


def _read_times(handle: c_void_p, count: int) -> Dict[str, Any]:
    import numpy
    block = _fill((s.RecordTiming * count)(*(s.RecordTiming() for _ in range(count))),
                  lib.hotfn_record_get_timing, handle)
    raw = _make_view(block, s.RecordTiming)
    columns: Dict[str, Any] = {"timing": numpy.array(TIMINGS, dtype=object)[raw["timing"]],
                               "timed_calls": raw["timed_calls"].copy()}
    for name in TIMES:
        values = raw[name].astype(float)
        unknown = (raw[name] == UNKNOWN) | (raw["timed_calls"] == 0)
        if name in BELOW:
            unknown |= (raw["p99_ns"] == 0) | (raw["below"] & BELOW[name] != 0)
        elif not name.endswith("error_ns"):
            unknown |= raw[name] == 0
        values[unknown] = numpy.nan
        columns[name] = values
    return columns


def read_columns(handle: c_void_p, files: List[str], count: int, is_timed: bool) -> Dict[str, Any]:
    """{column: numpy array} of all functions."""
    import numpy
    block = _fill((s.RecordFunction * count)(*(s.RecordFunction() for _ in range(count))),
                  lib.hotfn_record_get_function, handle)
    raw = _make_view(block, s.RecordFunction)
    names, symbols = _read_names(handle, block)
    calls = raw["calls"].astype(float)
    calls[raw["counted"] == 0] = numpy.nan
    columns = {
        "name": names,
        "module": numpy.array([*files, ""], dtype=object)[raw["module"]],
        "calls": calls,
        "rva": raw["rva"].copy(),
        "size": raw["byte_count"].copy(),
        "state": numpy.array(STATES, dtype=object)[raw["state"]],
        "symbol": symbols,
    }
    if is_timed:
        columns.update(_read_times(handle, count))
    return columns


def make_frame(columns: Dict[str, Any]) -> Any:
    """A pandas DataFrame.  Needs pandas."""
    import pandas  # type: ignore[import]
    return pandas.DataFrame(columns)


def make_table(title: str, rows: List[Tuple[str, str, Any]], omitted: int) -> str:
    """HTML for notebooks: calls, module and function."""
    lines = [f"<tr><td style='text-align:right'>{calls:,}</td><td>{html.escape(module)}</td>"
             f"<td><code>{html.escape(name)}</code></td></tr>" for name, module, calls in rows]
    rest = f"<p>and {omitted:,} more functions that were called</p>" if omitted else ""
    return (f"<p>{html.escape(title)}</p><table><tr><th>calls</th><th>module</th><th>function</th></tr>"
            + "".join(lines) + f"</table>{rest}")
