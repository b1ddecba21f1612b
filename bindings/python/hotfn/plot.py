# SPDX-License-Identifier: MIT
"""Drawings of a record with matplotlib."""
from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from .tree import TreeNode, format_ns

if TYPE_CHECKING:
    from .records import Record

COLORS = 12
LABEL_SHARE = 0.02       # narrower boxes have no label
LETTER_SHARE = 0.007     # of the width of the axes, at the font size of labels
Box = Tuple[float, float, TreeNode]  # left end and width in ns


def _lay_out(root: TreeNode, min_share: float) -> List[List[Box]]:
    """The boxes of each depth.  A node is at least as wide as its callees, whose times may be estimates."""
    levels: List[List[Box]] = []
    widths: Dict[int, float] = {}
    nodes = [node for _, node in root.walk()]
    for node in reversed(nodes):
        widths[id(node)] = max(float(node.total_ns), sum(widths[id(child)] for child in node.children))
    total = sum(widths[id(child)] for child in root.children)
    waiting = [(0, 0.0, root)]
    while waiting:
        depth, left, node = waiting.pop()
        for child in node.children:
            width = widths[id(child)]
            if width >= min_share * total and width > 0:
                while len(levels) <= depth:
                    levels.append([])
                levels[depth].append((left, width, child))
                waiting.append((depth + 1, left, child))
            left += width
    return levels


def _draw_labels(axes: Any, boxes: List[Box], depth: int, total: float) -> None:
    for left, width, node in boxes:
        room = int(width / total / LETTER_SHARE)
        if width >= LABEL_SHARE * total:
            text = node.name if len(node.name) <= room else node.name[:max(room - 1, 1)] + "…"
            axes.text(left + 0.002 * total, depth + 0.47, text, va="center", fontsize=7, clip_on=True)


def flame(record: "Record", min_share: float = 0.001, ax: Any = None) -> Any:
    """Draw the call tree as a flame graph and return the matplotlib Axes: a box for each node, as wide as
    its total time, above its caller.  Boxes narrower than min_share of the whole are omitted.

    record: a Record, or a part of its tree (record.tree()["main"]).  ImportError without matplotlib;
    UnsupportedError if the run recorded no call tree.
    """
    try:
        from matplotlib import colormaps, ticker  # type: ignore[import]
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("a flame graph needs matplotlib (Debian: python3-matplotlib; otherwise: "
                          "pip install matplotlib)") from None
    root = record if isinstance(record, TreeNode) else record.tree()
    levels = _lay_out(root, min_share)
    total = sum(width for _, width, _ in levels[0]) if levels else 1.0
    if ax is None:
        _, ax = pyplot.subplots(figsize=(12, 1.2 + 0.3 * len(levels)))
    for depth, boxes in enumerate(levels):
        # a function has the same colour everywhere
        shades = [colormaps["YlOrRd"](0.15 + 0.5 * (zlib.crc32(node.name.encode("utf-8", "replace")) % COLORS) / COLORS)
                  for _, _, node in boxes]
        ax.broken_barh([(left, width) for left, width, _ in boxes], (depth, 0.94), facecolors=shades,
                       edgecolors="white", linewidth=0.3)
        _draw_labels(ax, boxes, depth, total)
    ax.set(xlim=(0, total), ylim=(0, max(len(levels), 1)), yticks=[], title=root.name or None, xlabel="total time")
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _position: format_ns(ns)))
    return ax


class Plot:
    """The drawings of one record: record.plot.flame()."""

    def __init__(self, record: "Record") -> None:
        self._record = record

    def flame(self, min_share: float = 0.001, ax: Any = None) -> Any:
        """Draw the call tree as a flame graph; see hotfn.plot.flame."""
        return flame(self._record, min_share, ax)
