#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of own_frames.py for AArch64 files, with the cross binutils.  In a proven function no operand based
on sp or x29 reaches above the copied arguments or has an index, no address at or above the CFA is computed, x30
is only saved, authenticated and returned to, and a jump out at the entry's depth leads to a proven function.
Arguments: the hotfn program; then files, or none for the usual ones."""
import re
import sys

import own_frames

USUAL = ["/usr/aarch64-linux-gnu/lib/" + name for name in ("libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")]
own_frames.CFA = re.compile(r"^(sp|x29)\+(\d+)$")
own_frames.LINE = re.compile(r"^ *([0-9a-f]+):\t(\S+)\s*(.*)$")
OPERAND = re.compile(r"\[(\w+)(?:, #(-?(?:0x)?[0-9a-f]+))?(?:, ([xw]\d+)[^\]]*)?\]")
ADDRESS = re.compile(r"^(x\d+|sp), (sp|x29), #(0x[0-9a-f]+)(, lsl #12)?$")
MOVE = re.compile(r"^(x\d+), (sp|x29)$")
TARGET = re.compile(r"(?:^|, )([0-9a-f]+)$")
BRANCHES = re.compile(r"^(b|b\.[a-z]+|cbn?z|tbn?z)$")
KEEPS = ("stp", "str", "ldp", "ldr", "stur", "ldur", "ret", "pacia", "autia", "xpaci")


def get_access_bytes(mnemonic, operands):
    """The number of bytes read or written."""
    register = operands[:1]
    one = {"b": 1, "h": 2, "s": 4, "w": 4, "d": 8, "x": 8, "q": 16}.get(register, 1)
    if mnemonic.endswith("b"):
        one = 1
    elif mnemonic.endswith("h"):
        one = 2
    elif mnemonic.endswith("sw"):
        one = 4
    return 2 * one if mnemonic.endswith("p") or mnemonic == "ldpsw" else one


def reaches_out(mnemonic, operands, cfa, words):
    """Is there a memory operand at or above the CFA, beyond the copied words, or an address computed there?"""
    for register, displacement, index in OPERAND.findall(operands):
        place = int(displacement or "0", 0) - cfa[1]
        copied = not index and place >= 0 and place + get_access_bytes(mnemonic, operands) <= 8 * words
        if register == cfa[0] and (index or place >= 0) and not copied:
            return True
    made = mnemonic == "add" and ADDRESS.match(operands)
    if made and made[1] != "sp" and made[2] == cfa[0]:
        return (int(made[3], 16) << (12 if made[4] else 0)) - cfa[1] >= 0
    moved = mnemonic == "mov" and MOVE.match(operands)
    return bool(moved and moved[2] == cfa[0] and cfa[1] == 0)


def reads_return_address(mnemonic, operands):
    """Is x30 used other than saved in the frame, signed, authenticated or written?"""
    if not re.search(r"\b[xw]30\b", operands):
        return False
    if mnemonic.startswith(KEEPS):
        base = OPERAND.search(operands)
        return bool(base and base[1] not in ("sp", "x29") and mnemonic.startswith("st"))
    return not re.match(r"[xw]30, ", operands) or mnemonic.startswith("cb") or mnemonic in ("cmp", "tst")


def overwrites(mnemonic, operands):
    """Is x30 overwritten with anything but its saved value?"""
    if mnemonic.startswith("ld"):
        base = OPERAND.search(operands)
        return bool(base and base[1] not in ("sp", "x29") and re.search(r"\bx30,", operands))
    return operands.startswith(("x30,", "w30,")) and not mnemonic.startswith(KEEPS)


def find_problems(code, part, words, cfa_at, is_allowed_target, function):
    free = False    # x30 was overwritten before: it no longer holds the return address
    for at, mnemonic, operands in code.between(*part):
        cfa = cfa_at(at)
        if cfa and reaches_out(mnemonic, operands, cfa, words):
            yield at, mnemonic, operands, cfa
        if not free and reads_return_address(mnemonic, operands):
            yield at, mnemonic, operands, "reads the return address"
        free = free or mnemonic in ("bl", "blr") or overwrites(mnemonic, operands)
        if mnemonic == "ret" and operands not in ("", "x30"):
            yield at, mnemonic, operands, "returns with another instruction"
        target = BRANCHES.match(mnemonic) and TARGET.search(operands)
        if target and cfa == ("sp", 0) and not is_allowed_target(at, int(target.group(1), 16), words, function):
            yield at, mnemonic, operands, "jumps to an unproven function"


own_frames.find_problems = find_problems
own_frames.USUAL = USUAL
own_frames.TOOLS = "aarch64-linux-gnu-"
own_frames.ENTRY = ("sp", 0)
own_frames.COMMENT = "//"

if __name__ == "__main__":
    sys.exit(own_frames.main())
