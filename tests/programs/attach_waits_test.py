#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads that wait in system calls (tests/unit/os/remote_waits_test.c) while their process is attached to and detached
from again and again: each call returns what it would have returned otherwise.

HOTFN names the program.  HOTFN_ROUNDS is the number of rounds [3].
"""
import os
import pathlib
import sys
import time

import attach_test as base
import cases
from attach_test import Program, attach, check_text, own_mappings

ROUNDS = int(os.environ.get("HOTFN_ROUNDS", "3"))
TARGET = pathlib.Path(os.environ["HOTFN_BUILD_ROOT"], "tests/unit/os_remote_waits_test")
OPTIONS = ((), ("--mode", "time"), ("--module", "*"))


def count_waiting(pid):
    states = (pathlib.Path(task, "stat").read_text().rsplit(")", 1)[1].split()[0]
              for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    return sum(state == "S" for state in states)


def waits_return_as_without_hotfn(folder):
    if not TARGET.exists():
        raise cases.Skipped("the unit tests are not built")
    with Program([TARGET, "target"]) as target:
        line = target.process.stdout.readline()
        if line.startswith("1..0"):
            raise cases.Skipped(line.strip())
        assert line == "ready\n", line
        while count_waiting(target.pid) < 25:  # all threads but those that have not begun
            time.sleep(0.01)
        for i in range(ROUNDS):
            done = attach(target.pid, "--for", "5ms", "-o", str(folder / "waits.hfr"), *OPTIONS[i % 3])
            if "mapped" not in done.stderr:
                check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
        assert count_waiting(target.pid) == 25, "a call has returned"
        output = target.process.communicate(timeout=60)[0]
        assert target.process.returncode == 0, (target.process.returncode, output)


if __name__ == "__main__":
    sys.exit(cases.run([waits_return_as_without_hotfn], make=base.make))
