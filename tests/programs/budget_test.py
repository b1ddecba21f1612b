# SPDX-License-Identifier: MIT
"""`hotfn run --budget`: a function that costs too much goes while the program runs, comes back when it
has cooled down, and the report says so; no count is silently short."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import cases

HOTFN = os.environ["HOTFN"]
SRC = pathlib.Path(__file__).resolve().parent / "src"
LEVELS = ["timed", "sampled", "counted", "unhooked"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same of 32-bit targets
ROUNDS = "2000"         # at least: the program goes on until the test has seen what it waits for
PATIENCE = 250          # seconds: what has not come about by then never will


def build(place):
    binary = place / "budget"
    subprocess.run(["gcc", "-O2", *FLAGS, "-pthread", "-o", binary, SRC / "budget.c"], check=True)
    return binary


def report_of(record, check=True):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=check, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None     # it has not begun yet


def wait_for(holds, record, process):
    """Until the running program's report says so; who may not change it has a note about that instead."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        report = report_of(record, check=False)
        if report and (report["budget"]["note"] or holds(report)):
            return
        assert time.monotonic() < end, report and report["budget"]
        time.sleep(0.05)


def run(place, *command, under=(), until=()):
    """`until`: what must be seen before the program is let out of its first phase, and of its last."""
    record = place / "run.hfr"
    record.unlink(missing_ok=True)
    process = subprocess.Popen([*under, HOTFN, "run", "-q", "--no-cache", "-o", record, *command], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for holds in until:
            wait_for(holds, record, process)
            process.stdin.write("\n")
            process.stdin.flush()
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, (command, process.returncode, errors)
    table = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True)
    return output, report_of(record), table.stdout


def changes(report, **wanted):
    return [c for c in report["budget"]["changes"] if wanted.items() <= c.items()]


def tiny_is_out(report):
    return changes(report, function="tiny", to="unhooked")


def by_name(report):
    return {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}


def told_counts(output):
    return {name: int(count) for name, count in (line.split() for line in output.splitlines())}


def may_hold_a_child():
    """By a try of our own: PTRACE_SEIZE."""
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            return ctypes.CDLL(None).ptrace(0x4206, child.pid, None, None) == 0
        finally:
            child.kill()


def check_changes(report):
    """Each function's changes follow each other, and its gaps are those of the changes."""
    note = report["budget"]["note"]
    if note and not may_hold_a_child():
        raise cases.Skipped("this system lets no process change another: " + note)
    assert not note, note
    at = {}
    gaps = {}
    for change in report["budget"]["changes"]:
        name = change["function"]
        assert change["from"] == at.get(name, change["from"]), change
        at[name] = change["to"]
        is_less = LEVELS.index(change["to"]) > LEVELS.index(change["from"])
        assert (change["why"] == "too-dear") == is_less, change
        if change["to"] == "unhooked":
            gaps.setdefault(name, []).append([change["at_ns"], None])
        elif change["from"] == "unhooked":
            gaps[name][-1][1] = change["at_ns"]
    for f in report["functions"]:
        assert f.get("unhooked_ns", []) == gaps.get(f["display"], []), f
        assert f.get("calls_at_least", False) == (f["display"] in gaps), f


def check_parts(report):
    """What hooks took is more than the parts of it that are told: the rest are counts."""
    b = report["budget"]
    assert b["start_ns"] > 0, b
    assert b["timing_ns"] + b["start_ns"] + b["stopped_ns"] < b["cost_ns"], b


def a_dear_function_goes_and_the_report_says_so(place):
    binary = build(place)
    output, report, table = run(place, "--budget", "5%", "--", binary, ROUNDS, until=[tiny_is_out])
    counts, functions = told_counts(output), by_name(report)
    check_changes(report)
    tiny = functions["tiny"]
    assert tiny["calls_at_least"] and 0 < tiny["calls"] < counts["tiny"], (tiny, counts)
    assert [c for c in tiny_is_out(report) if c["cost"] > 0.05], report["budget"]
    for name in ("batch", "calm", "work", "step"):      # nobody else had to go, and all of theirs are there
        assert functions[name]["calls"] == counts[name], (name, functions[name], counts)
    line = next(line for line in table.splitlines() if line.strip().startswith("tiny: unhooked for"))
    assert "a second took" in line, table
    assert report["budget"]["timing_ns"] == 0 and "timed calls" not in table, table
    check_parts(report)
    assert f">{tiny['calls']:,}" in table, table


