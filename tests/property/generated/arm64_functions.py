# SPDX-License-Identifier: MIT
"""Writes whole functions for AArch64: odd entries, bodies with and without a frame, exits."""
from generated.arm64 import Cpu, w
from generated.arm64_addresses import FRAME, Addresses
from generated.program import BELOW, COST_MAX, Function

T, U, SEL, S, X = Cpu.T, Cpu.U, Cpu.SEL, Cpu.S, Cpu.X
W = w(SEL)


class Writer(Addresses):
    def __init__(self, whole, rng, cpu, pie):
        super().__init__(whole, rng, cpu, pie)
        self.make_helpers()

    def write_function(self, f):
        self.f, self.rng = f, f.rng
        self.ended = self.falls = False
        self.sel_reg, self.budget, self.links, self.frame = SEL, COST_MAX, [], None
        f.pure, f.reads, f.signed = self.rng.random() < 0.12, None, False
        if not f.pure and not f.anonymous and self.rng.random() < 0.2:
            f.arguments = 1 + self.below(3)
        elif self.rng.random() < 0.12:
            f.reads = self.pick("x16", "x17")
        else:
            f.signed = self.rng.random() < 0.12
        self.write_parts()

    def begin(self):
        f = self.f
        self.declare(self.pick(".p2align 4", ".p2align 2", ""))
        self.entry = self.label("entry")
        self.op(f"{f.name}:", f"{self.entry}:", *([".cfi_startproc"] if self.cfi else []))

    # ---- Entries.

    def write_entry(self):
        f = self.f
        self.pad = self.below(6) == 0
        if f.signed:
            self.op("paciasp")
            return self.mix(self.below(2))
        if self.pad:
            self.op(self.pick("bti c", "nop"))
        if f.reads:
            return self.enter_reading()
        a, b = self.two()
        skip, literal = self.label(), self.label("literal")
        kinds = [lambda: self.mix(self.below(3)), lambda: self.enter_lines([f"mov {a}, {b}"])]
        if not f.pure:
            kinds += [self.enter_loop, self.enter_short_loop, self.enter_switch]
            kinds += [lambda lines=lines: self.enter_lines(lines) for lines in (
                self.memory("ldr", a, self.below(32)), [f"adcs {a}, {a}, {b}"], [f"ccmp {a}, {b}, #3, ne"],
                [f"ldr {U}, {literal}", f"add {a}, {a}, {U}"], [f"ldrsw {U}, {literal}", f"add {a}, {a}, {U}"],
                [f"ldr d2, {literal}"], [f"stp {a}, {b}, [sp, #-16]!", f"ldp {a}, {b}, [sp], #16"], [f"msr nzcv, {a}"],
                [f"adr {T}, {literal}", f"ldrh {w(a)}, [{T}, #2]"])]
            kinds += [lambda lines=lines: self.op(*lines) for lines in (
                [f"b.{self.condition()} {skip}", f"add {a}, {a}, {b}, lsl #1", f"{skip}:"],
                [f"cbz {a}, {skip}", f"add {a}, {a}, #9", f"{skip}:"], [f"b {skip}", ".word 0x94000001", f"{skip}:"],
                [f"tbnz {b}, #{self.below(64)}, {skip}", f"sub {a}, {a}, {b}", f"{skip}:"],
                [f"adr {T}, {skip}", f"br {T}", f"add {a}, {a}, #5", f"{skip}:"])]
            if not f.arguments:
                kinds += [self.enter_call, self.jump_if, self.write_exit]
        self.links.append("\n".join([".p2align 3", f"{literal}: .xword {self.below(1 << 62)}"]))
        return self.rng.choice(kinds)()

    def enter_reading(self):
        """x16 or x17 is read at once, behind other instructions, on one of several paths, or behind an indirect jump."""
        f, a = self.f, self.rng.choice(self.cpu.H)
        there, behind = self.label(), self.label()
        read = self.pick(f"add {a}, {a}, {f.reads}", f"eor {a}, {a}, {f.reads}, ror #5", f"fmov d1, {f.reads}")
        kind = self.below(8)
        if kind < 2:
            self.mix(5 * kind * self.below(5))
            self.op(read)
        elif kind == 2:
            self.op(f"b {there}", *self.data_block(), f"{there}:", read)
        elif kind == 3:
            self.op(f"{self.pick('cbz', 'cbnz')} {a}, {there}", f"add {a}, {a}, #3", f"b {behind}",
                    f"{there}:", read, f"{behind}:")
        elif kind == 4:
            self.op(f"{self.pick('tbz', 'tbnz')} {a}, #1, {there}", f"mov {f.reads}, #11", f"{there}:", read)
        elif kind == 5:
            self.op(f"adr {T}, {there}", f"br {T}", *self.data_block(), f"{there}:", read)
        elif kind == 6:
            slot = self.label("slot")
            self.data[1].append((f, [".p2align 3", f"{slot}: .xword {there}"], []))
            self.op(f"adrp {T}, {slot}", f"ldr {T}, [{T}, :lo12:{slot}]", f"br {T}", *self.data_block(), f"{there}:", read)
        else:
            table = self.label("table")
            self.data[0].append((f, [".p2align 2", f"{table}:", *[f".word {to}-{table}" for to in (there, there)]], []))
            self.op(*self.address(T, table), f"and {U}, {a}, #1", f"ldrsw {U}, [{T}, {U}, lsl #2]", f"add {T}, {T}, {U}",
                    f"br {T}", *self.data_block(), f"{there}:", read)
        if self.below(3) == 0:
            self.place()

    def enter_call(self):
        """A call before the frame is made."""
        self.op(f"{self.pick('str', 'stp x8,')} x30, [sp, #-16]!")
        saved = self.f.lines[-1]
        self.call(self.f.nodes)
        self.op(saved.replace("str", "ldr").replace("stp", "ldp").replace("[sp, #-16]!", "[sp], #16"))

    def enter_loop(self):
        """The function jumps to its own entry, directly or by a register, while a bit of the selector is set."""
        f, done, bit = self.f, self.label(), self.pick(1, 4)
        self.mix(self.below(2))
        jump, node = [f"b {f.name}"], ("again",)
        if self.below(3) == 0:
            jump, node = [*self.address(T, f.name), f"br {T}"], ("call again",)
        if self.below(3) == 0:  # the branch back is conditional
            self.op(f"tst {W}, #{bit}", f"and {W}, {W}, #{7 - bit}", f"b.ne {f.name}")
            node = ("again",)
        else:
            self.op(f"tbz {W}, #{bit // 2}, {done}", f"and {W}, {W}, #{7 - bit}", *jump, f"{done}:")
        f.nodes.append(("if", bit, [("and", 7 - bit), node]))

    def enter_short_loop(self):
        """A loop that begins among the first instructions."""
        again = self.label()
        self.op(f"mov {T}, #{2 + self.below(3)}", f"{again}:")
        self.mix(1)
        self.op(*self.pick([f"subs {T}, {T}, #1", f"b.ne {again}"], [f"sub {T}, {T}, #1", f"cbnz {T}, {again}"]))

    def enter_switch(self):
        """A jump table without a frame, whose cases may lead among the first instructions."""
        f, start, behind = self.f, self.label("place"), self.label()
        if not self.pad:
            self.mix(1)
        f.places[start], f.pad_place = len(f.nodes), start if self.pad else None
        self.op(f"{start}:")
        self.mix(1)
        bounded = self.below(2) == 0
        self.op(*([f"cmp {W}, #3", f"b.hi {behind}"] if bounded else [f"and {W}, {W}, #3"]))
        cases = [self.label("case") for _ in range(3)]
        targets = [cases[0], self.pick(start, self.entry, cases[1]), cases[2], cases[self.below(3)]]
        self.jump_by_table(SEL, targets, reset=True)
        ends = {start: [("part", f, start, 0), ("end",)], self.entry: [("call again",)]}
        for label in cases:
            self.op(f"{label}:")
            self.mix(1)
            ends[label] = self.pick([("end",)], [])
            self.op("ret" if ends[label] else f"b {behind}")
        self.op(f"{behind}:", f"mov {W}, #0")
        lists = [[("sel", 0), *ends[target]] for target in targets]
        f.nodes += [("switch", 7, lists + [[]] * 4) if bounded else ("switch", 3, lists), ("sel", 0)]

    def jump_by_table(self, index, targets, reset=False):
        """Jump to targets[index]; changes T and U.  The index is lost, or 0 if `reset`."""
        table, base, bias = self.label("table"), self.label("base"), self.pick(0, 0, 0, 1, 2)
        kind = self.pick("byte", "half", "relative", "relative", "text", "pointer", "returned", "computed")
        size = {"byte": 1, "half": 2, "pointer": 8, "returned": 8}.get(kind, 4)
        zero = [f"mov {w(index)}, #0"] if reset else []
        i, extend = w(index), f"uxtw #{size.bit_length() - 1}" if size > 1 else "uxtw"
        if bias:
            self.op(f"add {i}, {i}, #{bias}")
        to_table = [*self.address(T, table), *([f"sub {T}, {T}, #{bias * size}"] if bias else [])]
        if kind == "computed":
            self.op(f"adr {T}, {table}", *([f"sub {T}, {T}, #{4 * bias}"] if bias else []),
                    f"add {T}, {T}, {i}, uxtw #2", *zero, f"br {T}", f"{table}:",
                    *[f"b {target}" for target in targets])
            return
        if kind in ("byte", "half"):
            step = [f"ldr{kind[0]} {w(U)}, [{T}, {i}, {extend}]", f"adr {T}, {base}",
                    f"add {T}, {T}, {w(U)}, sxt{kind[0]} #2"]
            lines = [f"{table}:"] + [f".{'byte' if size == 1 else 'hword'} ({target}-{base})/4" for target in targets]
        elif size == 4:
            step = [f"ldrsw {U}, [{T}, {i}, {extend}]", *([f"adr {T}, {table}"] if bias else []), f"add {T}, {T}, {U}"]
            lines = [".p2align 2", f"{table}:"] + [f".word {target}-{table}" for target in targets]
        else:
            step = [f"ldr {T}, [{T}, {i}, {extend}]"]
            lines = [".p2align 3", f"{table}:"] + [f".xword {target}" for target in targets]
        self.op(*to_table, *step, *zero, f"{'ret' if kind == 'returned' else 'br'} {T}", f"{base}:")
        if kind == "text":
            self.op(*lines)
        else:
            self.data[size == 8].append((self.f, lines, []))

    # ---- Bodies.

    def write_body(self):
        if not self.f.signed and self.below(4) == 0:
            return self.write_leaf()
        self.push_frame()
        for _ in range(1 + self.below(4)):
            self.write_segment(self.f.nodes)
        if self.f.arguments:
            self.use_address(self.f.nodes, own=False)
        return self.pop_frame()

    def write_leaf(self):
        self.mix(1 + self.below(6))
        if self.f.arguments:
            self.access_directly("[sp]")

    def push_frame(self):
        kind = "signed" if self.f.signed else self.pick("plain", "lowered", "pointer", "aligned")
        locals_ = self.pick(0, 2, 4)
        self.frame = {"kind": kind, "locals": locals_, "pushed": 0}
        if kind == "plain":
            self.op(f"stp x30, {S}, [sp, #-{FRAME}]!", f"str {X}, [sp, #16]")
        elif kind == "lowered":
            self.op(f"sub sp, sp, #{FRAME}", f"stp {S}, {X}, [sp]", "str x30, [sp, #24]")
        else:
            self.op(f"stp x29, x30, [sp, #-{FRAME}]!", "mov x29, sp", f"stp {S}, {X}, [sp, #16]")
        if kind == "aligned":
            self.op(f"sub {T}, sp, #{8 * locals_}", f"and sp, {T}, #-32")
        elif locals_:
            self.op(f"sub sp, sp, #{8 * locals_}")
        for i in range(locals_):
            self.op(f"str {self.rng.choice(self.cpu.H)}, [sp, #{8 * i}]")
        if self.sel_reg:
            self.op(f"mov {w(S)}, {W}")
            self.sel_reg = S

    def pop_frame(self):
        kind, locals_ = self.frame["kind"], self.frame["locals"]
        if kind == "aligned" or (kind in ("pointer", "signed") and self.below(2)):
            self.op("mov sp, x29")
        elif locals_:
            self.op(f"add sp, sp, #{8 * locals_}")
        if kind == "plain":
            self.op(f"ldr {X}, [sp, #16]", f"ldp x30, {S}, [sp], #{FRAME}")
        elif kind == "lowered":
            self.op("ldr x30, [sp, #24]", f"ldp {S}, {X}, [sp], #{FRAME}")
        else:
            self.op(f"ldp {S}, {X}, [sp, #16]", f"ldp x29, x30, [sp], #{FRAME}")
        if kind == "signed":
            self.op("autiasp")
        self.frame, self.sel_reg = None, None

    def write_segment(self, nodes, depth=0):
        kinds = [lambda: self.mix(1 + self.below(4)), lambda: self.call(nodes), lambda: self.call(nodes)]
        kinds += [self.read_data, lambda: self.use_address(nodes, own=True)]
        if not self.f.pure:
            if depth < 2:
                kinds += [lambda: self.loop(nodes, depth)]
            if self.sel_reg and depth < 2:
                kinds += [lambda: self.branch(nodes, depth), lambda: self.switch(nodes)]
            if self.sel_reg and depth == 0 and not self.f.arguments:
                kinds += [lambda: self.recurse(nodes)]
        self.rng.choice(kinds)()

    def read_data(self):
        """Data among the code."""
        data, behind, a = self.label("data"), self.label(), self.rng.choice(self.cpu.H)
        self.op(f"b {behind}", f"{data}:", *self.data_block(), f".word {self.below(1 << 32)}", f"{behind}:",
                *self.address(U, data), f"ldrh {w(U)}, [{U}, #{2 * self.below(2)}]", f"add {a}, {a}, {U}")

    def loop(self, nodes, depth):
        again, n, inside = self.label(), 2 + self.below(3), []
        self.op(f"mov {T}, #{n}", f"str {T}, [sp, #-16]!", f"{again}:")
        self.frame["pushed"] += 16
        budget = self.budget
        self.budget = budget // n
        left = self.budget
        self.write_segment(inside, depth + 1)
        self.budget = budget - (left - self.budget) * n
        self.op(f"ldr {T}, [sp]", f"subs {T}, {T}, #1", f"str {T}, [sp]", f"b.ne {again}", "add sp, sp, #16")
        self.frame["pushed"] -= 16
        nodes.append(("loop", n, inside))

    def branch(self, nodes, depth):
        behind, bit, inside = self.label(), self.pick(1, 2, 4), []
        test = w(self.sel_reg)
        self.op(*self.pick([f"tbz {test}, #{bit // 2}, {behind}"], [f"tst {test}, #{bit}", f"b.eq {behind}"]))
        self.write_segment(inside, depth + 1)
        self.op(f"{behind}:")
        nodes.append(("if", bit, inside))

    def switch(self, nodes):
        behind, lists, bounded = self.label(), [], self.below(3)
        cases = [self.label("case") for _ in range(4)]
        self.op(f"mov {w(X)}, {w(self.sel_reg)}")
        if bounded == 0:
            self.op(*self.pick([f"cmp {w(X)}, #3", f"b.hi {behind}"], [f"cmp {w(X)}, #4", f"b.hs {behind}"]))
        elif bounded == 1:
            self.op(f"and {w(X)}, {w(X)}, #3")
        self.jump_by_table(X, [cases[i % 4] for i in range(8 if bounded == 2 else 4)])
        for label in cases:
            inside = []
            self.op(f"{label}:")
            self.mix(1)
            if self.below(2):
                self.call(inside)
            self.op(f"b {behind}")
            lists.append(inside)
        self.op(f"{behind}:")
        nodes.append(("switch", 7, lists + [[]] * 4) if bounded == 0 else ("switch", 3, lists))

    def recurse(self, nodes):
        behind, to = self.label(), self.below(4)
        self.op(f"tbz {w(self.sel_reg)}, #2, {behind}")
        self.set_sel(to)
        self.op(*self.reference(self.f, "bl", to), f"{behind}:")
        nodes.append(("if", 4, [("call", self.f, to)]))
        self.budget = 0

    # ---- Exits.

    def write_exit(self):
        f = self.f
        self.ended = True
        if not f.arguments:
            if self.below(3) == 0 and not self.sel_reg and not f.pure and not f.signed:
                self.place()
            if self.below(3) == 0 and self.sel_reg and not f.pure and not f.signed:
                self.jump_if()
            if self.rng.choice([self.jump_away, self.jump_inside, self.fall, lambda: False, lambda: False])():
                f.nodes.append(("end",))
                return
        self.op(*self.pick(["ret"], ["ret"], ["ret"], ["br x30"], [f"mov {T}, x30", f"ret {T}"],
                           [f"mov {T}, x30", f"br {T}"]))
        f.nodes.append(("end",))

    def jump_if(self):
        """A conditional tail jump."""
        found, bit = self.choose(self.budget, jumps=True), self.pick(1, 2, 4)
        if not found or not self.sel_reg:
            return
        g, sel = found
        self.budget -= self.whole.calls.total(g, sel)
        skip, test = self.label(), w(self.sel_reg)
        pick = self.pick("direct", "other", "place")
        if pick == "place" and g.places and (g.pure or not self.f.pure):
            label = self.rng.choice(sorted(g.places))
            lines = [f"tbz {test}, #{bit // 2}, {skip}", f"mov {W}, #{sel}", f"b {label}", f"{skip}:"]
            self.f.nodes.append(("jump if", g, bit, [("part", g, label, sel), ("end",)]))
        elif pick == "direct" and sel & 1:  # the selector is passed on
            if self.whole.calls.total(g) > self.budget:
                return
            near = g.number >= self.f.number - 4
            lines = [*self.pass_scratch(g, 0), *([f"tbnz {test}, #{bit // 2}, {g.name}"] if near and self.below(2) else
                                                 [f"tst {test}, #{bit}", f"b.ne {g.name}"])]
            self.f.nodes.append(("jump if", g, bit, [("call", g, None), ("end",)]))
        else:
            lines = [f"tbz {test}, #{bit // 2}, {skip}", f"mov {W}, #{sel}", *self.reference(g, "b", sel), f"{skip}:"]
            self.f.nodes.append(("jump if", g, bit, [("call", g, sel), ("end",)]))
        self.if_kept(g, lines)

    def jump_away(self):
        found = self.choose(self.budget, jumps=True)
        if not found:
            return False
        g, sel = found
        self.if_kept(g, [f"mov {W}, #{sel}", *self.reference(g, "b", sel)], ["ret"])
        self.f.nodes.append(("call", g, sel))
        return True

    def jump_inside(self):
        """A shared tail, or a jump behind the first instruction of another function."""
        near = [g for g in self.whole.functions[-12:] if g.places and not g.arguments and
                (g.pure or not self.f.pure) and self.whole.calls.total(g) <= self.budget]
        if not near:
            return False
        g, sel = self.rng.choice(near), self.below(7)
        label = self.rng.choice(sorted(g.places))
        self.if_kept(g, [f"mov {W}, #{sel}", f"b {label}"], ["ret"])
        self.f.nodes.append(("part", g, label, sel))
        return True

    def fall(self):
        """The code continues with the function behind it."""
        g = self.whole.functions[-1] if self.whole.functions else None
        sel = self.below(7)
        if not g or g.arguments or (self.f.pure and not g.pure) or self.cfi or \
                self.whole.calls.total(g, sel) > self.budget:
            return False
        self.set_sel(sel)
        self.if_kept(g, self.pass_scratch(g, sel), ["ret"])
        self.f.nodes.append(("call", g, sel))
        self.falls = True
        return True

    # ---- The program.

    def header(self):
        return [".arch armv8.5-a", ".text"]

    def footer(self, roots):
        h = self.cpu.H
        self.f = Function(-1, self.rng, "main")
        self.links, self.labels = [], 0
        kept = [f"stp x{i}, x{i + 1}, [sp, #{16 * (i - 17) // 2}]" for i in range(19, 29, 2)]
        self.op(".p2align 4", ".globl main", ".type main, @function", "main:", "stp x29, x30, [sp, #-96]!", *kept)
        for i, reg in enumerate(h + [f"x{i}" for i in range(19, 30)]):
            self.op(f"mov {w(reg)}, #{(1009 * (i + 7)) % 65536}", f"movk {reg}, #{77 * (i + 1)}, lsl #32")
        self.op(*[f"fmov d{i}, {h[i]}" for i in range(4)], "cmp x0, #77")
        for k, (g, sel) in enumerate(roots):
            room = (g.arguments + 1) // 2 * 16
            self.op(*([f"stp {h[k % 8]}, {h[k % 5 + 1]}, [sp, #-16]!"] * (room // 16)), f"mov {W}, #{sel}",
                    *self.pass_scratch(g, sel), f"bl {g.name}", *([f"add sp, sp, #{room}"] if room else []),
                    f"adrp {U}, trace+{8 * k}", f"add {U}, {U}, :lo12:trace+{8 * k}", f"str {h[k % len(h)]}, [{U}]")
        self.op(*self.address(U, "G"), *[f"str {reg}, [{U}, #{8 * (64 + i)}]" for i, reg in enumerate(
            h + [f"x{i}" for i in range(21, 30)])], f"str q1, [{U}, #{8 * 90}]")
        self.op("mov w0, #1", *self.address("x1", "G"), f"mov x2, #{8 * (96 + max(len(roots), 1))}", "bl write",
                "adrp x9, trace_end-8", "add x9, x9, :lo12:trace_end-8", "ldrb w0, [x9]", *[line.replace("stp", "ldp") for line in kept],
                "ldp x29, x30, [sp], #96", "ret", ".size main, .-main", ".data", ".p2align 5", "G:")
        self.op(*[f".xword {0x1234567 * (i + 3) % (1 << 31)}" for i in range(96)])
        self.op("trace:", *[".xword 0"] * max(len(roots), 1), "trace_end:", '.section .note.GNU-stack,"",@progbits')
        return self.f.lines
