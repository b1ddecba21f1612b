#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn run --mode time` of AArch64 programs under qemu-user: their output is the same as without hooks, with
signed and unsigned return addresses; a call that an exception, longjmp or the end of a thread leaves is ended too;
times agree with those that the program itself measured.  Arguments: the AArch64 build (scripts/cross), a native hotfn."""
import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from arm64_test import BUILDS, CPUS, HERE, PROGRAMS, ROOT, RUNS, Bench, Skipped, main, run

sys.path.insert(0, os.path.join(HERE, "..", "programs"))
import cases  # noqa: E402  (a sibling folder)

COMPILERS = {".c": "aarch64-linux-gnu-gcc", ".cc": "aarch64-linux-gnu-g++"}
# Emulated code is translated when it first runs, and its counter ticks in microseconds.
WITHIN, SLACK_NS_A_CALL = 0.1, 10000
CALLEES = {"middle": 180, "top": 60, "climb": 180, "work": 100}  # calls that timed.c's functions make


class TimedBench(Bench):
    def build(self, source, *flags):
        name, kind = os.path.splitext(source)
        program = self.path(name + "".join(flags))
        if not os.path.exists(program):
            run([COMPILERS[kind], "-D_GNU_SOURCE", "-pthread", "-rdynamic", *flags, "-o", program,
                 os.path.join(PROGRAMS, source)])
        return program

    def timed(self, program, cpu, *options):
        """(stdout, {name: function}, report)"""
        out, report = self.counted(program, cpu, "--mode", "time", *options)
        return out, {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}, report


def check_output_is_the_same(bench, build, cpu):
    program = bench.build("timed_shapes.c", "-O2", *BUILDS[build])
    expected = bench.plain(program, CPUS[cpu])
    for options in ((), ("--flat",), ("--module", "*"), ("--sample", "3", "--module", "*"),
                    ("--events", "--slower-than", "100us")):
        out, functions, _ = bench.timed(program, CPUS[cpu], *options)
        if out != expected:
            return f"{options}: output {out!r}, wanted {expected!r}"
        if not any(f["timed_calls"] for f in functions.values()):
            return f"{options}: nothing was timed"
    program = bench.build("timed_shapes.c", "-O0", *BUILDS[build])
    if bench.timed(program, CPUS[cpu])[0] != bench.plain(program, CPUS[cpu]):
        return "output differs at -O0"
    return None


def check_calls_that_end_early(bench, build, cpu):
    """By longjmp, from a signal handler, pthread_exit, pthread_cancel, exceptions."""
    _, functions, _ = bench.timed(bench.build("timed_shapes.c", "-O2", *BUILDS[build]), CPUS[cpu])
    for name in ("deep", "jumps", "faults", "touches", "ends_thread", "ending", "sleeps"):
        f = functions[name]
        if f["timing"] != "full" or f["calls"] != f["timed_calls"]:
            return f"not each call ended: {f}"
    for flags in ((), ("-static-libgcc", "-static-libstdc++")):
        program = bench.build("cxx_exceptions.cc", "-O2", *BUILDS[build], *flags)
        out, functions, _ = bench.timed(program, CPUS[cpu], *(() if flags else ("--module", "*")))
        if out != bench.plain(program, CPUS[cpu]):
            return f"{flags}: output differs"
        for name in ("throw_number", "dive"):
            f = functions[name]
            if f["calls"] != f["timed_calls"] or f["calls"] <= 100:
                return f"{flags}: not each call ended: {f}"
    return None


def check_what_is_not_proven_is_counted(bench, build, cpu):
    program = bench.build("timed_shapes.c", "-O2", *BUILDS[build])
    counted = {f["name"]: f["calls"] for f in bench.counted(program, CPUS[cpu])[1]["functions"]}
    _, functions, _ = bench.timed(program, CPUS[cpu])
    for name, f in functions.items():
        if f["calls"] != counted[name]:
            return f"{name}: {f['calls']} calls, counted {counted[name]}"
    for name, reason in (("variable", "stack-arguments"), ("whence", "return-address"),
                         ("doubles", "stack-arguments")):  # doubles has no branches, so it might be an outlined function
        if functions[name]["timing"] != "count-only" or functions[name]["timing_reason"] != reason:
            return f"{name} must only be counted, for the reason {reason}: {functions[name]}"
    return None


def check_functions_that_compare_frame_addresses_are_not_moved(bench, build, cpu):
    out, functions, _ = bench.timed(bench.build("timed_own_address.c", "-O2", *BUILDS[build]), CPUS[cpu], "--sample", "2")
    if "10000 kept, 0 elsewhere" not in out or functions["turn"]["timing_reason"] != "own-address":
        return f"{out!r}, {functions['turn']}"
    return None


def check_functions_with_stack_arguments_are_timed(bench, build, cpu):
    """If the code proves where stack arguments are, they are copied for the call and for its tail calls."""
    program = bench.build("timed_shapes.c", "-O2", *BUILDS[build])
    for options in ((), ("--sample", "3")):
        _, functions, _ = bench.timed(program, CPUS[cpu], *options)
        for name in ("many", "forwards"):
            f = functions[name]
            if f["timing"] == "count-only" or not f["timed_calls"] or (not options and f["timed_calls"] != f["calls"]):
                return f"{options}: {f}"
    return None


def check_outlined_functions_find_their_callers_arguments(bench, build, cpu):
    """Functions that clang outlined access the frames of their callers, including stack arguments: these are copied
    for the outlined functions too, and no outlined function that reads stack arguments is timed."""
    if not shutil.which("clang") or not shutil.which("ld.lld"):
        raise Skipped("no clang, or no lld")
    program = bench.path("pieces")
    run(["clang", "--target=aarch64-linux-gnu", "-Oz", "-moutline", *BUILDS[build], "-c", os.path.join(HERE, "pieces.c"),
         "-o", f"{program}.o"])
    run(["aarch64-linux-gnu-gcc", f"{program}.o", "-o", program])
    expected = bench.plain(program, CPUS[cpu])
    out, functions, _ = bench.timed(program, CPUS[cpu])
    outlined = [f for name, f in functions.items() if name.startswith("OUTLINED_FUNCTION_")]
    reported = {name: (f["timing"], f["timing_reason"]) for name, f in functions.items()}
    if out != expected or not any(f["timing_reason"] == "stack-arguments" for f in outlined):
        return f"output {out!r}, wanted {expected!r}; {reported}"
    if any(functions[name]["timed_calls"] != 1000 for name in ("one", "two", "three", "four", "five")):
        return f"not timed: {reported}"
    return None


LIBRARY = """#include <unistd.h>
#define MANY int a, int b, int c, int d, int e, int f, int g, int h, int i, int j
#define OWN __asm__ volatile("")
int inner(int x) __asm__("_Z5inneri"), inside(int);
int inner(int x) { OWN; return 3 * x; }
int inside(int x) { OWN; return inner(x + 1); }
int outside(int x) { OWN; return close(x); }
long varies(long x) { OWN; return syscall(x); }
int taken_over(MANY) { OWN; return a; }
int passes_on(MANY) { OWN; return taken_over(a, b, c, d, e, f, g, h, i, j); }
"""
USER = """#include <stdio.h>
#define MANY int a, int b, int c, int d, int e, int f, int g, int h, int i, int j
int inside(int), outside(int), passes_on(MANY); long varies(long);
int taken_over(MANY) { return a + 10 * i + 100 * j; }
int main(void) { long sum = 0; for (int i = 0; i < 1000; i++)
    sum += inside(i) + outside(-1) + varies(178) % 1 + passes_on(i, 2, 3, 4, 5, 6, 7, 8, 9, i);
    printf("%ld\\n", sum); }
