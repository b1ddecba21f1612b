# SPDX-License-Identifier: MIT
"""Helpers of the tests in this folder.  Each case runs in its own temporary folder; `NAME_test.py CASE ...` runs
only the named cases; a measurement must hold in a quorum of runs."""
import pathlib
import shutil
import sys
import tempfile
import traceback

SKIPPED = 77


class Skipped(Exception):
    """A requirement of a case is missing; the text names it."""


def run(cases, needs=(), make=pathlib.Path):
    """Run each case with make(its folder).  Returns the exit status: 0, 1 if a case failed, 77 if all were skipped."""
    missing = [tool for tool in needs if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {missing[0]} on this system")
        return SKIPPED
    wanted = [case for case in cases if case.__name__ in sys.argv[1:] or len(sys.argv) == 1]
    failed = skipped = 0
    for case in wanted:
        with tempfile.TemporaryDirectory(prefix="hotfn_case_") as folder:
            try:
                case(make(folder))
                print("ok", case.__name__, flush=True)
            except Skipped as reason:
                skipped += 1
                print("skipped", case.__name__, reason, flush=True)
            except Exception:
                failed += 1
                print("not ok", case.__name__)
                traceback.print_exc(file=sys.stdout)
    return 1 if failed or not wanted else SKIPPED if skipped == len(wanted) else 0


def check_most_runs(measure, quorum=7, runs=10):
    """Each claim must hold in `quorum` of `runs` runs.  `measure` makes one run and returns {claim: values found}
    for the claims that did not hold.  Other programs may disturb single runs; a defect shows in most runs."""
    failures, last = {}, {}
    for done in range(1, runs + 1):
        failed = measure()
        for claim in failed:
            failures[claim] = failures.get(claim, 0) + 1
        last.update(failed)
        worst = max(failures, key=failures.get, default=None)
        if worst is not None and failures[worst] > runs - quorum:
            raise AssertionError(f"{worst}: wrong in {failures[worst]} of {done} runs, last: {last[worst]}")
        if done - failures.get(worst, 0) >= quorum:
            return


def check_own_times_sum_to_busy(report):
    """The own times of all functions add up to the busy time, except that all are rounded to a nanosecond."""
    own = [f["self_ns"] or 0 for f in report["functions"]]
    busy = [t["busy_ns"] for t in report["threads"]]
    difference = abs(sum(own) - sum(busy))
    assert difference <= len(own) + len(busy), (sum(own), sum(busy))
