#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of own_frames.py for 32-bit x86 files.  A proven function accesses no more words of its caller's
frame than the scan reports (the stub copies these), takes no address of them, does not access its return
address, and pops as many words as the scan reports; readelf's frames give the distances.
Arguments: the hotfn program; then files, or none for the usual ones."""
import re
import sys

import own_frames

USUAL = ["/usr/lib32/" + name for name in ("libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")]
WORD = 4
own_frames.ENTRY = ("esp", WORD)
own_frames.ROW = re.compile(r"^([0-9a-f]{8}) (\S+)")
own_frames.CFA = re.compile(r"^(esp|ebp)\+(\d+)$")


def reaches_out(mnemonic, operands, cfa, words):
    """Does a memory operand access the return address, or bytes beyond the copied words?"""
    if not cfa or mnemonic.startswith("nop") or (mnemonic == "lea" and operands.endswith(",%esp")):
        return False
    for displacement, register, index in own_frames.OPERAND.findall(operands):
        if register == "%" + cfa[0]:
            place = int(displacement or "0", 16) - cfa[1]
            if (place >= -WORD and (mnemonic == "lea" or not 0 <= place < WORD * words)):
                return True
    return False


def find_problems(code, part, words, cfa_at, is_allowed_target, function):
    popped = function["popped_words"] or 0
    for at, mnemonic, operands in code.between(*part):
        cfa = cfa_at(at)
        if reaches_out(mnemonic, operands, cfa, words):
            yield at, mnemonic, operands, cfa, words
        if mnemonic.startswith(("ret", "iret", "lret")) and (
                mnemonic[0] != "r" or int(operands.lstrip("$") or "0", 16) != WORD * popped):
            yield at, mnemonic, operands, "returns with another instruction", popped
        target = own_frames.JUMP.match(mnemonic) and own_frames.TARGET.match(operands)
        if target and cfa == own_frames.ENTRY and not is_allowed_target(at, int(target.group(1), 16), words, function):
            yield at, mnemonic, operands, "jumps to an unproven function"


own_frames.find_problems = find_problems
own_frames.USUAL = USUAL

if __name__ == "__main__":
    sys.exit(own_frames.main())