def it_comes_back_when_it_has_cooled_down(place):
    if "-m32" in FLAGS:        # nobody looks where a 32-bit thread stands
        raise cases.Skipped("hooks of 32-bit programs only go")
    came_back = lambda report: changes(report, function="tiny", why="try-again")
    _, report, _ = run(place, "--budget", "5%", "--", build(place), ROUNDS, until=[came_back])
    check_changes(report)
    assert came_back(report), report["budget"]


def times_become_samples_before_they_go(place):
    def step_is_a_sample(report):
        step = by_name(report)["step"]
        less = changes(report, function="step", to="sampled") + changes(report, function="step", to="counted")
        return less and 1000 < step["timed_calls"] < step["calls"] / 2
    output, report, table = run(place, "--mode", "time", "--budget", "3%", "--", build(place), ROUNDS,
                                until=[tiny_is_out, step_is_a_sample])
    counts, functions = told_counts(output), by_name(report)
    check_changes(report)
    assert "sampled: every call was timed, but where the budget allowed fewer" in table, table
    assert functions["tiny"]["calls_at_least"], functions["tiny"]
    assert step_is_a_sample(report), (functions["step"], report["budget"])
    assert report["budget"]["timing_ns"] > 0 and ", timed calls " in table, table
    line = next(line for line in table.splitlines() if line.strip().startswith("step: "))
    assert ("a second took" if "unhooked for" in line else "a second would take") in line, table
    check_parts(report)
    for name in ("step", "batch"):      # where the machine is slow for a while, tiny takes them along
        calls, told, least = functions[name]["calls"], counts[name], functions[name].get("calls_at_least")
        assert calls < told if least else calls == told, (functions[name], told, report["budget"])


def the_program_named_by_target_is_looked_after(place):
    binary = build(place)
    _, report, _ = run(place, "--budget", "5%", "--target", "budget", "--", "sh", "-c",
                       f"{binary} {ROUNDS}; true", until=[tiny_is_out])
    check_changes(report)
    assert by_name(report)["tiny"]["calls_at_least"], report["budget"]


def where_nobody_may_stop_it_the_report_says_so(place):
    wrapper = place / "no_ptrace"
    subprocess.run(["gcc", "-O2", "-o", wrapper, SRC / "no_ptrace.c"], check=True)
    if subprocess.run([wrapper, "true"]).returncode == cases.SKIPPED:
        raise cases.Skipped("no seccomp here")
    binary = build(place)
    for mode in ([], ["--mode", "time"]):
        output, report, table = run(place, *mode, "--budget", "1%", "--", binary, ROUNDS, under=[wrapper],
                                    until=[lambda report: report["budget"]["note"]])
        counts, functions = told_counts(output), by_name(report)
        note = "the target cannot be stopped for a change: Operation not permitted"
        assert report["budget"]["note"] == note, report["budget"]
        assert f"THE BUDGET WAS NOT KEPT: {note}" in table, table
        assert not [c for c in report["budget"]["changes"] if c["to"] == "unhooked"], report["budget"]
        for name, count in counts.items():          # so no call is missing, and none is marked
            assert functions[name]["calls"] == count, (mode, name, functions[name])
            assert not functions[name].get("calls_at_least"), (mode, name, functions[name])


def a_program_within_its_budget_is_counted_in_full(place):
    output, report, table = run(place, "--budget", "100%", "--", build(place), ROUNDS, "works")
    counts, functions = told_counts(output), by_name(report)
    assert not report["budget"]["changes"] and report["budget"]["stops"] == 0, report["budget"]
    for name, count in counts.items():
        assert functions[name]["calls"] == count, (name, functions[name])
        assert "calls_at_least" not in functions[name]
    assert "budget 100%" in table and ">" not in table, table


def a_share_that_is_none_is_refused(place):
    for word in ("0", "5", "-1%", "101%", "x", "5%%", ""):
        done = subprocess.run([HOTFN, "run", "-o", place / "x.hfr", "--budget", word, "--", "/bin/true"],
                              capture_output=True, text=True)
        assert done.returncode == 125 and "share" in done.stderr, (word, done)


CASES = [
    a_dear_function_goes_and_the_report_says_so,
    it_comes_back_when_it_has_cooled_down,
    times_become_samples_before_they_go,
    the_program_named_by_target_is_looked_after,
    where_nobody_may_stop_it_the_report_says_so,
    a_program_within_its_budget_is_counted_in_full,
    a_share_that_is_none_is_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
