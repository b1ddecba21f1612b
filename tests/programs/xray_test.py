# SPDX-License-Identifier: MIT
"""Entries that XRay's runtime overwrites while the program runs are refused; the other functions are counted."""
import json
import os
import pathlib
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
SOURCE = pathlib.Path(__file__).resolve().parent / "src" / "xray.c"


def functions_with_sleds_are_refused(place):
    program, record = place / "program", place / "run.hfr"
    done = subprocess.run(["clang", "-O1", "-fxray-instrument", "-o", program, SOURCE], capture_output=True, text=True)
    if done.returncode != 0:
        raise cases.Skipped("clang cannot link XRay's runtime: " + done.stderr[-200:])
    environment = {**os.environ, "XRAY_OPTIONS": "patch_premain=true xray_mode=xray-basic verbosity=0"}
    bare = subprocess.run([program], check=True, capture_output=True, text=True, cwd=place, env=environment).stdout
    for mode in ([], ["--mode", "time"]):
        hooked = subprocess.run([HOTFN, "run", "-q", "--no-cache", *mode, "-o", record, "--", program], check=True,
                                capture_output=True, text=True, cwd=place, env=environment).stdout
        assert hooked == bare, (mode, bare, hooked)
        report = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True,
                                           capture_output=True, text=True).stdout)
        calls = {f["name"]: f["calls"] for f in report["functions"]}
        assert calls["without_sled"] == 1000 and calls.get("with_sled") is None, (mode, calls["without_sled"])
    scan = json.loads(subprocess.run([HOTFN, "scan", "--json", "--why", program], check=True, capture_output=True,
                                     text=True).stdout)
    reasons = {f["display"]: f["reason"] for f in scan["functions"] if f["verdict"] == "refused"}
    assert reasons["with_sled"] == reasons["main"] == "runtime-reads", reasons


CASES = [functions_with_sleds_are_refused]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["clang"]))
