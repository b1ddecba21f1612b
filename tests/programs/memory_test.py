# SPDX-License-Identifier: MIT
"""A long timed run does not grow: tree, histograms, rings and rows are bounded.

    memory_test.py [SECONDS]

The program's memory (its own and the record's, Pss) is read while it runs, and the growth of the
second half is printed: once the pools are full there must be none.  The report says what was merged.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HOTFN = os.environ["HOTFN"]
SRC = pathlib.Path(__file__).resolve().parent / "src"
SKIPPED = 77
MOST_GROWTH = 0.05      # of what was there in the middle of the run; allocators keep a little
WAYS = (["--mode", "time", "--events", "--slower-than", "1us"], ["--mode", "time", "--flat"],
        ["--mode", "time", "--sample", "16"])


def memory_of(pid):
    """KiB in use: proportional, so that what is shared with the parent counts once."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def target_below(pid, name):
    """The program that hotfn started."""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
            return int(child)
    return 0


def watch(command, name, seconds):
    """[KiB in use] of program and hotfn, ten times a second at most; the status."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    used, target = [], 0
    while process.poll() is None:
        try:
            target = target or target_below(process.pid, name)
        except OSError:
            pass
        own = memory_of(target) if target else 0
        if own:             # while it runs: hotfn needs more when it writes the record
            used.append(own + memory_of(process.pid))
        time.sleep(max(0.1, seconds / 200))
    return used, process.returncode


def check(place, binary, options, seconds):
    record = place / "run.hfr"
    used, status = watch([HOTFN, "run", "-q", "--no-cache", "-o", record, *options, "--", binary,
                          str(seconds)], binary.name, seconds)
    assert status == 0, status
    assert len(used) >= 8, used
    used = used[:-1]                                # the last may see the program end
    middle, end = used[len(used) // 2], used[-1]
    told = json.loads(subprocess.run([HOTFN, "info", "--json", record], capture_output=True,
                                     check=True).stdout)["time"]
    growth = (end - middle) / middle
    print(f"# {' '.join(options)}: {used[0]} KiB at first, {middle} in the middle, {end} at the end of "
          f"{seconds} s: {100 * growth:+.2f} % in the second half; {told['nodes']} places in the tree, "
          f"{told['nodes_merged']} entries merged, {told['abandoned_exits']} calls left; record "
          f"{record.stat().st_size // 1024} KiB", flush=True)
    assert growth <= MOST_GROWTH or seconds < 30, growth
    if "--flat" not in options and "--sample" not in options and seconds >= 30:
        assert told["nodes_merged"] > 0, "the tree never filled: this proves nothing"


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 180
    if not shutil.which("gcc"):
        print("no gcc on this system")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="hotfn_memory_") as folder:
        place = pathlib.Path(folder)
        binary = place / "forever"
        subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-pthread", "-o", binary,
                        SRC / "timed_forever.c"], check=True)
        for options in WAYS:
            check(place, binary, options, seconds)
            print("ok", *options, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
