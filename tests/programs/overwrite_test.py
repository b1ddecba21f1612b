# SPDX-License-Identifier: MIT
"""A function whose hook other code overwrites is reported as such, not with a plain count; a process that ends
without a comparison of its hooks is reported as not verified."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import cases

HOTFN = os.environ["HOTFN"]
SOURCE = pathlib.Path(__file__).resolve().parent / "src" / "overwrite.c"


def build(place):
    program = place / "program"
    subprocess.run(["cc", "-O1", "-o", program, SOURCE], check=True)
    # The record is kept at an exec of a program that cannot be counted.
    subprocess.run(["cc", "-static", "-x", "c", "-", "-o", place / "next"], input=b"int main(void) { return 0; }",
                   check=True)
    return program


def run(place, program, how, *options):
    record = place / "run.hfr"
    subprocess.run([HOTFN, "run", "-q", "--no-cache", *options, "-o", record, "--", program, how], capture_output=True,
                   cwd=place, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
    return read(record)


def read(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True, text=True)
    table = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
    report = json.loads(done.stdout)
    return report["record"], {f["name"]: f for f in report["functions"]}, table


def overwritten_hooks_are_reported(place):
    program = build(place)
    for how in ("exit", "_exit", "execl", "execlp", "execv", "failed exec"):
        for mode in ([], ["--mode", "time"]):
            info, functions, table = run(place, program, how, *mode)
            assert functions["untouched"]["calls"] == 1050, (how, mode)
            assert functions["overwritten"]["calls"] is None, (how, mode, functions["overwritten"])
            assert functions["overwritten"]["reason"] == "overwritten", (how, mode, functions["overwritten"])
            assert info["overwritten"] == 1 and info["checked_ns"] >= info["start_ns"], (how, mode, info)
            assert info["unverified_processes"] == (how == "failed exec"), (how, mode, info)
            assert "other code overwrote the hooks of 1 function" in table and "overwritten" in table, table


def hooks_in_place_are_counted(place):
    info, functions, table = run(place, build(place), "keep")
    assert functions["overwritten"]["calls"] == 1000 and info["overwritten"] == info["unverified_processes"] == 0, info
    assert "overwrote" not in table and "not verified" not in table, table


def a_killed_program_is_not_verified(place):
    info, functions, table = run(place, build(place), "kill")
    assert functions["untouched"]["calls"] == 1000 and info["unverified_processes"] == 1, info
    assert "not verified" in table, table


def wait_for(record, what):
    """Wait until the live record shows it, and return the record's facts."""
    for _ in range(600):
        time.sleep(0.1)
        done = subprocess.run([HOTFN, "report", "--json", "-n", "1", record], capture_output=True, text=True)
        info = json.loads(done.stdout)["record"] if done.returncode == 0 else None
        if info and what(info):
            return info
    raise AssertionError(f"not seen within a minute: {info}")


def wait_until_compared(record):
    """Until a look has ended that began when this was called, or later: the launcher judges only patches that it has
    seen, and a look before may have found the shell only."""
    now = time.time_ns()
    first = wait_for(record, lambda info: info["checked_ns"] > now)["checked_ns"]
    return wait_for(record, lambda info: info["checked_ns"] > first)


@contextlib.contextmanager
def started_process(command, **options):
    """A process that is killed if the test fails while it runs, which would wait for its end for ever."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def the_launcher_compares_while_the_program_runs(place):
    record = place / "run.hfr"
    with started_process([HOTFN, "run", "-q", "--no-cache", "-o", record, "--", build(place), "wait"], cwd=place,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launched:
        launched.stdout.readline()
        assert wait_until_compared(record)["overwritten"] == 0
        launched.stdin.write(b"\n")
        launched.stdin.flush()
        os.kill(wait_for(record, lambda info: info["overwritten"] > 0)["pid"], signal.SIGKILL)
    info, functions, table = read(record)
    assert functions["overwritten"]["calls"] is None and functions["untouched"]["calls"] == 1050, functions
    assert info["overwritten"] == 1 and info["unverified_processes"] == 1, info
    assert "other code overwrote the hooks of 1 function" in table and "not verified" in table, table


def is_lost(place, how):
    """The record of a run whose program waits, and the hook of whose function is overwritten while it runs."""
    record, program = place / f"{how}.hfr", place / "program"
    started = {"target": ["run", "--target", "program", "-o", record, "--", "sh", "-c", f"{program} wait; true"],
               "follow": ["run", "--follow", "-o", record, "--", "sh", "-c", f"{program} wait; true"],
               "fork": ["run", "-o", record, "--", program, "fork", "wait"]}.get(how)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": place}
    if started:
        with started_process([HOTFN, *started[:1], "-q", "--no-cache", *started[1:]], **pipes) as launched:
            pid = int(launched.stdout.readline())
            wait_until_compared(record)
            launched.stdin.write(b"\n")
            launched.stdin.flush()
            wait_for(record, lambda info: info["overwritten"] > 0)
            os.kill(pid, signal.SIGKILL)
        return
    with started_process([program, "wait"], **pipes) as running:
        pid = int(running.stdout.readline())
        with started_process([HOTFN, "attach", "-q", "--no-cache", "-o", record, str(pid)]) as attached:
            wait_until_compared(record)
            running.stdin.write(b"\n")
            running.stdin.flush()
            if how == "attach":
                wait_for(record, lambda info: info["overwritten"] > 0)
            else:       # the last look, before the hooks are removed
                running.stdout.readline()
            attached.send_signal(signal.SIGINT)
        running.kill()


def hooks_of_other_processes_are_compared(place):
    build(place)
    kinds = ("target", "follow", "fork", "attach", "detach")
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        list(pool.map(lambda how: is_lost(place, how), kinds))
    for how in kinds:
        info, functions, table = read(place / f"{how}.hfr")
        assert functions["overwritten"]["calls"] is None, (how, functions["overwritten"])
        assert functions["overwritten"]["reason"] == "overwritten", (how, functions["overwritten"])
        assert functions["untouched"]["calls"] >= 50 and info["overwritten"] == 1, (how, info, functions["untouched"])


def a_filter_of_system_calls_is_respected(place):
    info, functions, table = run(place, build(place), "filter")
    assert info["exit_code"] == 0 and info["state"] == "finished" and info["unverified_processes"] == 1, info
    assert "not verified" in table, table


CASES = [overwritten_hooks_are_reported, hooks_in_place_are_counted, a_killed_program_is_not_verified,
         the_launcher_compares_while_the_program_runs, hooks_of_other_processes_are_compared, a_filter_of_system_calls_is_respected]

if __name__ == "__main__":
    sys.exit(cases.run(CASES))
