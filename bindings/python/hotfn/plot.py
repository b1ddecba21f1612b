# SPDX-License-Identifier: MIT
"""Drawings of a record with matplotlib."""
from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, List, Tuple

from .columns import load_numpy, report_missing
from .tree import TreeNode, format_ns

if TYPE_CHECKING:
    from .records import Record

COLORS = 12
LABEL_SHARE = 0.02       # narrower boxes have no label
LETTER_SHARE = 0.007     # of the width of the axes, at the font size of labels
Box = Tuple[float, float, str]   # left end and width in ns, name


def _find_levels(root: TreeNode) -> List[Tuple[Any, Any, Any]]:
    """For each depth below root: its nodes, the position of each one's parent among the nodes above, and the
    position of the parent's first child."""
    numpy = load_numpy()
    first, children = numpy.array(root.nodes.first), numpy.array(root.nodes.children, dtype="i8")
    levels, level = [], numpy.array([root.index])
    while True:
        counts = first[level + 1] - first[level]
        parents = numpy.repeat(numpy.arange(len(level)), counts)
        if not len(parents):
            return levels
        begins = numpy.repeat(numpy.cumsum(counts) - counts, counts)
        level = children[numpy.repeat(first[level], counts) + numpy.arange(len(parents)) - begins]
        levels.append((level, parents, begins))


def _lay_out(root: TreeNode, min_share: float) -> List[List[Box]]:
    """The boxes of each depth.  A node is at least as wide as its callees, whose times may be estimates."""
    numpy = load_numpy()
    levels, totals = _find_levels(root), numpy.array(root.nodes.total_ns, dtype=float)
    widths = [totals[nodes] for nodes, _, _ in levels]
    for depth in range(len(levels) - 1, 0, -1):
        inside = numpy.bincount(levels[depth][1], weights=widths[depth], minlength=len(widths[depth - 1]))
        widths[depth - 1] = numpy.maximum(widths[depth - 1], inside)
    total, above, drawn = widths[0].sum() if widths else 0.0, numpy.zeros(1), []
    for (nodes, parents, begins), width in zip(levels, widths):
        ends = numpy.cumsum(width)
        left = above[parents] + ends - width - (ends - width)[begins]
        chosen = numpy.flatnonzero((width >= min_share * total) & (width > 0))
        if not len(chosen):
            break
        drawn.append([(left[at], width[at], root.nodes.names[root.nodes.function[nodes[at]]]) for at in chosen])
        above = left
    return drawn


def _draw_labels(axes: Any, boxes: List[Box], depth: int, total: float) -> None:
    for left, width, name in boxes:
        room = int(width / total / LETTER_SHARE)
        if width >= LABEL_SHARE * total:
            text = name if len(name) <= room else name[:max(room - 1, 1)] + "…"
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
        raise report_missing("a flame graph needs", "matplotlib") from None
    root = record if isinstance(record, TreeNode) else record.tree()
    levels = _lay_out(root, min_share)
    total = sum(width for _, width, _ in levels[0]) if levels else 1.0
    if ax is None:
        _, ax = pyplot.subplots(figsize=(12, 1.2 + 0.3 * len(levels)))
    for depth, boxes in enumerate(levels):
        # a function has the same colour everywhere
        shades = [colormaps["YlOrRd"](0.15 + 0.5 * (zlib.crc32(name.encode("utf-8", "replace")) % COLORS) / COLORS)
                  for _, _, name in boxes]
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
