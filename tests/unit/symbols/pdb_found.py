#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check where `hotfn` finds the PDB of an image, and that one of another build is refused.

pdb_found.py HOTFN: an image and its PDB made by clang and lld; the PDB beside it, in --symbol-dir, in
a symbol store, in the local part of _NT_SYMBOL_PATH; --pdb, --force, --no-separate.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pdb_oracle as oracle

problems = []


def run(hotfn, command, *words, path=None):
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("_NT_SYMBOL_PATH", "HOTFN_SYMBOL_PATH")}
    if path:
        environment["_NT_SYMBOL_PATH"] = path
    return subprocess.run([hotfn, command, *map(str, words)], capture_output=True, text=True,
                          env=environment)


def has_pdb(hotfn, image, *words, path=None):
    done = run(hotfn, "symbols", "--json", *words, image, path=path)
    if done.returncode:
        return None
    return any(s["source"] == "pdb" for s in json.loads(done.stdout)["symbols"])


def expect(claim, held):
    if not held:
        problems.append(claim)


def store_name(hotfn, image):
    """GUIDAGE of the folder in a symbol store."""
    found = json.loads(run(hotfn, "symbols", "--json", "--no-separate", image).stdout)
    guid = bytes.fromhex(found["image_id"])
    written = guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:16]
    return written.hex().upper() + f"{int.from_bytes(guid[16:20], 'little'):X}"


def check_places(hotfn, image, pdb, folder):
    lone = folder / "lone" / image.name
    lone.parent.mkdir()
    shutil.copy(image, lone)
    expect("found beside the image", has_pdb(hotfn, image) is True)
    expect("not looked for with --no-separate", has_pdb(hotfn, image, "--no-separate") is False)
    expect("not found where it is not", has_pdb(hotfn, lone) is False)
    expect("found in --symbol-dir", has_pdb(hotfn, lone, "--symbol-dir", pdb.parent) is True)
    store = folder / "store"
    place = store / pdb.name / store_name(hotfn, image)
    place.mkdir(parents=True)
    shutil.copy(pdb, place)
    expect("found in a symbol store", has_pdb(hotfn, lone, "--symbol-dir", store) is True)
    for path in (f"srv*{store}*http://localhost/symbols", f"cache*{store};srv*", str(store),
                 f"C:\\nowhere;symsrv*symsrv.dll*{store}*http://localhost", f";;SRV*{store}"):
        expect(f"found by {path}", has_pdb(hotfn, lone, path=path) is True)
    for path in ("srv*http://localhost/symbols", "srv**", f"what*{store}", ";*;"):
        expect(f"not found by {path}", has_pdb(hotfn, lone, path=path) is False)


def check_other_build(hotfn, image, other_pdb, folder):
    done = run(hotfn, "scan", "--pdb", other_pdb, image)
    expect("another build's is refused", done.returncode == 1 and "another build" in done.stderr)
    done = run(hotfn, "scan", "--pdb", other_pdb, "--force", image)
    expect("with --force it is used with a warning", done.returncode == 0 and "by force" in done.stderr)
    place = folder / "wrong" / image.name
    place.parent.mkdir()
    shutil.copy(image, place)
    shutil.copy(other_pdb, place.with_suffix(".pdb"))
    done = run(hotfn, "symbols", "--json", place)
    expect("a wrong PDB beside the image is skipped with a warning",
           done.returncode == 0 and "skipped" in done.stderr and '"pdb"' not in
           done.stdout.partition('"symbols"')[2])
    done = run(hotfn, "scan", "--pdb", folder / "nowhere.pdb", image)
    expect("a PDB that is not there is an error", done.returncode == 1)


def check_commands(hotfn, image, pdb):
    for command in ("scan", "list", "symbols"):
        done = run(hotfn, command, "--pdb", pdb, image)
        expect(f"{command} --pdb", done.returncode == 0 and not done.stderr)
    done = run(hotfn, "scan", "--why", "--pdb", pdb, image)
    expect("scan --why --pdb", done.returncode == 0)
    named = run(hotfn, "list", image).stdout
    expect("functions have the PDB's names", " public_two\n" in named and " local_one\n" in named)


def main():
    hotfn, missing = sys.argv[1], oracle.missing_tool()
    if missing:
        print(f"1..0 # SKIP {missing} is not installed")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part, count in (("one", 3), ("two", 4)):
            (folder / part).mkdir()
            oracle.make_lld(folder / part, "x64", 4096, count)
        pdb, other = (folder / part / "x64-4096.pdb" for part in ("one", "two"))
        image = pdb.with_suffix(".exe")
        check_commands(hotfn, image, pdb)
        check_places(hotfn, image, pdb, folder)
        check_other_build(hotfn, image, other, folder)
    for problem in problems:
        print("# does not hold:", problem)
    print(f"1..1\n{'not ' if problems else ''}ok 1 pdb_found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
