# SPDX-License-Identifier: MIT
"""Threads have the names that they had last and the processor time that they used; calls that are open when the
program executes another one end there."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()
SOURCE = pathlib.Path(__file__).resolve().parent / "src" / "thread_names.c"
WAIT_NS = 800_000_000


def build(place):
    program = place / "program"
    subprocess.run(["cc", "-O1", "-pthread", *FLAGS, "-o", program, SOURCE], check=True)
    return program


def run(place, *command, options=()):
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", *options, "-o", record, "--", *command])
    report = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True, text=True)
    assert done.returncode == 0, done
    return json.loads(report.stdout)


def threads_have_their_last_names(place):
    names = [t["name"] for t in run(place, build(place), "threads")["threads"]]
    assert sorted(names) == ["computes", "main-thread", "waits"], names


def the_threads_of_the_next_program_are_read(place):
    program = build(place)
    names = [t["name"] for t in run(place, "/bin/sh", "-c", f"sleep 1; exec {program} threads")["threads"]]
    assert sorted(names) == ["computes", "main-thread", "waits"], names


def waiting_is_no_processor_time(place):
    threads = {t["name"]: t["cpu_ns"] for t in run(place, build(place), "threads")["threads"]}
    assert 300_000_000 <= threads["computes"] < 600_000_000, threads
    assert 0 < threads["waits"] < WAIT_NS / 4, threads


def waiting_is_known_for_each_function(place):
    program, record = build(place), place / "run.hfr"
    report = run(place, program, "threads", options=["--mode", "time", "--clock", "tick"])
    text = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
    assert "in hooked functions on a processor; they waited for" in text, text
    function = {f["name"]: f for f in report["functions"]}
    compute, wait, main = (function[name] for name in ("compute", "wait_ms", "main"))
    assert 270_000_000 < compute["self_ns"] < 330_000_000, compute    # whatever else the machine does
    assert wait["waited_ns"] > 1.8 * WAIT_NS and (wait["self_ns"] or 0) < WAIT_NS / 4, wait
    assert main["total_waited_ns"] > 0.9 * WAIT_NS and main["total_ns"] >= main["total_waited_ns"], main
    assert report["time"]["waited_ns"] > report["time"]["busy_ns"], report["time"]


def a_killed_program_has_waited_until_its_end(place):
    program, record = build(place), place / "run.hfr"
    target = subprocess.Popen([HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--clock", "tick", "-o", record, "--",
                               "sh", "-c", f"(until cat /proc/$$/task/*/comm | grep -qx waits; do sleep 0.02; done; sleep 0.4; kill -9 $$) &"
                               f"exec {program} threads"])
    target.wait()
    report = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True, text=True)
    wait = {f["name"]: f for f in json.loads(report.stdout)["functions"]}["wait_ms"]
    assert wait["waited_ns"] > 300_000_000 and (wait["self_ns"] or 0) < 250_000_000, wait


def without_ticks_waiting_is_known_for_threads(place):
    program, record = build(place), place / "run.hfr"
    report = run(place, program, "threads", options=["--mode", "time", "--clock", "cpu"])
    text = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
    assert "threads waited at least" in text, text
    assert report["time"]["waited_ns"] is None and report["functions"][0]["waited_ns"] is None, report["time"]


def times_behind_a_filter_of_system_calls_include_waiting(place):
    """The agent sees the filter, or the system call by which it reads processor times fails."""
    program, record = build(place), place / "run.hfr"
    for how in "filter", "hidden":
        report = run(place, program, how, options=["--mode", "time", "--clock", "tick", "--target", "program"])
        text = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
        info = subprocess.run([HOTFN, "info", record], check=True, capture_output=True, text=True).stdout
        wait = {f["name"]: f for f in report["functions"]}["wait_ms"]
        assert "from then on its times include waiting" in text and "filtered its system calls" in info, (how, text, info)
        assert report["time"]["waiting_stopped_ns"] >= WAIT_NS / 4, (how, report["time"])
        assert wait["waited_ns"] > 0.9 * WAIT_NS / 4 and wait["self_ns"] > 0.9 * WAIT_NS / 4 - 50_000_000, (how, wait)
    for how in "threads", "harmless":
        report = run(place, program, how, options=["--mode", "time", "--clock", "tick", "--target", "program"])
        assert report["time"]["waiting_stopped_ns"] == 0, (how, report["time"])


def open_calls_end_at_exec(place):
    program = build(place)

    def check(number, clock, command):
        folder = place / str(number)
        folder.mkdir()
        report = run(folder, program, *command, options=["--mode", "time", "--clock", clock, "--target", "program"])
        total = {f["name"]: f["total_ns"] for f in report["functions"]}
        assert 0.9 * WAIT_NS <= total["become"] < 3 * WAIT_NS, (clock, command, total["become"])
        assert total["main"] < 3 * WAIT_NS, (clock, command, total["main"])
    kinds = [(clock, command) for clock in ("cpu", "tick")
             for command in (["/bin/sleep", "4"], ["/bin/sh", "-c", "sleep 4; exit 0"])]
    with concurrent.futures.ThreadPoolExecutor() as pool:    # they mostly sleep
        for done in [pool.submit(check, number, *kind) for number, kind in enumerate(kinds)]:
            done.result()


def the_name_of_the_next_program_is_not_that_of_the_former_thread(place):
    report = run(place, build(place), "/bin/sleep", "1", options=["--target", "program"])
    assert [t["name"] for t in report["threads"]] == ["program"], report["threads"]


def as_many_threads_as_wanted_are_counted(place):
    program = build(place)
    for options, lost in ([], 0), (["--max-threads", "40"], 2001 - 40), (["--max-threads", "2001"], 0):
        report = run(place, program, "many", "2000", options=["--module", "*", *options])
        assert report["record"]["threads_lost"] == lost, (options, report["record"])
        calls = next(f["calls"] for f in report["functions"] if f["name"] == "run_one")
        assert calls == 2000 - (lost if lost else 0), (options, calls)


def places_beyond_the_limit_are_reported(place):
    program, record = build(place), place / "run.hfr"
    for places, is_merged in ("60", True), ("60000", False):
        run(place, program, "many", "100", options=["--mode", "time", "--max-places", places])
        text = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
        assert ("merged" in text) == is_merged, (places, text)


CASES = [threads_have_their_last_names, the_threads_of_the_next_program_are_read, waiting_is_no_processor_time,
         waiting_is_known_for_each_function, a_killed_program_has_waited_until_its_end,
         without_ticks_waiting_is_known_for_threads,
         times_behind_a_filter_of_system_calls_include_waiting, open_calls_end_at_exec,
         the_name_of_the_next_program_is_not_that_of_the_former_thread, as_many_threads_as_wanted_are_counted,
         places_beyond_the_limit_are_reported]

if __name__ == "__main__":
    sys.exit(cases.run(CASES))
