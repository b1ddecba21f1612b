# SPDX-License-Identifier: MIT
"""The call tree by name: nested nodes that can be printed, searched and drawn.  Calls through the same
functions are one node, whatever their thread.  The nodes are columns; an object is made only for a node
that is asked for."""
from __future__ import annotations

from ctypes import c_void_p
from typing import Any, Dict, Iterator, List, Tuple

from . import _structs as s
from .columns import NO_INDEX, NODES, READABLE, find_depths, read_block, read_fields, read_names, split_names

OUTSIDE = "(code that is not timed)"
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def format_ns(ns: float) -> str:
    """1234567 -> '1.23 ms'."""
    scale, unit = next(((scale, unit) for scale, unit in UNITS if ns >= scale), UNITS[-1])
    return f"{ns / scale:.3g} {unit}"


class Nodes:
    """The nodes of a tree.  Node 0 is the root; the children of node n are
    children[first[n]:first[n + 1]], the longest total first."""

    def __init__(self, names: List[str], modules: List[str]) -> None:
        self.names, self.modules = [*names, OUTSIDE, ""], [*modules, "", ""]   # of functions
        self.function: List[int] = []
        self.calls: List[int] = []
        self.total_ns: List[int] = []
        self.self_ns: List[int] = []
        self.children: List[int] = []
        self.first: List[int] = []

    def get_children(self, node: int) -> List[int]:
        return self.children[self.first[node]:self.first[node + 1]]


