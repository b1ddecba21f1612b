#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The slow path (src/counters/thread_row.c) calls nothing from outside and uses no vector register,
whatever the compiler and its options made of it.

    check_slow_path.py ARCHIVE
"""
import re
import subprocess
import sys

VECTOR = re.compile(r"%(?:[xyz]?mm\d+|st\b|k[0-7]\b)")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    archive = sys.argv[1]
    outside = {line.split()[-1] for line in run("nm", "-u", archive).splitlines() if " U " in line}
    outside -= {"_GLOBAL_OFFSET_TABLE_"}
    own = {name for name in outside if name.startswith("hfn_")}
    problems = [f"calls or reads {name}" for name in sorted(outside - own)]
    code = run("objdump", "-d", "--no-show-raw-insn", archive)
    problems += [line.strip() for line in code.splitlines() if VECTOR.search(line)]
    if "syscall" not in code:
        problems.append("no system call in it: was it the right archive?")
    for problem in problems:
        print(f"{archive}: {problem}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