"""


def check_jumps_lead_to_known_functions(bench, build, cpu):
    """A tail jump through the PLT is trusted if a standard defines the callee's arguments or C++ guarantees one
    definition.  Any other may reach another image's function: the program's uses stack arguments, the library's
    does not.  passes_on stores the callee's arguments in its own argument area, and is refused for that."""
    for name, text in (("own.c", LIBRARY), ("uses.c", USER)):
        with open(bench.path(name), "w", encoding="utf-8") as file:
            file.write(text)
    gcc = ["aarch64-linux-gnu-gcc", "-D_GNU_SOURCE", "-O2", *BUILDS[build]]
    for plt in ((), ("-fno-plt",)):
        run([*gcc, "-fPIC", "-shared", *plt, bench.path("own.c"), "-o", bench.path("libown.so")])
        run([*gcc, bench.path("uses.c"), "-o", bench.path("uses"), f"-L{bench.folder}", "-lown", f"-Wl,-rpath,{bench.folder}"])
        expected = bench.plain(bench.path("uses"), CPUS[cpu])
        out, functions, _ = bench.timed(bench.path("uses"), CPUS[cpu], "--module", "libown*")
        reported = {name: (f["timed_calls"], f["timing_reason"]) for name, f in functions.items()}
        if out != expected or any(reported[name] != (1000, "") for name in ("inside", "_Z5inneri", "outside")) or \
                (reported["varies"][1], reported["passes_on"][1]) != ("tail-unknown", "stack-arguments"):
            return f"{plt}: output {out!r}, wanted {expected!r}; {reported}"
    return None


def is_near(got, wanted, calls, error_ns):
    return abs(got - wanted) <= WITHIN * wanted + SLACK_NS_A_CALL * calls + 3 * error_ns


