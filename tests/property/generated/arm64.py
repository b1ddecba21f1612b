# SPDX-License-Identifier: MIT
"""Registers, data and references of the generated functions for AArch64.

H are data that are live across all calls.  T and U are scratch registers.  SEL is the selector, which calls change.  S
(a copy of the selector) and X are kept by callees.  x16 and x17 carry data only into functions that read them at their
entry (`reads`), because a veneer may change them.  No flag is ever computed from an address.
"""
from generated.basics import Base


class Cpu:
    word, bits, define = 8, 64, ".xword"
    H = [f"x{i}" for i in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 18)]
    T, U, SEL, S, X = "x9", "x12", "x11", "x19", "x20"


def w(reg):
    return "w" + reg[1:]


class Basics(Base):
    def address(self, reg, symbol):
        """reg = the address of symbol."""
        return self.pick([f"adr {reg}, {symbol}"], [f"adrp {reg}, {symbol}", f"add {reg}, {reg}, :lo12:{symbol}"])

    def memory(self, instruction, reg, k):
        """Access word k of the data; changes U."""
        u = self.cpu.U
        return self.pick([f"adrp {u}, G", f"add {u}, {u}, :lo12:G", f"{instruction} {reg}, [{u}, #{8 * k}]"],
                         [f"adr {u}, G+{8 * k}", f"{instruction} {reg}, [{u}]"])

    def set_sel(self, sel):
        if sel is not None:
            self.op(f"mov {w(self.cpu.SEL)}, #{sel}")

    def mix(self, count):
        for _ in range(count):
            if self.f.pure or self.below(2):
                self.mix_pure()
            else:
                self.mix_flags()

    def mix_pure(self):
        """An operation on the data that changes no flags."""
        a, b = self.two()
        c, k, v = self.rng.choice(self.cpu.H), self.below(32), self.below(4)
        self.op(*self.pick(
            [f"add {a}, {a}, {b}"], [f"sub {a}, {b}, #{self.below(4096)}"], [f"eor {a}, {b}, {c}, lsl #{1 + k}"],
            [f"madd {a}, {b}, {c}, {a}"], [f"ror {a}, {b}, #{1 + k}"], [f"orr {a}, {a}, #0xff00"], [f"mvn {a}, {b}"],
            [f"bic {a}, {a}, {b}"], [f"rev {a}, {b}"], [f"rbit {a}, {a}"], [f"clz {a}, {b}"],
            [f"movk {a}, #{k * 77}, lsl #16"],
            [f"ubfx {a}, {b}, #{k}, #9"], [f"bfi {a}, {b}, #{k}, #5"], [f"extr {a}, {b}, {c}, #{1 + k}"],
            [f"csel {a}, {b}, {c}, {self.condition()}"], [f"csinc {a}, {a}, {b}, {self.condition()}"],
            [f"sxtw {a}, {w(b)}"], [f"add {a}, {b}, {w(c)}, uxtb #2"],
            self.memory("ldr", a, k), self.memory("str", a, k),
            self.memory("ldrb", w(a), k), self.memory("ldrsw", a, k), [f"fmov d{v}, {a}"], [f"fmov {a}, d{v}"],
            [f"add v{v}.2d, v{v}.2d, v{(v + 1) % 4}.2d"], [f"ins v{v}.d[1], {a}"], [f"umov {w(a)}, v{v}.s[1]"],
            [f"stp {a}, {b}, [sp, #-16]!", f"ldp {b}, {c}, [sp], #16"] if b != c else [f"mov {a}, {b}"]))

    def condition(self):
        return self.pick("eq", "ne", "cs", "cc", "mi", "vs", "hi", "ls", "ge", "lt", "gt", "le")

    def mix_flags(self):
        a, b = self.two()
        skip = self.label()
        self.op(*self.pick(
            [f"adds {a}, {a}, {b}"], [f"subs {a}, {a}, #{self.below(4096)}"], [f"adcs {a}, {a}, {b}"],
            [f"sbcs {a}, {a}, {b}"],
            [f"ands {a}, {a}, #0xffffffff"], [f"cmp {a}, {b}", f"csel {a}, {b}, {a}, lo"], [f"negs {a}, {b}"],
            [f"ccmp {a}, {b}, #{self.below(16)}, {self.condition()}"],
            [f"cmn {a}, #{self.below(4096)}", f"adc {a}, {a}, {b}"],
            [f"tst {a}, {b}", f"b.{self.condition()} {skip}", f"add {a}, {b}, #77", f"{skip}:"],
            [f"cbnz {a}, {skip}", f"add {a}, {a}, {b}", f"{skip}:"],
            [f"tbz {a}, #{self.below(64)}, {skip}", f"sub {a}, {a}, #9", f"{skip}:"]))

    def read_flags(self):
        a, b = self.two()
        skip = self.label()
        self.op(*self.pick([f"adc {a}, {a}, {b}"], [f"cset {a}, {self.condition()}"],
                           [f"cinv {a}, {b}, {self.condition()}"],
                           [f"mrs {a}, nzcv"], [f"b.{self.condition()} {skip}", f"add {a}, {a}, {b}", f"{skip}:"]))

    def data_block(self):
        """Words among the code that decode as instructions, some of them as branches to functions."""
        g = self.rng.choice(self.whole.functions) if self.whole.functions else self.f
        branches = [f"{self.pick('bl', 'b', 'b.eq')} {g.name}{self.pick('', '+4', '+8')}",
                    f"adr {self.cpu.T}, {g.name}+{4 * self.below(3)}"]
        return [self.pick(f".word {', '.join(str(self.below(1 << 32)) for _ in range(1 + self.below(6)))}",
                          (g, [self.pick(*branches)], [".word 1"]), (g, [self.pick(*branches)], [".word 2"]))]

    # ---- Calls and jumps to other functions.

    def pass_scratch(self, g, sel):
        """Data in x16 and x17 for a function that reads one of them."""
        return [f"mov {g.reads}, #{(g.number * 7 + (sel or 0)) % 60000}"] if g.reads else []

    def reference(self, g, instruction, sel=None):
        """Lines that call or jump to g in one of many ways; T is free."""
        t, kind = self.cpu.T, self.below(8)
        by_register = {"bl": "blr", "b": "br"}[instruction]
        scratch = self.pass_scratch(g, sel)
        if kind == 0:
            return [*self.address(t, g.name), *scratch, f"{by_register} {t}"]
        if kind > 3 or (kind > 2 and g.reads):
            return [*scratch, f"{instruction} {g.name}"]
        slot = self.label("slot")
        self.data[1].append((self.f, [(g, [".p2align 3", f"{slot}: .xword {g.name}"], [])], []))
        if kind < 3:
            return [f"adrp {t}, {slot}", f"ldr {t}, [{t}, :lo12:{slot}]", *scratch, f"{by_register} {t}"]
        link = self.label("link")  # as in the PLT
        pad = self.pick([], ["bti c"])
        self.links.append((g, [f"{link}:", *pad, f"adrp x16, {slot}", f"ldr x17, [x16, :lo12:{slot}]",
                               f"add x16, x16, :lo12:{slot}", "br x17"], []))
        return [f"{instruction} {link}"]

    def call(self, nodes):
        found = self.choose(self.budget)
        if not found:
            return
        g, sel = found
        self.budget -= self.whole.calls.total(g, sel)
        nodes.append(("call", g, sel))
        if self.sel_reg == self.cpu.SEL:
            self.sel_reg = None
        before, self.f.lines = self.f.lines, []
        room = (g.arguments + 1) // 2 * 16
        if room:
            self.op(f"sub sp, sp, #{room}",
                    *[f"str {self.rng.choice(self.cpu.H)}, [sp, #{8 * i}]" for i in range(room // 8)])
        self.set_sel(sel)
        reads = self.below(4) == 0
        if reads and not self.f.pure:
            self.op(self.pick("cmp {}, {}", "adds {0}, {0}, {1}", "cmn {}, {}").format(*self.two()))
        self.op(*self.reference(g, "bl", sel))
        if reads:
            self.read_flags()
        if room and self.below(2):  # the callee may have changed its arguments
            self.op(*[f"ldr {self.rng.choice(self.cpu.H)}, [sp], #16" for i in range(room // 16)])
        elif room:
            self.op(f"add sp, sp, #{room}")
        lines, self.f.lines = self.f.lines, before
        self.if_kept(g, lines)
