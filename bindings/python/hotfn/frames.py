# SPDX-License-Identifier: MIT
"""What data tools need of a record: columns, data frames, the call tree by name, drawings, notebooks."""
from __future__ import annotations

import html
from ctypes import c_void_p
from typing import Any, Dict, List, Tuple

from . import _structs as s
from . import columns as _columns
from . import plot as _plot
from . import times as _times
from . import tree as _tree
from ._errors import UnsupportedError

NOTEBOOK_ROWS = 20
UNSUPPORTED = -5           # HOTFN_E_UNSUPPORTED
GROUPS = ("function", "thread")


class Frames:
    """Base of Record.  Needs numpy, and pandas for what ends in _to_pandas."""
    closed: bool
    info: Any
    modules: Tuple[Any, ...]
    threads: Tuple[Any, ...]
    hot: Any
    _count_called: Any

    @property
    def _open_handle(self) -> c_void_p:
        raise NotImplementedError

    def _count_functions(self) -> int:
        raise NotImplementedError

    def _get_time_info(self) -> s.RecordTimeInfo:
        return _times.get_raw_info(self._open_handle)

    def columns(self, by: str = "function") -> Dict[str, Any]:
        """{column: numpy array} of all functions, in the order of `functions`: name, module, calls,
        rva, size, state, symbol (the linker's name); for a timed run also timing, timed_calls, total_ns,
        self_ns, their errors, max_ns and percentiles, and waited_ns and total_waited_ns if the clock shows
        waiting.  A value that is unknown, or too short to be measured, is NaN.

        by="thread": an element for each function and thread that called it: name, module, thread (index
        in `threads`), thread_name, tid, calls, thread_cpu_ns (processor time of the whole thread),
        function (index in `functions`), and the times without percentiles."""
        if by not in GROUPS:
            raise ValueError(f"{by!r} is not a group of columns; choose one of {', '.join(GROUPS)}")
        is_timed = bool(self._get_time_info().flags)
        files = [module.file for module in self.modules]
        if by == "function":
            return _columns.read_functions(self._open_handle, files, self._count_functions(), is_timed)
        return _columns.read_functions_by_thread(self._open_handle, self.threads, self._read_names(files), is_timed)

    def _read_names(self, files: List[str]) -> Dict[str, Any]:
        """The columns name and module."""
        count = self._count_functions()
        raw = _columns.read_fields(self._open_handle, _columns.FUNCTIONS, s.RecordFunction, count, ("module",))
        return {"name": _columns.read_display_names(self._open_handle, count),
                "module": _columns.choose_texts([*files, ""], raw["module"])}

    def to_pandas(self, by: str = "function") -> Any:
        """`columns(by)` as a pandas DataFrame; by="function" has the index of Record.functions."""
        return _columns.make_frame(self.columns(by))

    def threads_to_pandas(self) -> Any:
        """`threads` as a pandas DataFrame: name, tid, pid, thread_count, start_ns, calls, busy_ns, cpu_ns
        (NaN: unknown)."""
        return _columns.make_frame(_columns.read_threads(self.threads))

    def edges_to_pandas(self) -> Any:
        """`edges` as a pandas DataFrame: caller, callee (names), calls, total_ns, caller_module,
        callee_module.  A caller that is not timed is None."""
        names = self._read_names([module.file for module in self.modules])
        return _columns.make_frame(_columns.read_edges(self._open_handle, names, self._get_time_info().edge_count))

    def _count_nodes(self) -> int:
        count = int(self._get_time_info().node_count)
        if count == 0:
            raise UnsupportedError(UNSUPPORTED, "the run recorded no call tree (hotfn run --mode time, without --flat)")
        return count

    def tree_to_pandas(self) -> Any:
        """The call tree as a pandas DataFrame with a row for each node, callers first: parent (index of a
        row, -1 for a root), depth, name, module, thread (index in `threads`), thread_name, calls, total_ns,
        self_ns, waited_ns.  UnsupportedError if the run recorded no call tree."""
        count = self._count_nodes()
        names = self._read_names([module.file for module in self.modules])
        return _columns.make_frame(_columns.read_tree(self._open_handle, names, self.threads, count))

    def tree(self) -> _tree.TreeNode:
        """The call tree by name, with the calls of all (chosen) threads in one tree: print(record.tree()),
        record.tree()["main"].children.  UnsupportedError if the run recorded no call tree."""
        nodes = self._count_nodes()
        modules: List[str] = []
        for module in self.modules:
            modules += [module.file] * module.function_count
        return _tree.read_tree(self._open_handle, modules, self._count_functions(), nodes)

    @property
    def plot(self) -> _plot.Plot:
        """Drawings: record.plot.flame().  Needs matplotlib."""
        return _plot.Plot(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        """What a notebook shows: the functions with most calls."""
        if self.closed:
            return html.escape(repr(self))
        hot = self.hot(NOTEBOOK_ROWS, "calls")
        rows = [(function.display, function.module, function.calls) for function in hot]
        return make_table(self.info.path, rows, self._count_called() - len(rows))


def make_table(title: str, rows: List[Tuple[str, str, Any]], omitted: int) -> str:
    """HTML for notebooks: calls, module and function."""
    lines = [f"<tr><td style='text-align:right'>{calls:,}</td><td>{html.escape(module)}</td>"
             f"<td><code>{html.escape(name)}</code></td></tr>" for name, module, calls in rows]
    rest = f"<p>and {omitted:,} more functions that were called</p>" if omitted else ""
    return (f"<p>{html.escape(title)}</p><table><tr><th>calls</th><th>module</th><th>function</th></tr>"
            + "".join(lines) + f"</table>{rest}")
