# SPDX-License-Identifier: MIT
"""Registers and data of the generated functions for x86-64 and i386 (Intel syntax).

H are data that are live across all calls.  T is a scratch register.  SEL is the selector, which calls change.  S (a
copy of the selector) and X (a second scratch register) are kept by callees, so functions save them.  All code may
read flags, so after an instruction that computes them from an address, `clean_flags` is called before it can.
"""
from generated.basics import Base


class Cpu64:
    word, size, bits, define = 8, "qword ptr", 64, ".quad"
    H = ["rax", "rcx", "rdx", "rsi", "r8", "r9", "r10"]
    T, SEL, S, X, SP, BP = "r11", "rdi", "rbx", "r12", "rsp", "rbp"
    kept = ["rbx", "r12", "rbp", "r13", "r14", "r15"]


class Cpu32:
    word, size, bits, define = 4, "dword ptr", 32, ".long"
    H = ["eax", "ecx", "edx"]
    T, SEL, S, X, SP, BP = "ebx", "edi", "esi", "ebp", "esp", "ebp"
    kept = ["ebx", "esi", "edi", "ebp"]


def low32(reg):
    return reg + "d" if reg[1:].isdigit() else "e" + reg[1:]


def low8(reg):
    if reg[1:].isdigit():
        return reg + "b"
    return reg[-2] + "l" if reg[-1] == "x" else reg[-2:] + "l"


