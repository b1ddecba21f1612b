# SPDX-License-Identifier: MIT
"""Find the program that a test needs and build it on first use (build_programs keeps results)."""
import os
import pathlib
import subprocess

import recipes
from world import Skipped

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def need_execution(compiler):
    """Skip the case if programs of this compiler cannot be executed here (scripts/exec32)."""
    if compiler == recipes.M32 and os.environ.get("HOTFN_EXEC32", "native") != "native":
        raise Skipped("this machine does not execute 32-bit programs")


def build(out, name, compiler="gcc"):
    """Path of OUT/COMPILER/NAME."""
    done = subprocess.run([HERE / "build_programs", out, name, f"--compiler={compiler}"],
                          capture_output=True, text=True)
    if done.returncode == SKIPPED:
        raise Skipped(done.stderr.strip())
    if done.returncode:
        raise RuntimeError(f"build_programs {name}: {done.stderr[-3000:]}")
    return out / compiler / name
