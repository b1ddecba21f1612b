# SPDX-License-Identifier: MIT
"""Accesses to words of the stack through addresses that were computed, copied and stored in many ways.

An address is either passed to a helper or added to a register, and only the address of the word itself is passed or
stored outside the frame: the proofs of timing expect that code which receives an address, loads it from memory or
indexes it stays inside the object (docs/design/timing-proof.md).
"""
from generated.program import Function
from generated.x86 import Basics, low32


class Addresses(Basics):
    def make_helpers(self):
        """Functions that receive an address in T."""
        word, size, t = self.cpu.word, self.cpu.size, self.cpu.T
        bodies = {"h_same": [f"mov {t}, {t}"], "h_add": [f"add {t}, {word}"], "h_lea": [f"lea {t}, [{t}-{word}]"],
                  "h_load": [f"add {self.cpu.H[0]}, [{t}]"], "h_store": [f"add {size} [{t}], 77"],
                  "h_push": [f"push {t}", f"pop {t}"]}
        self.helpers, self.helper = [], {}
        for name, lines in bodies.items():
            g = Function(-2 - len(self.helper), self.rng, name)
            flags = [f"cmp {self.cpu.H[0]}, {self.cpu.H[1]}"]
            g.lines = [".p2align 4", f".globl {name}", f".type {name}, @function", f"{name}:", *lines, *flags, "ret",
                       f".size {name}, .-{name}"]
            self.helpers.append(g)
            self.helper[name] = g

    def call_helper(self, name):
        self.op(f"call {name}")
        self.nodes_now.append(("call", self.helper[name], 0))

    def get_base(self, own, k):
        """(register, distance) of word k of the locals, or of the arguments."""
        cpu, frame = self.cpu, self.frame
        if own:
            return cpu.SP, frame["pushed"] + k * cpu.word
        if frame["kind"] == "aligned" or (frame["kind"] == "pointer" and self.below(2)):
            return cpu.BP, frame["pointer"] + (1 + k) * cpu.word
        return cpu.SP, frame["depth"] + frame["pushed"] + (1 + k) * cpu.word

    def use_address(self, nodes, own):
        cpu, frame, f, self.nodes_now = self.cpu, self.frame, self.f, nodes
        if own and not frame["locals"]:
            return
        k = self.below(frame["locals"] if own else f.arguments)
        self.base, self.distance = self.get_base(own, k)
        if self.below(3) == 0:
            self.access_directly(f"[{self.base}+{self.distance}]")
            return
        self.passes = self.below(3) == 0
        self.start_address(self.pick(0, 0, 8 * self.below(9) - 32, self.below(64) - 32))
        for _ in range(self.below(5)):
            self.rng.choice(self.steps())()
        self.access()
        self.op(f"mov {low32(cpu.T)}, 0", *([f"mov {low32(frame['X'])}, 0"] if frame["X"] else []), "pxor xmm4, xmm4")
        self.dirty = True

    def access_directly(self, place):
        a, size = self.rng.choice(self.cpu.H), self.cpu.size
        self.op(*self.pick([f"add {a}, {place}"], [f"mov {a}, {place}"], [f"mov {place}, {a}"], [f"add {size} {place}, 5"],
                           [f"mov {size} {place}, 9", f"add {a}, {place}"], [f"xchg {a}, {place}"],
                           [f"movzx {low32(a)}, byte ptr {place}"], [f"movd xmm1, dword ptr {place}"],
                           [f"push {size} {place}", f"pop {a}"]))
        self.dirty = True

    def start_address(self, away):
        t, base = self.cpu.T, self.base
        self.away = away
        distance = self.distance + away
        self.op(*self.pick([f"lea {t}, [{base}+{distance}]"], [f"mov {t}, {base}", f"add {t}, {distance}"],
                           [f"push {base}", f"pop {t}", f"add {t}, {distance}"],
                           [f"lea {t}, [{base}-100]", f"sub {t}, {-100 - distance}"]))

    def add(self, constant, *lines):
        self.away += constant
        self.op(*lines)

    def share(self, *lines):
        """Steps that pass the address of the word itself to code or memory."""
        self.op(f"lea {self.cpu.T}, [{self.cpu.T}-{self.away}]", *lines)
        self.away = 0

    def pass_to(self, name, moved=0):
        self.share()
        self.call_helper(name)
        self.away = moved

    def steps(self):
        cpu, x, t, w = self.cpu, self.frame["X"], self.cpu.T, self.cpu.word
        c, skip = 8 * self.below(5), self.label()
        mov_xmm = "movq" if cpu.bits == 64 else "movd"
        g = self.word_at(40)
        lines = [(0, [f"{mov_xmm} xmm4, {t}", f"mov {low32(t)}, 5", f"{mov_xmm} {t}, xmm4"]),
                 (0, [f"push {t}", f"mov {low32(t)}, 5", f"pop {t}"]), (1, [f"inc {t}"]), (-1, [f"dec {t}"]),
                 (c, [f"add {t}, {c}"]), (-c, [f"sub {t}, {c}"]), (c, [f"lea {t}, [{t}+{c}]"]), (0, [f"or {t}, 0"]),
                 (0, [f"and {t}, -1"]), (0, [f"xor {t}, 0"]), (0, [f"neg {t}", f"neg {t}"]), (0, [f"not {t}"] * 2),
                 (0, [f"bswap {t}"] * 2), (0, [f"rol {t}, 16", f"ror {t}, 16"]), (0, [f"imul {t}, {t}, 1"]),
                 (0, [f"cmp {cpu.H[0]}, {cpu.H[1]}", f"jb {skip}", f"lea {t}, [{t}+0]", f"{skip}:"]),
                 (0, [f"clc", f"adc {t}, 0"]), (0, [f"xor {t}, 0x55", f"xor {t}, 0x55"])]
        if cpu.bits == 64:
            lines += [(0, [f"mov [rsp-16], {t}", f"mov {low32(t)}, 5", f"mov {t}, [rsp-16]"]),
                      (0, [f"mov [rsp-40], {t}", "movups xmm4, [rsp-40]", "movups [rsp-64], xmm4", f"mov {t}, [rsp-64]"]),
                      (0, [f"shl {t}, 1", f"shr {t}, 1"])]
        if x:
            lines += [(0, [f"xchg {t}, {x}", f"mov {t}, {x}"]), (0, [f"mov {x}, {t}", f"mov {low32(t)}, 5", f"xchg {x}, {t}"]),
                      (0, [f"mov {x}, {t}", f"cmp {cpu.H[0]}, {cpu.H[1]}", f"cmovb {t}, {x}"]),
                      (0, [f"mov {low32(x)}, 0", f"sub {x}, {t}", f"neg {x}", f"mov {t}, {x}"])]
            if not self.passes:
                lines += [(c, [f"mov {low32(x)}, {c}", f"add {t}, {x}"]), (-c, [f"mov {low32(x)}, {c}", f"sub {t}, {x}"]),
                          (c, [f"mov {low32(x)}, {c}", f"lea {t}, [{t}+{x}]"]),
                          (c, [f"mov {low32(x)}, {c}", f"lea {t}, [{x}+{t}]"]),
                          (2 * c, [f"mov {low32(x)}, {c}", f"lea {t}, [{t}+{x}*2]"]),
                          (c, [f"mov {low32(x)}, {c}", f"xadd {t}, {x}"])]
            if cpu.bits == 64:
                lines += [(0, [f"mov {x}, {t}", f"shr {x}, 32", f"mov {low32(t)}, {low32(t)}", f"shl {x}, 32", f"or {t}, {x}"])]
        steps = [lambda n=n, l=l: self.add(n, *l) for n, l in lines]
        steps.append(lambda: self.share(f"mov {g}, {t}", f"mov {low32(t)}, 5", f"mov {t}, {g}", f"mov {g}, 0"))
        if x and self.frame["locals"]:
            k = self.below(self.frame["locals"])
            place = f"[{cpu.SP}+{x}*{w}+{self.frame['pushed']}]"
            steps.append(lambda: self.share(f"mov {low32(x)}, {k}", f"mov {place}, {t}", f"mov {low32(t)}, 5",
                                            f"mov {t}, {place}", f"mov {place}, {cpu.H[0]}"))
        if self.passes:
            steps += [lambda: self.pass_to("h_same"), lambda: self.pass_to("h_push"),
                      lambda: self.pass_to("h_add", w), lambda: self.pass_to("h_lea", -w)]
        return steps

    def access(self):
        cpu, x, t, away = self.cpu, self.frame["X"], self.cpu.T, self.away
        a = self.rng.choice(cpu.H)
        if self.passes and self.below(2) == 0:
            self.share()
            self.call_helper(self.pick("h_load", "h_store"))
            return
        place = f"[{t}-{away}]"
        if x and self.below(3) == 0:
            self.op(f"mov {low32(x)}, {-away & 0xffffffff if cpu.bits == 32 else abs(away)}")
            if cpu.bits == 64 and away > 0:
                self.op(f"neg {x}")
            place = f"[{t}+{x}]"
        self.op(*self.pick([f"add {a}, {place}"], [f"xor {a}, {place}"], [f"mov {a}, {place}"],
                           [f"lea {t}, {place}", f"push {cpu.size} [{t}]", f"pop {a}"], [f"xchg {a}, {place}"],
                           [f"add {cpu.size} {place}, 5"], [f"mov {place}, {a}"], [f"movzx {low32(a)}, byte ptr {place}"],
                           [f"mov {cpu.size} {place}, 9", f"add {a}, {place}"]))
