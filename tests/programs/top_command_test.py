#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn top` on a running program: the record is found by the process id, calls grow, and rates are
those since the sample before.

HOTFN names the program.
"""
import json
import os
import signal
import subprocess
import sys
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


if __name__ == "__main__":
    sys.exit(cases.run([top_follows_a_program], needs=[COMPILER]))
