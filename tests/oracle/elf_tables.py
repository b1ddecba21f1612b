# SPDX-License-Identifier: MIT
"""Reads ELF images with binutils: symbols, load base, instructions.

The oracles read images only with nm, readelf and objdump, so that they do not share hotfn's mistakes.
Addresses are link addresses; an RVA is an address minus lowest_load_address().
"""
import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Symbol:
    """An address of code with all its names, the largest size, and nm's letters."""
    address: int
    size: int = 0
    names: list = dataclasses.field(default_factory=list)
    letters: set = dataclasses.field(default_factory=set)

    @property
    def name(self):
        return self.names[0] if self.names else f"0x{self.address:x}"


@dataclasses.dataclass
class Instruction:
    """A mnemonic, and the target of a direct call or jump (None otherwise)."""
    mnemonic: str
    target: int = None

    @property
    def is_call(self):
        return self.mnemonic.startswith("call")

    @property
    def is_jump(self):
        return self.mnemonic.startswith(("j", "loop", "xbegin"))


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace",
                          check=True).stdout


def lines_of(*command):
    """Yields the lines that a command prints; objdump's output can be gigabytes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace") as process:
        yield from process.stdout


def lowest_load_address(path):
    starts = [int(line.split()[2], 16) for line in output_of("readelf", "-lW", path).splitlines()
              if line.split()[:1] == ["LOAD"]]
    if not starts:
        raise ValueError(f"{path}: no loadable segment")
    return min(starts) & ~0xfff


class Sections:
    """Finds the section of an address."""
    LINE = re.compile(r"^\s*\[\s*\d+\]\s+(\S+)\s+(\S+)\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) "
                      r"[0-9a-f]+\s+([A-Za-z]*)")

    def __init__(self, path):
        self.rows = []                # (address, size, name, type, file offset, flags)
        for line in output_of("readelf", "-SW", path).splitlines():
            match = self.LINE.match(line)
            if match and "A" in match[6]:
                self.rows.append((int(match[3], 16), int(match[5], 16), match[1], match[2],
                                  int(match[4], 16), match[6]))
        self.rows.sort()

    def code_section(self, address):
        """Name of the executable section around an address, or None."""
        for start, size, name, _, _, flags in self.rows:
            if start <= address < start + size and "X" in flags:
                return name
        return None


def nm_lines(path, *options):
    """(name, letter, address, size) of each defined symbol."""
    for line in output_of("nm", "-P", "--defined-only", *options, path).splitlines():
        fields = line.split()
        if len(fields) >= 3:
            size = int(fields[3], 16) if len(fields) > 3 else 0
            yield fields[0], fields[1], int(fields[2], 16), size


def text_symbols(path, *options):
    """Symbols of code by address, aliases joined.  Options go to nm (-D for the dynamic table)."""
    found = {}
    sections = Sections(path)
    for name, letter, address, size in nm_lines(path, *options):
        if letter in "tTwWi" and sections.code_section(address):
            symbol = found.setdefault(address, Symbol(address))
            symbol.names.append(name)
            symbol.letters.add(letter)
            symbol.size = max(symbol.size, size)
    return found


def own_text_symbols(path):
    """The full table, or the dynamic one if the image is stripped."""
    return text_symbols(path) or text_symbols(path, "-D")


INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\t"
                         r"(?:(?:bnd|notrack|data16|cs|ds|repz|repnz|lock) )*(\S+)"
                         r"(?:\s+([0-9a-f]+)(?: <|$))?")


def instructions(path, *options):
    """(address, Instruction) in the order of objdump -d."""
    command = ("objdump", "-d", "-w", "--no-show-raw-insn", *options, path)
    for line in lines_of(*command):
        match = INSTRUCTION.match(line)
        if match:
            address, mnemonic, target = match.groups()
            mnemonic = mnemonic.split(",")[0]
            branch = mnemonic.startswith(("j", "call", "loop", "xbegin"))
            yield int(address, 16), Instruction(mnemonic, int(target, 16)
                                                if branch and target else None)
