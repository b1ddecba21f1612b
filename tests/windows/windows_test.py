#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows programs counted and timed under wine.

    windows_test.py BUILD HOTFN [CASE ...]     BUILD: folder of the build for Windows; HOTFN: the native tool

The oracle of counts is the same program with the compiler's own instrumentation.  WINEPREFIX names the prefix.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/programs"))
import cases  # noqa: E402

BUILD, NATIVE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
del sys.argv[1:3]
TOOL = BUILD / "tools/hotfn/hotfn.exe"
SAMPLES = pathlib.Path(os.environ.get("HOTFN_SAMPLES", "/nonexistent")) / "pdb"
LIMIT_S = 300  # only ends programs that hang
IMAGE = TOOL.read_bytes()
IS_X86 = IMAGE[int.from_bytes(IMAGE[60:64], "little") + 4:][:2] == b"\x4c\x01"  # PE format, Machine
TRIPLE = "i686-w64-mingw32" if IS_X86 else "x86_64-w64-mingw32"
IMAGE_BASE = 0x400000 if IS_X86 else 0x140000000
PREFIX = "_" if IS_X86 else ""  # in front of the names of C
MODES = {"count": ["--mode", "count"], "time": ["--mode", "time"], "cpu": ["--mode", "time", "--clock", "cpu"],
         "sample": ["--mode", "time", "--sample", "3"]}


# The 32-bit wine of scripts/cross/wine32 has no library for fonts.
NO_FONTS = re.compile(rb"Wine cannot find the FreeType font library(?:.*\n){4}")


def execute(folder, *command, limit_s=LIMIT_S):
    """The output goes to files: wine's desktop is started by the first program that needs it, inherits its stderr, and
    outlives it, so a pipe would stay open."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        done = subprocess.run([str(part) for part in command], cwd=folder, stdout=out, stderr=errors, timeout=limit_s,
                              stdin=subprocess.DEVNULL, env=os.environ | {"WINEDEBUG": "-all"}, check=False)
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, out.read(), NO_FONTS.sub(b"", errors.read()))


def run_windows(folder, *command):
    return execute(folder, "wine", *command)


def count(folder, *command, record="hotfn.hfr", mode="count", tool=TOOL):
    return run_windows(folder, tool, "run", "--no-cache", *MODES[mode], "-o", record, "--", *command)


def read_record(folder, record="hotfn.hfr"):
    """The record's report, made by the native tool: Linux reads records of Windows."""
    shown = execute(folder, NATIVE, "report", "--json", record)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def calls_by_name(report):
    return {f["name"]: f["calls"] for f in report["functions"]}


def build_work(folder, name, *options):
    subprocess.run([TRIPLE + "-g++", "-O1", "-g", "-msse2", "-fno-ipa-icf", "-fno-inline", "-static", "-Wall", "-Wextra",
                    "-Werror", "-Wno-infinite-recursion", *options, "-o", name, ROOT / "tests/windows/work.cpp"], cwd=folder, check=True, timeout=LIMIT_S)
    return folder / name


def read_own_counts(folder, own, file):
    symbols = subprocess.run([TRIPLE + "-nm", own], capture_output=True, text=True, check=True).stdout
    names = {int(line.split()[0], 16) - IMAGE_BASE: line.split()[2].removeprefix(PREFIX) for line in symbols.splitlines()
             if line.split()[1] in "Tt"}
    counts = {names[int(line.split()[0], 16)]: int(line.split()[1]) for line in (folder / file).read_text().splitlines()}
    return {name: calls for name, calls in counts.items() if name.startswith("work_")}


def check_times(folder, record, mode):
    """Each timed call is counted, and the own times sum to the time in which threads were busy."""
    report = read_record(folder, record)
    timed = [f for f in report["functions"] if f["timing"] == ("sampled" if mode == "sample" else "full")]
    assert len(timed) > 100, len(timed)
    if mode == "sample":
        assert sum(f["timed_calls"] for f in timed) > 3000
    else:
        # the system does not return from the last exception handlers of a thread
        wrong = [f for f in timed if not 0 <= f["calls"] - f["timed_calls"] <= (8 if mode == "cpu" else 0)]
        assert not wrong, wrong
        assert sum(f["timed_calls"] for f in timed) > 10000
        cases.check_own_times_sum_to_busy(report)


