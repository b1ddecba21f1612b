# SPDX-License-Identifier: MIT
"""A program that times its own functions with a session: the record, and the cases that are refused."""
import json
import os
import pathlib
import platform
import subprocess
import sys

import cases

HOTFN = pathlib.Path(os.environ["HOTFN"])
SRC = pathlib.Path(__file__).resolve().parent / "src"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command[0]}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(place, *flags):
    folder = HOTFN.resolve().parents[2] / "src"
    done = subprocess.run(["g++", "-O2", *flags, SRC / "own_times.cpp", "-o", "own", "-I", SRC.parents[2] / "include", "-L",
                           folder, "-lhotfn", f"-Wl,-rpath,{folder}"], cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise cases.Skipped(f"g++: {done.stderr[-300:]}")
    return place / "own", place / "own.hfr"


def check_record_has_calls_and_times(place):
    program, record = build(place)
    assert run(program, record) == "20 caught\n"
    text = json.loads(run(HOTFN, "report", "--json", "-n", "0", record))
    thrower, = (function for function in text["functions"] if function["name"] == "t_thrower")
    assert thrower["calls"] == 100
    assert thrower["timing"] == "count-only" or thrower["timed_calls"] == 100, thrower
    assert "t_thrower" in run(HOTFN, "report", record)


def check_own_unwinder_is_refused(place):
    """hotfn registers its frames with libgcc_s; an unwinder linked into the program would not find them, and an
    exception would end the program."""
    program, record = build(place, "-static-libgcc")
    output = run(program, record)
    assert output.startswith("HOTFN_E_UNSUPPORTED: ") and "-static-libgcc" in output, output


def check_session_inside_hotfn_run_is_refused(place):
    program, record = build(place)
    for mode in "count", "time":
        output = run(HOTFN, "run", "-q", "--mode", mode, "-o", place / "run.hfr", "--", program, record)
        assert output.startswith("HOTFN_E_STATE: `hotfn run` hooks this process already"), output
        assert not record.exists()


def check_disabled_tsc_is_not_read(place):
    program, record = build(place)
    assert run(program, record, "noclock").startswith("HOTFN_E_UNSUPPORTED: this process may not read its clock")


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: the clock is the TSC of x86")
        sys.exit(cases.SKIPPED)
    sys.exit(cases.run([check_record_has_calls_and_times, check_own_unwinder_is_refused, check_session_inside_hotfn_run_is_refused,
                        check_disabled_tsc_is_not_read], needs=["g++"]))
