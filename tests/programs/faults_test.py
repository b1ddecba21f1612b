# SPDX-License-Identifier: MIT
"""Programs that catch faults of their own instructions, by exception tables or by the faulting address: with
hooks they print what they print without."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"


def check_same_output(program):
    bare = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
    for mode in ([], ["--mode", "time"]):
        done = subprocess.run([HOTFN, "run", "-q", "--no-cache", *mode, "-o", program.with_suffix(".hfr"), "--", program],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout == bare, (program.name, mode, bare, done)


def exceptions_of_faults_reach_their_landing_pads(place):
    for level in ("-O0", "-O1", "-O2", "-Os"):
        program = place / f"cxx{level}"
        subprocess.run(["g++", *FLAGS, level, "-fnon-call-exceptions", "-o", program, SRC / "non_call_exceptions.cc"],
                       check=True)
        check_same_output(program)


def ada_handles_a_fault_as_an_exception(place):
    if FLAGS or not shutil.which("gnatmake"):
        raise cases.Skipped("no gnatmake for this target")
    subprocess.run(["gnatmake", "-q", SRC / "handled_faults.adb", "-cargs", "-O2", "-gnatp", "-fno-ipa-sra",
                    "-fnon-call-exceptions"], cwd=place, check=True)
    check_same_output(place / "handled_faults")


def handlers_know_faults_by_their_addresses(place):
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        for level in ("-O0", "-O1", "-O2", "-Os"):
            for flags in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
                program = place / f"{compiler}{level}{flags[1]}"
                subprocess.run([compiler, *FLAGS, level, *flags, "-o", program, SRC / "fault_ranges.c"], check=True)
                check_same_output(program)
                bare = subprocess.run([program], check=True, capture_output=True, text=True).stdout
                assert "unknown" not in bare, bare
    for _ in range(2):  # the second run takes the verdicts from the cache
        done = subprocess.run([HOTFN, "run", "-q", "-o", place / "twice.hfr", "--", program], capture_output=True,
                              text=True, timeout=60, env={**os.environ, "XDG_CACHE_HOME": str(place / "cache")})
        assert done.returncode == 0 and done.stdout == bare, (bare, done)


def arm64_functions_are_recognised(place):
    if FLAGS or not shutil.which("aarch64-linux-gnu-gcc"):
        raise cases.Skipped("no aarch64-linux-gnu-gcc for this target")
    for flags in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
        program = place / f"arm64{flags[1]}"
        subprocess.run(["aarch64-linux-gnu-gcc", "-O2", *flags, "-o", program, SRC / "fault_ranges.c"], check=True)
        scan = subprocess.run([HOTFN, "scan", "--json", program], check=True, capture_output=True, text=True).stdout
        known = {f["name"]: f["reason"] for f in json.loads(scan)["functions"] if f["name"].startswith("by_")}
        assert {known[name] for name in known if not name.endswith("_end")} == {"fault-known"}, known


CASES = [exceptions_of_faults_reach_their_landing_pads, ada_handles_a_fault_as_an_exception,
         handlers_know_faults_by_their_addresses, arm64_functions_are_recognised]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["g++"]))
