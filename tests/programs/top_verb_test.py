#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn top` beside a program that runs: found by its process, its calls grow, its rates are those of
the last look.

HOTFN names the program.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import time

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
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    document = json.loads(done.stdout)
    return document, {f["name"]: f for f in document["functions"]}


def wait_for(path):
    for _ in range(200):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} does not come")


def main(folder):
    program, record = folder / "busy", folder / "busy.hfr"
    (folder / "busy.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-O0", "-o", program, folder / "busy.c"], check=True)
    running = subprocess.Popen([HOTFN, "run", "-o", record, "--", program],
                               stderr=subprocess.DEVNULL)
    try:
        wait_for(record)
        time.sleep(0.5)
        document, found = top(record)
        assert document["state"] == "live"
        assert found["often"]["calls"] >= 1000 * found["seldom"]["calls"] > 0
        assert found["often"]["calls_per_second"] > 100 * found["seldom"]["calls_per_second"] > 0
        _, later = top(document["pid"])  # by process: the same record
        assert later["often"]["calls"] > found["often"]["calls"]
    finally:
        running.terminate()
        running.wait(30)


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
print("top follows a program")
