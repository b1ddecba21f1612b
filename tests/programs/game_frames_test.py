#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames of a released game server: hotfn names the frames in which a script of Godot is slow.

sleep_frames.c is preloaded.  The first mark of the script begins frame 0, so the work before its mark number n is
that of frame n - 2.  Other frames may be slow too on a busy machine.  In soak, because 67,000 functions are scanned.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SLOW_FRAMES = {40 - 2, 70 - 2}


def main():
    root, library = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"]), sys.argv[1]
    for program, package in (("godot3-server", "godot3-server"), ("gcc", "gcc")):
        if not shutil.which(program):
            print(f"skipped: no {program} on this system: install {package}")
            return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(HERE / "work/spike.gd", folder)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{root}/include", HERE / "src/sleep_frames.c", "-ldl",
                        "-o", folder / "frames.so"], check=True)
        done = subprocess.run(["godot3-server", "--path", folder, "-s", "spike.gd"], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": f"{folder}/frames.so", "HOTFN_LIBRARY": library,
                                   "HOME": name}, timeout=600)
    found = {int(number) for number in re.findall(r"^spike in frame (\d+):", done.stderr, re.MULTILINE)}
    if done.returncode != 0 or "planted at 70" not in done.stdout or not SLOW_FRAMES <= found:
        sys.exit(f"status {done.returncode}, spikes in frames {sorted(found)}\n{done.stdout}{done.stderr}")
    print(f"the slow frames are {sorted(SLOW_FRAMES)}, spikes were found in {sorted(found)}")
    return 0


sys.exit(main())