def counts_equal_the_programs_own(folder):
    build_work(folder, "work.exe")
    own = build_work(folder, "own.exe", "-finstrument-functions", "-DINSTRUMENTED",
                     "-finstrument-functions-exclude-file-list=include")
    bare = run_windows(folder, "own.exe", "own.txt", "3")
    wanted = read_own_counts(folder, own, "own.txt") | {"work_flags": 12, "work_carry": 12, "work_tail": 12}
    assert len(wanted) == 15, wanted
    for mode in MODES:
        counted = count(folder, "work.exe", "x", "3", record=mode + ".hfr", mode=mode)
        assert (counted.returncode, counted.stdout) == (bare.returncode, bare.stdout) == (3, bare.stdout), (mode, counted)
        report = read_record(folder, mode + ".hfr")
        found = calls_by_name(report)
        reasons = {f["name"]: f["reason"] for f in report["functions"]}
        for name, calls in wanted.items():
            assert found[name] == calls or (found[name] is None and reasons[name] == "too-short"), (mode, name, calls, found)
        assert sum(found[name] is not None for name in wanted) >= 14, found
        if mode != "count" and not IS_X86:  # there C++ is only counted
            check_times(folder, mode + ".hfr", mode)


def parameters_may_be_kept_in_the_home_space(folder):
    """At -O0 each function stores its parameters above its return address."""
    build_work(folder, "work.exe", "-O0")
    bare = run_windows(folder, "work.exe", "x", "3")
    if IS_X86:
        raise cases.Skipped("x86 has no home space")
    for mode in "count", "time", "sample":
        counted = count(folder, "work.exe", "x", "3", mode=mode)
        assert (counted.returncode, counted.stdout) == (bare.returncode, bare.stdout) == (3, bare.stdout), (mode, counted)
        timing = {f["name"]: f.get("timing") for f in read_record(folder)["functions"]}
        for name in "work_fib", "work_empty", "work_seven", "work_fault", "work_leap", "work_trace":
            assert mode == "count" or timing[name] in ("full", "sampled"), (name, timing[name])


def nothing_is_kept_below_the_stack_pointer(folder):
    """The program single-steps through stubs of every kind and overwrites the memory below the stack pointer at each
    step; no instruction of the agent accesses that memory either."""
    build_work(folder, "work.exe")
    bare = run_windows(folder, "work.exe", "poison")
    first, second = bare.stdout.splitlines()
    assert bare.returncode == 0 and first == second and first.endswith(b" 1"), bare  # 1: the poison was seen
    for mode in MODES:
        counted = count(folder, "work.exe", "poison", mode=mode)
        assert (counted.returncode, counted.stdout) == (0, bare.stdout), (mode, bare, counted)
        found = calls_by_name(read_record(folder))
        assert found["work_tail"] == found["work_flags"] == found["work_seven"] == 6, (mode, found)
    code = execute(folder, TRIPLE + "-objdump", "-d", BUILD / "src/agent/hotfn-agent.dll").stdout.decode()
    assert len(code) > 1000000
    below = [line for line in code.splitlines() if re.search(r"[ ,]-0x[0-9a-f]+\(%[re]sp", line) and "lea " not in line]
    assert not below, below


def first_calls_keep_vector_registers(folder):
    """The slow path calls ntdll, which may use them."""
    build_work(folder, "work.exe")
    if run_windows(folder, "work.exe", "vectors").returncode == 77:
        raise cases.Skipped("this processor has no AVX")
    for mode in MODES:
        counted = run_windows(folder, TOOL, "run", "--no-cache", *MODES[mode], "-f", "work_choose", "-o", "hotfn.hfr",
                              "--", "work.exe", "vectors")
        assert counted.returncode == 5, (mode, counted)
        report = read_record(folder)
        assert len(report["threads"]) == 1 and calls_by_name(report)["work_choose"] == 1, (mode, report["threads"])


def exit_codes_are_passed_on(folder):
    build_work(folder, "work.exe")
    for arguments in (("x", "7"), ("die", "255"), ("fault",)):
        bare, counted = run_windows(folder, "work.exe", *arguments), count(folder, "work.exe", *arguments)
        # what wine returns and prints after an unhandled exception depends on its debugger
        if arguments != ("fault",):
            assert (counted.returncode, counted.stdout) == (bare.returncode, bare.stdout), (arguments, bare, counted)
        found = calls_by_name(read_record(folder))
        assert found["work_catcher"] == 12012 and found["work_fault"] == 200, (arguments, found)
    missing = count(folder, "missing.exe")
    assert missing.returncode == 127 and b"no such program" in missing.stderr, missing


