#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`scripts/NAME --help` prints how the script is used, at once: nothing is installed, built or configured for it.

check_scripts.py     HOTFN_SOURCE_ROOT names the sources
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"])
NAMES = ["bench", "build", "demo", "package", "screenshot", "setup", "site", "soak", "test"]


def check_script(name, build):
    environment = {"PATH": os.environ["PATH"], "HOTFN_BUILD": str(build)}  # as in a new terminal
    done = subprocess.run([ROOT / "scripts" / name, "--help"], capture_output=True, text=True, env=environment, timeout=30)
    if done.returncode != 0 or done.stderr:
        return f"scripts/{name} --help: exit status {done.returncode}: {done.stderr.strip()[-300:]}"
    if len(done.stdout) < 60 or done.stdout.startswith("#"):
        return f"scripts/{name} --help prints no help: {done.stdout!r}"
    if build.exists():
        return f"scripts/{name} --help made files in {build.name}/: {sorted(p.name for p in build.iterdir())}"
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        problems = [problem for name in NAMES if (problem := check_script(name, pathlib.Path(folder) / "build"))]
    for problem in problems:
        print(problem)
    print(f"help of {len(NAMES)} scripts: {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
