#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the proofs of timing with objdump and readelf.  In a proven function, and in its outlined parts
(NAME.cold), objdump must show no operand that reaches the return address or the bytes above it, except for
the words of arguments that the stub copies, where readelf's frames report the distance.  An operand with an
index is checked for the index 0: its limit is only in the proof (stack_promise_test.c steps through such accesses).
Returns must be plain `ret`; and a jump out of the function must lead to such a part, to another
proven function, or to a function that is not timed only because of its entry, which is then checked too.
All code is read linearly, including code that the proof did not reach.
Arguments: the hotfn program; then files, or none for the usual ones."""
import bisect
import collections
import json
import pathlib
import re
import subprocess
import sys

import each_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
import elf_tables  # noqa: E402
import standard_names  # noqa: E402

USUAL = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6",
         "/lib/x86_64-linux-gnu/libsqlite3.so.0", "/usr/bin/python3.11", "/usr/bin/redis-server",
         "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "/usr/bin/cmake", "/usr/bin/git",
         "/lib/x86_64-linux-gnu/libLLVM-14.so.1"]
COMMENT = "#"
TOOLS = ""                      # own_frames_arm64.py: the cross binutils
ENTRY = ("rsp", 8)
RETURN_ADDRESS_AT = -8
FDE = re.compile(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)$")
ROW = re.compile(r"^([0-9a-f]{16}) (\S+)")
CFA = re.compile(r"^(rsp|rbp)\+(\d+)$")
LINE = re.compile(r"^ *([0-9a-f]+):\t(?:(?:bnd|notrack|lock|rep\w*|data16|cs|ds|es) +)*(\S+) *(.*)$")
OPERAND = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+),?\d?)?\)")
PLT_NAME = re.compile(r"<([^@>+*]+)(?:@@?[\w.]+)?@plt>")
CHECKED_LIKE_PROVEN = ("entry-jumped", "patch-inside", "tail-cycle")
JUMP = re.compile(r"^(?:j\w+)(?:,p[nt])?$")
TARGET = re.compile(r"^(?:0x)?([0-9a-f]+)\b")


def read_lines(*command):
    out = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace",
                           env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    yield from out.stdout
    out.wait()


def frame_rows(path):
    """Sorted addresses and, for each, (register, offset) of the CFA from there on; None: unknown."""
    rows, end = {}, 0
    for line in read_lines(TOOLS + "readelf", "-W", "--debug-dump=frames-interp", path):
        fde = FDE.search(line)
        row = ROW.match(line)
        if fde:
            begin, end = int(fde.group(1), 16), int(fde.group(2), 16)
            rows.setdefault(end, None)
            rows[begin] = ENTRY
        elif row and int(row.group(1), 16) < end and " CIE " not in line and " FDE " not in line:
            cfa = CFA.match(row.group(2))
            rows[int(row.group(1), 16)] = cfa and (cfa.group(1), int(cfa.group(2)))
    places = sorted(rows)
    return places, [rows[place] for place in places]


def find_parts(path, functions, base):
    """{function's rva: [(begin, end)]} of its body and of the parts named by its symbols."""
    cold_parts = collections.defaultdict(list)
    for symbol in elf_tables.own_text_symbols(path).values():
        for name in symbol.names:
            whole, dot, _ = name.partition(".cold")
            if dot:
                cold_parts[whole].append((symbol.address, symbol.address + symbol.size))
    parts = {}
    named = collections.Counter(name for f in functions for name in f["names"])
    for f in functions:
        own = (base + f["rva"], base + f["rva"] + f["size"])
        mine = [part for name in f["names"] if named[name] == 1 for part in cold_parts[name]]
        parts[f["rva"]] = [own, *mine]
    return parts


class Code:
    """The instructions of a file, in order."""

    def __init__(self, path):
        self.at, self.mnemonic, self.operands, self.plt_names = [], [], [], {}
        for line in read_lines(TOOLS + "objdump", "-d", "-w", "--no-show-raw-insn", path):
            found = LINE.match(line)
            if found:
                self.at.append(int(found.group(1), 16))
                self.mnemonic.append(found.group(2))
                self.operands.append(found.group(3).partition(COMMENT)[0].partition(" <")[0].strip())
                plt = PLT_NAME.search(found.group(3))
                if plt:
                    self.plt_names[self.at[-1]] = plt.group(1)

    def between(self, begin, end):
        for i in range(bisect.bisect_left(self.at, begin), bisect.bisect_left(self.at, end)):
            yield self.at[i], self.mnemonic[i], self.operands[i]


def get_access_bytes(mnemonic, operands):
    """A lower bound of the bytes accessed; some instructions do not show their size."""
    sizes = {"%x": 16, "%y": 32, "%z": 64}
    if mnemonic.startswith(("fld", "fst")) and mnemonic.endswith("t"):
        return 10
    if mnemonic in ("movups", "movaps", "movdqu", "movdqa", "movupd", "movapd", "vmovups", "vmovdqu",
                    "vmovdqa", "vmovaps"):
        return max(sizes.get(register[:2], 8) for register in re.findall(r"%\w+", operands))
    for suffix, size in (("q", 8), ("l", 4), ("w", 2), ("b", 1)):
        if mnemonic.endswith(suffix) and not mnemonic.startswith("mov"):
            return size
    return 8 if re.search(r"%r(?!sp|bp)\w+", operands) and mnemonic == "mov" else 1


def reaches_out(mnemonic, operands, cfa, words):
    """Does a memory operand access the caller's frame, beyond the copied words, or the return address?"""
    if not cfa or mnemonic.startswith("nop") or (mnemonic.startswith("lea") and operands.endswith(",%rsp")):
        return False
    for displacement, register, index in OPERAND.findall(operands):
        if register == "%" + cfa[0]:
            place = int(displacement or "0", 16) - cfa[1]
            copied = (not index and not mnemonic.startswith("lea") and place >= 0 and
                      place + get_access_bytes(mnemonic, operands) <= 8 * words)
            if place >= RETURN_ADDRESS_AT and not copied:
                return True
    return False


def find_problems(code, part, words, cfa_at, is_allowed_target, function):
    """Yields (address, mnemonic, operands, reason) for what a proven function must not contain; the reason is the CFA
    if an operand reaches the caller's frame.  A function with a tail exit leaves all arguments to its tail target."""
    touched = words if function.get("ends_at_jump_to") is None else 0
    for at, mnemonic, operands in code.between(*part):
        cfa = cfa_at(at)
        if reaches_out(mnemonic, operands, cfa, touched):
            yield at, mnemonic, operands, cfa
        if mnemonic.startswith(("ret", "iret", "lret")) and (operands or mnemonic[0] != "r"):
            yield at, mnemonic, operands, "returns with another instruction"
        target = JUMP.match(mnemonic) and TARGET.match(operands)
        if target and cfa == ENTRY and not is_allowed_target(at, int(target.group(1), 16), words, function):
            yield at, mnemonic, operands, "jumps to an unproven function"


def check(hotfn, path):
    scan = json.loads(subprocess.run([hotfn, "scan", "--json", "--timed", path], capture_output=True,
                                     text=True, check=True).stdout)
    base = elf_tables.lowest_load_address(path)
    proven = [f for f in scan["functions"] if f.get("timing") == "full"]
    parts = find_parts(path, scan["functions"], base)
    places, cfas = frame_rows(path)
    entries = {base + f["rva"]: f for f in scan["functions"] if f["verdict"] != "fragment"}
    code = Code(path)

    def cfa_at(at):
        i = bisect.bisect_right(places, at) - 1
        return cfas[i] if i >= 0 else None

    named = {name: f for f in entries.values() for name in f["names"]}
    wrong, seen, known = [], 0, {(f["rva"], f["argument_words"]) for f in proven}
    pending = [(f, f["argument_words"]) for f in proven]

    def is_allowed_target(at, target, words, f):
        other = entries.get(target)
        own = base + f["rva"] < at < base + f["rva"] + f["size"]
        if other and own and f.get("ends_at_jump_to") == other["rva"]:
            return True                         # a tail exit
        if other and other["reason"] == "plt":
            name = code.plt_names.get(at, "")
            if name in standard_names.LISTED:     # standard_names.py checks what these take
                return True
            other = named.get(name, other) if name.startswith("_Z") else other
        if other and other.get("ends_at_jump_to") is not None:
            return False
        if not other or other.get("timing") == "full" and other["argument_words"] <= words:
            return True
        if other.get("timing_reason") not in CHECKED_LIKE_PROVEN:
            return False
        if (other["rva"], words) not in known:
            known.add((other["rva"], words))
            pending.append((other, words))
        return True

    while pending:
        f, words = pending.pop()
        for part in parts[f["rva"]]:
            seen += bisect.bisect_left(code.at, part[1]) - bisect.bisect_left(code.at, part[0])
            wrong += [(f["name"], hex(at), *rest)
                      for at, *rest in find_problems(code, part, words, cfa_at, is_allowed_target, f)]
    ends = sum(f.get("ends_at_jump_to") is not None for f in proven)
    return (f"{len(proven)} proven, {ends} with a tail exit, {seen} instructions, {len(wrong)} problems", wrong, bool(proven and seen))


def main():
    return each_file.run(USUAL, check)


if __name__ == "__main__":
    sys.exit(main())
