# SPDX-License-Identifier: MIT
"""The memory of a long timed run does not grow: tree, histograms, rings and rows are bounded.

    memory_test.py [SECONDS [PAUSE_MS]]

The programs exercise everything that timing stores.  All modes, and the bare programs for comparison, run at the
same time, and the test samples the memory of each program, its parent and its record.  It prints the growth since
the first 1/30 of the run (two minutes of an hour) and the growth in the second half, which must be 0 because the
pools are full by then.  It counts private pages and the record's pages; the proportional share of a file's pages
(PSS) varies by 500 KiB with the number of processes that map the file.  Only histograms may still grow: a page is
touched when a time falls into a new range, up to 10 KiB for each histogram in use; the test prints how much of
that bound is used.  PAUSE_MS is a pause after each round of the programs, so that other work can run.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HOTFN = os.environ["HOTFN"]
SRC = pathlib.Path(__file__).resolve().parent / "src"
SKIPPED = 77
MAX_GROWTH = 0.03       # share of the memory in the middle of the run; allocators keep some memory
TIME_HEADER, HISTOGRAMS = 11, 14    # sections of a record: hotfn.hfr(5)
ROWS = 5                # of timed_forever
SAMPLES = 360           # per run: every ten seconds of an hour
EVERYTHING = ["--events", "--slower-than", "1us", "--with", "alloc"]
RUNS = (("forever", None), ("forever", EVERYTHING), ("forever", ["--flat"]),
        ("forever", ["--sample", "16"]), ("forever", ["--sample", "8", "--budget", "5%"]),
        ("sqlite", None), ("sqlite", ["--module", "*", "--slower-than", "1ms", "--with", "alloc"]))


@dataclasses.dataclass
class Run:
    """A running program, and its samples (program, parent, record) in KiB."""
    name: str
    options: list
    record: pathlib.Path
    process: subprocess.Popen
    target: int = 0
    used: list = dataclasses.field(default_factory=list)
    histograms: tuple = (0, 0)

    def title(self):
        return f"{self.name} {'bare' if self.options is None else ' '.join(self.options)}"


def read_private_kib(pid):
    """Private memory in KiB; memory shared with the parent belongs to the record."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def find_target(pid, name):
    """The id of the program that hotfn started; 0 before it is started."""
    try:
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                return int(child)
    except OSError:
        pass
    return 0


def read_histogram_kib(path):
    """(allocated, maximum) KiB of the histograms in use in the record; (0, 0) if it has none."""
    used = 0
    with open(path, "rb") as file:
        head = file.read(8192)
        table, entry_bytes, entries = struct.unpack_from("<III", head, 20)
        sections = {kind: (offset, count) for kind, _, offset, count in
                    (struct.unpack_from("<IIQQ", head, table + i * entry_bytes) for i in range(entries))}
        if TIME_HEADER not in sections or HISTOGRAMS not in sections:
            return 0, 0
        file.seek(sections[TIME_HEADER][0])
        in_use = struct.unpack_from("<18I", file.read(256))[17]
        at, end = sections[HISTOGRAMS][0], sum(sections[HISTOGRAMS])
        try:
            while at < end:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                used += max(0, min(hole, end) - at)
                at = hole
        except OSError:  # no more data
            pass
    return used // 1024, in_use * 10


def sample_memory(run):
    if run.options is None:
        run.target = run.process.pid
    run.target = run.target or find_target(run.process.pid, run.name)
    own = read_private_kib(run.target) if run.target else 0
    if own == 0 or run.process.poll() is not None:  # hotfn needs more memory while it writes the record
        return
    parent = read_private_kib(run.process.pid) if run.options is not None else 0
    try:                                            # a link to the shared memory
        record = run.record.stat().st_blocks // 2
        run.histograms = read_histogram_kib(run.record) if run.options is not None else (0, 0)
    except OSError:
        record = 0
    run.used.append((own, parent, record))


def start(record, name, options, seconds, pause):
    command = [record.parent / name, str(seconds), str(pause)]
    if options is not None:
        command = [HOTFN, "run", "-q", "--no-cache", "-o", record, "--mode", "time", *options, "--",
                   *command]
    return Run(name, options, record, subprocess.Popen(command, stdout=subprocess.DEVNULL))


def median_near(values, share):
    """The median of the five values around this share of the run, so that a thread that starts or ends does not matter."""
    at = min(int(share * len(values)), len(values) - 1)
    return statistics.median(values[max(0, at - 2):at + 3])


def check(run, seconds):
    used = [sum(parts) for parts in run.used[:-1]]           # the last sample may be taken while the program ends
    assert run.process.returncode == 0, (run.title(), run.process.returncode)
    assert len(used) >= 8, (run.title(), used)
    early, middle, end = (median_near(used, share) for share in (1 / 30, 1 / 2, 1))
    print(f"# {run.title()}: {used[0]} KiB at first, {early:.0f} after {seconds / 30:.0f} s, {middle:.0f} "
          f"in the middle, {end:.0f} at the end of {seconds} s: {100 * (end - early) / early:+.2f} % since "
          f"then, {100 * (end - middle) / middle:+.2f} % in the second half; minimum {min(used)}, maximum "
          f"{max(used)}", flush=True)
    if run.options is None:
        return
    info = json.loads(subprocess.run([HOTFN, "info", "--json", run.record], capture_output=True,
                                     check=True).stdout)
    time_info = info["time"]
    columns = list(zip(*run.used[:-1]))
    print(f"#   parent {median_near(columns[1], 1 / 30):.0f} to {median_near(columns[1], 1):.0f} KiB, live record "
          f"{median_near(columns[2], 1 / 30):.0f} to {median_near(columns[2], 1):.0f}; written "
          f"{run.record.stat().st_size // 1024}; {time_info['nodes']} nodes in the tree, "
          f"{time_info['nodes_merged']} entries merged, {time_info['abandoned_exits']} abandoned calls"
          + (f"; histograms {run.histograms[0]} of at most {run.histograms[1]} KiB" if run.histograms[1] else ""), flush=True)
    assert (end - middle) / middle <= MAX_GROWTH or seconds < 30, run.used
    if run.name == "forever":       # rows are reused by thousands of threads
        assert len(info["threads"]) == ROWS, info["threads"]
    if run.name == "forever" and run.options == EVERYTHING and seconds >= 30:
        assert time_info["nodes_merged"] > 0, "the tree was never full, so this run does not test its bound"


def build(place):
    """Build the programs; returns the names of those that could be built."""
    subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-pthread", "-o", place / "forever",
                    SRC / "timed_forever.c"], check=True)
    with_sqlite = subprocess.run(["gcc", "-O2", "-pthread", "-o", place / "sqlite",
                                  SRC / "sqlite_forever.c", "-l:libsqlite3.so.0"], capture_output=True)
    if with_sqlite.returncode != 0:
        print("# no libsqlite3 on this system")
    return ["forever"] + ["sqlite"] * (with_sqlite.returncode == 0)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 180
    pause = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if not shutil.which("gcc"):
        print("no gcc on this system")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="hotfn_memory_") as folder:
        place = pathlib.Path(folder)
        names = build(place)
        runs = [start(place / f"{i}.hfr", name, options, seconds, pause)
                for i, (name, options) in enumerate(RUNS) if name in names]
        while any(run.process.poll() is None for run in runs):
            for run in runs:
                sample_memory(run)
            time.sleep(max(0.1, seconds / SAMPLES))
        for run in runs:
            check(run, seconds)
            print("ok", run.title(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
