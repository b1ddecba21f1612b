# SPDX-License-Identifier: MIT
"""Hot reload: a plugin's file is overwritten, replaced and deleted while its program runs.  Each build is analysed by
its own code and counted under its own names, however often a path or an inode is reused."""
import json
import os
import pathlib
import platform
import subprocess
import sys

import cases

HOTFN = pathlib.Path(os.environ["HOTFN"])
SRC = pathlib.Path(__file__).resolve().parent / "src"
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()
ANSWERS = ["1 111", "10 222", "1 111", "1 111", "10 222", "1 111"]
CALLS = {"first": 10 + 10 + 100 + 1000, "second": 10 + 100}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{command[0]}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def gcc(place, *words):
    done = subprocess.run(["gcc", *FLAGS, "-O1", *map(str, words)], cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise cases.Skipped(f"gcc: {done.stderr[-300:]}")


def build(place, *flags):
    gcc(place, SRC / "reload.c", "-o", "reload", *flags, "-ldl")
    for number, name in enumerate(("one.so", "two.so"), 1):
        gcc(place, "-shared", "-fPIC", f"-DBUILD={number}", SRC / "reload_plugin.c", "-o", name)
    return [place / name for name in ("reload", "live.so", "one.so", "two.so")]


def check_counts(record):
    text = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    calls = dict.fromkeys(CALLS, 0)
    for function in json.loads(text.stdout)["functions"]:
        if function["name"] in calls and function["calls"] is not None:
            calls[function["name"]] += function["calls"]
    assert calls == CALLS, calls


def check_run(place):
    command, record = build(place), place / "run.hfr"
    assert run(*command) == ANSWERS
    for mode in (["--mode", "count"], ["--mode", "time"], ["--mode", "time", "--no-cache"]):
        assert run(HOTFN, "run", "-q", "-o", record, *mode, "--module", "live.so", "--module", "two.so", "--",
                   *command) == ANSWERS, mode
        check_counts(record)


def check_session(place):
    if FLAGS:
        raise cases.Skipped("the library is not built for this target")
    folder = HOTFN.resolve().parents[2] / "src"
    command = build(place, "-DSESSION", "-I", SRC.parents[2] / "include", "-L", folder, "-lhotfn", f"-Wl,-rpath,{folder}")
    assert run(*command, place / "own.hfr") == [*ANSWERS, "hooked 1", "hooked 0"]
    check_counts(place / "own.hfr")


if __name__ == "__main__":
    if platform.machine() not in ("x86_64", "i686"):
        print("skipped: the plugin is x86 code")
        sys.exit(cases.SKIPPED)
    sys.exit(cases.run([check_run, check_session], needs=["gcc"]))
