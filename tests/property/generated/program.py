# SPDX-License-Identifier: MIT
"""A random program of assembly functions whose calls are known.

All control flow depends on constants and on a selector (0 to 7), which each caller passes in a register.  So the
calls of each function follow from a list of nodes that is made together with its code:

    ("call", g, sel)         call, tail jump or fall-through to g; sel None: the current selector
    ("part", g, label, sel)  jump behind the entry of g
    ("again",)               jump to the function's own entry; ("call again",): by a pointer
    ("sel", k), ("and", k)   the selector becomes k, or selector & k
    ("if", mask, nodes)      the nodes run if selector & mask; ("jump if", g, mask, nodes): if g is kept
    ("loop", n, nodes), ("switch", mask, lists of nodes), ("end",)

Callees have lower numbers than their callers, except in recursion, whose selector becomes smaller.  The code is written
in descending order, so a function falls through into the one numbered before it.  Data never depend on addresses.
"""
import collections
import random

COST_MAX = 40  # calls below one call of a function
BELOW = 7      # the selector of a jump that leaves data below the stack pointer


class Function:
    def __init__(self, number, rng, name=None):
        self.number, self.rng = number, rng
        self.anonymous = name is None and rng.random() < 0.08
        self.name = name or f"{'.La' if self.anonymous else 'f'}{number}"
        self.nodes, self.lines = [], []
        self.places = {}      # label behind the entry -> index in nodes
        self.pad_place = None  # the label directly behind the landing pad
        self.pure = False     # preserves the flags
        self.arguments = 0    # words on the stack
        self.below = False    # reads data below the stack pointer if the selector is BELOW
        self.traps = False    # int3 is in front of it

    def __hash__(self):
        return self.number


class Calls:
    """Counts the calls below one call, of the functions in keep (None: all)."""

    def __init__(self, keep=None):
        self.keep, self.known = keep, {}

    def keeps(self, function):
        return self.keep is None or function.number < 0 or function.number in self.keep

    def count(self, function, sel):
        """Counter of names; (name, "again") and (name, "pad") count jumps to the entry, or behind its landing pad."""
        key = function.name, sel
        if key not in self.known:
            calls = collections.Counter({function.name: 1})
            self.run(function.nodes, sel, function, calls)
            self.known[key] = calls
        return self.known[key]

    def total(self, function, sel=None):
        selectors = range(BELOW) if sel is None else [sel]
        return max(sum(self.count(function, s).values()) for s in selectors)

    def run(self, nodes, sel, function, calls):
        """Add the calls that nodes make.  Returns the selector behind them, or None if the path has ended."""
        for kind, *node in nodes:
            if kind == "end":
                return None
            if kind == "sel":
                sel = node[0]
            elif kind == "and":
                sel &= node[0]
            elif kind == "call" and self.keeps(node[0]):
                calls.update(self.count(node[0], sel if node[1] is None else node[1]))
            elif kind == "part" and self.keeps(node[0]):
                g = node[0]
                calls[g.name, "pad"] += g.pad_place == node[1]
                self.run(g.nodes[g.places[node[1]]:], node[2], g, calls)
            elif kind in ("again", "call again"):
                calls[function.name, "again" if kind == "again" else "pad"] += 1
                return self.run(function.nodes, sel, function, calls)
            elif kind == "if" and sel & node[0]:
                sel = self.run(node[1], sel, function, calls)
            elif kind == "jump if" and self.keeps(node[0]) and sel & node[1]:
                sel = self.run(node[2], sel, function, calls)
            elif kind == "switch":
                sel = self.run(node[1][sel & node[0]], sel, function, calls)
            elif kind == "loop":
                for _ in range(node[0]):
                    self.run(node[1], sel, function, calls)
            if sel is None:
                return None
        return sel


class Program:
    def __init__(self, seed, count, make_writer):
        self.functions, self.calls = [], Calls()
        self.writer = make_writer(self, random.Random(f"{seed} program"))
        for number in range(count):
            function = Function(number, random.Random(f"{seed} {number}"))
            self.writer.write_function(function)
            self.functions.append(function)

    def roots(self, keep):
        """(function, selector) of each call that main makes."""
        for function in self.functions:
            if keep is None or function.number in keep:
                for i in range(1 + function.number % 2):
                    yield function, (function.number * 5 + i * 3) % BELOW

    def expected(self, keep=None):
        """{name: calls}, {name: jumps to the own entry}, {name: jumps of others behind its landing pad}"""
        counted, calls = Calls(keep), collections.Counter(main=1)
        for function, sel in self.roots(keep):
            calls.update(counted.count(function, sel))
        again, pad = ({key[0]: n for key, n in calls.items() if key[1:] == (kind,)} for kind in ("again", "pad"))
        return {key: n for key, n in calls.items() if isinstance(key, str)}, again, pad

    def text(self, keep=None):
        """The program with only the functions in keep."""
        lines = [*self.writer.header()]
        kept = [f for f in reversed(self.functions) if keep is None or f.number in keep]
        keeps = Calls(keep).keeps
        for function in [*kept, *self.writer.helpers]:
            lines += function.lines
        lines += self.writer.footer(list(self.roots(keep)))
        for section in self.writer.data:
            lines += section
        return "\n".join(resolve(lines, keeps)) + "\n"


def resolve(lines, keeps):
    """Replace each (function, lines if it is kept, lines if it is not)."""
    for line in lines:
        if isinstance(line, tuple):
            yield from resolve(line[1] if keeps(line[0]) else line[2], keeps)
        else:
            yield line
