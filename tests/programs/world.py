# SPDX-License-Identifier: MIT
"""A World runs the programs of a case either bare, or each under `hotfn run --module '*'`, counted or timed.

A case makes the same steps in the bare and in the hooked World; their results (status, output) are compared
afterwards.  In the hooked World every run must also write a record in which functions were hooked and counted.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE / "work"


class Skipped(Exception):
    """A requirement of the case is missing; the text names it."""


class Broken(Exception):
    """The program under test failed before any comparison (hang, no record)."""


def need(*commands):
    """Paths of system commands, or Skipped."""
    paths = [shutil.which(command, path="/usr/bin:/bin:/usr/local/bin:/usr/sbin")
             for command in commands]
    for command, path in zip(commands, paths):
        if not path:
            raise Skipped(f"no '{command}' on this system")
    return paths


def without_numbers(text):
    """For output with times, sizes and random numbers: each number becomes #."""
    return re.sub(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?[KMG]?", "#", text)


# The options of `hotfn run` for each mode.
MODES = {"count": [], "time": ["--mode", "time", "--clock", "cpu"], "flat": ["--mode", "time", "--flat"],
         "tick": ["--mode", "time"],
         "sample": ["--mode", "time", "--sample", "16"],
         "events": ["--mode", "time", "--events", "--slower-than", "1us"],
         "memory": ["--mode", "time", "--with", "alloc"],
         "budget": ["--budget", "0.5%"],
         "timed_budget": ["--mode", "time", "--budget", "0.5%"]}


class World:
    """Runs one pass of a case in the folder `place`.  `seen` collects the values to compare."""

    def __init__(self, place, built, hotfn=None, timeout=120, mode="count"):
        self.place = place
        self.built = built            # function: name -> path of a program that build_programs built
        self.hotfn = hotfn
        self.mode = mode
        self.timeout = timeout
        self.seen = []
        self.records = []
        self.hooked = 0
        self.modules_at_least = 2     # the program and its libraries
        place.mkdir(parents=True)

    def environment(self, more):
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.place), "LC_ALL": "C.UTF-8", "TZ": "UTC",
                "PYTHONHASHSEED": "0", **(more or {})}

    def wrapped(self, command):
        """The command line, under hotfn in the hooked world."""
        command = [str(word) for word in command]
        if not self.hotfn:
            return command
        record = self.place / f"run{len(self.records)}.hfr"
        self.records.append(record)
        return [str(self.hotfn), "run", "--module", "*", *MODES[self.mode], "-q", "-o", str(record),
                "--", *command]

    def start(self, *command, env=None, **options):
        """Start the program under test and return its process."""
        return subprocess.Popen(self.wrapped(command), env=self.environment(env),
                                start_new_session=True, cwd=options.pop("cwd", self.place),
                                **options)

    def finish(self, process, timeout=None):
        """Wait for a started program; a hang ends it and breaks the case."""
        try:
            output, problems = process.communicate(timeout=timeout or self.timeout)
        except subprocess.TimeoutExpired:
            end_group(process)
            output, problems = process.communicate()
            raise Broken(f"still running after {timeout or self.timeout} s; output ends with "
                         f"{tail(output)!r} {tail(problems)!r}") from None
        if self.hotfn:
            self.check_record(self.records[-1])
        return process.returncode, text_of(output), text_of(problems)

    def run(self, *command, stdin=None, normal=str, timeout=None, **options):
        """Run the program under test to its end.  Its status and its output are compared; `normal` is applied to
        the output first, to remove what differs between runs."""
        with open(stdin or os.devnull, "rb") as source:
            process = self.start(*command, stdin=source, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, **options)
            status, output, problems = self.finish(process, timeout)
        self.see(f"{os.path.basename(str(command[0]))} status", status)
        self.see("stdout", normal(output.replace(str(self.place), "PLACE")))
        self.see("stderr", normal(problems.replace(str(self.place), "PLACE")))
        return status, output

    def helper(self, *command, check=True, **options):
        """Run a command that is not under test; returns its output."""
        done = subprocess.run([str(word) for word in command], env=self.environment(None),
                              cwd=self.place, capture_output=True, text=True,
                              timeout=self.timeout, **options)
        if check and done.returncode:
            raise Broken(f"{command[0]} failed: {done.stderr[-1000:]}")
        return done.stdout

    def must(self, holds, text):
        """Check a condition that must hold bare and hooked: a test suite that fails bare cannot test the hooks."""
        if not holds:
            raise Broken(("hooked: " if self.hotfn else "bare, without hotfn: ") + text)

    def see(self, label, value):
        self.seen.append((label, value))

    def check_record(self, record):
        """The record must contain hooked functions and calls."""
        done = subprocess.run([str(self.hotfn), "report", str(record), "-n", "0", "--json", "--no-lines"],
                              capture_output=True, text=True, timeout=self.timeout)
        if done.returncode:
            raise Broken(f"hotfn report {record.name}: {done.stderr.strip()[-1000:]}")
        functions = json.loads(done.stdout)["functions"]
        hooked = [function for function in functions if function["state"] == "hooked"]
        counted = {function["module"] for function in hooked if function["calls"]}
        if len(counted) < self.modules_at_least:
            raise Broken(f"{len(hooked)} functions hooked, calls counted in {sorted(counted)} only")
        timed = sum(function.get("timed_calls") or 0 for function in hooked)
        counted_only = all(function.get("timing_reason") == "own-threads" for function in hooked)
        if "--mode" in MODES[self.mode] and not timed and not counted_only:
            raise Broken(f"{len(hooked)} functions hooked, no call timed")
        self.hooked += len(hooked)
        record.unlink()


def end_group(process):
    """Kill a program that start() started, with its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_until(condition, seconds=30):
    """Poll a condition; False when time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def text_of(data):
    return (data or b"").decode("utf-8", "replace")


def tail(data):
    return text_of(data)[-300:]
