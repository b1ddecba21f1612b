# SPDX-License-Identifier: MIT
"""Find the program that a test wants, building it on first use (build_programs keeps results)."""
import pathlib
import subprocess

from world import Skipped

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def build(out, name, compiler="gcc"):
    """Path of OUT/COMPILER/NAME."""
    done = subprocess.run([HERE / "build_programs", out, name, f"--compiler={compiler}"],
                          capture_output=True, text=True)
    if done.returncode == SKIPPED:
        raise Skipped(done.stderr.strip())
    if done.returncode:
        raise RuntimeError(f"build_programs {name}: {done.stderr[-3000:]}")
    return out / compiler / name
