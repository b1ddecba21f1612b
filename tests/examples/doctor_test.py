#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotfn doctor reports the same as text and as JSON, and its exit status is that of its worst finding."""
import json
import os
import resource
import subprocess
import sys

HOTFN = os.environ["HOTFN"]
NAMES = {"system", "c-library", "text", "new-code", "cet", "sandbox", "ptrace", "memory",
         "shared-memory", "membarrier", "proc", "agent", "preload", "cache", "perf-map", "32-bit", "proof"}


def doctor(*words, **options):
    return subprocess.run([HOTFN, "doctor", *words], capture_output=True, text=True, timeout=300,
                          **options)


def expect(condition, claim, done):
    if not condition:
        sys.exit(f"not so: {claim}\nstatus {done.returncode}\n{done.stdout}{done.stderr}")


def checks_of(done):
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def main():
    words, data = doctor(), doctor("--json")
    report = json.loads(data.stdout)
    found = checks_of(data)
    expect(report["schema"] == "hotfn.doctor/1" and set(found) == NAMES, "every check is there", data)
    for name, check in found.items():
        line = f"{check['state']:<8} {name:<14} "
        expect(line in words.stdout, f"{name} is in words too", words)
        expect((check["advice"] is None) == (check["state"] == "ok"), f"{name} has advice", data)
    problems = [check for check in found.values() if check["state"] == "problem"]
    expect(data.returncode == (1 if problems else 0), "a problem makes the status 1", data)
    expect(report["can_count"] == (not problems), "can_count says the same", data)
    tight = checks_of(doctor("--json", preexec_fn=limited))
    expect(tight["memory"]["state"] == "warning" and "ulimit -v" in tight["memory"]["advice"],
           "a limit on addresses is a warning", data)
    preloaded = doctor("--json", env={**os.environ, "LD_PRELOAD": "libm.so.6"})
    expect(checks_of(preloaded)["preload"]["state"] == "warning", "LD_PRELOAD is a warning", preloaded)
    expect(doctor("--nonsense").returncode == 2, "wrong words end with 2", words)
    print("doctor says what it should")


if __name__ == "__main__":
    main()