def paths_may_have_spaces_and_other_letters(folder):
    inner = folder / "a folder \u00e4\u20ac"
    inner.mkdir()
    shutil.copy(build_work(folder, "work.exe"), inner / "the program.exe")
    counted = count(folder, inner / "the program.exe", "x \"y\"", "4", record="the record \u00e4.hfr")
    assert counted.returncode == 4, counted
    assert calls_by_name(read_record(folder, "the record \u00e4.hfr"))["work_catcher"] == 12012


def relocated_addresses_are_rewritten(folder):
    if not IS_X86:
        raise cases.Skipped("x86-64 code has no relocated addresses")
    source = ROOT / "tests/windows/moved.c"
    for name, options in ("moved.exe", ()), ("moved.dll", ("-DMOVED_LIBRARY", "-shared", "-Wl,--image-base=0x400000")):
        subprocess.run([TRIPLE + "-gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-static", *options, "-o", name, source],
                       cwd=folder, check=True, timeout=LIMIT_S)
    bare = run_windows(folder, "moved.exe")
    assert bare.stdout.split() == [b"1", b"1498505", b"500"], bare
    for mode in MODES:
        counted = run_windows(folder, TOOL, "run", "--no-cache", *MODES[mode], "--module", "*moved*", "-o", "hotfn.hfr",
                              "--", "moved.exe")
        assert (counted.returncode, counted.stdout) == (0, bare.stdout), (mode, counted)
        found = calls_by_name(read_record(folder))
        assert [found["moved_" + name] for name in ("add", "name", "reset")] == [1000, 1000, 1], (mode, found)


def timed_calls_are_exact(folder):
    subprocess.run([TRIPLE + "-gcc", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion", "-o", "timed.exe",
                    ROOT / "tests/windows/timed.c"], cwd=folder, check=True, timeout=LIMIT_S)
    bare = run_windows(folder, "timed.exe")
    wanted = {line.split()[0]: int(line.split()[1]) for line in bare.stdout.decode().splitlines()[1:]}
    assert bare.returncode == 0 and len(wanted) == 8, bare
    for mode in MODES:
        counted = count(folder, "timed.exe", mode=mode)
        assert (counted.returncode, counted.stdout) == (0, bare.stdout), (mode, counted)
        functions = {f["name"].lstrip("@").split("@")[0]: f for f in read_record(folder)["functions"]}
        assert {name: functions[name]["calls"] for name in wanted} == wanted, (mode, functions)
        if mode in ("time", "cpu"):
            timed = [name for name in wanted if functions[name]["timing"] == "full"]
            assert len(timed) >= 6, timed
            wrong = [name for name in timed if functions[name]["timed_calls"] != wanted[name]]
            assert not wrong, (mode, wrong, functions)
            cases.check_own_times_sum_to_busy(read_record(folder))


def copy_samples(folder, name):
    if not (SAMPLES / f"{name}.exe").is_file():
        raise cases.Skipped(f"no sample {name}.exe")
    for file in SAMPLES.glob(f"{name}.*"):
        shutil.copy(file, folder)


def run_narrow_exception_tests(folder):
    """wine's longjmp unwinds the last test groups by a wrong cookie, so it reads memory at random: without hotfn the
    read usually faults, and the program ends later with a floating-point overflow.  Only such runs are compared."""
    copy_samples(folder, "seh_x86_xcpt4")
    overflow = 0xc0000091 & 0xff
    bare = run_windows(folder, "seh_x86_xcpt4.exe")
    assert bare.returncode == overflow, bare
    counts = {}
    for mode in MODES:
        for _ in range(20):
            if count(folder, "seh_x86_xcpt4.exe", mode=mode).returncode == overflow:
                break
        else:
            raise AssertionError(f"{mode}: no run ended as without hotfn")
        counts[mode] = calls_by_name(read_record(folder))
        assert counts[mode]["addtwo"] == 1 and counts[mode] == counts["count"], (mode, counts)
    assert sum(calls or 0 for calls in counts["count"].values()) > 300
    scan = json.loads(execute(folder, NATIVE, "scan", "--json", "seh_x86_xcpt4.exe").stdout)["summary"]
    assert scan["hookable"] >= 0.92 * scan["entries"] and scan["entries"] == 91, scan
    assert "relocated" not in scan["reasons"], scan


