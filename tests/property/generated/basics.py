# SPDX-License-Identifier: MIT
"""What the writers of functions for all CPUs have in common."""


class Base:
    """The state of the function that is being written, and its basic operations."""

    def __init__(self, whole, rng, cpu, pie):
        self.whole, self.cpu, self.pie, self.labels = whole, cpu, pie, 0
        self.f, self.rng = None, rng
        self.data = [[".section .rodata"], [".section .data.rel.ro,\"aw\""]]

    def write_parts(self):
        self.begin()
        self.write_entry()
        if not self.ended:
            self.write_body()
        if not self.ended:
            self.write_exit()
        self.finish()

    def declare(self, align):
        """The directives of the function's symbol, of which some are missing."""
        f = self.f
        self.op("", align)
        if not f.anonymous and self.below(3):
            self.op(f".globl {f.name}")
        if not f.anonymous and self.below(12):
            self.op(f".type {f.name}, @function")
        self.cfi = not f.anonymous and self.below(2) == 0

    def op(self, *lines):
        self.f.lines.extend(lines)

    def below(self, n):
        return self.rng.randrange(n)

    def pick(self, *items):
        return self.rng.choice(items)

    def two(self):
        return self.rng.sample(self.cpu.H, 2)

    def label(self, kind="L"):
        self.labels += 1
        return f".{kind}{self.f.number}_{self.labels}"

    def choose(self, budget, jumps=False):
        """A callee and the selector that it gets, whose calls fit the budget; or None."""
        for _ in range(6 if self.whole.functions else 0):
            g, sel = self.rng.choice(self.whole.functions[-60:]), self.below(7)
            if not (jumps and g.arguments) and (g.pure or not self.f.pure) and self.whole.calls.total(g, sel) <= budget:
                return g, sel
        return None

    def if_kept(self, g, lines, otherwise=()):
        self.op((g, list(lines), list(otherwise)))

    def place(self):
        """A label to which other functions jump."""
        label = self.label("place")
        self.op(f"{label}:")
        self.f.places[label] = len(self.f.nodes)

    def enter_lines(self, lines):
        self.op(*lines)
        if self.below(2):
            self.place()

    def finish(self):
        f = self.f
        self.op(*([".cfi_endproc"] if self.cfi else []))
        if not f.anonymous and self.below(8):
            self.op(f".size {f.name}, .-{f.name}")
        if not self.falls:
            self.op(*self.links)
            if self.below(8) == 0:
                self.op(*self.data_block())
        else:
            self.data.append([".text", (self.f, self.links, [])])