def times_that_differ(out, functions, report):
    to_ns = 1e9 / report["time"]["ticks_per_second"]
    for line in out.splitlines():
        name, calls, total, own = line.split()
        f, around = functions[name], int(calls) + CALLEES.get(name, 0)
        self_ns = (f["self_ns"] or 0) + (f["waited_ns"] or 0)
        if not is_near(f["total_ns"], int(total) * to_ns, around, f["total_error_ns"]):
            yield name, f"{line}: total {f['total_ns']}, wanted {int(total) * to_ns}"
        elif not is_near(self_ns, int(own) * to_ns, around, f["self_error_ns"]):
            yield name, f"{line}: self {self_ns}, wanted {int(own) * to_ns}"


def check_times_are_those_the_program_measured(bench, build, cpu):
    program = bench.build("timed.c", "-O2", "-fno-optimize-sibling-calls", *BUILDS[build])

    def measure(clock):
        out, functions, report = bench.timed(program, CPUS[cpu], "--clock", clock)
        time = report["time"]
        assert time["clock"] == ("tick" if clock == "tick" else "cntvct") and time["resolution_ns"] > 0, time
        assert 1e6 <= time["ticks_per_second"] <= 1e10 and (time["ticker_cpu_ns"] > 0) == (clock == "tick"), time
        for name, calls, *_ in map(str.split, out.splitlines()):
            f = functions[name]
            assert f["timing"] == "full" and f["calls"] == f["timed_calls"] == int(calls), f
        cases.check_own_times_sum_to_busy(report)
        if time["coarse_share"] > 0.2 or time["missing_share"] > 0:    # other programs took the ticker's processor
            return {}
        return dict(times_that_differ(out, functions, report))
    for clock in "cpu", "tick":
        cases.check_most_runs(lambda: measure(clock))


def values(cell):
    return [cell[key] for key in ("allocated_bytes", "allocated_blocks", "freed_bytes", "freed_blocks")]


def check_allocations_are_those_the_program_counted(bench, build, cpu):
    """alloc.cc prints what each function allocates and frees; count_blocks.c interposes the C library's functions and
    counts the same."""
    program, counter, counts = bench.build("alloc.cc", "-O2", *BUILDS[build]), bench.path("counter.so"), bench.path("c")
    run(["aarch64-linux-gnu-gcc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", counter,
         os.path.join(PROGRAMS, "count_blocks.c"), "-ldl"])
    with open(counts, "wb") as file:
        file.write(bytes(4096))
    bench.environment.update(LD_PRELOAD=counter, COUNT_BLOCKS=counts)
    try:
        out, functions, report = bench.timed(program, CPUS[cpu], "--with", "alloc")
    finally:
        del bench.environment["LD_PRELOAD"]
    for line in out.splitlines():
        name, *expected = line.split()
        if values(functions[name]["self_alloc"]) != [int(value) for value in expected]:
            return f"{line}: {functions[name]}"
    with open(counts, "rb") as file:
        counted = list(struct.unpack("<4Q", file.read(32)))
    # Without the blocks that glibc frees when a thread ends: it frees its cache of freed blocks a second time.
    total = [sum(column) for column in zip(*(values(f["self_alloc"]) for f in report["functions"] if f["name"] != "free"))]
    return None if total == counted and counted[1] > 1000 else f"{total}, count_blocks.c counted {counted}"


def traced(bench, build):
    program = bench.path("traced")
    run(["aarch64-linux-gnu-gcc", "-O2", "-rdynamic", "-funwind-tables", *BUILDS[build],
         os.path.join(HERE, "traced.c"), "-o", program])
    return program


def check_backtraces_lead_through(bench, build, cpu):
    """backtrace() from inside timed calls names each caller."""
    program = traced(bench, build)
    expected = bench.plain(program, CPUS[cpu])
    out, functions, _ = bench.timed(program, CPUS[cpu], "--module", "*")
    if expected.count("inner middle outer main") != 2 or out != expected:
        return f"{out!r}, wanted {expected!r}"
    return None if functions["outer"]["timed_calls"] == 1 else "outer was not timed"


WALK = f"""set pagination off
set confirm off
set backtrace past-main on
set sysroot {ROOT}
set solib-search-path %(agent)s
file traced
target remote gdb.socket
handle SIGUSR1 nostop noprint pass
break %(begin)s
continue
set $left = %(steps)d
while $left > 0
%(look)s
  stepi
  set $left = $left - 1
end
delete
continue
"""
BACKTRACE = "echo \\n@step\\n\nbt"
# At instructions of the program and of stubs, which are at lower addresses, run the handler and return.
SIGNAL = """if (long)$pc < (long)&main + 4096
    set $at = (long)$pc
    queue-signal SIGUSR1
    stepi
    tbreak *$at
    continue
  end"""


