# SPDX-License-Identifier: MIT
"""The call tree by name: nested nodes that can be printed, searched and drawn.  Calls through the same
functions are one node, whatever their thread."""
from __future__ import annotations

import dataclasses
from ctypes import c_void_p
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import _structs as s
from .columns import NODES, READABLE, read_block, read_names, split_names

OUTSIDE = "(code that is not timed)"
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def format_ns(ns: float) -> str:
    """1234567 -> '1.23 ms'."""
    scale, unit = next(((scale, unit) for scale, unit in UNITS if ns >= scale), UNITS[-1])
    return f"{ns / scale:.3g} {unit}"


@dataclasses.dataclass
class TreeNode:
    """A function, called through the functions of its ancestors.  The root of Record.tree() has the
    name "" and the sums of the outermost calls."""
    name: str
    module: str
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    children: List["TreeNode"] = dataclasses.field(default_factory=list)  # longest total first

    def __getitem__(self, name: str) -> "TreeNode":
        """The child of this name; the first one if several modules have it."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(f"{self.name or 'the root'} calls no {name!r}; it calls "
                       + (", ".join(child.name for child in self.children[:5]) or "no timed function"))

    def walk(self, min_share: float = 0.0) -> Iterator[Tuple[int, "TreeNode"]]:
        """(depth, node) of all nodes below this one, callers first; nodes with a smaller share of this
        node's total time are skipped."""
        limit, stack = self.total_ns * min_share, [(0, child) for child in reversed(self.children)]
        while stack:
            depth, node = stack.pop()
            if node.total_ns >= limit:
                yield depth, node
                stack += [(depth + 1, child) for child in reversed(node.children)]

    def to_text(self, min_share: float = 0.01) -> str:
        """A table of the nodes that have at least this share of the total time."""
        lines, shown = ["   total       self        calls  function"], 0
        for depth, node in self.walk(min_share):
            share = 100 * node.total_ns / max(self.total_ns, 1)
            lines.append(f"{share:7.2f}%  {format_ns(node.self_ns):>8}  {node.calls:11,}  {'  ' * depth}{node.name}")
            shown += 1
        rest = sum(1 for _ in self.walk()) - shown
        if rest:
            lines.append(f"... and {rest:,} nodes below {100 * min_share:g} %")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def _merge(root: TreeNode, raw: Any, find: Callable[[int], Tuple[str, str]]) -> None:
    """Add the nodes of an array to the tree; parents come before their callees."""
    merged: Dict[Tuple[int, int], TreeNode] = {}   # by merged parent and function
    found: List[TreeNode] = []                     # by index in raw
    for node in raw:
        parent = root if node.parent >= len(found) else found[node.parent]
        key = (id(parent), node.function)
        at = merged.get(key)
        if at is None:
            at = merged[key] = TreeNode(*find(node.function))
            parent.children.append(at)
        at.calls += node.calls
        at.total_ns += node.total_ns
        at.self_ns += node.self_ns
        found.append(at)


def _finish(root: TreeNode) -> None:
    """Remove the nodes of threads that are not chosen, and sort."""
    for node in [root, *(node for _, node in root.walk())]:
        node.children = sorted((child for child in node.children if child.calls or child.total_ns),
                               key=lambda child: -child.total_ns)
    root.calls = sum(child.calls for child in root.children)
    root.total_ns = sum(child.total_ns for child in root.children)


def read_tree(handle: c_void_p, modules: List[str], functions: int, nodes: int) -> TreeNode:
    """The call tree of a record.  modules: the module of each function."""
    names = split_names(read_names(handle, READABLE, functions))
    root = TreeNode("", "")
    _merge(root, read_block(handle, NODES, s.RecordNode, nodes),
           lambda index: (names[index], modules[index]) if index < functions else (OUTSIDE, ""))
    _finish(root)
    return root
