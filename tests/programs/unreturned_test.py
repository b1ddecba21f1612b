# SPDX-License-Identifier: MIT
"""Functions that never return because the program ends in them: by exit, _exit, a kill, in another thread, in a
forked child.  Their calls last until that end, and the report marks them.  The program (unreturned.c) prints how
long each call had lasted at its last reading of the clock: no reported time may be shorter, and none longer than
the time from just before the call until the test saw that the program had ended."""
import csv
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
RUN_BY_EXIT = ("__do_global_dtors_aux", "deregister_tm_clones", "_fini")  # not negligible under load
CALLS = {"outer": 1, "middle": 1, "inner": 3, "worker": 1}
RATE, SLACK_NS = 0.01, 20000  # deviation of the two clocks; error of the hooks' cost that is subtracted


def build(place):
    subprocess.run(["gcc", *FLAGS, "-O2", "-fno-optimize-sibling-calls", "-pthread", "-o", place / "unreturned",
                    SRC / "unreturned.c"], check=True)
    return place / "unreturned"


def run(place, ending, *mode):
    """Returns what the program measured, {name: (minimum ns, own ns, maximum ns)}; the maximum number of ns from then
    until the end of the program; and the functions of the report, {name: function}."""
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "--mode", "time", *mode, "-o", record, "--", build(place), ending],
                          capture_output=True, text=True, timeout=300)
    after = time.monotonic_ns()
    assert done.returncode == {"kill": -9, "child": 0}.get(ending, 3), done
    report = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True,
                                       text=True).stdout)
    measured = {name: [int(n) for n in numbers] for name, *numbers in map(str.split, done.stdout.splitlines())}
    since = measured.pop("gone", [after])[0] - measured.pop("at")[0]
    to_ns = 1e9 / report["time"]["ticks_per_second"]
    functions = {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}
    return {name: [n * to_ns for n in numbers] for name, numbers in measured.items()}, since, functions


def slack_of(f, which):
    """By the counter an expected error is what was subtracted for the hooks."""
    return SLACK_NS + 4 * (f[f"{which}_error_ns"] or 0)


def check_bounds(f, measured, since, what):
    minimum, _, maximum = measured
    got, slack = f["total_ns"] or 0, slack_of(f, "total")
    assert minimum * (1 - RATE) - slack <= got <= (maximum + since) * (1 + RATE) + slack, (what, f, measured, since)


def check_calls(functions, names, what):
    for name in names:
        f = functions[name]
        assert f["calls"] == f["timed_calls"] == f["open_calls"] == CALLS[name], (what, f)


def check(place, ending, *mode):
    """Times by the counter lie within bounds.  By ticks a single call may have seen none, so only calls are checked."""
    measured, _, functions = run(place, ending, *mode)
    check_calls(functions, measured, (ending, mode))
    if "--sample" in mode:
        return functions
    measured, since, functions = run(place, ending, *mode, "--clock", "cpu")
    assert measured, (ending, mode)
    check_calls(functions, measured, (ending, mode))
    for name, (_, own_ns, _) in measured.items():
        f = functions[name]
        assert (f["self_ns"] or 0) >= own_ns * (1 - RATE) - slack_of(f, "self"), (ending, mode, own_ns, f)
        check_bounds(f, measured[name], since, (ending, mode))
    if "outer" in measured:
        within = (*measured, "mark", "print_times", *(RUN_BY_EXIT if ending == "exit" else ()))  # otherwise outside of outer, or not at all
        own = sum(functions[name]["self_ns"] or 0 for name in within if name in functions)
        assert abs(own - functions["outer"]["total_ns"]) <= slack_of(functions["outer"], "total"), (ending, mode, own, functions["outer"])
    return functions


def with_exit(place):
    for mode in ((), ("--flat",), ("--sample", "1"), ("--with", "alloc")):
        functions = check(place, "exit", *mode)
        assert functions["mark"]["open_calls"] == 0, functions["mark"]


def with_exit_at_once(place):
    check(place, "_exit")


def by_a_kill(place):
    check(place, "kill")
    check(place, "kill", "--flat")


def in_another_thread(place):
    check(place, "thread")


def in_a_child_whose_parent_works_on(place):
    check(place, "child")


def the_report_and_callgrind_show_open_calls(place):
    measured, since, functions_of = run(place, "exit", "--clock", "cpu")
    record = place / "run.hfr"
    table = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
    assert re.search(r"outer \(did not return\)$", table, re.MULTILINE), table
    assert re.search(r"inner \(3 calls did not return\)$", table, re.MULTILINE), table
    rows = {row["name"]: row["open_calls"] for row in csv.DictReader(subprocess.run(
        [HOTFN, "report", "--csv", record], check=True, capture_output=True, text=True).stdout.splitlines())}
    assert {name: rows[name] for name in ("outer", "inner", "mark")} == {"outer": "1", "inner": "3", "mark": "0"}, rows
    subprocess.run([HOTFN, "open", "--print", "-o", place / "page.html", record], check=True, capture_output=True)
    page = re.search(r'<script type="application/json" id="data">(.*?)</script>', (place / "page.html").read_text(), re.DOTALL)
    functions = json.loads(page.group(1))["functions"]
    assert {name: functions["open"][functions["name"].index(name)] for name in ("outer", "inner", "mark")} == \
        {"outer": 1, "inner": 3, "mark": 0}, functions["open"]
    if not shutil.which("callgrind_annotate"):
        raise cases.Skipped("no callgrind_annotate on this system")
    subprocess.run([HOTFN, "export", "-F", "callgrind", "-o", place / "callgrind.out", record], check=True)
    shown = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", place / "callgrind.out"],
                           check=True, capture_output=True, text=True).stdout
    for name in ("outer", "middle"):
        line = re.search(rf"^ *([0-9,]+) .*:{name} \[", shown, re.MULTILINE)
        assert line, (name, shown)
        check_bounds({**functions_of[name], "total_ns": int(line.group(1).replace(",", ""))}, measured[name], since,
                     (name, shown))


CASES = [with_exit, with_exit_at_once, by_a_kill, in_another_thread, in_a_child_whose_parent_works_on,
         the_report_and_callgrind_show_open_calls]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]) if platform.machine() == "x86_64" else cases.SKIPPED)
