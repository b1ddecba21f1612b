# SPDX-License-Identifier: MIT
"""What the tests of one program share: each case runs in a folder of its own, `NAME_test.py CASE ...` runs
these alone, and a measurement is judged by more than one run."""
import pathlib
import shutil
import sys
import tempfile
import traceback

SKIPPED = 77
ATTEMPTS = 10


class Skipped(Exception):
    """What a case needs is not here; the text says what."""


def run(cases, needs=(), make=pathlib.Path):
    """Each case, given what `make` makes of its folder.  Status: 0, 1: one failed, 77: all were skipped."""
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


def comes_out_right(measure):
    """`measure` makes a run and returns what is off in it, or nothing.  A time is spoilt, either way, by
    whatever else the machine does between two looks at the clock; what we do wrong is off in every run."""
    for _ in range(ATTEMPTS):
        off = measure()
        if not off:
            return
    raise AssertionError(f"in each of {ATTEMPTS} runs; in the last: {off}")


def own_sums_to_busy(raw, left=0):
    """What `hotfn report --json --raw` says, as measured: each time is rounded to a nanosecond.  `left`: the share
    that may lack where calls were left, as no own time is shown larger than a total that ends when last seen."""
    own = [f["self_ns"] or 0 for f in raw["functions"]]
    busy = [t["busy_ns"] for t in raw["threads"]]
    off = abs(sum(own) - sum(busy))
    assert off <= len(own) + len(busy) + left * sum(busy), (sum(own), sum(busy))