def microsofts_exception_tests_pass(folder):
    if IS_X86:
        return run_narrow_exception_tests(folder)
    copy_samples(folder, "seh_x64_xcpt4")
    bare = run_windows(folder, "seh_x64_xcpt4.exe")
    assert bare.returncode == 0 and b"End of exception test" in bare.stdout, bare
    counts = {}
    for mode in MODES:
        counted = count(folder, "seh_x64_xcpt4.exe", mode=mode)
        assert (counted.returncode, counted.stdout) == (0, bare.stdout), (mode, counted)
        report = read_record(folder)
        states = [f["state"] for f in report["functions"]]
        assert states.count("hooked") == 263, states.count("hooked")
        counts[mode] = calls_by_name(report)
        assert counts[mode]["addtwo"] == 1 and counts[mode] == counts["count"], mode
        timed = sum(f.get("timing") in ("full", "sampled") for f in report["functions"])
        assert mode == "count" or timed >= 0.85 * 263, (mode, timed)
    assert sum(calls or 0 for calls in counts["count"].values()) > 1000


def unwind_tables_are_needed(folder):
    """With an agent that registers no unwind tables the program must fail."""
    if IS_X86:
        raise cases.Skipped("x86 has no unwind tables")
    copy_samples(folder, "seh_x64_xcpt4")
    shutil.copy(TOOL, folder)
    shutil.copy(BUILD / "tests/windows/hotfn-agent.dll", folder)
    bare = run_windows(folder, "seh_x64_xcpt4.exe")
    timed = count(folder, "seh_x64_xcpt4.exe", mode="time", tool=folder / "hotfn.exe")
    assert b"End of exception test" in bare.stdout and b"End of exception test" not in timed.stdout, timed


# ---- Attach.

AGENT = BUILD / "src/agent/hotfn-agent.dll"
ROUNDS = int(os.environ.get("HOTFN_ATTACH_ROUNDS", "20"))


def build_attach_target(folder):
    """Not relocatable, so that its code can be compared with that of its file."""
    subprocess.run([TRIPLE + "-gcc", "-O1", "-g", "-static", "-Wall", "-Wextra", "-Werror",
                    "-Wl,--disable-dynamicbase", "-o", "attach_target.exe", ROOT / "tests/windows/attach_target.c"],
                   cwd=folder, check=True, timeout=LIMIT_S)


