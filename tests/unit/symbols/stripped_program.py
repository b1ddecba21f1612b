#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that hotfn finds the names of a stripped program, in each way that distributions provide them.

stripped_program.py HOTFN with_xz|without_xz: a small program is built, stripped, and given a debug file
by build-id, by .gnu_debuglink or in .gnu_debugdata; then a debug file of another build.
"""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile

SOURCE = """
__attribute__((noinline)) static int hidden_function(int x) { return x * 3 + 1; }
int main(int argc, char **argv) { (void)argv; return hidden_function(argc) & 1; }
"""


def run(*command):
    subprocess.run([str(word) for word in command], check=True, cwd=FOLDER)


def symbols(*options):
    """Return {name: source} and the text on stderr for the program in the folder."""
    done = subprocess.run([HOTFN, "symbols", "--json", *map(str, options), FOLDER / "prog"],
                          check=True, capture_output=True, text=True)
    return {s["name"]: s["source"] for s in json.loads(done.stdout)["symbols"]}, done.stderr


def build(optimisation):
    """Build prog.full and prog, its stripped copy; return the build-id."""
    (FOLDER / "prog.c").write_text(SOURCE)
    run("cc", optimisation, "-g", "-Wl,--build-id=sha1", "prog.c", "-o", "prog.full")
    run("objcopy", "--only-keep-debug", "prog.full", "prog.debug")
    run("strip", "-o", "prog", "prog.full")
    notes = subprocess.run(["readelf", "-n", "prog"], cwd=FOLDER, capture_output=True, text=True)
    return notes.stdout.split("Build ID: ")[1].split()[0]


def by_build_id():
    build_id = build("-O1")
    assert "hidden_function" not in symbols()[0]
    place = FOLDER / "dbg/.build-id" / build_id[:2]
    place.mkdir(parents=True)
    (FOLDER / "prog.debug").rename(place / (build_id[2:] + ".debug"))
    assert symbols("--symbol-dir", FOLDER / "dbg")[0]["hidden_function"] == "debug-file"
    assert "hidden_function" not in symbols("--no-separate", "--symbol-dir", FOLDER / "dbg")[0]
    build("-O0")
    run("cp", "prog.debug", place / (build_id[2:] + ".debug"))
    build("-O1")
    names, said = symbols("--symbol-dir", FOLDER / "dbg")
    assert "hidden_function" not in names and "another build" in said, said


def by_debuglink():
    build("-O1")
    run("objcopy", "--add-gnu-debuglink=prog.debug", "prog")
    assert symbols()[0]["hidden_function"] == "debug-file"
    with open(FOLDER / "prog.debug", "ab") as debug:
        debug.write(b"\0")
    names, said = symbols()
    assert "hidden_function" not in names and "CRC" in said, said


def by_debugdata():
    build("-O1")
    run("strip", "--strip-debug", "-o", "mini", "prog.full")
    (FOLDER / "mini.xz").write_bytes(lzma.compress((FOLDER / "mini").read_bytes()))
    run("objcopy", "--add-section", ".gnu_debugdata=mini.xz", "prog")
    assert symbols()[0]["hidden_function"] == "debugdata"


HOTFN, XZ = sys.argv[1:3]
for way in [by_build_id, by_debuglink] + ([by_debugdata] if XZ == "with_xz" else []):
    with tempfile.TemporaryDirectory(prefix="hotfn-stripped-") as folder:
        FOLDER = pathlib.Path(folder)
        way()
        print(f"{way.__name__}: ok")
