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
         "shared-memory", "membarrier", "proc", "clock", "agent", "preload", "cache", "perf-map", "32-bit", "proof"}


def doctor(*words, **options):
    return subprocess.run([HOTFN, "doctor", *words], capture_output=True, text=True, timeout=300,
                          **options)


def expect(condition, claim, done):
    if not condition:
        sys.exit(f"failed: {claim}\nstatus {done.returncode}\n{done.stdout}{done.stderr}")


def checks_of(done):
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def limit_address_space():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def main():
    text, data = doctor(), doctor("--json")
    report = json.loads(data.stdout)
    found = checks_of(data)
    expect(report["schema"] == "hotfn.doctor/1" and set(found) == NAMES, "JSON has every check", data)
    for name, check in found.items():
        line = f"{check['state']:<8} {name:<14} "
        expect(line in text.stdout, f"the text has {name} too", text)
        expect((check["advice"] is None) == (check["state"] == "ok"), f"{name} has advice if and only if it is not ok", data)
    problems = [check for check in found.values() if check["state"] == "problem"]
    expect(data.returncode == (1 if problems else 0), "the exit status is 1 if there is a problem", data)
    expect(report["can_count"] == (not problems), "can_count agrees with the exit status", data)
    tight = doctor("--json", preexec_fn=limit_address_space)
    memory = checks_of(tight)["memory"]
    expect(memory["state"] == "warning" and "ulimit -v" in memory["advice"],
           "a limit of the address space is a warning", tight)
    preloaded = doctor("--json", env={**os.environ, "LD_PRELOAD": "libm.so.6"})
    expect(checks_of(preloaded)["preload"]["state"] == "warning", "LD_PRELOAD is a warning", preloaded)
    unknown = doctor("--nonsense")
    expect(unknown.returncode == 2, "an unknown option gives status 2", unknown)
    print("text, JSON and exit status of doctor agree")


if __name__ == "__main__":
    main()
