#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows programs counted under wine.

    windows_test.py BUILD HOTFN [CASE ...]     BUILD: folder of the build for Windows; HOTFN: the native tool

The oracle of counts is the same program with the compiler's own instrumentation.  WINEPREFIX names the prefix.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/programs"))
import cases  # noqa: E402

BUILD, NATIVE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
del sys.argv[1:3]
TOOL = BUILD / "tools/hotfn/hotfn.exe"
SAMPLES = pathlib.Path(os.environ.get("HOTFN_SAMPLES", "/nonexistent")) / "pdb"
LIMIT_S = 300  # only ends what hangs


def execute(folder, *command):
    return subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, env=os.environ | {"WINEDEBUG": "-all"}, check=False)


def run_windows(folder, *command):
    return execute(folder, "wine", *command)


def count(folder, *command, record="hotfn.hfr"):
    return run_windows(folder, TOOL, "run", "--no-cache", "-o", record, "--", *command)


def read_record(folder, record="hotfn.hfr"):
    """By the native tool: a record of Windows is read on Linux."""
    shown = execute(folder, NATIVE, "report", "--json", record)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def calls_by_name(report):
    return {f["name"]: f["calls"] for f in report["functions"]}


def build_work(folder, name, *options):
    subprocess.run(["x86_64-w64-mingw32-g++", "-O1", "-g", "-fno-ipa-icf", "-fno-inline", "-static", *options, "-o", name,
                    ROOT / "tests/windows/work.cpp"], cwd=folder, check=True, timeout=LIMIT_S)
    return folder / name


def counts_equal_the_programs_own(folder):
    build_work(folder, "work.exe")
    own = build_work(folder, "own.exe", "-finstrument-functions", "-DINSTRUMENTED",
                     "-finstrument-functions-exclude-file-list=include")
    bare = run_windows(folder, "own.exe", "own.txt", "3")
    counted = count(folder, "work.exe", "x", "3")
    assert (counted.returncode, counted.stdout) == (bare.returncode, bare.stdout) == (3, bare.stdout), counted
    symbols = subprocess.run(["x86_64-w64-mingw32-nm", own], capture_output=True, text=True, check=True).stdout
    names = {int(line.split()[0], 16) - 0x140000000: line.split()[2] for line in symbols.splitlines()
             if line.split()[1] in "Tt"}
    wanted = {names[int(line.split()[0], 16)]: int(line.split()[1])
              for line in (folder / "own.txt").read_text().splitlines()}
    wanted = {name: calls for name, calls in wanted.items() if name.startswith("work_")}
    report = read_record(folder)
    found = calls_by_name(report)
    reasons = {f["name"]: f["reason"] for f in report["functions"]}
    assert len(wanted) == 10, wanted
    for name, calls in wanted.items():
        assert found[name] == calls or (found[name] is None and reasons[name] == "too-short"), (name, calls, found[name])
    assert sum(found[name] is not None for name in wanted) >= 9, found


def exit_codes_are_passed_on(folder):
    build_work(folder, "work.exe")
    for arguments in (("x", "7"), ("die", "255"), ("fault",)):
        bare, counted = run_windows(folder, "work.exe", *arguments), count(folder, "work.exe", *arguments)
        # what wine returns and prints after an unhandled exception depends on its debugger
        if arguments != ("fault",):
            assert (counted.returncode, counted.stdout) == (bare.returncode, bare.stdout), (arguments, bare, counted)
        found = calls_by_name(read_record(folder))
        assert found["work_catcher"] == 12000 and found["work_fault"] == 200, (arguments, found)
    missing = count(folder, "missing.exe")
    assert missing.returncode == 127 and b"no such program" in missing.stderr, missing


def paths_may_have_spaces_and_other_letters(folder):
    inner = folder / "a folder \u00e4\u20ac"
    inner.mkdir()
    shutil.copy(build_work(folder, "work.exe"), inner / "the program.exe")
    counted = count(folder, inner / "the program.exe", "x \"y\"", "4", record="the record \u00e4.hfr")
    assert counted.returncode == 4, counted
    assert calls_by_name(read_record(folder, "the record \u00e4.hfr"))["work_catcher"] == 12000


def microsofts_exception_tests_pass(folder):
    if not (SAMPLES / "seh_x64_xcpt4.exe").is_file():
        raise cases.Skipped("no sample seh_x64_xcpt4.exe")
    for file in SAMPLES.glob("seh_x64_xcpt4.*"):
        shutil.copy(file, folder)
    bare, counted = run_windows(folder, "seh_x64_xcpt4.exe"), count(folder, "seh_x64_xcpt4.exe")
    assert bare.returncode == 0 and b"End of exception test" in bare.stdout, bare
    assert (counted.returncode, counted.stdout) == (0, bare.stdout), counted
    report = read_record(folder)
    states = [f["state"] for f in report["functions"]]
    assert states.count("hooked") == 263, states.count("hooked")
    assert calls_by_name(report)["addtwo"] == 1
    assert sum(f["calls"] or 0 for f in report["functions"]) > 1000


def agent_imports_the_system_only(folder):
    listed = execute(folder, "x86_64-w64-mingw32-objdump", "-p", BUILD / "src/agent/hotfn-agent.dll").stdout.decode()
    names = {line.split(":")[1].strip().lower() for line in listed.splitlines() if "DLL Name:" in line}
    assert names == {"kernel32.dll", "ntdll.dll"}, names


if __name__ == "__main__":
    sys.exit(cases.run([counts_equal_the_programs_own, exit_codes_are_passed_on, paths_may_have_spaces_and_other_letters,
                        microsofts_exception_tests_pass, agent_imports_the_system_only],
                       needs=("wine", "x86_64-w64-mingw32-g++")))
