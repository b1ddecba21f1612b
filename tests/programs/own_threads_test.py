# SPDX-License-Identifier: MIT
"""Programs whose threads have thread blocks of their own: they run as without hooks, their calls are counted exactly,
and no memory near the block changes."""
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
WAYS = ["clone", "system-call", "pointer"] + ([] if FLAGS else ["number"])
MODES = {"count": [], "tick": ["--mode", "time"], "counter": ["--mode", "time", "--clock", "cpu"],
         "sampled": ["--mode", "time", "--sample", "2"], "all modules": ["--module", "*"]}


def build(place, compiler, level):
    program = place / f"{compiler}{level}"
    subprocess.run([compiler, *FLAGS, level, "-Wall", "-Wextra", "-Werror", "-o", program, SRC / "own_threads.c"],
                   check=True)
    return program


def report(record):
    out = subprocess.run([HOTFN, "report", "--json", record], check=True, capture_output=True, text=True).stdout
    return {f["name"]: f for f in json.loads(out)["functions"]}


def check_run(program, way, mode, place):
    options = MODES[mode]
    record = place / "threads.hfr"
    for memory in ([], ["mapped"]) if mode in ("count", "tick") else ([],):
        done = subprocess.run([HOTFN, "run", "-q", "--no-cache", *options, "-o", record, "--", program, way, *memory],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout == f"{way}: 2000\n", (program.name, way, options, done)
        functions = report(record)
        assert functions["add_one"]["calls"] == 2000 and functions["add_many"]["calls"] == 2, (way, options)


def threads_with_blocks_of_their_own_are_counted_exactly(place):
    for compiler in filter(shutil.which, ("gcc", "clang")):
        for level in ("-O0", "-O2"):
            program = build(place, compiler, level)
            for way in WAYS:
                for mode in MODES if level == "-O2" else ("count", "tick"):
                    check_run(program, way, mode, place)


def their_functions_are_counted_only(place):
    program = build(place, "gcc", "-O2")
    record = place / "timed.hfr"
    subprocess.run([HOTFN, "run", "-q", "--mode", "time", "-o", record, "--", program], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    functions = report(record)
    assert functions["add_one"]["timing_reason"] == "own-threads", functions["add_one"]
    out = subprocess.run([HOTFN, "info", record], check=True, capture_output=True, text=True).stdout
    assert "sets thread pointers itself" in out, out


def no_module_of_such_a_process_is_timed(place):
    record = place / "all.hfr"
    subprocess.run([HOTFN, "run", "-q", "--mode", "time", "--module", "*", "-o", record, "--",
                    build(place, "gcc", "-O2")], check=True, timeout=60, stdout=subprocess.DEVNULL)
    out = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True, text=True).stdout
    hooked = [f for f in json.loads(out)["functions"] if f["state"] == "hooked"]
    assert len({f["module"] for f in hooked}) > 1
    assert all(f["timing"] == "count-only" and not f["timed_calls"] for f in hooked)


CASES = [threads_with_blocks_of_their_own_are_counted_exactly, their_functions_are_counted_only,
         no_module_of_such_a_process_is_timed]

if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: the program's system calls are those of x86")
        sys.exit(cases.SKIPPED)
    sys.exit(cases.run(CASES, needs=["gcc"]))
