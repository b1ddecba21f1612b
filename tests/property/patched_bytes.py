#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No branch that objdump shows targets a byte that a plain jump overwrites, except the first one, in 32-bit
code.  Arguments: the hotfn program; then files, or none for the usual ones."""
import json
import re
import subprocess
import sys

import each_file

USUAL = ["/usr/lib32/libc.so.6", "/usr/lib32/libm.so.6", "/usr/lib32/libstdc++.so.6"]
JUMP_BYTES = 5
BRANCH = re.compile(r"^ *([0-9a-f]+):\t.*\t(?:bnd |notrack )?(j\w+|call|loop\w*) +(?:0x)?([0-9a-f]+)\b")
LANDING_PAD = re.compile(r"^ *([0-9a-f]+):\t.*\tendbr")


def disassemble(path):
    """{target: a branch to it}, {addresses of landing pads}"""
    targets, pads = {}, set()
    out = subprocess.Popen(["objdump", "-d", "-w", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True)
    for line in out.stdout:
        line = line.replace(":\t", ":\t\t", 1)
        branch = BRANCH.match(line)
        if branch:
            targets[int(branch.group(3), 16)] = branch.group(1)
        pad = LANDING_PAD.match(line)
        if pad:
            pads.add(int(pad.group(1), 16))
    out.wait()
    return targets, pads


def check(hotfn, path):
    scan = json.loads(subprocess.run([hotfn, "scan", "--json", path], capture_output=True, text=True,
                                     check=True).stdout)
    targets, pads = disassemble(path)
    jumps = [f for f in scan["functions"] if f["strategy"] == "jump"]
    wrong = []
    for function in jumps:
        site = function["rva"] + (4 if function["rva"] in pads else 0)
        wrong += [(function["name"], hex(at), targets[at]) for at in range(site + 1, site + JUMP_BYTES)
                  if at in targets]
    return f"{len(jumps)} jumps, {len(targets)} targets of branches, none inside", wrong, bool(jumps and targets)


if __name__ == "__main__":
    sys.exit(each_file.run(USUAL, check))
