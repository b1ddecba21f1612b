# SPDX-License-Identifier: MIT
"""Writes whole functions for x86-64 and i386: odd entries, bodies with and without a frame, exits."""
from generated.program import BELOW, COST_MAX, Function
from generated.x86 import Cpu32, Cpu64, low32, low8
from generated.x86_addresses import Addresses


class Writer(Addresses):
    def __init__(self, whole, rng, cpu, pie):
        super().__init__(whole, rng, cpu, pie)
        self.make_helpers()

    def write_function(self, f):
        self.f, self.rng = f, f.rng
        self.dirty = self.red = self.ended = self.falls = False
        self.sel_reg, self.budget, self.links, self.frame = self.cpu.SEL, COST_MAX, [], None
        f.pure = self.rng.random() < 0.12
        if not f.pure and not f.anonymous and self.rng.random() < 0.2:
            f.arguments = 1 + self.below(3)
        f.below = self.cpu.bits == 64 and not (f.arguments or f.pure) and self.rng.random() < 0.14
        self.write_parts()

    def begin(self):
        f = self.f
        align = self.pick(".p2align 4", ".p2align 4", ".p2align 4,0xcc", ".p2align 1", "")
        f.traps = "0xcc" in align
        self.declare(align)
        self.op(f"{f.name}:", *([".cfi_startproc"] if self.cfi else []))

    # ---- Entries.

    def write_entry(self):
        f, cpu = self.f, self.cpu
        a, b = self.two()
        self.pad = self.below(6) == 0
        if self.pad:
            self.op(f"endbr{cpu.bits}")
        kinds = [self.enter_pure, self.enter_pure_inside]
        if f.below:
            kinds = [self.enter_below]
        elif not f.pure:
            skip = self.label()
            kinds += [self.enter_loop, self.enter_short_loop, self.enter_switch]
            kinds += [lambda lines=lines: self.enter_lines(lines) for lines in (
                [f"add {self.word_at(self.below(32))}, {self.pick(a, 5)}"], [f"{self.pick('adc', 'sbb')} {a}, {b}"],
                [f"cmp {self.word_at(self.below(32))}, {self.below(100)}"], [f"inc {low8(cpu.H[0])}"],
                [f"push {self.word_at(self.below(32))}", f"pop {a}"], ["clc"], [f"xor {low32(a)}, {low32(a)}"],
                [f"xchg {a}, {self.word_at(5)}"], [f"sub {low8(a)}, 3"], [f"enter 16, 0", "leave"],
                ["pushf", f"pop {cpu.T}", f"and {cpu.T}, 0x8c5", f"add {a}, {cpu.T}"])]
            kinds += [lambda lines=lines: self.op(*lines) for lines in (
                [f"j{self.pick('c', 'z', 's', 'ge', 'a')} {skip}", f"lea {a}, [{a}+{b}*2]", f"{skip}:"],
                [f"{'jrcxz' if cpu.bits == 64 else 'jecxz'} {skip}", f"lea {a}, [{a}+9]", f"{skip}:"])]
            if not f.arguments:
                kinds += [lambda: self.call(f.nodes), lambda: self.jump_if(), self.write_exit]
        self.rng.choice(kinds)()

    def enter_pure(self):
        self.mix(self.below(3), pure=True)

    def enter_pure_inside(self):
        a, b = self.two()
        self.op(*self.pick([f"xchg {a}, {b}"], [f"mov {a}, {b}"], [f"lea {a}, [{b}+1]"], [f"push {a}", f"pop {b}"]))
        self.place()

    def enter_below(self):
        skip = self.label()
        self.op("cmp edi, 7", f"jne {skip}", f"add {self.rng.choice(self.cpu.H)}, [rsp-{self.place_below(self.f)}]",
                f"{skip}:", "mov edi, 3")
        self.f.nodes.append(("sel", 3))

    @staticmethod
    def place_below(g):
        return 8 * (2 + g.number % 3)

    def enter_loop(self):
        """The function jumps to its own entry, directly or by a register, while a bit of the selector is set."""
        f, done, bit, sel = self.f, self.label(), self.pick(1, 4), low32(self.cpu.SEL)
        self.mix(self.below(2))
        self.op(f"test {sel}, {bit}")
        jump, node = [f"jmp {f.name}"], ("again",)
        if self.below(3) == 0:
            jump, node = [self.address(self.cpu.T, f.name), f"jmp {self.cpu.T}"], ("call again",)
        if self.below(3) == 0:  # the branch back is conditional
            self.op(f"lea {sel}, [{sel}-{bit}]", f"jnz {f.name}", f"lea {sel}, [{sel}+{bit}]")
            node = ("again",)
        else:
            self.op(f"jz {done}", f"and {sel}, {7 - bit}", *jump, f"{done}:")
        f.nodes.append(("if", bit, [("and", 7 - bit), node]))

    def enter_short_loop(self):
        """A loop that begins among the first bytes."""
        cpu, again = self.cpu, self.label()
        self.op(f"push {2 + self.below(3)}", f"{again}:")
        self.mix(1)
        self.op(f"dec {cpu.size} [{cpu.SP}]", f"jnz {again}", f"lea {cpu.SP}, [{cpu.SP}+{cpu.word}]")

    def enter_switch(self):
        """A jump table without a frame, whose cases may lead among the first bytes."""
        f, sel, start, behind = self.f, self.cpu.SEL, self.label("place"), self.label()
        if not self.pad:
            self.mix(1)
        f.places[start], f.pad_place = len(f.nodes), start if self.pad else None
        self.op(f"{start}:")
        self.mix(1)
        bounded = self.below(2) == 0
        self.op(*([f"cmp {low32(sel)}, 3", f"ja {behind}"] if bounded else [f"and {low32(sel)}, 3"]))
        cases = [self.label("case") for _ in range(3)]
        targets = [cases[0], self.pick(start, f.name, cases[1]), cases[2], cases[self.below(3)]]
        self.jump_by_table(sel, targets, reset=True)
        ends = {start: [("part", f, start, 0), ("end",)], f.name: [("call again",)]}
        for label in cases:
            self.op(f"{label}:")
            self.mix(1)
            ends[label] = self.pick([("end",)], [])
            self.op("ret" if ends[label] else f"jmp {behind}")
        self.op(f"{behind}:", f"mov {low32(sel)}, 0")
        lists = [[("sel", 0), *ends[target]] for target in targets]
        f.nodes += [("switch", 7, lists + [[]] * 4) if bounded else ("switch", 3, lists), ("sel", 0)]

    def jump_by_table(self, index, targets, reset=False):
        """Jump to targets[index]; changes T.  The index is lost, or 0 if `reset`."""
        cpu, table, bias = self.cpu, self.label("table"), self.pick(0, 0, 0, 1, 2)
        fixed = cpu.bits == 32 or not self.pie
        kind = self.pick("relative", "text", "register", "pushed", "stored", "thunk", "inline", "computed",
                         *(["memory", "memory"] if fixed else []))
        entry = 4 if kind in ("relative", "text") else cpu.word
        zero = [f"mov {low32(index)}, 0"] if reset else []
        if bias:
            self.op(f"lea {index}, [{index}+{bias}]")
        place = f"[{cpu.T}+{index}*{entry}-{bias * entry}]"
        if kind == "computed":
            self.op(self.address(cpu.T, table), f"lea {cpu.T}, [{cpu.T}+{index}*8-{bias * 8}]", *zero, f"jmp {cpu.T}",
                    ".p2align 3", f"{table}:", *[line for target in targets for line in (f"jmp {target}", ".p2align 3")])
            return
        lines = [".p2align 3", f"{table}:"] + [f".long {target}-{table}" if entry == 4 and kind in ("relative", "text")
                                                else f"{cpu.define} {target}" for target in targets]
        if kind == "memory":
            self.op(f"mov {cpu.T}, {index}", *zero, f"jmp {cpu.size} [{cpu.T}*{entry}+{table}-{bias * entry}]")
        elif kind == "pushed":
            self.op(self.address(cpu.T, table), f"push {cpu.size} {place}", *zero, "ret")
        elif kind in ("register", "stored", "thunk", "inline"):
            below = f"{cpu.size} [{cpu.SP}-{15 * cpu.word}]"
            jumps = {"register": [f"jmp {cpu.T}"], "stored": [f"mov {below}, {cpu.T}", f"jmp {below}"],
                     "thunk": ["jmp thunk"], "inline": self.retpoline(self.label(), self.label())}
            self.op(self.address(cpu.T, table), f"mov {cpu.T}, {place}", *zero, *jumps[kind])
        else:
            load = "movsxd" if cpu.bits == 64 else "mov"
            add = self.pick([f"lea {cpu.T}, [{cpu.T}+{index}]"], [f"add {cpu.T}, {index}", f"cmp {', '.join(self.two())}"])
            zero_after = [*add, *zero, f"jmp {cpu.T}"]
            self.op(self.address(cpu.T, table), f"{load} {index}, dword ptr {place}", *zero_after)
        if kind == "text":
            self.op(*lines)
        else:
            self.data[kind != "relative"].append((self.f, lines, []))

    def retpoline(self, again, behind):
        return [f"call {behind}", f"{again}: pause", f"jmp {again}", f"{behind}: mov [{self.cpu.SP}], {self.cpu.T}", "ret"]

    # ---- Bodies.

    def write_body(self):
        if self.f.below or self.below(4) == 0:
            return self.write_leaf()
        self.push_frame()
        for _ in range(1 + self.below(4)):
            self.write_segment(self.f.nodes)
        if self.f.arguments:
            self.use_address(self.f.nodes, own=False)
        self.pop_frame()
        return None

    def write_leaf(self):
        """No frame; x86-64 code keeps data below the stack pointer."""
        self.red = self.cpu.bits == 64
        kept = []
        for _ in range(1 + self.below(4)):
            self.mix(1 + self.below(3))
            if self.red:
                place = f"[rsp-{8 + 8 * self.below(12)}]"
                self.op(f"mov {place}, {self.rng.choice(self.cpu.H)}")
                kept.append(place)
        if not self.f.pure:
            self.op(*[f"add {self.rng.choice(self.cpu.H)}, {place}" for place in kept])
        if self.f.arguments:
            self.op(f"add {self.rng.choice(self.cpu.H)}, [{self.cpu.SP}+{self.cpu.word}]")
        self.red = False

    def push_frame(self):
        cpu = self.cpu
        kind = self.pick("plain", "plain", "pointer", "aligned")
        locals_ = self.pick(0, 2, 4)
        self.op(f"push {cpu.S}", f"push {cpu.X}")
        depth = 2
        if kind != "plain":
            self.op(*([f"push {cpu.BP}"] if cpu.bits == 64 else []), f"mov {cpu.BP}, {cpu.SP}")
            depth += cpu.bits == 64
        self.frame = {"kind": kind, "locals": locals_, "depth": (depth + locals_) * cpu.word, "pointer": depth * cpu.word,
                      "pushed": 0, "X": cpu.X if cpu.bits == 64 or kind == "plain" else None}
        if kind == "aligned" and not self.f.pure:
            self.op(f"and {cpu.SP}, -32")
            self.dirty = True
        if locals_ and (self.f.pure or self.below(2)):
            self.op(f"lea {cpu.SP}, [{cpu.SP}-{locals_ * cpu.word}]")
        elif locals_:
            self.op(f"sub {cpu.SP}, {locals_ * cpu.word}")
            self.dirty = True
        for i in range(locals_):
            self.op(f"mov [{cpu.SP}+{i * cpu.word}], {self.rng.choice(cpu.H)}")
        if self.sel_reg:
            self.op(f"mov {low32(cpu.S)}, {low32(cpu.SEL)}")
            self.sel_reg = cpu.S

    def pop_frame(self):
        cpu, frame = self.cpu, self.frame
        if frame["kind"] == "plain":
            self.op(f"lea {cpu.SP}, [{cpu.SP}+{frame['locals'] * cpu.word}]")
        elif cpu.bits == 64:
            self.op(*self.pick(["leave"], [f"mov {cpu.SP}, {cpu.BP}", f"pop {cpu.BP}"]))
        else:
            self.op(f"mov {cpu.SP}, {cpu.BP}")
        self.op(f"pop {cpu.X}", f"pop {cpu.S}")
        self.frame, self.sel_reg = None, None

    def write_segment(self, nodes, depth=0):
        kinds = [lambda: self.mix(1 + self.below(4)), lambda: self.call(nodes), lambda: self.call(nodes)]
        kinds += [self.read_data]
        if not self.f.pure:
            kinds += [lambda: self.use_address(nodes, own=True)]
            if depth < 2:
                kinds += [lambda: self.loop(nodes, depth)]
            if self.sel_reg and depth < 2:
                kinds += [lambda: self.branch(nodes, depth), lambda: self.switch(nodes)]
            if self.sel_reg and depth == 0 and not self.f.arguments:
                kinds += [lambda: self.recurse(nodes)]
        self.rng.choice(kinds)()

    def read_data(self):
        """Data among the code, which the code behind may resynchronise with."""
        data, behind, a = self.label("data"), self.label(), self.rng.choice(self.cpu.H)
        self.op(f"jmp {behind}", f"{data}:", *self.data_block(), ".byte 1, 2, 3, 4, 5, 6, 7, 8"[:7 + 3 * self.below(8)],
                f"{behind}:", f"movzx {low32(self.cpu.T)}, word ptr {self.mem(data, self.below(4))}",
                f"lea {a}, [{a}+{self.cpu.T}]")

    def loop(self, nodes, depth):
        cpu, again, n, inside = self.cpu, self.label(), 2 + self.below(3), []
        self.clean_flags()
        self.op(f"push {n}", f"{again}:")
        self.frame["pushed"] += cpu.word
        budget = self.budget
        self.budget = budget // n
        left = self.budget
        self.write_segment(inside, depth + 1)
        self.budget = budget - (left - self.budget) * n
        self.clean_flags()
        self.op(f"dec {cpu.size} [{cpu.SP}]", f"jnz {again}", f"lea {cpu.SP}, [{cpu.SP}+{cpu.word}]")
        self.frame["pushed"] -= cpu.word
        nodes.append(("loop", n, inside))

    def branch(self, nodes, depth):
        behind, bit, inside = self.label(), self.pick(1, 2, 4), []
        self.op(f"test {low32(self.sel_reg)}, {bit}", f"jz {behind}")
        self.dirty = False
        self.write_segment(inside, depth + 1)
        self.clean_flags()
        self.op(f"{behind}:")
        nodes.append(("if", bit, inside))

    def switch(self, nodes):
        behind, index, lists = self.label(), self.frame["X"], []
        if index is None:
            return
        self.clean_flags()
        cases, bounded = [self.label("case") for _ in range(4)], self.below(3)
        self.op(f"mov {low32(index)}, {low32(self.sel_reg)}")
        if bounded == 0:
            self.op(f"cmp {low32(index)}, 3", f"ja {behind}")
        elif bounded == 1:
            self.op(f"and {low32(index)}, 3")
        count = 8 if bounded == 2 else 4
        targets = [cases[i % 4] for i in range(count)]
        self.jump_by_table(index, targets)
        for label in cases:
            inside = []
            self.op(f"{label}:")
            self.mix(1)
            if self.below(2):
                self.call(inside)
            self.op(f"jmp {behind}")
            lists.append(inside)
        self.op(f"{behind}:")
        nodes.append(("switch", 7, lists + [[]] * 4) if bounded == 0 else ("switch", 3, lists))

    def recurse(self, nodes):
        behind, to = self.label(), self.below(4)
        self.clean_flags()
        self.op(f"test {low32(self.sel_reg)}, 4", f"jz {behind}")
        self.set_sel(to)
        self.op(*self.reference(self.f, "call"), f"{behind}:")
        nodes.append(("if", 4, [("call", self.f, to)]))
        self.budget = 0

    # ---- Exits.

    def write_exit(self):
        f = self.f
        self.clean_flags()
        self.ended = True
        if not f.arguments:
            if self.below(3) == 0 and not self.sel_reg and not f.pure:
                self.place()
            if self.below(3) == 0 and self.sel_reg and not f.pure:
                self.jump_if()
            if self.rng.choice([self.jump_away, self.jump_inside, self.fall, lambda: False, lambda: False])():
                f.nodes.append(("end",))
                return
        self.op(*self.pick(["ret"], ["ret"], ["ret"], ["rep ret"], [f"pop {self.cpu.T}", f"jmp {self.cpu.T}"],
                           *([["bnd ret"]] if self.cpu.bits == 64 else [])))
        f.nodes.append(("end",))

    def jump_if(self):
        """A conditional tail jump."""
        found, bit = self.choose(self.budget, jumps=True), self.pick(1, 2, 4)
        if not found or not self.sel_reg or found[0].below:
            return
        g, sel = found
        self.budget -= self.whole.calls.total(g, sel)
        lines = [f"test {low32(self.sel_reg)}, {bit}"]
        pick = self.pick("direct", "other", "place")
        if pick == "place" and g.places and (g.pure or not self.f.pure):
            label = self.rng.choice(sorted(g.places))
            skip = self.label()
            lines += [f"jz {skip}", f"mov {low32(self.cpu.SEL)}, {sel}", f"jmp {label}", f"{skip}:"]
            self.f.nodes.append(("jump if", g, bit, [("part", g, label, sel), ("end",)]))
        elif pick == "direct" and sel & 1:  # the selector is passed on
            if self.whole.calls.total(g) > self.budget:
                return
            lines.append(f"jnz {g.name}")
            self.f.nodes.append(("jump if", g, bit, [("call", g, None), ("end",)]))
        else:
            skip = self.label()
            lines += [f"jz {skip}", f"mov {low32(self.cpu.SEL)}, {sel}", *self.reference(g, "jmp"), f"{skip}:"]
            self.f.nodes.append(("jump if", g, bit, [("call", g, sel), ("end",)]))
        self.if_kept(g, lines)

    def jump_away(self):
        found = self.choose(self.budget, jumps=True)
        if not found:
            return False
        g, sel = found
        lines = []
        if g.below and not self.f.pure and self.below(2) and self.whole.calls.total(g, BELOW) <= self.budget:
            sel = BELOW
            lines.append(f"mov [rsp-{self.place_below(g)}], {self.rng.choice(self.cpu.H)}")
        lines += [f"mov {low32(self.cpu.SEL)}, {sel}", *self.reference(g, "jmp")]
        self.if_kept(g, lines, ["ret"])
        self.f.nodes.append(("call", g, sel))
        return True

    def jump_inside(self):
        """A shared tail, or a jump behind the first instruction of another function."""
        near = [g for g in self.whole.functions[-12:] if g.places and not g.arguments and (g.pure or not self.f.pure) and
                self.whole.calls.total(g) <= self.budget]
        if not near:
            return False
        g, sel = self.rng.choice(near), self.below(7)
        label = self.rng.choice(sorted(g.places))
        self.if_kept(g, [f"mov {low32(self.cpu.SEL)}, {sel}", f"jmp {label}"], ["ret"])
        self.f.nodes.append(("part", g, label, sel))
        return True

    def fall(self):
        """The code continues with the function behind it."""
        g = self.whole.functions[-1] if self.whole.functions else None
        sel = self.below(7)
        if not g or g.arguments or g.traps or (self.f.pure and not g.pure) or self.cfi or \
                self.whole.calls.total(g, sel) > self.budget:
            return False
        self.set_sel(sel)
        self.if_kept(g, [], ["ret"])
        self.f.nodes.append(("call", g, sel))
        self.falls = True
        return True

    # ---- The program.

    def header(self):
        return [".intel_syntax noprefix", ".text"]

    def footer(self, roots):
        cpu = self.cpu
        self.f, self.rng = Function(-1, self.rng, "main"), self.rng
        self.dirty, self.links, self.labels = False, [], 0
        self.op(".p2align 4", "thunk:", *self.retpoline(".Lthunk1", ".Lthunk2"), ".p2align 4", ".globl main", ".type main, @function", "main:", *[f"push {r}" for r in cpu.kept])
        for i, reg in enumerate(cpu.H + cpu.kept):
            self.op(f"mov {low32(reg)}, {1000003 * (i + 7)}")
        self.op(*[f"movd xmm{i}, {low32(cpu.H[i % len(cpu.H)])}" for i in range(4)], f"cmp {low32(cpu.H[0])}, 77")
        for k, (g, sel) in enumerate(roots):
            self.op(*[f"push {cpu.H[i % len(cpu.H)]}" for i in range(g.arguments)], f"mov {low32(cpu.SEL)}, {sel}",
                    f"call {g.name}", *[f"pop {cpu.H[i % len(cpu.H)]}" for i in range(g.arguments)],
                    f"mov {self.mem('trace', k * cpu.word)}, {cpu.H[k % len(cpu.H)]}")
        self.op(*[f"mov {self.mem('G', (64 + i) * cpu.word)}, {reg}" for i, reg in enumerate(
            cpu.H + [r for r in cpu.kept if r not in (cpu.T, cpu.SEL)])])
        self.op(f"movd {low32(cpu.H[0])}, xmm1", f"mov {self.mem('G', 90 * cpu.word)}, {cpu.H[0]}")
        size = f"trace_end-G"
        if cpu.bits == 64:
            self.op("mov edi, 1", self.address("rsi", "G"), f"mov edx, offset {size}", "sub rsp, 8",
                    "call write@plt", "add rsp, 8")
        else:
            self.op(f"push offset {size}", "push offset G", "push 1", "call write", "add esp, 12")
        self.op(f"movzx eax, byte ptr {self.mem('trace_end', -cpu.word)}", *[f"pop {r}" for r in reversed(cpu.kept)],
                "ret", ".size main, .-main", ".data", ".p2align 5", "G:")
        self.op(*[f"{cpu.define} {0x1234567 * (i + 3) % (1 << 31)}" for i in range(96)])
        self.op("trace:", *[f"{cpu.define} 0"] * max(len(roots), 1), "trace_end:",
                '.section .note.GNU-stack,"",@progbits')
        return self.f.lines
