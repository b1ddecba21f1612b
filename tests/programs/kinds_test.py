# SPDX-License-Identifier: MIT
"""Programs that replace parts of the C library or the loader: hooked in any mode they behave as without hooks, and
all of their calls are counted."""
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
FIXED = ["setarch", "-R"]       # old sanitizers fail if the kernel randomises addresses further than they expect


def build(place, source, *flags, compiler="gcc"):
    """Build the program; Skipped if the compiler has no such runtime."""
    program = place / pathlib.Path(source).stem
    done = subprocess.run([compiler, "-O1", "-g", "-pthread", *flags, "-o", program, SRC / source],
                          capture_output=True, text=True)
    if done.returncode:
        raise cases.Skipped(f"{compiler} {' '.join(flags)}: {done.stderr[-300:]}")
    return program


def summary_of(text):
    """The summary line of a sanitizer's report: the error and its place."""
    return [line for line in text.splitlines() if line.startswith("SUMMARY")]


def run(command, **more):
    done = subprocess.run([*FIXED, *map(str, command)], capture_output=True, text=True, timeout=300, **more)
    return done.returncode, done.stdout, summary_of(done.stderr), done.stderr


def read_calls(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return {f["name"]: f["calls"] for f in json.loads(done.stdout)["functions"] if f["calls"] is not None}


def check_every_mode(place, program, *arguments, counts=(), modes=None, **more):
    """`counts`: {name: calls} that each mode must have counted."""
    modes = modes or MODES
    bare = run([program, *arguments], **more)
    for mode in modes:
        record = place / f"{mode}.hfr"
        hooked = run([HOTFN, "run", "-q", "-o", record, *modes[mode], "--", program, *arguments], **more)
        if hooked[:3] != bare[:3]:
            raise AssertionError(f"{program.name} {arguments} {mode}:\n{hooked}\nbare:\n{bare}")
        calls = read_calls(record)
        wrong = {name: calls.get(name) for name in dict(counts) if calls.get(name) != dict(counts)[name]}
        if wrong:
            raise AssertionError(f"{program.name} {arguments} {mode}: counted {wrong}, not {counts}")
    return bare


ERRORS = {"address": "overflow", "leak": "leak", "thread": "race", "undefined": "integer"}
SHARED = "-shared-libsan"       # clang's runtimes are static by default
CALLS = {"counted": 3001, "sum": 3, "worker": 3, "main": 1}


def check_sanitizer(place, compiler, sanitizer, *flags):
    program = build(place, "sanitized.c", f"-fsanitize={sanitizer}", *flags, compiler=compiler)
    status, output, _, errors = check_every_mode(place, program, counts=CALLS)
    if status or len(output.splitlines()) != 3:
        raise AssertionError(f"bare: {status} {output} {errors}")
    # The report may lack calls that other threads made after the end.
    _, _, summary, errors = check_every_mode(place, program, ERRORS[sanitizer], modes={mode: MODES[mode] for mode in ("counted", "timed")})
    if sanitizer != "undefined" and not summary:
        raise AssertionError(f"bare, no error was found: {errors}")


def clang_runtime():
    """The linker option for clang's shared runtimes, which the loader does not find by itself."""
    done = subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True, check=True)
    return [f"-Wl,-rpath,{done.stdout.strip()}"]


def sanitizer(compiler, which, *flags):
    """A case for the compiler's sanitizer, with the runtime that the flags select."""
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


def programs_that_export_names_of_the_c_library_work(place):
    """The program's functions have names of the C library's and fail before the program's constructor has run."""
    for flags in [], ["-static-libgcc", "-Wl,-z,now"], ["-no-pie"]:
        program = build(place, "own_names.c", "-fno-builtin", "-rdynamic", *flags)
        status, output, _, errors = check_every_mode(place, program, counts={"counted": 500, "main": 1})
        if status or "ready" not in output:
            raise AssertionError(f"bare: {status} {output} {errors}")


def timed_calls(record, name):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return {f["name"]: f.get("timed_calls") for f in json.loads(done.stdout)["functions"]}[name]


