#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Objective-C messages of AArch64 programs under qemu-user: the stand-in for libobjc2, and a generated program of GCC's
runtime (package gobjc-12-aarch64-linux-gnu, else skipped).  Arguments: the AArch64 build (scripts/cross), a native hotfn."""
import os
import pathlib
import re
import subprocess
import sys

os.environ["HOTFN"] = sys.argv[2]  # before objc_test is imported
from arm64_test import BUILDS, CPUS, ROOT, RUNS, Bench, Skipped, main  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import objc_test  # noqa: E402  (a sibling folder)

MODES = ((), ("--mode", "time"))


class Output:
    def __init__(self, stdout):
        self.stdout, self.stderr = stdout, ""


def check_standin(bench, build, cpu):
    program = objc_test.build_standin(pathlib.Path(bench.folder), "aarch64-linux-gnu-g++", *BUILDS[build])
    bare = bench.plain(program, CPUS[cpu])
    for mode in MODES:
        out, report = bench.counted(program, CPUS[cpu], "--runtime", "objc", *mode)
        functions = {f["name"]: f for f in report["functions"] if f["calls"] is not None}
        objc_test.check_standin(bare, Output(out), functions)
        timed = [f["name"] for f in functions.values() if f.get("timing") == "full" and f["name"][0] in "-+"]
        assert bool(timed) == bool(mode) and all(
            functions[name]["timed_calls"] == functions[name]["calls"] for name in timed), functions


def check_generated(bench, build, cpu):
    source, program = bench.path("generated.m"), bench.path("generated")
    pathlib.Path(source).write_text(objc_test.Generated(2).text)
    done = subprocess.run(["aarch64-linux-gnu-gcc-12", "-std=gnu11", "-O2", "-w", "-fobjc-exceptions", "-pthread", *BUILDS[build],
                           "-o", program, source, "-lobjc"], capture_output=True, text=True, check=False)
    if "cannot execute" in done.stderr or not os.path.exists(os.path.join(ROOT, "lib/libobjc.so.4")):
        raise Skipped("gcc has no Objective-C for AArch64 (package gobjc-12-aarch64-linux-gnu)")
    assert done.returncode == 0, done.stderr
    bare = bench.plain(program, CPUS[cpu])
    expected = {name: int(calls) for name, calls in re.findall(r"(.*)\t(\d+)", bare)}
    for mode in MODES:
        out, report = bench.counted(program, CPUS[cpu], "--runtime", "objc", *mode)
        found = {f["name"]: f["calls"] for f in report["functions"] if f["calls"] is not None}
        wrong = {name: (calls, found.get(name)) for name, calls in expected.items() if calls != found.get(name, 0)}
        assert out == bare and not wrong and sum(expected.values()) > 1000, wrong


if __name__ == "__main__":
    sys.exit(main([(check, b, c) for check in (check_standin, check_generated) for b, c in RUNS]))
