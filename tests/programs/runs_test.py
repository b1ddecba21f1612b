# SPDX-License-Identifier: MIT
"""`hotfn report --runs` and the modes of `hotfn merge` give the figures that Python's statistics give for the records
of several runs of one program."""
import csv
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HOTFN = os.environ["HOTFN"]
SOURCE = r"""
#include <stdlib.h>
#define FUNCTION(name) __attribute__((noinline)) void name(volatile int *n) { ++*n; ++*n; ++*n; ++*n; }
FUNCTION(always) FUNCTION(sometimes) FUNCTION(once)
int main(int argc, char **argv) {
    volatile int n = 0;
    int run = atoi(argv[argc - 1]);
    for (int i = 0; i < 100 * (run + 1); i++) always(&n);
    for (int i = 0; i < (run % 3 ? 7 * run : 0); i++) sometimes(&n);
    if (run == 4) once(&n);
    return 0;
}
"""
RUNS = 8


def hotfn(*args, status=0):
    done = subprocess.run([HOTFN, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


def calls_in(record):
    found = json.loads(hotfn("report", record, "--json", "-n", 0))["functions"]
    return {f["name"]: f["calls"] for f in found if f["calls"] is not None}


def compute(values):
    called = [v for v in values if v]
    return {"runs_called": len(called), "sum": sum(values), "mean": statistics.mean(values),
            "mean_called": statistics.mean(called), "median": statistics.median(values),
            "p95": sorted(values)[math.ceil(0.95 * len(values)) - 1], "max": max(values)}


def check(rows, runs):
    for name in ("always", "sometimes", "once"):
        expected = compute([run.get(name, 0) for run in runs])
        for key, value in expected.items():
            assert abs(float(rows[name][key]) - value) < 0.001, (name, key, rows[name], expected)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "p.c").write_text(SOURCE)
        program, records = folder / "p", [folder / f"r{i}.hfr" for i in range(RUNS)]
        subprocess.run(["gcc", "-O1", "-o", program, folder / "p.c"], check=True)
        for i, record in enumerate(records):
            hotfn("run", "-q", "-o", record, "--", program, i)
        runs = [calls_in(record) for record in records]
        merged = folder / "all.hfr"
        hotfn("merge", "-o", merged, *records)

        document = json.loads(hotfn("report", "--runs", "--json", "-n", 0, merged))
        assert (document["schema"], document["by"], document["unit"]) == ("hotfn.runs/1", "calls", "calls")
        assert document["runs"] == RUNS
        check({f["name"]: f for f in document["functions"]}, runs)
        check({f["name"]: f for f in csv.DictReader(io.StringIO(hotfn("report", "--runs", "--csv", merged)))}, runs)
        table = hotfn("report", "--runs", merged).splitlines()
        assert table[0] == f"calls of each function in {RUNS} runs", table
        row = next(line for line in table if line.endswith(" once")).split()
        assert row == ["1", "0.1", "1", "0", "1", "1", "1", "of", "8", "once"], row
        assert len(hotfn("report", "--runs", "-n", 1, merged).splitlines()) == 4
        only = hotfn("report", "--runs", "-f", "some*", "--csv", merged).splitlines()
        assert len(only) == 2 and only[1].startswith("sometimes,"), only

        for mode in ("mean", "mean-called", "median", "p95", "max"):
            hotfn("merge", "--mode", mode, "-o", folder / "one.hfr", *records)
            for name, value in calls_in(folder / "one.hfr").items():
                values = [run.get(name, 0) for run in runs]
                expected = compute(values)[mode.replace("-", "_")] if any(values) else 0
                assert value == math.floor(expected + 0.5), (mode, name, value, values)

        assert "a row for each run" in hotfn("report", "--runs", records[0], status=1)
        assert "a row for each run" in hotfn("report", "--runs", folder / "one.hfr", status=1)
        assert "not timed" in hotfn("report", "--runs", "--by", "self", merged, status=1)
        assert "--runs goes with" in hotfn("report", "--runs", "--edges", merged, status=2)
        assert "median" in hotfn("merge", "--mode", "middle", "-o", merged, records[0], status=2)

        timed = [folder / f"t{i}.hfr" for i in range(3)]
        for i, record in enumerate(timed):
            hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "-o", record, "--", program, i)
        hotfn("merge", "-o", merged, *timed)
        sums = {f["name"]: f["self_ns"]
                for f in json.loads(hotfn("report", merged, "--json", "-n", 0))["functions"] if f["calls"]}
        rows = json.loads(hotfn("report", "--runs", "--json", "--by", "self", "-n", 0, merged))
        assert rows["unit"] == "ns"
        for f in rows["functions"]:
            assert abs(f["sum"] - sums[f["name"]]) <= len(timed), (f, sums[f["name"]])
    print("ok", RUNS, "runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
