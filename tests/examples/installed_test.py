#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tree that `meson install` creates can be moved as a whole: programs are built with its pkg-config file
at the new place, no other file of hotfn is used, and its hotfn finds its agent.

    installed_test.py BUILD EXAMPLES
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

BUILD, EXAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])


def output(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main():
    missing = [tool for tool in ("pkg-config", "meson", "gcc") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {missing[0]} on this system")
        return 77
    with tempfile.TemporaryDirectory(prefix="hotfn_installed_") as name:
        folder = pathlib.Path(name)
        output("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", folder / "there")
        moved = (next((folder / "there").rglob("bin/hotfn")).parents[1]).rename(folder / "elsewhere")
        shutil.rmtree(folder / "there")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(next(moved.rglob("hotfn.pc")).parent)}
        flags = shlex.split(output("pkg-config", "--cflags", "--libs", "hotfn", env=environment))
        libraries = next(moved.rglob("libhotfn.so")).parent
        for example, expected in (("count_self", "16000  step"), ("scan_file", "functions: ")):
            program = folder / example
            output("gcc", "-O2", EXAMPLES / f"{example}.c", *flags, f"-Wl,-rpath,{libraries}", "-o", program)
            text = output(program, *([program] if example == "scan_file" else []))
            assert expected in text, text
        game, hotfn, record = folder / "game", moved / "bin/hotfn", folder / "game.hfr"
        output("gcc", "-O2", EXAMPLES / "game.c", "-o", game)
        output(hotfn, "run", "-q", "-o", record, "--", game)
        assert "compare" in output(hotfn, "report", record)
        plugin = folder / "lines.so"
        headers = shlex.split(output("pkg-config", "--cflags", "hotfn", env=environment))
        output("gcc", "-shared", "-fPIC", EXAMPLES / "exporter_plugin.c", *headers, "-o", plugin)
        assert "unit calls" in output(hotfn, "export", "-F", plugin, record)
    print("an installed tree works after it was moved")
    return 0


if __name__ == "__main__":
    sys.exit(main())
