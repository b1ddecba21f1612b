# SPDX-License-Identifier: MIT
"""Functions that begin with a call are hooked, and the callee sees the original return address: exceptions pass, and
the profile that -pg writes has the same functions and counts with hooks as without."""
import json
import os
import pathlib
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
SRC = pathlib.Path(__file__).resolve().parent / "src"
CALLS = {"leaf": 300, "first_calls": 300, "middle": 300, "jumps": 300}


def run_and_compare(program, *mode):
    bare = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
    record = program.with_suffix(".hfr")
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", *mode, "-o", record, "--", program], capture_output=True,
                          text=True, timeout=60, cwd=program.parent)
    assert done.returncode == 0 and done.stdout == bare, (program.name, mode, bare, done)
    report = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True,
                                       text=True).stdout)
    calls = {f["name"]: f["calls"] for f in report["functions"]}
    assert {name: calls.get(name) for name in CALLS} == CALLS, (program.name, mode, calls)


def build(program, *flags):
    subprocess.run(["g++", "-O2", *flags, "-o", program, SRC / "entry_calls.cc"], check=True)
    return program


def calls_through_memory_return_to_the_original_code(place):
    # the linker makes a call of a function of the program direct, with a prefix in front of it
    (place / "own.s").write_text(".globl __fentry__\n.type __fentry__, @function\n__fentry__: ret\n"
                                 ".section .note.GNU-stack\n")
    for number, flags in enumerate((["-fno-plt"], ["-fno-plt", "-fcf-protection"], ["-pg", "-mfentry"],
                                    ["-pg", "-mfentry", "-no-pie"], ["-pg", "-mfentry", "-fcf-protection"],
                                    ["-pg", "-mfentry", place / "own.s"],
                                    ["-pg", "-mfentry", "-fcf-protection", place / "own.s"])):
        program = build(place / f"program{number}", *flags)
        run_and_compare(program)
        run_and_compare(program, "--mode", "time")


def the_profile_of_pg_names_the_same_functions(place):
    program = build(place / "profiled", "-pg", "-mfentry")
    shown = []
    for command in ([program], [HOTFN, "run", "-q", "--no-cache", "-o", place / "run.hfr", "--", program]):
        (place / "gmon.out").unlink(missing_ok=True)
        subprocess.run(command, check=True, cwd=place, capture_output=True)
        graph = subprocess.run(["gprof", "-b", "-q", program, place / "gmon.out"], check=True, capture_output=True,
                               text=True).stdout
        # name and number of calls; times differ between runs
        shown.append(sorted(words[-2] + " " + words[-3] for words in map(str.split, graph.splitlines())
                            if len(words) > 3 and words[-1].startswith("[") and "/" in words[-3]))
    assert any(line.startswith("leaf 300/") for line in shown[0]), shown
    assert shown[0] == shown[1], shown


CASES = [calls_through_memory_return_to_the_original_code, the_profile_of_pg_names_the_same_functions]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["g++", "gprof"]))
