#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the machine code that runs between a stub and its function, as the compiler generated it: it calls
no function outside the given archives and uses no vector register, and no C function in it ends in a jump to
another function.  Before such a jump the registers are restored already, so the other function would get wrong
arguments.

    check_slow_path.py ARCHIVE...
"""
import re
import subprocess
import sys

VECTOR = re.compile(r"%(?:[xyz]?mm\d+|st\b|k[0-7]\b)")


JUMP = re.compile(r"\tjmp +\S+ <(\S+?)(\+0x[0-9a-f]+)?>")
LABEL = re.compile(r"^[0-9a-f]+ <(\S+)>:")
RELOCATION = re.compile(r": R_(?:X86_64|386)_(?:PLT32|PC32)\t(\w+)")
SYSTEM_CALL = re.compile(r"\tsyscall|\tint +\$0x80")


def jumps_out(code):
    """Yield the jumps of C functions to other functions.  Assembly is skipped: its names contain _entry."""
    name, jumped = "", False
    for line in code.splitlines():
        label, jump, reloc = LABEL.match(line), JUMP.search(line), RELOCATION.search(line)
        if label:
            name = label.group(1)
        elif reloc and jumped and reloc.group(1) != ".text":
            yield f"{name} jumps to {reloc.group(1)}"
        elif jump and jump.group(1) != name and name.startswith("hfn_") and "_entry" not in name:
            yield f"{name} jumps to {jump.group(1)}"
        jumped = bool(jump) and "_entry" not in name and name.startswith("hfn_")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    archives = sys.argv[1:]
    rows = [line.split()[-2:] for line in run("nm", *archives).splitlines() if line[-1:] not in ("", ":")]
    outside = {name for kind, name in rows if kind == "U"} - {name for kind, name in rows if kind != "U"}
    outside -= {"_GLOBAL_OFFSET_TABLE_"}
    problems = [f"calls or reads {name}" for name in sorted(outside) if not name.startswith("hfn_")]
    problems += [f"calls {name}, which does not belong to the hot path" for name in sorted(outside)
                 if name.startswith("hfn_os_")]
    code = run("objdump", "-d", "--no-show-raw-insn", *archives)
    problems += [line.strip() for line in code.splitlines() if VECTOR.search(line)]
    problems += jumps_out(run("objdump", "-dr", "--no-show-raw-insn", *archives))
    if not SYSTEM_CALL.search(code):
        problems.append("the archives contain no system call: pass the archives of the slow path")
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
