#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares lengths, flow and targets of the code of installed x86 programs between hotfn's decoder and
capstone.  Arguments: the decode_dump program; then files, or none for the usual ones."""
import re
import subprocess
import sys
import tempfile

import each_file

try:
    import capstone
except ImportError:
    print("1..0 # SKIP python3-capstone is not installed")
    sys.exit(77)

USUAL_32 = ["/usr/lib32/libc.so.6", "/usr/lib32/libm.so.6", "/usr/lib32/libstdc++.so.6"]
USUAL = ["/bin/bash", "/bin/ls", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6",
         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
         "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"] + USUAL_32
INSTRUCTIONS_MAX = 250_000  # of each file

CONDITIONAL = re.compile(r"^(j(?!mp)\w+|loop\w*|xbegin)$")
# Capstone 4 does not decode these, or decodes them differently from the Intel SDM.
NOT_COMPARED = re.compile(r"^(ud[012]|hint_nop|nop|endbr\w*|notrack|bnd)")
# Instructions that occur only in data: eip-relative memory operands, and branches with prefix 66, whose length
# depends on the CPU's vendor.  hotfn never moves them.
ONLY_IN_DATA = re.compile(r"\[eip|^66 .*\|(j\w+|call|loop\w*) ")


def get_flow(mnemonic, operands):
    name = mnemonic.split()[-1]
    direct = operands.startswith("0x")
    if name == "call":
        return "call" if direct else "call-indirect"
    if name in ("lcall",):
        return "call-indirect"
    if name == "jmp":
        return "jump" if direct else "jump-indirect"
    if name == "ljmp":
        return "jump-indirect"
    if CONDITIONAL.match(name):
        return "jump-if"
    if name in ("ret", "retf", "retfq", "iret", "iretd", "iretq", "sysret", "sysexit"):
        return "return"
    if name in ("int3", "hlt", "ud2", "ud1", "ud0"):
        return "stop"
    return "next"


def get_target(address, length, flow, operands):
    if flow in ("call", "jump", "jump-if"):
        return int(operands, 16)
    memory = re.search(r"\[rip( [+-] (0x[0-9a-f]+|\d+))?\]", operands)
    if not memory:
        return None
    shift = int(memory.group(1).replace(" ", ""), 0) if memory.group(1) else 0
    return (address + length + shift) % 2**64


def is_32_bit(path):
    """EI_CLASS of the gABI, ch. 4."""
    with open(path, "rb") as file:
        return file.read(5)[4] == 1


def read_text(path):
    """(rva, bytes) of .text, from readelf."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\] \.text\s+PROGBITS\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", out)
    address, offset, size = (int(x, 16) for x in match.groups())
    with open(path, "rb") as file:
        file.seek(offset)
        return address, file.read(size)


def dump_instructions(program, cpu, address, code):
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        dump = subprocess.Popen([program, file.name, hex(address), cpu], stdout=subprocess.PIPE, text=True)
        for line in dump.stdout:
            at, length, flow, target = line.split()
            yield int(at, 16), int(length), flow, None if target == "-" else int(target, 16)
        dump.wait()


def compare(program, path):
    address, code = read_text(path)
    narrow = is_32_bit(path)
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_32 if narrow else capstone.CS_MODE_64)
    compared = unknown = 0
    differing = []
    for at, length, flow, target in dump_instructions(program, "i386" if narrow else "x86-64", address, code):
        if compared + unknown >= INSTRUCTIONS_MAX or len(differing) >= 10:
            break
        other = next(decoder.disasm_lite(code[at:at + 15], address + at, 1), None)
        text = f"{code[at:at + length].hex(' ')}|{other[2]} {other[3]}" if other else ""
        if not other or NOT_COMPARED.match(other[2]) or ONLY_IN_DATA.search(text) or flow == "bad":
            unknown += 1
            continue
        other_flow = get_flow(other[2], other[3])
        other_target = get_target(address + at, other[1], other_flow, other[3])
        compared += 1
        if (length, flow, target) != (other[1], other_flow, other_target):
            differing.append((code[at:at + 15].hex(" "), (length, flow, target), other))
    return f"{compared} agree, {unknown} unknown to capstone", differing, unknown <= compared // 10


if __name__ == "__main__":
    sys.exit(each_file.run(USUAL, compare))