class TreeNode:
    """A function, called through the functions of its ancestors.  The root of Record.tree() has the
    name "" and the sums of the outermost calls."""
    __slots__ = ("nodes", "index")

    def __init__(self, nodes: Nodes, index: int) -> None:
        self.nodes, self.index = nodes, index

    @property
    def name(self) -> str:
        return self.nodes.names[self.nodes.function[self.index]]

    @property
    def module(self) -> str:
        return self.nodes.modules[self.nodes.function[self.index]]

    @property
    def calls(self) -> int:
        return self.nodes.calls[self.index]

    @property
    def total_ns(self) -> int:
        return self.nodes.total_ns[self.index]

    @property
    def self_ns(self) -> int:
        return self.nodes.self_ns[self.index]

    @property
    def children(self) -> List["TreeNode"]:
        """The functions that it called, the longest total first."""
        return [TreeNode(self.nodes, child) for child in self.nodes.get_children(self.index)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeNode) and self.nodes is other.nodes and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.nodes), self.index))

    def __repr__(self) -> str:
        return f"TreeNode({self.name!r}, module={self.module!r}, calls={self.calls}, total_ns={self.total_ns})"

    def __getitem__(self, name: str) -> "TreeNode":
        """The child of this name; the first one if several modules have it."""
        children = self.nodes.get_children(self.index)
        for child in children:
            if self.nodes.names[self.nodes.function[child]] == name:
                return TreeNode(self.nodes, child)
        raise KeyError(f"{self.name or 'the root'} calls no {name!r}; it calls "
                       + (", ".join(child.name for child in self.children[:5]) or "no timed function"))

    def walk(self, min_share: float = 0.0) -> Iterator[Tuple[int, "TreeNode"]]:
        """(depth, node) of all nodes below this one, callers first; nodes with a smaller share of this
        node's total time are skipped."""
        nodes, limit = self.nodes, self.total_ns * min_share
        stack = [(0, child) for child in reversed(nodes.get_children(self.index))]
        while stack:
            depth, node = stack.pop()
            if nodes.total_ns[node] >= limit:
                yield depth, TreeNode(nodes, node)
                stack += [(depth + 1, child) for child in reversed(nodes.get_children(node))]

    def _count(self) -> int:
        """The number of nodes below this one."""
        count, level = 0, self.nodes.get_children(self.index)
        while level:
            count += len(level)
            level = [child for node in level for child in self.nodes.get_children(node)]
        return count

    def to_text(self, min_share: float = 0.01) -> str:
        """A table of the nodes that have at least this share of the total time."""
        lines, shown = ["   total       self        calls  function"], 0
        for depth, node in self.walk(min_share):
            share = 100 * node.total_ns / max(self.total_ns, 1)
            lines.append(f"{share:7.2f}%  {format_ns(node.self_ns):>8}  {node.calls:11,}  {'  ' * depth}{node.name}")
            shown += 1
        rest = self._count() - shown
        if rest:
            lines.append(f"... and {rest:,} nodes below {100 * min_share:g} %")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def _merge_columns(tree: Nodes, raw: Dict[str, Any], functions: int) -> List[int]:
    """Add the nodes, level by level; returns the parents.  NO_INDEX is the parent of an outermost call."""
    import numpy
    parents = numpy.where(raw["parent"] == NO_INDEX, -1, raw["parent"].astype("i8"))
    depths = find_depths(parents)
    function = numpy.minimum(raw["function"], functions).astype("i8")
    merged, count = numpy.zeros(len(parents), dtype="i8"), 1
    found = [(numpy.zeros(1, dtype="i8"), numpy.full(1, functions + 1, dtype="i8"))]
    by_depth = numpy.argsort(depths, kind="stable")
    ends = numpy.cumsum(numpy.bincount(depths)) if len(depths) else []
    for level in numpy.split(by_depth, ends[:-1]) if len(depths) else []:
        above = numpy.where(parents[level] < 0, 0, merged[parents[level]])
        keys, places = numpy.unique(above * (functions + 1) + function[level], return_inverse=True)
        merged[level] = count + places.reshape(-1)
        found.append((keys // (functions + 1), keys % (functions + 1)))
        count += len(keys)
    for name in ("calls", "total_ns", "self_ns"):
        sums = numpy.zeros(count, dtype="u8")
        numpy.add.at(sums, merged, raw[name])
        setattr(tree, name, sums.tolist())
    tree.function = numpy.concatenate([functions for _, functions in found]).tolist()
    return numpy.concatenate([parents for parents, _ in found]).tolist()


def _merge_objects(tree: Nodes, raw: Any, functions: int) -> List[int]:
    """The same without numpy."""
    merged: Dict[Tuple[int, int], int] = {}   # by merged parent and function
    found: List[int] = []                     # by index in raw
    tree.function, tree.calls, tree.total_ns, tree.self_ns, parents = [functions + 1], [0], [0], [0], [0]
    for node in raw:
        parent, function = 0 if node.parent == NO_INDEX else found[node.parent], min(node.function, functions)
        at = merged.setdefault((parent, function), len(parents))
        if at == len(parents):
            parents.append(parent)
            tree.function.append(function)
            for column in (tree.calls, tree.total_ns, tree.self_ns):
                column.append(0)
        tree.calls[at] += node.calls
        tree.total_ns[at] += node.total_ns
        tree.self_ns[at] += node.self_ns
        found.append(at)
    return parents


def _finish(tree: Nodes, parents: List[int]) -> None:
    """List the children, without nodes of threads that are not chosen.  A parent has a lower index."""
    shown = [True] * len(parents)
    for node in range(1, len(parents)):
        shown[node] = shown[parents[node]] and (tree.calls[node] or tree.total_ns[node]) > 0
    total = tree.total_ns
    tree.children = sorted((node for node in range(1, len(parents)) if shown[node]),
                           key=lambda node: (parents[node], -total[node]))
    counts = [0] * (len(parents) + 1)
    for child in tree.children:
        counts[parents[child] + 1] += 1
    tree.first = counts
    for node in range(len(parents)):
        tree.first[node + 1] += tree.first[node]
    outermost = tree.get_children(0)
    tree.calls[0] = sum(tree.calls[child] for child in outermost)
    tree.total_ns[0] = sum(total[child] for child in outermost)
    tree.self_ns[0] = 0


def read_tree(handle: c_void_p, modules: List[str], functions: int, nodes: int) -> TreeNode:
    """The call tree of a record.  modules: the module of each function."""
    tree = Nodes(split_names(read_names(handle, READABLE, functions)), modules)
    try:
        import numpy  # noqa: F401
        parents = _merge_columns(tree, read_fields(handle, NODES, s.RecordNode, nodes,
                                                   ("parent", "function", "calls", "total_ns", "self_ns")), functions)
    except ImportError:
        parents = _merge_objects(tree, read_block(handle, NODES, s.RecordNode, nodes), functions)
    _finish(tree, parents)
    return TreeNode(tree, 0)
