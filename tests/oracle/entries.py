# SPDX-License-Identifier: MIT
"""Finds the function entries of an ELF image: candidates, evidence, and exclusions.

Candidates are readelf's symbols and FDEs.  Evidence comes from objdump -d (targets of calls and jumps,
addresses taken by lea or as a constant), from relocations, from words in data if the image is not position
independent, and from the dynamic symbol table.
"""
import array
import bisect
import collections
import dataclasses
import re
import subprocess

import arm64_references
import eh_frame
import elf_tables

CALLED = "called"
TAKEN = "address taken"
EXPORTED = "exported"
EVIDENCE = (CALLED, TAKEN, EXPORTED)

IN_FRAME = "FDE that begins inside a frame"
PLT = "PLT"
START_UP = "start-up code (.init, .fini, _start and the like)"
RESOLVER = "ifunc resolver"
JUMPED = "only jumped to from another function"
NO_RANGE = "call target without symbol or FDE"
UNNAMED = "nothing calls, takes or exports it"
NO_SIZE = "symbol without size, no FDE"
NOT_CODE = "not in an executable section"
NO_CANDIDATE = "no symbol and no FDE begins here"

GLUE = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones",
        "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie"}
EXCLUDED_SECTIONS = {".init": START_UP, ".fini": START_UP, ".plt": PLT, ".plt.got": PLT,
                     ".plt.sec": PLT, ".iplt": PLT}


@dataclasses.dataclass
class Entry:
    """An address at which a function may begin."""
    address: int
    name: str = ""
    size: int = 0
    kinds: set = dataclasses.field(default_factory=set)     # FUNC, IFUNC, FDE
    marks: set = dataclasses.field(default_factory=set)     # CALLED, TAKEN, EXPORTED, JUMPED

    def evidence(self):
        return ", ".join(mark for mark in EVIDENCE if mark in self.marks)


def function_symbols(path):
    """(address, size, type, name, is dynamic) of FUNC and IFUNC symbols that are defined."""
    dynamic = False
    for line in elf_tables.lines_of("readelf", "-sW", path):
        if line.startswith("Symbol table"):
            dynamic = ".dynsym" in line
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
            yield int(fields[1], 16), int(fields[2], 0), fields[3], fields[7], dynamic


def relocation_targets(path):
    """(address that a relocation stores, whether it is an ifunc resolver's)."""
    pattern = re.compile(r"R_(?:X86_64|AARCH64)_(RELATIV|IRELATIV|64|ABS64|GLOB_DA|JUMP_SL)\S*\s+(.*)")
    for line in elf_tables.lines_of("readelf", "-rW", path):
        match = pattern.search(line)
        if not match:
            continue
        kind, rest = match.groups()
        fields = rest.split()
        if kind in ("RELATIV", "IRELATIV"):
            yield int(fields[0], 16), kind == "IRELATIV"
        elif len(fields) >= 4 and fields[-2] == "+" and int(fields[0], 16):
            yield int(fields[0], 16) + int(fields[-1], 16), False