class Basics(Base):
    def mem(self, symbol, offset=0):
        relative = self.cpu.bits == 64 and (self.pie or self.labels % 2)
        return f"[{'rip+' if relative else ''}{symbol}+{offset}]"

    def word_at(self, k):
        return f"{self.cpu.size} {self.mem('G', k * self.cpu.word)}"

    def address(self, reg, symbol):
        """reg = the address of symbol; changes no flags."""
        return f"lea {reg}, [rip+{symbol}]" if self.cpu.bits == 64 else f"mov {reg}, offset {symbol}"

    def set_sel(self, sel):
        if sel is not None:
            self.op(f"mov {low32(self.cpu.SEL)}, {sel}")

    def clean_flags(self):
        if self.dirty:
            self.op(f"cmp {', '.join(self.two())}")
            self.dirty = False

    def mix(self, count, pure=False):
        for _ in range(count):
            if pure or self.f.pure:
                self.mix_pure()
            else:
                self.clean_flags()
                self.mix_any()

    def mix_pure(self):
        """An operation on the data that changes no flags."""
        a, b = self.two()
        k, word = self.below(32), self.word_at(self.below(32))
        self.op(*self.pick(
            [f"lea {a}, [{a}+{b}*{self.pick(1, 2, 4, 8)}+{self.below(200)}]"], [f"xchg {a}, {b}"], [f"not {a}"],
            [f"bswap {a}"], [f"mov {a}, {word}"], [f"mov {word}, {a}"], [f"lea {a}, [{a}+{self.below(1 << 20)}]"],
            [f"lea {a}, [{a}+1]"] if self.red else [f"push {a}", f"pop {b}"],
            [f"movd xmm{k % 4}, {low32(a)}", f"paddd xmm{(k + 1) % 4}, xmm{k % 4}"], [f"movd {low32(a)}, xmm{k % 4}"],
            [f"movzx {low32(a)}, byte ptr {self.mem('G', k * self.cpu.word)}"]))

    def mix_any(self):
        a, b = self.two()
        k, constant, word, skip = self.below(32), self.below(1 << 31), self.word_at(self.below(32)), self.label()
        self.op(*self.pick(
            [f"add {a}, {b}"], [f"sub {a}, {constant}"], [f"xor {a}, {constant}"], [f"imul {a}, {b}, {constant | 1}"],
            [f"rol {a}, {1 + k % 31}"], [f"add {a}, {word}"], [f"add {word}, {b}"], [f"xor {word}, {constant}"],
            [f"adc {a}, {b}"], [f"cmp {a}, {b}", f"cmovb {a}, {b}"], [f"inc {a}"], [f"neg {a}"],
            [f"test {a}, {constant}", f"jz {skip}", f"lea {a}, [{a}+{b}+77]", f"{skip}:"],
            [f"sbb {a}, {constant}"], [f"setc {low8(a)}"], [f"shr {a}, {1 + k % 5}", f"xor {a}, {b}"]))

    def read_flags(self):
        a, b = self.two()
        skip = self.label()
        if self.f.pure:
            self.op(f"set{self.pick('c', 'z', 's', 'o', 'p', 'l', 'a')} {low8(a)}")
            return
        self.op(*self.pick(
            [f"adc {a}, {b}"], [f"setl {low8(a)}"], [f"cmova {a}, {b}"],
            [f"j{self.pick('c', 's', 'z', 'o', 'g', 'be')} {skip}", f"lea {a}, [{a}+{b}+3]", f"{skip}:"],
            [f"pushf", f"pop {self.cpu.T}", f"and {self.cpu.T}, 0x8c5", f"xor {a}, {self.cpu.T}"]))

    def data_block(self):
        """Bytes among the code that decode as other instructions, and may hide or imitate branches."""
        target = self.rng.choice(self.whole.functions) if self.whole.functions else self.f
        name = target.name

        def near(opcode, offset=0, behind=()):
            line = [f".byte {opcode}", f".long {name}+{offset}-.-4", *behind]
            return (target, line, [".long 1"])
        return [self.pick(
            f".byte {', '.join(str(self.below(256)) for _ in range(1 + self.below(24)))}",
            near("0xe8"), near("0xe8", 0, [".byte 0x48, 0xb8"]), near("0xe9", 1 + self.below(4)),
            near("0x0f, 0x85", 0, [".byte 0x05"]), near("0x48, 0x8d, 0x05", 2), near("0xe8", 3),
            self.pick(".byte 0x48, 0xb8", ".byte 0x0f", ".byte 0xe8", ".byte 0x81", ".byte 0x66, 0xc7, 0x80",
                      ".byte 0xc8", ".byte 0x9a, 1, 2"),
            ".byte 0x06, 0x0e, 0xd6, 0xff, 0xff")]

    # ---- Calls and jumps to other functions.

    def reference(self, g, instruction):
        """Lines that call or jump to g in one of many ways; T is free."""
        cpu, kind = self.cpu, self.below(8)
        if kind == 0:
            return [self.address(cpu.T, g.name), f"{instruction} {cpu.T}"]
        if kind > 3:
            return [f"{instruction} {g.name}"]
        slot = self.label("slot")
        self.data[1].append((self.f, [(g, [f"{slot}: {cpu.define} {g.name}"], [])], []))
        if kind == 1:
            return [f"{instruction} {cpu.size} {self.mem(slot)}"]
        if kind == 2:
            return [f"mov {cpu.T}, {self.mem(slot)}", f"{instruction} {cpu.T}"]
        link = self.label("link")  # as in the PLT
        pad = self.pick([], [f"endbr{cpu.bits}"])
        self.links.append((g, [".p2align 4", f"{link}:", *pad, f"jmp {cpu.size} {self.mem(slot)}"], []))
        return [f"{instruction} {link}"]

    def call(self, nodes, times=1):
        found = self.choose(self.budget // times)
        if not found:
            return
        g, sel = found
        self.budget -= self.whole.calls.total(g, sel) * times
        nodes.append(("call", g, sel))
        if self.sel_reg == self.cpu.SEL:
            self.sel_reg = None
        self.clean_flags()
        before, self.f.lines = self.f.lines, []
        for _ in range(g.arguments):
            self.op(f"push {self.rng.choice(self.cpu.H)}")
        self.set_sel(sel)
        reads = self.below(4) == 0
        if reads and not self.f.pure:
            a, b = self.two()
            self.op(self.pick(f"cmp {a}, {b}", f"add {a}, {b}", f"sub {a}, {self.below(1000)}"))
        self.op(*self.reference(g, "call"))
        if reads:
            self.read_flags()
        if g.arguments and self.below(2):
            self.op(*[f"pop {self.rng.choice(self.cpu.H)}" for _ in range(g.arguments)])
        elif g.arguments:
            self.op(f"lea {self.cpu.SP}, [{self.cpu.SP}+{g.arguments * self.cpu.word}]")
        lines, self.f.lines = self.f.lines, before
        self.if_kept(g, lines)
