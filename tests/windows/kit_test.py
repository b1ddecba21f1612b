#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A kit made on Linux counts a Windows program under wine, where nothing is scanned.

    kit_test.py BUILD HOTFN [CASE ...]     BUILD: folder of the build for Windows; HOTFN: the native tool
"""
import os
import shutil
import sys

from windows_test import BUILD, NATIVE, ROOT, SAMPLES, TOOL, build_work, cases, count, execute, read_record, run_windows

PARTS = {"hotfn.exe": TOOL, "hotfn-agent.dll": BUILD / "src/agent/hotfn-agent.dll",
         "hotfn-methods.dll": BUILD / "src/agent/hotfn-methods.dll", "LICENSE": ROOT / "LICENSE",
         "THIRD-PARTY.md": ROOT / "THIRD-PARTY.md"}
OTHER_LETTERS = "Spiel Größe"


def link_parts(folder):
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    for name, path in PARTS.items():
        if not (parts / name).exists():
            (parts / name).symlink_to(path)
    return parts


def make_kit(folder, *arguments, good=True):
    done = execute(folder, NATIVE, "kit", "--windows", link_parts(folder), *arguments)
    assert not good or done.returncode == 0, done
    return done


def facts(report):
    """What was hooked and how; calls only of the program's own functions, as those of its C library depend on the run."""
    return sorted((f["rva"], f["name"], f["calls"] if f["name"].startswith("work_") else f["calls"] is None, f.get("strategy"),
                   f.get("reason") or "") for f in report["functions"])


def a_double_click_counts(folder):
    """The game and the kit lie in folders with a blank and an umlaut; the counts are those of a run that scans."""
    build_work(folder, "game.exe")
    bare = run_windows(folder, "game.exe")
    scanned = count(folder, "game.exe", record="scanned.hfr")
    assert bare.returncode == scanned.returncode == 0, (bare, scanned)
    make_kit(folder, "-o", "kit", "game.exe")
    place = folder / OTHER_LETTERS
    place.mkdir()
    shutil.move(folder / "game.exe", place / "game.exe")
    kit = shutil.move(folder / "kit", place / "Kit ä")
    done = run_windows(kit, "cmd", "/c", "count.cmd")
    assert done.returncode == 0 and bare.stdout in done.stdout, done
    records = list(kit.glob("game.exe-*.hfr"))
    assert len(records) == 1 and str(records[0].name) in done.stderr.decode(), (records, done)
    counted, wanted = facts(read_record(kit, records[0])), facts(read_record(folder, "scanned.hfr"))
    assert counted == wanted and sum(row[1].startswith("work_") for row in counted) >= 15, set(counted) ^ set(wanted)
    # Options and a program may be named; a kit has what timing needs.
    done = run_windows(kit, "cmd", "/c", "count.cmd", "--mode", "time", "-o", "named.hfr", "--", r"..\game.exe", "x", "3")
    assert done.returncode == 3, done
    timed = [f for f in read_record(kit, "named.hfr")["functions"] if f["timing"] == "full"]
    assert len(timed) > 100, len(timed)


def names_come_from_a_pdb(folder):
    """The kit does not contain the PDB."""
    if not (SAMPLES / "seh_x64_xcpt4.exe").exists():
        raise cases.Skipped("no HOTFN_SAMPLES")
    shutil.copy(SAMPLES / "seh_x64_xcpt4.exe", folder / "xcpt4.exe")
    make_kit(folder, "-o", "kit", "--pdb", SAMPLES / "seh_x64_xcpt4.pdb", "xcpt4.exe")
    bare = run_windows(folder, "xcpt4.exe")
    done = run_windows(folder, "cmd", "/c", r"kit\count.cmd", "-o", "r.hfr", "xcpt4.exe")
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), (bare, done)
    report = read_record(folder, "r.hfr")
    assert {f["name"]: f["calls"] for f in report["functions"]}["addtwo"] == 1
    assert sum(f["state"] == "hooked" for f in report["functions"]) >= 263
    done = make_kit(folder, "-o", "other", "--pdb", SAMPLES / "sym_CrashWithException.pdb", "xcpt4.exe", good=False)
    assert done.returncode == 1 and b"another build" in done.stderr and not (folder / "other").exists(), done


def other_files_are_refused(folder):
    build_work(folder, "game.exe")
    make_kit(folder, "-o", "kit", "game.exe")
    ids = [execute(folder, NATIVE, "list", "--json", "game.exe").stdout.decode().partition('"image_id":')[2].split('"')[1]]
    build_work(folder, "game.exe", "-DOTHER", "-O2", "-Wl,--image-base,0x150000000")
    with open(folder / "game.exe", "r+b") as file:  # another time in its header
        file.seek(0x88)
        file.write(b"\x01\x02\x03\x04")
    ids += [execute(folder, NATIVE, "list", "--json", "game.exe").stdout.decode().partition('"image_id":')[2].split('"')[1]]
    assert ids[0] != ids[1], ids
    done = run_windows(folder / "kit", "cmd", "/c", "count.cmd")
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 125 and len(lines) == 1 and all(name in lines[0] for name in ids), (ids, done)
    assert not list(folder.glob("kit/*.hfr")), "a record was left"
    (folder / "game.exe").unlink()
    done = run_windows(folder / "kit", "cmd", "/c", "count.cmd")
    assert done.returncode == 127 and b"next to the program" in done.stderr, done
    for arguments, wanted in (([SAMPLES / "seh_x86_xcpt4.exe"], b"x86-64"), ([SAMPLES / "seh_ARM64_xcpt4.exe"], b"x86-64"),
                              (["--windows", "missing", folder / "kit/hotfn.exe"], b"--windows DIR")):
        if arguments[-1].exists():
            done = make_kit(folder, "-o", "no", *arguments, good=False)
            assert done.returncode == 1 and wanted in done.stderr and done.stderr.count(b"\n") == 1, done
            assert not (folder / "no").exists()


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(cases.run([a_double_click_counts, names_come_from_a_pdb, other_files_are_refused],
                       needs=("wine", "x86_64-w64-mingw32-g++")))
