# SPDX-License-Identifier: MIT
"""While one thread counts alone, direct calls of what a run before called most count at a fixed address.
No call is lost or counted twice when a second thread comes in the middle of it, announced or not, when a
child is forked, or when a signal strikes."""
import json
import os
import subprocess
import sys
from pathlib import Path

import cases

HOTFN = os.environ["HOTFN"]
SOURCE = Path(__file__).resolve().parent / "src" / "sole.c"


class Case:
    """A folder with the program, of which a run before is known."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.record = self.folder / "r.hfr"
        self.world = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", self.folder / "sole", SOURCE], check=True)
        self.first = self.run("maps")

    def run(self, how, options=()):
        return subprocess.run([HOTFN, "run", "-q", "-o", self.record, *options, "--", self.folder / "sole", how],
                              env=self.world, check=True, capture_output=True, text=True, timeout=300).stdout

    def compare(self, how, options=()):
        out = self.run(how, options)
        report = json.loads(subprocess.run([HOTFN, "report", self.record, "--json", "-n", "0"], check=True,
                                           capture_output=True, text=True).stdout)
        calls = {f["name"]: f["calls"] for f in report["functions"]}
        lines = [line.split() for line in out.splitlines() if line.startswith("total ")]
        wrong = [f"{name}: {calls[name]} counted, {total} made" for _, name, total in lines if calls[name] != int(total)]
        if wrong or not lines:
            raise AssertionError(f"{how}: {'; '.join(wrong) or out!r}; threads: {report['threads']}"[:2000])


def counts_in_a_second_mapping_of_the_row(case):
    first, later = (text.count("mapped") for text in (case.first, case.run("maps")))
    if later != first + 1:
        raise AssertionError(f"the record was mapped {first} times at first, {later} times later")
    for options in (["--no-cache"], ["--budget", "50%"], ["--mode", "time"]):
        again = case.run("maps", options).count("mapped")
        if again != first:
            raise AssertionError(f"the record was mapped {first} times at first, with {options} {again} times")


def loses_no_call_when_threads_begin(case):
    for how in ("thread", "threads") * 5:
        case.compare(how)


def loses_no_call_when_a_thread_begins_that_nobody_announced(case):
    for _ in range(10):
        case.compare("clone")


def counts_both_sides_of_a_fork(case):
    for _ in range(5):
        case.compare("fork")


def loses_no_call_to_signals(case):
    case.compare("signals")
    case.compare("alone")


CASES = [f for f in list(globals().values())
         if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("case",)]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"], make=Case))
