#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real timed run exported to the viewers' formats: gprof, callgrind_annotate and the stacks show the same
values as the report.  HOTFN names the program.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
# Each call takes far longer than its hook, so that no time is negative after subtracting the hook's cost.
PROGRAM = """
#include <stdio.h>
#define N __attribute__((noinline))
static volatile long sink;
N static void leaf(long n) { for (long i = 0; i < n; i++) sink += i; }
N static void branch(long n) { sink += n; leaf(n); for (long i = 0; i < n / 2; i++) sink += i; leaf(2 * n); }
N static long fib(long n) { for (long i = 0; i < 200; i++) sink += n; leaf(200); return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void)
{
    for (int i = 0; i < 300; i++)
        branch(1000);
    printf("%ld\\n", fib(15));
}
"""
CALLS = {"main": 1, "branch": 300, "leaf": 600 + 1973, "fib": 1973}


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout.decode(errors="replace")


def check_gprof(program, record, functions):
    gmon = record.with_suffix(".gmon")
    run(HOTFN, "export", "-F", "gmon", "-o", gmon, record)
    text = run("gprof", "-b", "-p", program, gmon)
    rows = {m[3]: (float(m[1]), m[2]) for m in
            re.finditer(r"^\s*[\d.]+\s+[\d.]+\s+([\d.]+)\s+(?:(\d+)\s+[\d.]+\s+[\d.]+\s+)?(\w+)\s*$",
                        text, re.M)}
    for name, calls in CALLS.items():
        seconds, found = rows[name]
        assert abs(seconds - functions[name]["self_ns"] / 1e9) <= 0.0101, (name, text)  # 2 decimals
        assert name == "main" or int(found) in (calls, 1), (name, text)  # fib: gprof lists recursive calls separately
    graph = run("gprof", "-b", "-q", program, gmon)
    assert re.search(r"\b600/2573\s+branch", graph) and re.search(r"\b1973/2573\s+fib", graph), graph


def check_callgrind(record, functions):
    out = record.with_suffix(".callgrind")
    run(HOTFN, "export", "-o", out, record)
    for inclusive, key in (("no", "self_ns"), ("yes", "total_ns")):
        text = run("callgrind_annotate", "--threshold=100", f"--inclusive={inclusive}", out)
        found = {m[2]: int(m[1].replace(",", "")) for m in
                 re.finditer(r"^\s*([\d,]+) \(.*\?\?\?:(\w+) \[", text, re.M)}
        for name in CALLS:  # each edge is rounded separately
            assert abs(found[name] - functions[name][key]) <= 16, (name, inclusive, text)


def check_stacks(record, functions):
    own = collections.Counter()
    for line in run(HOTFN, "export", "-F", "folded", record).splitlines():
        stack, ns = line.rsplit(" ", 1)
        own[stack.split(";")[-1]] += int(ns)
    for name in CALLS:  # the time of each node is rounded separately
        assert abs(own[name] - functions[name]["self_ns"]) <= 5000, (name, own)


def check_events(record, functions):
    events = json.loads(run(HOTFN, "export", "-F", "chrome", record))["traceEvents"]
    begun = collections.Counter(e["name"] for e in events if e["ph"] == "B")
    assert all(begun[name] == calls for name, calls in CALLS.items()), begun


# It runs for a tenth of a second: on a busy machine ticks may be 5 ms apart, and what runs without a tick has no time.
EXITS = """
#include <stdlib.h>
volatile long sink;
void work(void) { for (long i = 0; i < 2000000; i++) sink += i; }
void outer(void) { for (int i = 0; i < 100; i++) work(); exit(5); }
int main(void) { sink = 1; outer(); return (int)sink; }
"""


def check_calls_open_at_the_end(folder):
    """For a program that ends by exit() the page shows the callees of calls that never returned."""
    program, record, page = folder / "exits", folder / "exits.hfr", folder / "exits.html"
    (folder / "exits.c").write_text(EXITS)
    subprocess.run([COMPILER, "-O1", "-fno-inline", "-fno-ipa-ra", "-o", program, folder / "exits.c"], check=True)
    done = subprocess.run([HOTFN, "run", "-q", "--mode", "time", "-o", record, "--", program], timeout=120)
    assert done.returncode == 5, done
    run(HOTFN, "export", "-o", page, record)
    data, nodes = (json.loads(page.read_text().split(f'<script type="application/json" id="{part}">')[1].split("</script>")[0])
                   for part in ("data", "nodes"))
    nodes, names = nodes["nodes"], data["functions"]["name"]
    path = {names[f]: i for i, f in enumerate(nodes["function"]) if names[f] in ("main", "outer", "work")}
    assert nodes["parent"][path["work"]] == path["outer"], (nodes, path)
    assert nodes["parent"][path["outer"]] == path["main"], (nodes, path)
    work, outer, main_ = (nodes["total"][path[name]] for name in ("work", "outer", "main"))
    assert 0 < work <= outer <= main_ and nodes["calls"][path["work"]] == 100, (work, outer, main_)


def main(folder):
    check_calls_open_at_the_end(folder)
    program, record = folder / "timed", folder / "timed.hfr"
    (folder / "timed.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-O1", "-fno-inline", "-fno-ipa-ra", "-o", program, folder / "timed.c"], check=True)
    assert run(HOTFN, "run", "-q", "--mode", "time", "--events", "-o", record, "--",
               program) == "610\n"
    document = json.loads(run(HOTFN, "report", "--json", "--edges", record))
    functions = {f["name"]: f for f in document["functions"]}
    for name, calls in CALLS.items():
        assert functions[name]["calls"] == calls, functions[name]
        assert functions[name]["timing"] == "full", functions[name]
    busy = sum(t["busy_ns"] for t in document["threads"])
    assert abs(sum(f["self_ns"] or 0 for f in document["functions"]) - busy) <= 0.02 * busy
    assert functions["fib"]["total_ns"] <= functions["main"]["total_ns"]
    check_stacks(record, functions)
    check_events(record, functions)
    if shutil.which("gprof"):
        check_gprof(program, record, functions)
    if shutil.which("callgrind_annotate"):
        check_callgrind(record, functions)


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
print("the exports of a timed run agree with its report")