def walk_by_gdb(bench, begin, steps, look, command):
    """(gdb's output, the program's output) when gdb runs `look` at each of the first `steps` instructions of the
    emulated command, starting at `begin`."""
    socket, script = bench.path("gdb.socket"), bench.path("walk.gdb")
    with open(script, "w", encoding="utf-8") as file:
        file.write(WALK % {"agent": os.path.join(bench.build_folder, "src/agent"), "begin": begin,
                           "steps": steps, "look": look})
    with subprocess.Popen(command, cwd=bench.folder, env=bench.environment, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, start_new_session=True) as child:
        try:
            for _ in range(3000):
                if os.path.exists(socket) or child.poll() is not None:
                    break
                time.sleep(0.02)
            text = run(["gdb-multiarch", "-nx", "--batch", "-x", script], cwd=bench.folder,
                       env=dict(bench.environment, DEBUGINFOD_URLS="")).stdout
            out = child.communicate(timeout=60)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(FileNotFoundError):  # the emulator removes it if it can
                os.unlink(socket)
    return text, out


def walk_both(bench, build, emulator, look, runs, frames_in):
    """Each run is (mode, begin, steps, minimum number of backtraces).  Every backtrace of a run must also occur
    without hooks."""
    if not shutil.which("gdb-multiarch"):
        raise Skipped("no gdb-multiarch")
    inner = [*emulator, "-g", "gdb.socket", traced(bench, build), "quiet"]
    known = set(frames_in(*walk_by_gdb(bench, "*main", 50, look, inner)))
    if not any(frames[:4] == ("inner", "middle", "outer", "main") for frames in known):
        return f"bare: {known}"
    known |= {frames[1:] for frames in known}  # a stub's caller
    for mode, begin, steps, found_min in runs:
        found = frames_in(*walk_by_gdb(bench, begin, steps, look, [
            *emulator, bench.hotfn, "run", "-q", "-o", bench.path("r.hfr"), "--mode", mode, "--target", "traced", "--",
            *inner]))
        wrong = [frames for frames in found if program_frames(frames) not in known]
        if wrong or len(found) < found_min:
            return f"{mode}: of {len(found)} {len(wrong)} wrong: {wrong[:5]}"
    return None


def program_frames(frames):
    """The frames without stubs and without the engine's functions that the innermost stub called."""
    engine = [number for number, name in enumerate(frames) if name.startswith("hfn_")]
    return tuple(name for name in frames[engine[-1] + 1 if engine else 0:] if name != "hotfn:stub")


def check_gdb_walks_through(bench, build, cpu):
    """At each instruction of stubs and engine, including the slow path and timing, gdb finds the same frames as
    without hooks.  On a CPU without signed addresses, because the emulator does not report their mask to gdb."""
    def frames_in(text, _out):
        return [tuple(re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(", step, re.MULTILINE))
                for step in text.split("\n@step\n")[1:]]
    return walk_both(bench, build, ["qemu-aarch64", *CPUS[cpu], "-L", ROOT], BACKTRACE,
                     (("count", "*main", 80, 80), ("time", "middle", 450, 450)), frames_in)


def check_handlers_see_callers_of_stubs(bench, build, _cpu):
    """A signal arrives before each instruction of the program and of its stubs: backtrace() in its handler finds the
    same frames as without hooks, with signed addresses.  (gdb cannot read a signal frame with SVE state.)"""
    def frames_in(_text, out):
        return [tuple(line.split()) for line in out.splitlines()[1:]]
    return walk_both(bench, build, ["qemu-aarch64", "-cpu", "max,sve=off", "-L", ROOT], SIGNAL,
                     (("count", "*outer", 60, 40), ("time", "*middle", 420, 20)), frames_in)


CHECKS = [(check, b, c) for check in (check_output_is_the_same, check_calls_that_end_early) for b, c in RUNS]
CHECKS += [(check_functions_with_stack_arguments_are_timed, b, c) for b, c in RUNS]
CHECKS += [(check, *RUNS[1]) for check in (check_outlined_functions_find_their_callers_arguments, check_jumps_lead_to_known_functions)]
CHECKS += [(check_functions_that_compare_frame_addresses_are_not_moved, *RUNS[1])]
CHECKS += [(check_what_is_not_proven_is_counted, *RUNS[1]), (check_times_are_those_the_program_measured, *RUNS[1])]
CHECKS += [(check_allocations_are_those_the_program_counted, b, c) for b, c in RUNS]
CHECKS += [(check_backtraces_lead_through, b, c) for b, c in RUNS]
CHECKS += [(check_gdb_walks_through, "protected", "cortex-a57")]
CHECKS += [(check_handlers_see_callers_of_stubs, build, "max") for build in ("protected", "other key")]
CHECKS += [(check, "other key", "max") for check in (check_output_is_the_same, check_calls_that_end_early)]

if __name__ == "__main__":
    sys.exit(main(CHECKS, TimedBench))