class Candidates:
    """The candidates of one image with their evidence."""

    def __init__(self, path):
        self.path = path
        self.base = elf_tables.lowest_load_address(path)
        self.sections = elf_tables.Sections(path)
        self.candidates = {}
        self.resolvers = set()
        self.in_frame = set()
        self.no_range = set()         # call targets that no candidate covers
        self.starts = []
        self.add_symbols()
        self.add_fdes()
        self.starts = sorted(self.candidates)
        self.add_relocations()
        self.add_code_references()

    def candidate(self, address):
        return self.candidates.setdefault(address, Entry(address))

    def add_symbols(self):
        for address, size, kind, name, dynamic in function_symbols(self.path):
            entry = self.candidate(address)
            entry.name = entry.name or name
            entry.size = max(entry.size, size)
            entry.kinds.add(kind)
            if dynamic:
                entry.marks.add(EXPORTED)
            if name.split("@")[0] in GLUE:
                entry.kinds.add(START_UP)

    def add_fdes(self):
        for fde in eh_frame.ranges(self.path):
            entry = self.candidate(fde.start)
            entry.kinds.add("FDE")
            entry.size = max(entry.size, fde.size)
            if fde.begins_in_frame:
                self.in_frame.add(fde.start)

    def add_relocations(self):
        for target, resolver in relocation_targets(self.path):
            if resolver:
                self.resolvers.add(target)
            elif target in self.candidates:
                self.candidates[target].marks.add(TAKEN)
        for target in self.words_in_data():
            self.candidates[target].marks.add(TAKEN)

    def words_in_data(self):
        """The candidates whose addresses are words in the data of a program with a fixed address, or at
        relocations without an addend field (i386)."""
        found = set()
        narrow = self.is_narrow()
        if "EXEC" not in self.header():
            return self.relocated_words() if narrow else found
        code, mask = ("I", ~3) if narrow else ("Q", ~7)
        with open(self.path, "rb") as image:
            for _, size, _, kind, offset, flags in self.sections.rows:
                if kind in ("PROGBITS", "INIT_ARRAY", "FINI_ARRAY") and "X" not in flags:
                    image.seek(offset)
                    words = array.array(code, image.read(size & mask))
                    found.update(word for index, word in enumerate(words) if word in self.candidates
                                 and not self.in_jump_table(words, index))
        return found

    def relocated_words(self):
        places = [int(line.split()[0], 16) for line in elf_tables.lines_of("readelf", "-rW", self.path)
                  if "R_386_RELATIVE" in line]
        with open(self.path, "rb") as image:
            data = image.read()
        found = set()
        for start, size, _, kind, offset, _ in self.sections.rows:
            if kind != "NOBITS":
                found.update(int.from_bytes(data[at - start + offset:at - start + offset + 4], "little") for at in places
                             if start <= at < start + size)
        return found & self.candidates.keys()

    def in_jump_table(self, words, index):
        """True if the word is next to a pointer into the middle of a function, so both are entries of a jump
        table.  Equal words between them are skipped, because many cases share one target."""
        before, after = index, index
        while before > 0 and words[before] == words[index]:
            before -= 1
        while after < len(words) - 1 and words[after] == words[index]:
            after += 1
        return any(word not in self.candidates and self.inside_a_candidate(word)
                   for word in (words[before], words[after]))

    def header(self, field="Type:"):
        return next(line for line in elf_tables.output_of("readelf", "-hW", self.path).splitlines()
                    if field in line)

    def is_narrow(self):
        return "ELF32" in self.header("Class:")

    def offset_table(self):
        """The base from which position-independent i386 code addresses its data; None elsewhere."""
        tables = {name: start for start, _, name, *_ in self.sections.rows}
        return tables.get(".got.plt", tables.get(".got")) if self.is_narrow() else None

    def add_code_references(self):
        """Adds targets of calls, jumps and lea, and constants if addresses are absolute."""
        absolute = "EXEC" in self.header()
        if "AArch64" in self.header("Machine:"):
            references = arm64_references.code_references(self.path)
        else:
            references = code_references(self.path, absolute, self.offset_table())
        for source, mnemonic, target in references:
            entry = self.candidates.get(target)
            if entry is None:
                if mnemonic.startswith("call") and not self.inside_a_candidate(target):
                    self.no_range.add(target)
            elif mnemonic.startswith("call"):
                entry.marks.add(CALLED)
            elif mnemonic.startswith(("j", "loop")):
                if self.function_around(source) != target:
                    entry.marks.add(JUMPED)
            else:
                entry.marks.add(TAKEN)

    def inside_a_candidate(self, address):
        around = self.candidates.get(self.function_around(address))
        return around is not None and address < around.address + around.size

    def function_around(self, address):
        index = bisect.bisect_right(self.starts, address) - 1
        return self.starts[index] if index >= 0 else None

    def exclusion_reason(self, address):
        """None for a function entry, otherwise the reason why the address is excluded."""
        entry = self.candidates.get(address)
        if entry is None:
            return NO_CANDIDATE
        section = self.sections.code_section(address)
        if section is None:
            return NOT_CODE
        if section in EXCLUDED_SECTIONS:
            return EXCLUDED_SECTIONS[section]
        if START_UP in entry.kinds:
            return START_UP
        if "IFUNC" in entry.kinds or address in self.resolvers:
            return RESOLVER
        if address in self.in_frame:
            return IN_FRAME
        if not entry.marks.intersection(EVIDENCE):
            return JUMPED if JUMPED in entry.marks else UNNAMED
        return None if entry.size else NO_SIZE

    def true_entries(self):
        if not hasattr(self, "kept"):
            self.kept = [entry for address, entry in sorted(self.candidates.items())
                         if self.exclusion_reason(address) is None]
        return self.kept

    def candidate_count(self):
        return len(self.candidates)

    def evidence_counts(self):
        return collections.Counter(entry.evidence() for entry in self.true_entries())

    def excluded_counts(self):
        reasons = collections.Counter(map(self.exclusion_reason, self.candidates))
        reasons[NO_RANGE] = sum(self.sections.code_section(target) not in (None, *EXCLUDED_SECTIONS)
                                for target in self.no_range)
        del reasons[None]
        return +reasons


REFERENCE = re.compile(r"^\s+([0-9a-f]+):\t(?:(?:bnd|notrack|repz|repnz|data16) )*"
                       r"(call|j[a-z]+|loop[a-z]*|lea)[,a-z]*\s+"
                       r"(?:([0-9a-f]+)(?: <|\s*$)|.*\(%rip\).*# ([0-9a-f]+)(?: <|\s*$))")
CONSTANT = re.compile(r"^\s+([0-9a-f]+):\t([a-z]+)\s+.*\$0x([0-9a-f]{5,9})\b")


OFFSET = re.compile(r"^\s+([0-9a-f]+):\tlea\s+(-?)0x([0-9a-f]+)\(%e..\),")


def code_references(path, absolute, offset_table=None):
    """(source, mnemonic, target) of direct branches, lea of rip+x (i386: of register+x, where the register may
    hold offset_table's address), and constants if `absolute`."""
    pattern = r"\s(call|j[a-z]+|loop|lea)" + (r"|\$0x[0-9a-f]{5}" if absolute else "")
    objdump = subprocess.Popen(["objdump", "-d", "-w", "--no-show-raw-insn", path],
                               stdout=subprocess.PIPE)
    grep = subprocess.Popen(["grep", "-E", pattern], stdin=objdump.stdout, stdout=subprocess.PIPE,
                            text=True, errors="replace")
    objdump.stdout.close()
    for line in grep.stdout:
        match = REFERENCE.match(line)
        if match:
            source, mnemonic, direct, relative = match.groups()
            if direct or mnemonic == "lea":      # call *x(%rip) reads the target from memory
                yield int(source, 16), mnemonic, int(direct or relative, 16)
            continue
        match = OFFSET.match(line) if offset_table else None
        if match:
            distance = int(match[3], 16) * (-1 if match[2] else 1)
            yield int(match[1], 16), "lea", offset_table + distance & 0xffffffff
            continue
        match = CONSTANT.match(line) if absolute else None
        if match:
            yield int(match[1], 16), match[2], int(match[3], 16)
    grep.wait()
    if objdump.wait():
        raise RuntimeError(f"objdump could not read {path}")


def find(path):
    return Candidates(path)