def check_clock_stop_is_reported(record, stopped):
    info = subprocess.run([HOTFN, "info", record], capture_output=True, text=True, check=True).stdout
    report = subprocess.run([HOTFN, "report", record], capture_output=True, text=True, check=True).stdout
    details = json.loads(subprocess.run([HOTFN, "info", "--json", record], capture_output=True, check=True).stdout)
    if not (("were only counted" in info) == ("disabled the clock for itself" in report) == stopped ==
            (details["time"]["clock_stopped_ns"] > 0)) or \
            details["time"]["clock_stopped_ns"] > details["end_ns"] - details["start_ns"]:
        raise AssertionError(f"{record}: {stopped}, but\n{info}{report}{details['time']}")


def programs_that_disable_their_clock_are_counted_afterwards(place):
    """Earlier calls are timed, later ones counted; none is timed if the program's own code has the system call."""
    modes = {**MODES, "flat": ["--mode", "time", "--flat"], "sampled": ["--mode", "time", "--sample", "4"],
             "memory": ["--mode", "time", "--with", "alloc"]}
    for how, timed, *flags in (("strict", 1500), ("counter", 1500), ("thread", 0), ("failed", 2510), ("syscall", 1500),
                               ("seccomp", 1500), ("refused", 2510), ("raw", 0, "-DRAW")):
        program = build(place, "no_clock.c", *flags)
        status, output, _, errors = check_every_mode(place, program, how, modes=modes,
                                                     counts={"counted": 2510, "main": 1})
        if (status, output) != (3, "done\n"):
            raise AssertionError(f"bare {how}: {status} {output} {errors}")
        for mode in ("timed", "everything", "flat", "memory"):
            if timed_calls(place / f"{mode}.hfr", "counted") != timed:
                raise AssertionError(f"{how} {mode}: {timed_calls(place / f'{mode}.hfr', 'counted')} timed")
            check_clock_stop_is_reported(place / f"{mode}.hfr", how not in ("failed", "refused"))
    report = subprocess.run([HOTFN, "report", place / "timed.hfr"], capture_output=True, text=True, check=True).stdout
    if "no_clock: nothing is timed: its system call at" not in report:
        raise AssertionError(report)


def programs_that_limit_their_system_calls_are_counted_afterwards(place):
    """The filter kills for each call that a thread's first hook, a fork, or the reading of times would make."""
    program = build(place, "limited_calls.c")
    for how, counted in (("prctl", 13000), ("syscall", 13000), ("fails", 14000), ("strict", 3000)):
        modes = MODES if how == "syscall" else {"counted": [], "timed": ["--mode", "time"]}
        status, output, _, errors = check_every_mode(place, program, how, modes=modes, counts={"main": 1})
        if (status, output) != (3, "done\n"):
            raise AssertionError(f"bare {how}: {status} {output} {errors}")
        for mode in modes:
            calls = read_calls(place / f"{mode}.hfr")["counted"]
            # the child may count in its parent's row at the same time
            if not (counted <= calls <= counted + 1000 if how in ("prctl", "syscall") else calls == counted):
                raise AssertionError(f"{how} {mode}: {calls} calls, not {counted}")


def the_hooks_memory_is_not_charged_to_the_program(place):
    """The record's mapping, most of which is never written, is neither dumped nor locked, and leaves most of an address
    space limit to the program."""
    program = build(place, "footprint.c")
    check_every_mode(place, program, counts={"counted": 1000, "main": 1})

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    _, output, _, _ = check_every_mode(place, program, "600", counts={"counted": 500}, preexec_fn=limit,
                                         modes={mode: MODES[mode] for mode in ("counted", "timed")})
    if output != "there is memory\n":
        raise AssertionError(f"bare: {output}")


CASES = [
    *SANITIZERS,
    programs_that_export_names_of_the_c_library_work,
    programs_that_disable_their_clock_are_counted_afterwards,
    programs_that_limit_their_system_calls_are_counted_afterwards,
    the_hooks_memory_is_not_charged_to_the_program,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc", "clang", "setarch"]))
