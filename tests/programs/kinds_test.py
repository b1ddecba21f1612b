# SPDX-License-Identifier: MIT
"""Kinds of programs that take part of the C library's or the loader's place: they do hooked what they do bare, in
every mode, and their calls are counted to the last."""
import json
import os
import pathlib
import resource
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
SRC = pathlib.Path(__file__).resolve().parent / "src"
MODES = {"counted": [], "timed": ["--mode", "time"], "everything": ["--mode", "time", "--module", "*"]}
FIXED = ["setarch", "-R"]       # old sanitizers end where a kernel scatters memory further than they know of


def build(place, source, *flags, compiler="gcc"):
    """The program, or Skipped where the compiler has no such runtime."""
    program = place / pathlib.Path(source).stem
    done = subprocess.run([compiler, "-O1", "-g", "-pthread", *flags, "-o", program, SRC / source],
                          capture_output=True, text=True)
    if done.returncode:
        raise cases.Skipped(f"{compiler} {' '.join(flags)}: {done.stderr[-300:]}")
    return program


def last_word(text):
    """What a sanitizer's report ends with: which mistake, and where."""
    return [line for line in text.splitlines() if line.startswith("SUMMARY")]


def run(command, **more):
    done = subprocess.run([*FIXED, *map(str, command)], capture_output=True, text=True, timeout=300, **more)
    return done.returncode, done.stdout, last_word(done.stderr), done.stderr


def calls_of(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return {f["name"]: f["calls"] for f in json.loads(done.stdout)["functions"] if f["calls"] is not None}


def same_in_every_mode(place, program, *arguments, counts=(), modes=None, **more):
    """`counts`: what each mode must have counted, by name."""
    modes = modes or MODES
    bare = run([program, *arguments], **more)
    for mode in modes:
        record = place / f"{mode}.hfr"
        hooked = run([HOTFN, "run", "-q", "-o", record, *modes[mode], "--", program, *arguments], **more)
        if hooked[:3] != bare[:3]:
            raise AssertionError(f"{program.name} {arguments} {mode}:\n{hooked}\nbare:\n{bare}")
        calls = calls_of(record)
        wrong = {name: calls.get(name) for name in dict(counts) if calls.get(name) != dict(counts)[name]}
        if wrong:
            raise AssertionError(f"{program.name} {arguments} {mode}: counted {wrong}, not {counts}")
    return bare


MISTAKES = {"address": "overflow", "leak": "leak", "thread": "race", "undefined": "integer"}
SHARED = "-shared-libsan"       # clang's are static without it
CALLS = {"counted": 3001, "sum": 3, "worker": 3, "main": 1}


def check_sanitizer(place, compiler, sanitizer, *flags):
    program = build(place, "sanitized.c", f"-fsanitize={sanitizer}", *flags, compiler=compiler)
    status, output, _, said = same_in_every_mode(place, program, counts=CALLS)
    if status or len(output.splitlines()) != 3:
        raise AssertionError(f"bare: {status} {output} {said}")
    # Of the other threads' calls the report may lack those after the end.
    _, _, summary, said = same_in_every_mode(place, program, MISTAKES[sanitizer], modes={mode: MODES[mode] for mode in ("counted", "timed")})
    if sanitizer != "undefined" and not summary:
        raise AssertionError(f"bare, no mistake was found: {said}")


def clang_runtime():
    """Where clang's shared runtimes are: no loader finds them by itself."""
    done = subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True, check=True)
    return [f"-Wl,-rpath,{done.stdout.strip()}"]


def sanitizer(compiler, which, *flags):
    """A case of its own: the compiler's sanitizer, with the runtime that the flags ask for."""
    def case(place):
        more = clang_runtime() if SHARED in flags else []
        check_sanitizer(place, compiler, which, *flags, *more)
    runtime = "_shared" if SHARED in flags else "_static" if flags else ""
    case.__name__ = f"{compiler}_{which}{runtime}"
    return case