def run_rounds(folder, rounds, *program):
    return execute(folder, "wine", BUILD / "tests/windows/attach_rounds.exe", rounds, f"Z:{AGENT}", "cache", *program,
                   limit_s=LIMIT_S * (1 + rounds // 50))


class AttachTarget:
    """The program runs until the end of the block; its lines are read one by one."""

    def __init__(self, folder, mode, *before, errors=subprocess.DEVNULL):
        self.process = subprocess.Popen(["wine", *map(str, before), "attach_target.exe", mode], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                        env=os.environ | {"WINEDEBUG": "-all"})

    def __enter__(self):
        self.pid = int(self.read())
        return self

    def __exit__(self, *reason):
        try:
            self.process.communicate("end\n", timeout=LIMIT_S)
        finally:
            self.process.kill()
        assert reason[0] or self.process.returncode == 7, self.process.returncode  # 7: all its results were right

    def read(self):
        return self.process.stdout.readline().strip()


def need_soak():
    if "HOTFN_ATTACH_ROUNDS" not in os.environ:
        raise cases.Skipped("it takes long; scripts/soak has it")


def attach_repeatedly(folder):
    need_soak()
    build_attach_target(folder)
    done = run_rounds(folder, ROUNDS, "attach_target.exe")
    assert done.stdout.decode().splitlines()[-1:] == [f"{ROUNDS} rounds, exit status 7"], done
    done = run_rounds(folder, 0, "attach_target.exe")
    assert done.stdout.split() == [b"refused"], done


def attach_to_7zip_repeatedly(folder):
    """It packs meanwhile; the rounds end with it."""
    if not os.path.isfile(os.environ.get("HOTFN_7ZA", "")):
        raise cases.Skipped("no HOTFN_7ZA (scripts/soak has it)")
    shutil.copy(os.environ["HOTFN_7ZA"], folder / "7za.exe")
    with open(folder / "data", "wb") as data:
        for seed in range(ROUNDS):
            data.write(random.Random(seed).randbytes(2 << 20))
    done = run_rounds(folder, ROUNDS, "7za.exe", "a", "-mmt2", "packed.7z", "data")
    last = done.stdout.decode().splitlines()[-1]
    rounds = re.fullmatch(r"(\d+) rounds, exit status 0", last)
    assert rounds and int(rounds[1]) >= ROUNDS // 10 and b"Everything is Ok" in done.stdout, done
    unpacked = run_windows(folder, "7za.exe", "x", "-oout", "packed.7z")
    assert unpacked.returncode == 0 and (folder / "out/data").read_bytes() == (folder / "data").read_bytes()


def attach_and_detach_as_commands(folder):
    """One hotfn attaches, another one detaches; then one is killed, and its counts are saved."""
    build_attach_target(folder)
    with AttachTarget(folder, "watch") as target:
        for name in "detached", "killed":
            attached = subprocess.Popen(["wine", TOOL, "attach", "--name", "ATTACH_*.exe", "-o",
                                         name + ".hfr"],
                                        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert target.read() == "hooked"
            if name == "killed":
                attached.kill()
            done = run_windows(folder, TOOL, "detach", "-o", "saved.hfr", target.pid)
            assert done.returncode == 0 and b"stay loaded" in done.stderr, done
            assert target.read() == "restored"
            errors = attached.communicate(timeout=LIMIT_S)[1]
            assert name == "killed" or (attached.returncode == 0 and b"functions hooked" in errors), errors
        again = run_windows(folder, TOOL, "attach", "--for", "50ms", "--by", "hook", "-o", "again.hfr", target.pid)
        assert again.returncode == 0 and b"stay loaded" in again.stderr, again
        timed = run_windows(folder, TOOL, "attach", "--mode", "time", "--for", "100ms", "-o", "timed.hfr", target.pid)
        assert timed.returncode == 0 and b"stay loaded" in timed.stderr, timed
    for name in "detached.hfr", "saved.hfr", "again.hfr":
        assert calls_by_name(read_record(folder, name))["target_step"] > 100, name
    timed = {f["name"]: f for f in read_record(folder, "timed.hfr")["functions"]}
    assert timed["target_step"]["timed_calls"] > 100 and timed["target_step"]["self_ns"] > 0, timed["target_step"]
    assert timed["target_step"]["calls"] - timed["target_step"]["timed_calls"] <= 16, timed["target_step"]
    shown = execute(folder, NATIVE, "report", "again.hfr").stdout
    assert b"agent and stubs stay loaded" in shown, shown


def attach_refuses_in_one_sentence(folder):
    build_attach_target(folder)

    def refused(wanted, *arguments):
        done = run_windows(folder, TOOL, *arguments)
        lines = done.stderr.decode().splitlines()
        assert done.returncode in (1, 2) and wanted in lines[0] and len(lines) == 1, (arguments, done)

    with AttachTarget(folder, "idle") as target:
        refused("has a window", "attach", "--by", "hook", target.pid)
        refused("no hotfn is attached", "detach", target.pid)
        refused("no process is named", "attach", "--name", "missing*")
    refused("there is no process", "attach", 999996)
    with AttachTarget(folder, "closed") as target:
        refused("run hotfn as the user of that process", "attach", target.pid)
    with AttachTarget(folder, "idle", TOOL, "run", "-q", "--no-cache", "-o", "run.hfr", "--") as target:
        refused("was started by hotfn run", "attach", target.pid)


def functions_over_budget_are_unhooked(folder):
    """The program's results and the counts of all other functions stay exact."""
    subprocess.run([TRIPLE + "-gcc", "-O2", "-static", "-pthread", "-o", "budget.exe", ROOT / "tests/programs/src/budget.c"],
                   cwd=folder, check=True, timeout=LIMIT_S)

    def changes(tool, to):
        shown = execute(folder, *tool, "report", "--json", "-n", "0", "b.hfr")
        report = json.loads(shown.stdout) if shown.returncode == 0 else {"budget": {"changes": []}}
        return report, [c for c in report["budget"]["changes"] if c["function"] == "tiny" and c["to"] == to]

    program = subprocess.Popen(["wine", TOOL, "run", "-q", "--no-cache", "--budget", "5%", "-o", "b.hfr", "--", "budget.exe",
                                "2000"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + LIMIT_S
    for to in "unhooked", "counted":  # the second when the program calls it no more
        while not changes(["wine", TOOL], to)[1] and program.poll() is None:
            assert time.monotonic() < end, changes(["wine", TOOL], to)
        program.stdin.write("\n")
        program.stdin.flush()
    output = program.communicate(timeout=LIMIT_S)[0]
    assert program.returncode == 0, program.returncode
    report, unhooked = changes([NATIVE], "unhooked")
    counts, own = calls_by_name(report), dict(line.split() for line in output.splitlines())
    assert unhooked and unhooked[0]["cost"] > 0.05 and report["budget"]["stops"] >= 2 and not report["budget"]["note"], report["budget"]
    assert 0 < counts["tiny"] < int(own["tiny"]), counts["tiny"]
    for name in "batch", "calm", "work", "step":
        assert counts[name] == int(own[name]), (name, counts[name], own)


def record_is_kept_in_the_temporary_folder(folder):
    """If its own folder is gone when the program ends."""
    build_attach_target(folder)
    (folder / "gone").mkdir()
    with open(folder / "errors", "wb") as errors:
        with AttachTarget(folder, "idle", TOOL, "run", "-q", "--no-cache", "-o", "gone/run.hfr", "--", errors=errors):
            shutil.rmtree(folder / "gone")
    said = (folder / "errors").read_text()
    path = re.search(r"kept in ([A-Z]:/.*/hotfn-[0-9a-f]{16}[.]hfr) instead", said)
    assert path and not path[1].startswith("Z:"), said
    shown = run_windows(folder, TOOL, "report", "--json", path[1])
    run_windows(folder, "cmd", "/c", "del", path[1].replace("/", "\\"))
    assert calls_by_name(json.loads(shown.stdout))["main"] == 1, shown


def hooks_are_compared_while_the_program_runs(folder):
    """From outside, once a second, also while its only thread waits for input."""
    build_attach_target(folder)
    end = time.monotonic() + LIMIT_S
    with AttachTarget(folder, "idle", TOOL, "run", "-q", "--no-cache", "-o", "run.hfr", "--"):
        checked = set()
        while len(checked) < 3:
            assert time.monotonic() < end, checked
            shown = run_windows(folder, TOOL, "report", "--json", "-n", "0", "run.hfr").stdout
            checked.add(json.loads(shown)["record"]["checked_ns"] or 0)
    assert read_record(folder, "run.hfr")["record"]["overwritten"] == 0


def switch(folder, mode, name, target):
    return run_windows(folder, TOOL, "ctl", "--mode", mode, "-f", name, target)


def functions_are_switched_while_the_program_runs(folder):
    build_attach_target(folder)
    with AttachTarget(folder, "watch", TOOL, "run", "-q", "--no-cache", "--mode", "time", "-o", "run.hfr", "--") as target:
        # the program takes the patched bytes for its own, because it finds them at its start
        for mode, code, state, where in (("off", "hooked", b"off", target.pid), ("time", "restored", b"timed", "run.hfr")):
            done = switch(folder, mode, "target_chain", where)
            assert done.returncode == 0 and b"1 function is now " + state in done.stderr, done
            assert target.read() == code
        done = switch(folder, "count", "target_step", target.pid)
        if IS_X86:
            assert done.returncode == 1 and b"but not to counting" in done.stderr, done
        else:
            assert done.returncode == 0 and b"1 function is now counted" in done.stderr, done
        done = switch(folder, "off", "missing", target.pid)
        assert done.returncode == 1 and b"no hooked function matches" in done.stderr, done
    step = {f["name"]: f for f in read_record(folder, "run.hfr")["functions"]}["target_step"]
    assert IS_X86 or 0 < step["timed_calls"] < step["calls"], step
    done = switch(folder, "off", "target_chain", "run.hfr")
    assert done.returncode == 1 and b"has ended" in done.stderr, done
    with AttachTarget(folder, "watch") as target:
        attached = subprocess.Popen(["wine", TOOL, "attach", "-o", "attached.hfr", str(target.pid)], cwd=folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert target.read() == "hooked"
        done = switch(folder, "off", "target_*", target.pid)
        assert done.returncode == 0 and b"now off" in done.stderr, done
        assert target.read() == "restored"
        done = run_windows(folder, TOOL, "detach", target.pid)
        errors = attached.communicate(timeout=LIMIT_S)[1]
        assert done.returncode == attached.returncode == 0 and b"other code" not in done.stderr + errors, (done, errors)


def bisect_finds_the_hook_that_changes_the_outcome(folder):
    if IS_X86:
        raise cases.Skipped("bisect is the same for both word sizes")
    subprocess.run([TRIPLE + "-gcc", "-O1", "-g", "-static", "-fno-ipa-icf", "-Wall", "-Wextra", "-Werror", "-o", "touchy.exe",
                    ROOT / "tests/windows/touchy.c"], cwd=folder, check=True, timeout=LIMIT_S)
    before = set(pathlib.Path(os.environ["WINEPREFIX"]).glob("drive_c/users/*/Temp/hotfn-bisect-*"))
    for options in (["--by", "exit"], ["--check", "if %STATUS%==0 (exit 0) else (exit 1)"]):
        done = run_windows(folder, TOOL, "bisect", *options, "-f", "*touchy*", "-f", "main", "--", "touchy.exe")
        found = re.findall(rb"^function  (\S+)", done.stdout, re.MULTILINE)
        assert done.returncode == 3 and found == [b"touchy_culprit"], done
    done = run_windows(folder, TOOL, "bisect", "-f", "bystander", "--", "touchy.exe")
    assert done.returncode == 0 and b"No hook changes the outcome" in done.stdout, done
    done = run_windows(folder, TOOL, "bisect", "--timeout", "3s", "-f", "*touchy*", "--", "touchy.exe", "hang")
    assert done.returncode == 3 and b"no end within" in done.stderr and b"touchy_culprit" in done.stdout, done
    done = run_windows(folder, TOOL, "bisect", "--", "missing.exe")
    assert done.returncode == 1 and b"missing.exe: cannot be started" in done.stderr, done
    assert set(pathlib.Path(os.environ["WINEPREFIX"]).glob("drive_c/users/*/Temp/hotfn-bisect-*")) == before


def functions_are_replaced_and_filtered(folder):
    if IS_X86:
        raise cases.Skipped("replacing functions was tried on Windows x64 only")
    done = run_windows(folder, BUILD / "tests/windows/replace.exe")
    assert done.returncode == 0 and done.stdout.split() == b"all checks passed".split(), done


def run_refuses_what_it_cannot_do(folder):
    build_work(folder, "work.exe")
    for options, wanted in (("--follow", "--follow"), ("--target x", "--target"),
                            ("--mode time --with alloc", "--with alloc"), ("--durable", "--durable"), ("--perf-map", "--perf-map")):
        done = run_windows(folder, TOOL, "run", *options.split(), "--", "work.exe", "x", "3")
        lines = done.stderr.decode().splitlines()
        assert done.returncode == 125 and len(lines) == 1 and wanted in lines[0] and not done.stdout, (options, done)
        assert not (folder / "hotfn.hfr").exists()
    for command in (["listen"], ["kit", "-o", "k", "work.exe"], ["ctl", "--mode", "off", "5"],
                    ["attach", "--children", "5"]):
        done = run_windows(folder, TOOL, *command)
        assert done.returncode in (1, 2) and done.stderr.decode().count("\n") == 1, (command, done)


def agent_imports_the_system_only(folder):
    listed = execute(folder, TRIPLE + "-objdump", "-p", BUILD / "src/agent/hotfn-agent.dll").stdout.decode()
    names = {line.split(":")[1].strip().lower() for line in listed.splitlines() if "DLL Name:" in line}
    assert names == {"kernel32.dll", "ntdll.dll"}, names


if __name__ == "__main__":
    sys.exit(cases.run([counts_equal_the_programs_own, parameters_may_be_kept_in_the_home_space,
                        nothing_is_kept_below_the_stack_pointer, first_calls_keep_vector_registers, exit_codes_are_passed_on,
                        paths_may_have_spaces_and_other_letters, relocated_addresses_are_rewritten, timed_calls_are_exact,
                        unwind_tables_are_needed, attach_repeatedly, attach_to_7zip_repeatedly,
                        attach_and_detach_as_commands, attach_refuses_in_one_sentence, functions_over_budget_are_unhooked,
                        record_is_kept_in_the_temporary_folder, hooks_are_compared_while_the_program_runs,
                        functions_are_switched_while_the_program_runs, bisect_finds_the_hook_that_changes_the_outcome,
                        functions_are_replaced_and_filtered, run_refuses_what_it_cannot_do, microsofts_exception_tests_pass, agent_imports_the_system_only],
                       needs=("wine", TRIPLE + "-g++")))
