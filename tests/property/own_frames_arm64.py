#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""own_frames.py's claims of AArch64 files, by the cross binutils: in a function that is proven no operand by sp
or x29 reaches further above the CFA than is copied or has an index, no address at or above it is made, x30 is
kept, checked and returned to and not otherwise read, and a jump out at the entry's depth leads to a proven function.
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


def bytes_of(mnemonic, operands):
    """That are read or written."""
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
    """A memory operand at or above the CFA, but in the first words there; an address that is made there."""
    for register, displacement, index in OPERAND.findall(operands):
        place = int(displacement or "0", 0) - cfa[1]
        copied = not index and place >= 0 and place + bytes_of(mnemonic, operands) <= 8 * words
        if register == cfa[0] and (index or place >= 0) and not copied:
            return True
    made = mnemonic == "add" and ADDRESS.match(operands)
    if made and made[1] != "sp" and made[2] == cfa[0]:
        return (int(made[3], 16) << (12 if made[4] else 0)) - cfa[1] >= 0
    moved = mnemonic == "mov" and MOVE.match(operands)
    return bool(moved and moved[2] == cfa[0] and cfa[1] == 0)


def reads_return_address(mnemonic, operands):
    """x30 other than kept in the own frame, signed, checked, or written."""
    if not re.search(r"\b[xw]30\b", operands):
        return False
    if mnemonic.startswith(KEEPS):
        base = OPERAND.search(operands)
        return bool(base and base[1] not in ("sp", "x29") and mnemonic.startswith("st"))
    return not re.match(r"[xw]30, ", operands) or mnemonic.startswith("cb") or mnemonic in ("cmp", "tst")


def overwrites(mnemonic, operands):
    """x30, by something else than what was kept of it."""
    if mnemonic.startswith("ld"):
        base = OPERAND.search(operands)
        return bool(base and base[1] not in ("sp", "x29") and re.search(r"\bx30,", operands))
    return operands.startswith(("x30,", "w30,")) and not mnemonic.startswith(KEEPS)


def wrong_in(code, piece, words, cfa_at, leads_well, function):
    free = False    # x30 was overwritten further up: what it holds is no return address any more
    for at, mnemonic, operands in code.between(*piece):
        cfa = cfa_at(at)
        if cfa and reaches_out(mnemonic, operands, cfa, words):
            yield at, mnemonic, operands, cfa
        if not free and reads_return_address(mnemonic, operands):
            yield at, mnemonic, operands, "reads the return address"
        free = free or mnemonic in ("bl", "blr") or overwrites(mnemonic, operands)
        if mnemonic == "ret" and operands not in ("", "x30"):
            yield at, mnemonic, operands, "returns otherwise"
        target = BRANCHES.match(mnemonic) and TARGET.search(operands)
        if target and cfa == ("sp", 0) and not leads_well(at, int(target.group(1), 16), words, function):
            yield at, mnemonic, operands, "leads to what is not proven"


own_frames.wrong_in = wrong_in
own_frames.USUAL = USUAL
own_frames.TOOLS = "aarch64-linux-gnu-"
own_frames.ENTRY = ("sp", 0)
own_frames.COMMENT = "//"

if __name__ == "__main__":
    sys.exit(own_frames.main())
