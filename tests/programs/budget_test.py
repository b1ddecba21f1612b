# SPDX-License-Identifier: MIT
"""`hotfn run --budget`: a function over its budget is unhooked while the program runs and rehooked when
it is called less often, and the report shows both; incomplete counts are always marked."""
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
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
ROUNDS = "2000"         # a minimum: the program continues until the test has seen the expected change
PATIENCE = 250          # seconds to wait for a change


def build(place):
    binary = place / "budget"
    subprocess.run(["gcc", "-O2", *FLAGS, "-pthread", "-o", binary, SRC / "budget.c"], check=True)
    return binary


def read_report(record, check=True):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=check, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None     # the run has not begun yet


def wait_for(holds, record, process):
    """Wait until holds(report) is true, or until the report notes that the program cannot be changed."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        report = read_report(record, check=False)
        if report and (report["budget"]["note"] or holds(report)):
            return
        assert time.monotonic() < end, report and report["budget"]
        time.sleep(0.05)


def run(place, *command, under=(), until=()):
    """`until`: conditions on the report; each must hold before the program leaves its first and its last phase."""
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
    return output, read_report(record), table.stdout


def changes(report, **wanted):
    return [c for c in report["budget"]["changes"] if wanted.items() <= c.items()]


def tiny_is_unhooked(report):
    return changes(report, function="tiny", to="unhooked")


def by_name(report):
    return {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}


def expected_counts(output):
    return {name: int(count) for name, count in (line.split() for line in output.splitlines())}


def may_stop_a_child():
    """Tries PTRACE_SEIZE."""
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            return ctypes.CDLL(None).ptrace(0x4206, child.pid, None, None) == 0
        finally:
            child.kill()


def check_changes(report):
    """The changes of each function are consistent, and its unhooked intervals follow from them."""
    note = report["budget"]["note"]
    if note and not may_stop_a_child():
        raise cases.Skipped("this system lets no process change another: " + note)
    assert not note, note
    at = {}
    intervals = {}
    for change in report["budget"]["changes"]:
        name = change["function"]
        assert change["from"] == at.get(name, change["from"]), change
        at[name] = change["to"]
        is_less = LEVELS.index(change["to"]) > LEVELS.index(change["from"])
        assert (change["why"] == "over-budget") == is_less, change
        if change["to"] == "unhooked":
            intervals.setdefault(name, []).append([change["at_ns"], None])
        elif change["from"] == "unhooked":
            intervals[name][-1][1] = change["at_ns"]
    for f in report["functions"]:
        assert f.get("unhooked_ns", []) == intervals.get(f["display"], []), f
        assert f.get("calls_at_least", False) == (f["display"] in intervals), f


def check_parts(report):
    """The hooks' cost exceeds the sum of the listed parts: the rest is the cost of counting."""
    b = report["budget"]
    assert b["start_ns"] > 0, b
    assert b["timing_ns"] + b["start_ns"] + b["stopped_ns"] < b["cost_ns"], b


def a_function_over_budget_is_unhooked_and_reported(place):
    binary = build(place)
    output, report, table = run(place, "--budget", "5%", "--", binary, ROUNDS, until=[tiny_is_unhooked])
    counts, functions = expected_counts(output), by_name(report)
    check_changes(report)
    tiny = functions["tiny"]
    assert tiny["calls_at_least"] and 0 < tiny["calls"] < counts["tiny"], (tiny, counts)
    assert [c for c in tiny_is_unhooked(report) if c["cost"] > 0.05], report["budget"]
    for name in ("batch", "calm", "work", "step"):      # the others stay hooked, and none of their calls is missing
        assert functions[name]["calls"] == counts[name], (name, functions[name], counts)
    line = next(line for line in table.splitlines() if line.strip().startswith("tiny: unhooked for"))
    assert "a second took" in line, table
    assert report["budget"]["timing_ns"] == 0 and "timed calls" not in table, table
    check_parts(report)
    assert f">{tiny['calls']:,}" in table, table


def a_function_is_rehooked_when_it_is_called_less(place):
    if "-m32" in FLAGS:        # the stack of a 32-bit thread is not examined
        raise cases.Skipped("functions of 32-bit programs are not rehooked")
    is_rehooked = lambda report: changes(report, function="tiny", why="try-again")
    _, report, _ = run(place, "--budget", "5%", "--", build(place), ROUNDS, until=[is_rehooked])
    check_changes(report)
    assert is_rehooked(report), report["budget"]


