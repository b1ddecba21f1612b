#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn run --mode time` of AArch64 programs under qemu-user: they print what they print bare, with return
addresses signed and not; exceptions, longjmp and threads' ends close the calls that they pass; times are those
that the program itself measured.  Arguments: the AArch64 build (scripts/cross), a native hotfn."""
import os
import sys

from arm64_test import BUILDS, CPUS, HERE, PROGRAMS, RUNS, Bench, main, run

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
    for name, reason in (("variable", "stack-arguments"), ("doubles", "stack-arguments"),
                         ("whence", "return-address")):
        if functions[name]["timing"] != "count-only" or functions[name]["timing_reason"] != reason:
            return f"{name} is counted only, for {reason}: {functions[name]}"
    return None


def near(got, wanted, calls):
    return abs(got - wanted) <= WITHIN * wanted + SLACK_NS_A_CALL * calls


def times_that_differ(out, functions, report):
    to_ns = 1e9 / report["time"]["ticks_per_second"]
    for line in out.splitlines():
        name, calls, total, own = line.split()
        f, around = functions[name], int(calls) + CALLEES.get(name, 0)
        if not near(f["total_ns"], int(total) * to_ns, around):
            yield f"{line}: total {f['total_ns']}, wanted {int(total) * to_ns}"
        elif not near(f["self_ns"], int(own) * to_ns, around):
            yield f"{line}: self {f['self_ns']}, wanted {int(own) * to_ns}"


def check_times_are_those_the_program_measured(bench, build, cpu):
    program = bench.build("timed.c", "-O2", "-fno-optimize-sibling-calls", *BUILDS[build])

    def measure():
        out, functions, report = bench.timed(program, CPUS[cpu])
        time = report["time"]
        assert time["clock"] == "cntvct" and 1e6 <= time["ticks_per_second"] <= 1e10 and time["resolution_ns"] > 0, time
        for name, calls, *_ in map(str.split, out.splitlines()):
            f = functions[name]
            assert f["timing"] == "full" and f["calls"] == f["timed_calls"] == int(calls), f
        own = sum(f["self_ns"] or 0 for f in report["functions"])
        busy = sum(t["busy_ns"] for t in report["threads"])
        assert abs(own - busy) <= 0.001 * busy, f"own times sum to {own}, busy {busy}"
        return list(times_that_differ(out, functions, report))
    cases.comes_out_right(measure)


def check_backtraces_lead_through(bench, build, cpu):
    """gdb's own way is not at hand here: backtrace() from inside of timed calls names each caller."""
    source = bench.path("traced.c")
    with open(source, "w") as file:
        file.write("""#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#define OWN __attribute__((noinline, noclone))
static char text[4096];
static void note(void) {
    void *frames[32]; char **names; int n = backtrace(frames, 32);
    names = backtrace_symbols(frames, n);
    for (int i = 0; i < n; i++)
        for (const char **k = (const char *[]){ "inner", "middle", "outer", "main", 0 }; *k; k++) {
            char with[16]; snprintf(with, sizeof with, "(%s+", *k);
            if (strstr(names[i], with)) { strcat(text, *k); strcat(text, " "); }
        }
    strcat(text, "\\n");
}
static void on_signal(int s) { (void)s; note(); }
OWN int inner(int x) { note(); raise(SIGUSR1); return x + 1; }
OWN int middle(int x) { return inner(x) * 2; }
OWN int outer(int x) { return middle(x) - 1; }
int main(void) { signal(SIGUSR1, on_signal); int r = outer(3); printf("%d\\n%s", r, text); return 0; }
""")
    program = bench.path("traced")
    run(["aarch64-linux-gnu-gcc", "-O2", "-rdynamic", "-funwind-tables", *BUILDS[build], source, "-o", program])
    expected = bench.plain(program, CPUS[cpu])
    out, functions, _ = bench.timed(program, CPUS[cpu], "--module", "*")
    if expected.count("inner middle outer main") != 2 or out != expected:
        return f"{out!r}, wanted {expected!r}"
    return None if functions["outer"]["timed_calls"] == 1 else "outer was not timed"


CHECKS = [(check, b, c) for check in (check_output_is_the_same, check_calls_that_end_early) for b, c in RUNS]
CHECKS += [(check_what_is_not_proven_is_counted, *RUNS[1]), (check_times_are_those_the_program_measured, *RUNS[1])]
CHECKS += [(check_backtraces_lead_through, b, c) for b, c in RUNS]

if __name__ == "__main__":
    sys.exit(main(CHECKS, TimedBench))
