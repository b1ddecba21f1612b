# SPDX-License-Identifier: MIT
"""Accesses to words of the stack through addresses that were computed, copied and stored in many ways, as
x86_addresses.py does: only the address of the word itself is passed or stored outside the frame."""
from generated.arm64 import Basics, w
from generated.program import Function

FRAME = 32  # bytes below the arguments, without the locals


class Addresses(Basics):
    def make_helpers(self):
        """Functions that receive an address in T, or in X, which they keep."""
        t, u, x = self.cpu.T, self.cpu.U, self.cpu.X
        bodies = {"h_same": [f"mov {t}, {t}"], "h_add": [f"add {t}, {t}, #8"], "h_sub": [f"sub {t}, {t}, #8"],
                  "h_load": [f"ldr {u}, [{t}]", f"add x0, x0, {u}"], "h_store": [f"str x1, [{t}]"],
                  "h_push": [f"str {t}, [sp, #-16]!", f"ldr {t}, [sp], #16"],
                  "h_load_kept": [f"ldr {u}, [{x}]", f"add x0, x0, {u}"], "h_store_kept": [f"str x2, [{x}]"]}
        self.helpers, self.helper = [], {}
        for name, lines in bodies.items():
            g = Function(-2 - len(self.helper), self.rng, name)
            g.lines = [".p2align 2", f".globl {name}", f".type {name}, @function", f"{name}:", *lines,
                       "cmp x0, x1", f"mov {u}, #0", "ret", f".size {name}, .-{name}"]
            self.helpers.append(g)
            self.helper[name] = g

    def call_helper(self, name):
        self.op(f"bl {name}")
        self.nodes_now.append(("call", self.helper[name], 0))

    def get_base(self, own, k):
        """(register, distance) of word k of the locals, or of the arguments."""
        frame = self.frame
        if own:
            return "sp", frame["pushed"] + 8 * k
        if frame["kind"] == "aligned" or (frame["kind"] in ("pointer", "signed") and self.below(2)):
            return "x29", FRAME + 8 * k
        return "sp", FRAME + frame["locals"] * 8 + frame["pushed"] + 8 * k

    def use_address(self, nodes, own):
        t, frame, f, self.nodes_now = self.cpu.T, self.frame, self.f, nodes
        if own and not frame["locals"]:
            return
        k = self.below(frame["locals"] if own else f.arguments)
        base, distance = self.get_base(own, k)
        if self.below(3) == 0:
            self.access_directly(f"[{base}, #{distance}]")
            return
        self.passes = self.below(3) == 0
        self.start_address(base, distance, self.pick(0, 0, 8 * self.below(9) - 32, self.below(64) - 32))
        for _ in range(self.below(5)):
            self.rng.choice(self.steps())()
        self.access()
        self.op(f"mov {t}, #0", f"mov {self.cpu.U}, #0", f"mov {self.cpu.X}, #0", "movi v4.2d, #0", "movi v5.2d, #0")

    def access_directly(self, place):
        a = self.rng.choice(self.cpu.H)
        self.op(self.pick(f"ldr {a}, {place}", f"ldr {w(a)}, {place}", f"ldrb {w(a)}, {place}", f"str {a}, {place}",
                          f"ldrsh {a}, {place}", f"ldr d{self.below(4)}, {place}", f"str {w(a)}, {place}"))

    def start_address(self, base, distance, away):
        t, u = self.cpu.T, self.cpu.U
        self.away, to = away, distance + away
        self.op(*self.pick([self.plus(t, base, to)], [f"mov {t}, {base}", self.plus(t, t, to)],
                           [self.plus(t, base, -100), self.plus(t, t, to + 100)],
                           [f"mov {t}, {base}", f"mov {u}, #{to}", f"add {t}, {t}, {u}"] if to >= 0 and not self.passes
                           else [self.plus(t, base, to)]))

    @staticmethod
    def plus(to, reg, constant):
        return f"{'sub' if constant < 0 else 'add'} {to}, {reg}, #{abs(constant)}"

    def add(self, constant, *lines):
        self.away += constant
        self.op(*lines)

    def share(self, *lines):
        """Steps that pass the address of the word itself to code or memory."""
        self.op(self.plus(self.cpu.T, self.cpu.T, -self.away), *lines)
        self.away = 0

    def pass_to(self, name, moved=0):
        self.share()
        self.call_helper(name)
        self.away = moved

    def steps(self):
        t, u, x = self.cpu.T, self.cpu.U, self.cpu.X
        c, skip, lose = 8 * self.below(5), self.label(), f"mov {t}, #5"
        a, b = self.two()
        lines = [
            (0, [f"fmov d4, {t}", lose, f"fmov {t}, d4"]), (0, [f"str {t}, [sp, #-16]!", lose, f"ldr {t}, [sp], #16"]),
            (c, [f"add {t}, {t}, #{c}"]), (-c, [f"sub {t}, {t}, #{c}"]), (0, [f"orr {t}, {t}, xzr"]),
            (0, [f"mov {u}, #0x55", f"eor {t}, {t}, {u}", f"eor {t}, {t}, {u}"]), (0, [f"neg {t}, {t}"] * 2),
            (0, [f"mvn {t}, {t}"] * 2), (0, [f"rev {t}, {t}"] * 2), (0, [f"ror {t}, {t}, #16", f"ror {t}, {t}, #48"]),
            (0, [f"mov {u}, #1", f"mul {t}, {t}, {u}"]), (0, [f"mov {u}, #1", f"udiv {t}, {t}, {u}"]),
            (0, [f"tbz {a}, #3, {skip}", f"add {t}, {t}, #0", f"{skip}:"]),
            (0, [f"lsl {t}, {t}, #1", f"lsr {t}, {t}, #1"]),
            (0, [f"mov {u}, {t}", f"csel {t}, {u}, {t}, {self.condition()}"]), (0, [f"ubfx {t}, {t}, #0, #56"]),
            (0, [f"mov {u}, #5", f"bfi {u}, {t}, #0, #56", f"and {t}, {u}, #0xffffffffffffff"]),
            (0, [f"lsr {u}, {t}, #32", f"mov {w(t)}, {w(t)}", f"orr {t}, {t}, {u}, lsl #32"]),
            (0, [f"movk {t}, #0, lsl #48"]), (0, [f"ins v4.d[1], {t}", lose, f"umov {t}, v4.d[1]"]),
            (0, [f"dup v4.2d, {t}", "mov v5.16b, v4.16b", lose, f"fmov {t}, d5"]),
            (0, [f"dup v4.2d, {t}", "ext v5.16b, v4.16b, v4.16b, #8", lose, f"fmov {t}, d5"]),
            (0, [f"stp {a}, {t}, [sp, #-16]!", "ldr q4, [sp]", lose, "str q4, [sp, #-16]!", f"ldr {t}, [sp, #8]",
                 "add sp, sp, #32"]),
            (0, [f"stp {t}, {b}, [sp, #-16]!", f"mov {u}, sp", f"ldr {t}, [{u}], #16", f"mov sp, {u}"]),
            (0, [f"str {t}, [sp, #-16]!", f"ldr {w(u)}, [sp]", f"ldr {w(t)}, [sp, #4]",
                 f"orr {t}, {u}, {t}, lsl #32", "add sp, sp, #16"]),
            (0, [f"mov {u}, {t}", f"sub {u}, {t}, {u}", f"add {t}, {t}, {u}"]),
            (0, [f"mov {u}, {t}", lose, f"mov {t}, {u}"]),
            (0, [f"sub {u}, xzr, {t}", f"sub {t}, xzr, {u}"]), (0, [f"extr {u}, {t}, {t}, #8", f"ror {t}, {u}, #56"]),
            (0, [f"mov {u}, {t}", f"and {t}, {t}, {u}"]), (0, [f"mov {x}, {t}", lose, f"mov {t}, {x}"]),
            (0, [f"mov {u}, sp", f"sub {u}, {t}, {u}", f"add {t}, sp, {u}"])]
        if not self.passes:
            lines += [(c, [f"mov {x}, #{c}", f"add {t}, {t}, {x}"]), (-c, [f"mov {x}, #{c}", f"sub {t}, {t}, {x}"]),
                      (2 * c, [f"mov {x}, #{c}", f"add {t}, {t}, {x}, lsl #1"]),
                      (c, [f"mov {x}, #{c}", f"add {t}, {t}, {w(x)}, uxtw"]),
                      (c, [f"mov {x}, #{c}", f"mov {u}, #1", f"madd {t}, {x}, {u}, {t}"])]
        steps = [lambda n=n, l=l: self.add(n, *l) for n, l in lines]
        steps.append(lambda: self.share(*self.address(u, "G"), f"str {t}, [{u}, #320]", lose, f"ldr {t}, [{u}, #320]",
                                        f"str xzr, [{u}, #320]"))
        if self.frame["locals"]:
            place = f"[sp, #{self.frame['pushed'] + 8 * self.below(self.frame['locals'])}]"
            steps.append(lambda: self.share(f"str {t}, {place}", lose, f"ldr {t}, {place}", f"str {a}, {place}"))
        if self.passes:
            steps += [lambda: self.pass_to("h_same"), lambda: self.pass_to("h_push"),
                      lambda: self.pass_to("h_add", 8), lambda: self.pass_to("h_sub", -8)]
        return steps

    def access(self):
        t, u, away = self.cpu.T, self.cpu.U, self.away
        a = self.rng.choice(self.cpu.H)
        if self.passes and self.below(2) == 0:
            self.share()
            kept = self.pick("", "_kept")
            if kept:
                self.op(f"mov {self.cpu.X}, {t}")
            self.call_helper(self.pick("h_load", "h_store") + kept)
            return
        place = f"[{t}, #{-away}]"
        if abs(away) > 255:
            self.op(self.plus(t, t, -away))
            away, place = 0, f"[{t}]"
        if self.below(3) == 0:
            self.op(f"mov {u}, #{-away}")
            place = f"[{t}, {u}]"
        to_word = self.plus(t, t, -away)
        self.op(*self.pick([f"ldr {a}, {place}"], [f"ldrb {w(a)}, {place}"], [f"str {a}, {place}"],
                           [f"ldrsw {a}, {place}"],
                           [f"str {w(a)}, {place}"], [f"ldr d2, {place}"], [f"strh {w(a)}, {place}"],
                           [to_word, f"ldxr {a}, [{t}]", "clrex"], [to_word, f"swp x1, {a}, [{t}]"],
                           [to_word, f"ldadd {a}, x2, [{t}]"], [f"ldr {a}, [{t}, #{-away}]!"],
                           [to_word, f"ld1 {{v2.1d}}, [{t}], #8"], [to_word, f"ldar {a}, [{t}]"],
                           [to_word, f"stlr {a}, [{t}]"]))
