#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A live record is read while its program runs under wine: hotfn.exe report, top and doctor.

    live_test.py BUILD HOTFN [CASE ...]     BUILD: folder of the build for Windows; HOTFN: the native tool
"""
import json
import subprocess
import sys

from windows_test import LIMIT_S, TOOL, cases, read_record, run_windows

PROGRAM = """
#include <stdio.h>
#include <windows.h>
__attribute__((noinline)) int often(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int seldom(int x) { __asm__ volatile(""); return x + 2; }
int main(void)
{
    int x = 0, rounds;
    printf("%lu\\n", GetCurrentProcessId());
    fflush(stdout);
    while (scanf("%d", &rounds) == 1) {
        for (int i = 0; i < rounds; i++) {
            x = often(x);
        }
        x = seldom(x);
        printf("done\\n");
        fflush(stdout);
    }
    return x == 1;
}
"""


class Program:
    """busy.exe under hotfn run; it makes as many calls as it reads."""

    def __init__(self, folder, *options):
        (folder / "busy.c").write_text(PROGRAM)
        subprocess.run(["x86_64-w64-mingw32-gcc", "-w", "-O0", "-g", "-static", "-o", "busy.exe", "busy.c"],
                       cwd=folder, check=True)
        self.process = subprocess.Popen(["wine", TOOL, "run", "-q", "--no-cache", "-o", "live.hfr", *options, "--", "busy.exe"],
                                        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        self.pid = self.process.stdout.readline().strip().decode()
        return self

    def call(self, rounds):
        self.process.stdin.write(b"%d\n" % rounds)
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == b"done"

    def __exit__(self, *reason):
        if reason[0]:
            self.process.kill()
        self.process.communicate(timeout=LIMIT_S)
        assert reason[0] or self.process.returncode == 0, self.process.returncode


def calls_in(done):
    assert done.returncode == 0, done
    document = json.loads(done.stdout)
    assert document.get("state", "live") == "live", document
    return {f["name"]: f["calls"] for f in document["functions"]}


def a_live_record_is_read(folder):
    with Program(folder) as program:
        program.call(1000)
        found = calls_in(run_windows(folder, TOOL, "report", "--json", "-n", "0", "live.hfr"))
        assert (found["often"], found["seldom"]) == (1000, 1), found
        program.call(500)
        for named in ("live.hfr", program.pid, "BUSY.exe"):
            found = calls_in(run_windows(folder, TOOL, "top", "--once", "--json", "-d", "0.1", named))
            assert (found["often"], found["seldom"]) == (1500, 2), (named, found)
        shown = run_windows(folder, TOOL, "top", "--once", "-d", "0.1", "-f", "OFT", program.pid)
        lines = shown.stdout.decode().splitlines()
        assert len(lines) == 2 and lines[1].split() == ["0/s", "1,500", "often"], shown
        failed = run_windows(folder, TOOL, "top", program.pid)
        assert failed.returncode == 1 and b"use --once" in failed.stderr, failed
    assert {f["name"]: f["calls"] for f in read_record(folder, "live.hfr")["functions"]}["often"] == 1500
    for named, wanted in (("999996", b"no record of process 999996"), ("missing*", b"no process is named")):
        failed = run_windows(folder, TOOL, "top", "--once", named)
        assert failed.returncode == 1 and wanted in failed.stderr and failed.stderr.count(b"\n") == 1, failed


def the_doctor_finds_that_counting_works(folder):
    done = run_windows(folder, TOOL, "doctor", "--json")
    report = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert done.returncode == 0 and report["can_count"] is True, done
    assert len(states) == 10 and states["proof"] == states["text"] == states["slots"] == "ok", states
    with Program(folder) as program:
        counted = run_windows(folder, TOOL, "doctor", program.pid)
        assert counted.returncode == 1 and b"hotfn run" in counted.stdout, counted
    gone = run_windows(folder, TOOL, "doctor", "--json", "999996")
    assert gone.returncode == 1 and json.loads(gone.stdout)["can_attach"] is False, gone


if __name__ == "__main__":
    sys.exit(cases.run([a_live_record_is_read, the_doctor_finds_that_counting_works], needs=("wine", "x86_64-w64-mingw32-gcc")))