def timed_functions_are_sampled_before_they_are_unhooked(place):
    def step_is_sampled(report):
        step = by_name(report)["step"]
        less = changes(report, function="step", to="sampled") + changes(report, function="step", to="counted")
        return less and 100 < step["timed_calls"] < step["calls"] / 2
    output, report, table = run(place, "--mode", "time", "--budget", "3%", "--", build(place), ROUNDS,
                                until=[tiny_is_unhooked, step_is_sampled])
    counts, functions = expected_counts(output), by_name(report)
    check_changes(report)
    assert "sampled: as many calls were timed as the budget allowed" in table, table
    assert functions["tiny"]["calls_at_least"], functions["tiny"]
    assert step_is_sampled(report), (functions["step"], report["budget"])
    assert report["budget"]["timing_ns"] > 0 and ", timed calls " in table, table
    line = next(line for line in table.splitlines() if line.strip().startswith("step: "))
    assert ("a second took" if "unhooked for" in line else "a second would take") in line, table
    check_parts(report)
    for name in ("step", "batch"):      # on a slow machine they may be unhooked as well
        calls, expected, is_minimum = functions[name]["calls"], counts[name], functions[name].get("calls_at_least")
        assert calls <= expected if is_minimum else calls == expected, (functions[name], expected, report["budget"])


def the_budget_applies_to_the_program_named_by_target(place):
    binary = build(place)
    _, report, _ = run(place, "--budget", "5%", "--target", "budget", "--", "sh", "-c",
                       f"{binary} {ROUNDS}; true", until=[tiny_is_unhooked])
    check_changes(report)
    assert by_name(report)["tiny"]["calls_at_least"], report["budget"]


def the_report_says_if_the_target_cannot_be_stopped(place):
    wrapper = place / "no_ptrace"
    subprocess.run(["gcc", "-O2", "-o", wrapper, SRC / "no_ptrace.c"], check=True)
    if subprocess.run([wrapper, "true"]).returncode == cases.SKIPPED:
        raise cases.Skipped("no seccomp here")
    binary = build(place)
    for mode in ([], ["--mode", "time"]):
        output, report, table = run(place, *mode, "--budget", "1%", "--", binary, ROUNDS, under=[wrapper],
                                    until=[lambda report: report["budget"]["note"]])
        counts, functions = expected_counts(output), by_name(report)
        note = "the target cannot be stopped for a change: Operation not permitted"
        assert report["budget"]["note"] == note, report["budget"]
        assert f"THE BUDGET WAS NOT KEPT: {note}" in table, table
        assert not [c for c in report["budget"]["changes"] if c["to"] == "unhooked"], report["budget"]
        for name, count in counts.items():          # no call is missing, and no count is marked
            assert functions[name]["calls"] == count, (mode, name, functions[name])
            assert not functions[name].get("calls_at_least"), (mode, name, functions[name])


def a_program_within_its_budget_is_counted_in_full(place):
    output, report, table = run(place, "--budget", "100%", "--", build(place), ROUNDS, "works")
    counts, functions = expected_counts(output), by_name(report)
    assert not report["budget"]["changes"] and report["budget"]["stops"] == 0, report["budget"]
    for name, count in counts.items():
        assert functions[name]["calls"] == count, (name, functions[name])
        assert "calls_at_least" not in functions[name]
    assert "budget 100%" in table and ">" not in table, table


def an_invalid_share_is_refused(place):
    for word in ("0", "5", "-1%", "101%", "x", "5%%", ""):
        done = subprocess.run([HOTFN, "run", "-o", place / "x.hfr", "--budget", word, "--", "/bin/true"],
                              capture_output=True, text=True)
        assert done.returncode == 125 and "share" in done.stderr, (word, done)


CASES = [
    a_function_over_budget_is_unhooked_and_reported,
    a_function_is_rehooked_when_it_is_called_less,
    timed_functions_are_sampled_before_they_are_unhooked,
    the_budget_applies_to_the_program_named_by_target,
    the_report_says_if_the_target_cannot_be_stopped,
    a_program_within_its_budget_is_counted_in_full,
    an_invalid_share_is_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