SANITIZERS = [
    sanitizer("gcc", "address"), sanitizer("gcc", "address", "-static-libasan"),
    sanitizer("gcc", "thread"), sanitizer("gcc", "thread", "-static-libtsan"),
    sanitizer("gcc", "undefined"), sanitizer("gcc", "undefined", "-static-libubsan"),
    sanitizer("gcc", "leak"),
    sanitizer("clang", "address"), sanitizer("clang", "address", SHARED),
    sanitizer("clang", "thread"), sanitizer("clang", "leak"),
    sanitizer("clang", "undefined"), sanitizer("clang", "undefined", SHARED),
]


def names_of_its_own(place):
    """A program that has functions of the C library by name, of which each wants its own constructor first."""
    for flags in [], ["-static-libgcc", "-Wl,-z,now"], ["-no-pie"]:
        program = build(place, "own_names.c", "-fno-builtin", "-rdynamic", *flags)
        status, output, _, said = same_in_every_mode(place, program, counts={"counted": 500, "main": 1})
        if status or "ready" not in output:
            raise AssertionError(f"bare: {status} {output} {said}")


def timed_calls(record, name):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return {f["name"]: f.get("timed_calls") for f in json.loads(done.stdout)["functions"]}[name]


def tells_when_the_clock_stopped(record, stopped):
    info = subprocess.run([HOTFN, "info", record], capture_output=True, text=True, check=True).stdout
    report = subprocess.run([HOTFN, "report", record], capture_output=True, text=True, check=True).stdout
    said = json.loads(subprocess.run([HOTFN, "info", "--json", record], capture_output=True, check=True).stdout)
    if not (("were only counted" in info) == ("forbids itself to read it" in report) == stopped ==
            (said["time"]["clock_stopped_ns"] > 0)) or said["time"]["clock_stopped_ns"] > said["end_ns"] - said["start_ns"]:
        raise AssertionError(f"{record}: {stopped}, but\n{info}{report}{said['time']}")


def forbids_itself_the_clock(place):
    """Calls before are timed, calls after counted; none at all where the program's own code has the system call."""
    modes = {**MODES, "flat": ["--mode", "time", "--flat"], "sampled": ["--mode", "time", "--sample", "4"],
             "memory": ["--mode", "time", "--with", "alloc"]}
    for how, timed, *flags in (("strict", 1500), ("counter", 1500), ("thread", 0), ("failed", 2510), ("syscall", 1500),
                               ("seccomp", 1500), ("refused", 2510), ("raw", 0, "-DRAW")):
        program = build(place, "no_clock.c", *flags)
        status, output, _, said = same_in_every_mode(place, program, how, modes=modes,
                                                     counts={"counted": 2510, "main": 1})
        if (status, output) != (3, "done\n"):
            raise AssertionError(f"bare {how}: {status} {output} {said}")
        for mode in ("timed", "everything", "flat", "memory"):
            if timed_calls(place / f"{mode}.hfr", "counted") != timed:
                raise AssertionError(f"{how} {mode}: {timed_calls(place / f'{mode}.hfr', 'counted')} timed")
            tells_when_the_clock_stopped(place / f"{mode}.hfr", how not in ("failed", "refused"))
    report = subprocess.run([HOTFN, "report", place / "timed.hfr"], capture_output=True, text=True, check=True).stdout
    if "no_clock: nothing is timed: its system call at" not in report:
        raise AssertionError(report)


def pays_no_memory_for_the_hooks(place):
    """The record's addresses, most of which nobody writes to, are neither dumped nor locked, and leave most of a limit
    of addresses to the program."""
    program = build(place, "footprint.c")
    same_in_every_mode(place, program, counts={"counted": 1000, "main": 1})

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    _, output, _, _ = same_in_every_mode(place, program, "600", counts={"counted": 500}, preexec_fn=limit,
                                         modes={mode: MODES[mode] for mode in ("counted", "timed")})
    if output != "there is memory\n":
        raise AssertionError(f"bare: {output}")


CASES = [*SANITIZERS, names_of_its_own, forbids_itself_the_clock, pays_no_memory_for_the_hooks]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc", "clang", "setarch"]))
