# SPDX-License-Identifier: MIT
"""Shared by the tests of this folder: each case runs in its own folder, `NAME_test.py CASE ...` runs only
the named cases, and a measurement must hold in a quorum of runs."""
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


def holds_in_most_runs(measure, right=7, of=10):
    """Each claim must hold in `right` of `of` runs.  `measure` makes one run and returns {claim: values found}
    for the claims that did not hold.  Other programs may disturb single runs; a defect shows in most runs."""
    failures, last = {}, {}
    for done in range(1, of + 1):
        off = measure()
        for claim in off:
            failures[claim] = failures.get(claim, 0) + 1
        last.update(off)
        worst = max(failures, key=failures.get, default=None)
        if worst is not None and failures[worst] > of - right:
            raise AssertionError(f"{worst}: wrong in {failures[worst]} of {done} runs, last: {last[worst]}")
        if done - failures.get(worst, 0) >= right:
            return


def own_sums_to_busy(raw, left=0):
    """`raw` is the output of `hotfn report --json --raw`, whose times are rounded to a nanosecond.  `left` is the
    share that may be missing if calls were left by a jump: an own time never exceeds a total, which ends at the
    call's last event."""
    own = [f["self_ns"] or 0 for f in raw["functions"]]
    busy = [t["busy_ns"] for t in raw["threads"]]
    off = abs(sum(own) - sum(busy))
    assert off <= len(own) + len(busy) + left * sum(busy), (sum(own), sum(busy))
