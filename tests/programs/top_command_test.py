#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn top` on a running program: the record is found by the process id, calls grow, and rates are
those since the sample before.

HOTFN names the program.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import cases

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
PROGRAM = """
#include <unistd.h>
__attribute__((noinline)) int often(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int seldom(int x) { __asm__ volatile(""); return x + 2; }
int main(void)
{
    int x = 0;
    for (;;) {
        for (int i = 0; i < 1000; i++)
            x = often(x);
        x = seldom(x);
        usleep(2000);
    }
}
"""


def top(what):
    done = subprocess.run([HOTFN, "top", "--once", "--json", "-d", "0.5", str(what)],
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done
    document = json.loads(done.stdout)
    return document, {f["name"]: f for f in document["functions"]}


def wait_for_calls(record):
    """Wait until the record exists and the loop of the program ran once."""
    while not record.exists():
        time.sleep(0.05)
    while not (top(record)[1].get("seldom") or {"calls": 0})["calls"]:
        pass


def check_sums_of_a_stopped_program(pid, record):
    """A running program calls functions while its slots are read one after the other, so it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    try:
        document, found = top(record)
        assert document["state"] == "live", document
        seldom, often = found["seldom"]["calls"], found["often"]["calls"]
        assert 1000 * seldom <= often <= 1000 * (seldom + 1), (often, seldom)
    finally:
        os.kill(pid, signal.SIGCONT)
    return often


def check_rates_since_the_last_sample(record):
    def measure():
        _, found = top(record)
        often, seldom = (found[name]["calls_per_second"] for name in ("often", "seldom"))
        return {} if often > 100 * seldom > 0 else {"rates": (often, seldom)}
    cases.check_most_runs(measure)


def top_follows_a_program(folder):
    program, record = folder / "busy", folder / "busy.hfr"
    (folder / "busy.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-O0", "-o", program, folder / "busy.c"], check=True)
    running = subprocess.Popen([HOTFN, "run", "-o", record, "--", program],
                               stderr=subprocess.DEVNULL)
    try:
        wait_for_calls(record)
        pid = top(record)[0]["pid"]
        before = check_sums_of_a_stopped_program(pid, record)
        check_rates_since_the_last_sample(record)
        _, later = top(pid)  # by process: the same record
        assert later["often"]["calls"] > before, (before, later)
    finally:
        running.terminate()
        running.wait(300)


def read_until(terminal, *parts):
    """Read the screen until it shows one of the texts; returns the text."""
    shown = b""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536)
            for part in parts:
                if part in shown:
                    return part
    raise AssertionError(shown[-2000:])


def keys_switch_the_functions_that_are_shown(folder):
    """On a terminal: off (0), counted (1), timed (2), of all functions or those of a filter."""
    program, record = folder / "busy", folder / "busy.hfr"
    (folder / "busy.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-O0", "-o", program, folder / "busy.c"], check=True)
    running = subprocess.Popen([HOTFN, "run", "--mode", "time", "-o", record, "--", program], stderr=subprocess.DEVNULL)
    pid, terminal = None, None
    try:
        wait_for_calls(record)
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(HOTFN, [HOTFN, "top", "-d", "0.2", str(record)])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        read_until(terminal, b"often")
        os.write(terminal, b"1")
        read_until(terminal, b"are now counted", b"is now counted")
        os.write(terminal, b"2")
        read_until(terminal, b"are now timed", b"is now timed")
        os.write(terminal, b"/often\n")
        os.write(terminal, b"0")
        read_until(terminal, b"1 function is now off")
        before, after = (top(record)[1] for _ in range(2))
        assert after["often"]["calls"] == before["often"]["calls"], (before["often"], after["often"])
        os.write(terminal, b"1")
        read_until(terminal, b"1 function is now counted")
        while top(record)[1]["often"]["calls"] == after["often"]["calls"]:
            pass
        os.write(terminal, b"q")
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:  # the terminal has no other end any more
                break
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        pid = None
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if terminal is not None:
            os.close(terminal)
        running.terminate()
        running.wait(300)


if __name__ == "__main__":
    sys.exit(cases.run([top_follows_a_program, keys_switch_the_functions_that_are_shown], needs=[COMPILER]))
