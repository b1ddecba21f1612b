# SPDX-License-Identifier: MIT
"""`hotfn run --mode time`: times agree with those that the program itself measured, counts with those
of count mode, and programs that read their stack, throw, jump and switch stacks behave as without
hooks."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import cases
import generated

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
# The hooks' cost is measured at the start; on a shared machine it may be higher later.
WITHIN = 0.02
# Time between the program's timestamp at a function's begin and the hook's own, and likewise at the end.
SLACK_NS_A_CALL = 150
CALLEES = {"middle": 180, "top": 60, "climb": 180, "work": 100}     # calls that timed.c's functions make


def build(place, source, *flags, compiler="gcc"):
    """The program of one source file; no sibling calls, so that every function returns to its hook."""
    binary = place / (pathlib.Path(source).stem + "-" + compiler + "".join(flags).replace("/", "_"))
    subprocess.run([compiler, "-D_GNU_SOURCE", "-pthread", *FLAGS, *flags, "-o", binary, SRC / source],
                   check=True)
    return binary


def run_bare(binary):
    done = subprocess.run([binary], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def run(place, binary, *options):
    """(status, stdout, output of `hotfn report --json --edges`) of a hooked run."""
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "-o", record, *options, "--", binary],
                          capture_output=True, text=True, timeout=300)
    report = subprocess.run([HOTFN, "report", "--json", "-n", "0", "--edges", record],
                            capture_output=True, text=True)
    if report.returncode:       # a record without a tree has no edges
        report = subprocess.run([HOTFN, "report", "--json", "-n", "0", record],
                                capture_output=True, text=True, check=True)
    return done.returncode, done.stdout, json.loads(report.stdout)


def by_name(report):
    return {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}


def measured_times(output, report):
    """The times that the program measured: name -> (calls, total_ns, self_ns)."""
    to_ns = 1e9 / report["time"]["ticks_per_second"]
    measured = {}
    for line in output.splitlines():
        name, calls, total, own = line.split()
        measured[name] = (int(calls), int(total) * to_ns, int(own) * to_ns)
    return measured


def near(got, wanted, calls):
    """Is `got` the time `wanted`?  A time below what can be resolved is None: it is near 0."""
    return abs((got or 0) - wanted) <= WITHIN * wanted + SLACK_NS_A_CALL * calls


def times_that_differ(output, report):
    """{name: (times that the program measured, function)}; asserts that all call counts are exact."""
    functions, off = by_name(report), {}
    for name, (calls, total, own) in measured_times(output, report).items():
        f = functions[name]
        assert f["timing"] == "full", f
        assert f["calls"] == f["timed_calls"] == calls, (calls, f)
        if not (near(f["total_ns"], total, calls)
                and near(f["self_ns"], own, calls + CALLEES.get(name, 0))):
            off[name] = ({"total": total, "self": own}, f)
    return off


def times_are_those_the_program_measured(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    for options in (("--flat",), ()):
        def measure():
            status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *options)
            assert status == 0, status
            return times_that_differ(output, report)
        cases.check_most_runs(measure)


# The first call of a function in a thread has page faults between the hook's and the program's reading of the clock.
FIRST_CALL_NS, THREADS = 15_000, 3


def differing_times(output, report, calls):
    """The functions of a generated program whose times differ by more than 2 % and the cost of first calls."""
    measured, functions = measured_times(output, report), by_name(report)
    assert {name: times[0] for name, times in measured.items()} == calls, (measured, calls)
    off = {}
    for name, (number, total, own) in measured.items():
        f = functions[name]
        assert f["calls"] == number, (number, f)
        assert FLAGS or f["timing"] == "full" and f["timed_calls"] == number, f
        first = min(number, THREADS) * FIRST_CALL_NS
        if f["timing"] == "full" and not (abs(f["total_ns"] - total) <= WITHIN * total + first
                                          and abs(f["self_ns"] - own) <= WITHIN * own + first):
            off[name] = (total, own, f)
    busy, own = (sum(x[key] or 0 for x in report[of]) for key, of in (("busy_ns", "threads"), ("self_ns", "functions")))
    return off if abs(own - busy) <= WITHIN * busy else {**off, "busy": (busy, own)}


def generated_programs_show_their_times(place):
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    for seed in (1, 2, 3):
        text, calls = generated.program(seed)
        (place / f"made{seed}.c").write_text(text)
        binary = build(place, place / f"made{seed}.c", "-O2", "-fno-optimize-sibling-calls",
                       compiler=compilers[0 if FLAGS else seed % len(compilers)])
        for options in (("--flat",), ()):
            def measure():
                status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *options)
                assert status == 0, status
                return differing_times(output, report, calls)
            cases.check_most_runs(measure)


def own_times_sum_to_busy(place):
    """Exactly, because each interval between events is attributed once.  So do the outermost calls' totals."""
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time", "--clock", "cpu")
    cases.check_own_times_sum_to_busy(report)
    outermost = [edge["total_ns"] for edge in report["edges"] if edge["caller"] is None]
    busy = [t["busy_ns"] for t in report["threads"]]
    assert outermost and abs(sum(outermost) - sum(busy)) <= len(outermost) + len(busy), (outermost, busy)
    assert len(report["threads"]) >= 2, report["threads"]     # rows may be reused


def percentiles_are_ordered_and_lie_below_the_maximum(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time", "--clock", "cpu")
    for f in by_name(report).values():
        if f["timed_calls"]:
            assert f["p50_ns"] <= f["p90_ns"] <= f["p99_ns"], f
            assert f["p99_ns"] <= (f["max_ns"] or 0) * 1.03 + 2, f


def edges_have_the_exact_calls(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time", "--clock", "cpu")
    names = [f["name"] for f in report["functions"]]
    calls = {}
    for edge in report["edges"]:
        caller = "outside" if edge["caller"] is None else names[edge["caller"]]
        calls[caller, names[edge["callee"]]] = edge["calls"]
    wanted = {("middle", "leaf"): 180, ("top", "middle"): 60, ("climb", "climb"): 180,
              ("main", "climb"): 20, ("main", "top"): 1, ("outside", "work"): 2,
              ("work", "leaf"): 100}
    for edge, number in wanted.items():
        assert calls.get(edge) == number, (edge, number, calls)


def a_sample_counts_exactly_and_times_one_call_in_n(place):
    """Every call is counted, and one of each block of N calls is timed.  What a sample cannot know is null."""
    binary = build(place, "timed_often.c", "-O2", "-fno-optimize-sibling-calls")
    bare = run_bare(binary)
    for clock in ("cpu", "tick"):
        status, output, report = run(place, binary, "--mode", "time", "--clock", clock, "--sample", "16")
        assert (status, output) == bare, (status, output, bare)
        functions = by_name(report)
        for name, calls in (("small", 425000), ("often", 100000), ("seldom", 25000), ("main", 1)):
            f = functions[name]
            assert f["timing"] == "sampled" and f["calls"] == calls, f
            assert calls // 16 <= f["timed_calls"] <= calls // 16 + 1, f
            assert f["self_ns"] is None and f["self_error_ns"] is None, f
            assert (f["total_ns"] is None) <= (f["timed_calls"] == 0 or f["total_error_ns"] > 0), f
        assert not report.get("edges") and report["time"]["nodes"] == 0, report["time"]


def counts_are_those_of_count_mode(place):
    binary = build(place, "timed_shapes.c", "-O2")
    counted = by_name(run(place, binary)[2])
    timed = by_name(run(place, binary, "--mode", "time", "--clock", "cpu")[2])
    assert counted.keys() == timed.keys(), counted.keys() ^ timed.keys()
    for name, f in counted.items():
        assert timed[name]["calls"] == f["calls"], (name, f["calls"], timed[name]["calls"])


def output_is_the_same_as_without_hooks(place):
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if FLAGS:
        compilers = ["gcc"]     # clang's 32-bit program faults without hooks: its tail calls misalign the stack
    for compiler in compilers:
        for level in ("-O0", "-O2", "-O3"):
            binary = build(place, "timed_shapes.c", level, compiler=compiler)
            bare = run_bare(binary)
            assert bare[0] == 0, bare
            wanted = [()] if level != "-O2" else [
                (), ("--flat",), ("--module", "*"), ("--sample", "8"),
                ("--events", "--slower-than", "1us")]
            for options in wanted:
                status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *options)
                assert (status, output) == bare, (compiler, level, options, status, output, bare)
                assert any(f["timed_calls"] for f in report["functions"]), "nothing was timed"


def functions_with_stack_arguments_are_timed(place):
    """If the code shows where they are, stack arguments are copied for the call and for its tail calls."""
    functions = by_name(run(place, build(place, "timed_shapes.c", "-O2"), "--mode", "time", "--clock", "cpu")[2])
    for name in ("many", "forwards", "by_value", "doubles", "long_doubles"):
        f = functions[name]
        assert f["timing"] == "full" and f["calls"] == f["timed_calls"] > 0, f


def callers_read_arguments_that_their_callees_changed(place):
    """i386: the stub writes the words back that the function stores to, if they are among the first eight."""
    binary = build(place, "timed_arguments.c", "-O1")
    bare = run_bare(binary)
    assert bare[0] == 0, bare
    for more in ([], ["--flat"], ["--sample", "2"]):
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *more)
        assert (status, output) == bare, (more, status)
        functions = by_name(report)
        for name in ("adds", "reloads", "tails", "pops", "ninth"):
            f = functions[name]
            if FLAGS and name != "ninth":
                assert f["timing"] != "count-only" and f["timed_calls"] > 0, (more, f)
            else:
                assert f["timing_reason"] in ("stack-arguments", "tail-unproven", "return-pops"), (more, f)


def functions_called_through_a_table_find_their_callers_arguments(place):
    """`return table[k](...)`: the target of the jump reads its caller's arguments in place."""
    for compiler in [c for c in ("gcc", "clang") if shutil.which(c) and not (FLAGS and c == "clang")]:
        binary = build(place, "timed_tables.c", "-O2", "-fno-pie", "-no-pie", compiler=compiler)
        bare = run_bare(binary)
        assert bare[0] == 0, bare
        for more in ([], ["--flat"]):
            status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *more)
            assert (status, output) == bare, (compiler, more, status, output, bare)
            functions = by_name(report)
            assert functions["mix"]["timed_calls"] > 0, functions["mix"]
            assert functions["unbounded"]["calls"] == 20000, functions["unbounded"]


def the_stack_stays_aligned_to_64_bytes(place):
    binary = build(place, "timed_aligned.c", "-O2", "-mpreferred-stack-boundary=6")
    bare = run_bare(binary)
    assert bare[1].startswith("0 misplaced"), bare
    for more in ([], ["--flat"], ["--sample", "2"], ["--with", "alloc"]):
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *more)
        assert (status, output) == bare, (more, status, output)
        timed = [f["name"] for f in report["functions"] if f["name"].startswith("takes_") and f["timed_calls"]]
        assert len(timed) == 7, (more, timed)


def calls_left_by_a_jump_or_thread_end_are_closed(place):
    """Calls left by longjmp, pthread_exit and pthread_cancel: each is closed exactly once."""
    binary = build(place, "timed_shapes.c", "-O2")
    functions = by_name(run(place, binary, "--mode", "time", "--clock", "cpu")[2])
    for name in ("deep", "jumps", "faults", "touches", "ends_thread", "ending", "sleeps"):
        f = functions[name]
        assert f["timing"] == "full" and f["calls"] == f["timed_calls"], f


def functions_not_proven_for_timing_are_counted_with_a_reason(place):
    binary = build(place, "timed_shapes.c", "-O2")
    functions = by_name(run(place, binary, "--mode", "time", "--clock", "cpu")[2])
    for name, reason in (("by_index", "stack-arguments"), ("variable", "stack-arguments"),
                         ("whence", "return-address"), ("tail_even", None)):
        f = functions[name]
        assert f["timing"] == "count-only" and f["total_ns"] is None, f
        assert reason in (None, f["timing_reason"]) and f["timing_reason"], f


def functions_that_compare_frame_addresses_are_not_moved(place):
    for compiler in [c for c in ("gcc", "clang") if shutil.which(c)]:
        for flag in ("-O0", "-O2"):
            binary = build(place, "timed_own_address.c", flag, compiler=compiler)
            status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", "--sample", "2")
            assert (status, output) == (0, "10000 kept, 0 elsewhere\n"), (compiler, flag, status, output)
            f = by_name(report)["turn"]
            assert f["calls"] == 20000 and f["timing_reason"] == "own-address", (compiler, flag, f)


def nested_procedures_of_pascal_read_the_arguments_of_their_parent(place):
    if FLAGS or not shutil.which("fpc"):
        raise cases.Skipped("no Free Pascal for this CPU")
    for flag in ("-O-", "-O2"):
        subprocess.run(["fpc", "-v0", "-g", flag, f"-FE{place}", SRC / "timed_nested.pas"], check=True,
                       capture_output=True)
        binary = place / "timed_nested"
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu")
        assert (status, output) == run_bare(binary), (flag, status, output)
        outer = [f for name, f in by_name(report).items() if name.startswith("P$TIMED_NESTED_$$_OUTER$")]
        assert [(f["calls"], f["timing_reason"]) for f in outer] == [(1000, "return-address")], (flag, outer)


def tail_jumps_through_the_plt_are_timed_if_the_target_is_certain(place):
    """A tail jump through the PLT is trusted if a standard defines the callee's arguments or C++
    guarantees one definition.  Any other target may be another image's function, even if the library
    defines it as well: the program's uses stack arguments, the library's does not."""
    if FLAGS:
        raise cases.Skipped("the PLT of 32-bit code needs a register that a tail jump has already restored")
    (place / "own.c").write_text(
        "#define _GNU_SOURCE\n#include <unistd.h>\n"
        "#define MANY int a, int b, int c, int d, int e, int f, int g, int h\n"
        "int inner(int x) __asm__(\"_Z5inneri\"), inside(int);\n"
        "int inner(int x) { __asm__ volatile(\"\"); return 3 * x; }\n"
        "int inside(int x) { __asm__ volatile(\"\"); return inner(x + 1); }\n"
        "int outside(int x) { __asm__ volatile(\"\"); return close(x); }\n"
        "int elsewhere(int x) { __asm__ volatile(\"\"); return isatty(x) + dup2(x, x); }\n"
        "long varies(long x) { __asm__ volatile(\"\"); return syscall(x); }\n"
        "int taken_over(MANY) { __asm__ volatile(\"\"); return a; }\n"
        "int passes_on(MANY) { __asm__ volatile(\"\"); return taken_over(a, b, c, d, e, f, g, h); }\n"
        "static int chosen_one(int x) { return x - 1; }\n"
        "static void *choose(void) { return chosen_one; }\n"
        "int chosen(int x) __attribute__((ifunc(\"choose\")));\n"
        "int by_choice(int x) { __asm__ volatile(\"\"); return chosen(x); }\n")
    (place / "uses.c").write_text(
        "#include <stdio.h>\nint inside(int), outside(int), by_choice(int), elsewhere(int); long varies(long);\n"
        "int passes_on(int, int, int, int, int, int, int, int);\n"
        "int taken_over(int a, int b, int c, int d, int e, int f, int g, int h) { return a + 10 * g + 100 * h; }\n"
        "int main(void) { long sum = 0; for (int i = 0; i < 1000; i++)"
        " sum += inside(i) + outside(-1) + by_choice(i) + elsewhere(-1) + varies(39) % 1 +"
        " passes_on(i, 2, 3, 4, 5, 6, 7, i); printf(\"%ld\\n\", sum); }\n")
    library = place / "libown.so"
    for plt in ((), ("-fno-plt",)):
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", *plt, "-o", library, place / "own.c"], check=True)
        binary = build(place, place / "uses.c", "-O2", f"-L{place}", "-lown", f"-Wl,-rpath,{place}",
                       "-Wl,--no-as-needed", str(library))
        bare = run_bare(binary)
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", "--module", "libown*")
        assert (status, output) == bare, (plt, status, output, bare)
        functions = by_name(report)
        assert functions["inside"]["timing"] == functions["_Z5inneri"]["timing"] == "full", functions
        assert functions["inside"]["timed_calls"] == functions["_Z5inneri"]["calls"] == 1000, functions
        assert functions["outside"]["timed_calls"] == functions["elsewhere"]["timed_calls"] == 1000, functions
        for name in ("by_choice", "varies", "passes_on"):
            assert functions[name]["timing_reason"] == "tail-unknown", functions[name]


def a_call_ends_at_a_tail_jump_out_of_its_frame(place):
    """x86-64: a variadic tail target finds its caller's stack arguments, and functions that jump to each
    other are timed in every mode, also if two threads run them when the hooks are installed."""
    binary = build(place, "tail_exits.c", "-O2")
    scan = json.loads(subprocess.run([HOTFN, "scan", "--json", "--timed", binary], capture_output=True, text=True,
                                     check=True).stdout)
    names = {f["rva"]: f["name"] for f in scan["functions"]}
    ends = {f["name"]: names.get(f["ends_at_jump_to"]) for f in scan["functions"]}
    wanted = {"some": "sum", "pass": "sum", "even": "odd", "odd": "even", "sum": None, "work": None}
    found = {name: ends[name] for name in wanted}
    assert FLAGS or found == wanted, f"calls end at jumps to {found}, not {wanted}"
    bare = run_bare(binary)
    counts = by_name(run(place, binary)[2])
    for options in ((), ("--flat",), ("--sample", "2"), ("--with", "alloc"), ("--after", "1ms"), ("--budget", "5%")):
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu", *options)
        assert (status, output) == bare, (options, status, output, bare)
        exact = options[:1] not in (("--after",), ("--budget",))
        for name in wanted if exact else ():
            f = by_name(report)[name]
            assert f["calls"] == counts[name]["calls"], (options, f, counts[name])
            assert FLAGS or (f["timing"] == "count-only") == (name == "sum"), (options, f)
        if not options:
            whole = {f["name"]: f["total_ns"] or 0 for f in by_name(report).values()}
            assert FLAGS or whole["some"] + whole["pass"] + whole["even"] <= whole["work"], whole


def exceptions_close_the_calls_they_leave(place):
    """Each call of a function that throws or that an exception leaves is closed."""
    if not shutil.which("g++"):
        raise cases.Skipped("no g++ on this system")
    for flags in ((), ("-static-libgcc", "-static-libstdc++")):
        binary = build(place, "cxx_exceptions.cc", "-O2", *flags, compiler="g++")
        bare = run_bare(binary)
        status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu")
        assert (status, output) == bare, (flags, status, output, bare)
        functions = by_name(report)
        for name in ("throw_number", "dive", "carry"):
            f = functions[name]
            assert f["calls"] == f["timed_calls"] > 100, f
        assert report["time"]["nodes"] < 5000, report["time"]


def calls_on_switched_stacks_are_closed_once(place):
    """Fibers that throw, migrate and are abandoned; exceptions rethrown, nested and foreign; a cancelled
    thread: each of their calls is closed once."""
    if not shutil.which("g++"):
        raise cases.Skipped("no g++ on this system")
    binary = build(place, "fibers.cc", "-O2", compiler="g++")
    bare = run_bare(binary)
    for clock, *options in (("tick",), ("cpu",), ("cpu", "--flat")):
        status, output, report = run(place, binary, "--mode", "time", "--clock", clock, *options)
        assert (status, output) == bare, (options, status, output, bare)
        functions = {f["display"].partition("(")[0]: f for f in report["functions"]
                     if f["state"] == "hooked"}
        for name in ("main", "migrating", "abandoned", "resume", "throws", "nested", "raises",
                     "passes_foreign", "cancels", "holds", "guard::~guard"):
            f = functions[name]
            if FLAGS and f["timing_reason"] in ("stack-unknown", "patch-inside"):
                # how much its callees pop is unknown, or it begins with a call
                assert name in ("nested", "passes_foreign", "holds", "cancels", "guard::~guard"), f
                continue
            assert f["timing"] == "full" and 0 < f["calls"] == f["timed_calls"], (clock, options, f)
        assert FLAGS or functions["waits"]["timing"] == "full", functions["waits"]
        if clock == "cpu":
            cases.check_own_times_sum_to_busy(report)


def perf_unwinds_through_timed_stubs(place):
    """With frame pointers, and with a name for each stub; needs a perf that is allowed to record."""
    perf, source = shutil.which("perf"), place / "chain.c"
    source.write_text("#include <stdio.h>\n#define OWN __attribute__((noinline, noclone))\n"
                      "volatile long z;\n"
                      "OWN long hot(long n) { z = 1; for (long i = 0; i < n; i++) z += i; return z; }\n"
                      "OWN long middle(long n) { z = 2; return hot(n) + z; }\n"
                      "OWN long outer(long n) { z = 3; return middle(n) + z; }\n"
                      "int main(void) { z = 0; long s = 0; for (int i = 0; i < 200; i++)"
                      " s += outer(200000); printf(\"%ld\\n\", s); }\n")
    binary = build(place, source, "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer",
                   "-fno-optimize-sibling-calls")
    bare, data = run_bare(binary), place / "perf.data"
    if not perf or subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-o", data, "/bin/true"],
                                  capture_output=True).returncode:
        raise cases.Skipped("no perf that is allowed to record")
    done = subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", data, "--",
                           HOTFN, "run", "-q", "--perf-map", "--mode", "time", "--clock", "cpu", "-o", place / "p.hfr",
                           "--", binary], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == bare, done
    script = subprocess.run([perf, "script", "-i", data, "--comm", binary.name[:15]],
                            capture_output=True, text=True).stdout
    info = subprocess.run([HOTFN, "info", "--json", place / "p.hfr"], capture_output=True, check=True)
    pathlib.Path(f"/tmp/perf-{json.loads(info.stdout)['pid']}.map").unlink()
    chains = [[line.split()[1].partition("+")[0] for line in block.splitlines()[1:] if line.split()[1:]]
              for block in script.split("\n\n") if " hot+" in block or "\thot+" in block]
    stubs = ["hotfn:stub:middle", "hotfn:stub:outer"]      # hot itself has no frame
    assert any([name for name in chain if name in stubs] == stubs for chain in chains), script[:2000]


def times_of_a_killed_program_are_kept(place):
    source = place / "dies.c"
    source.write_text("#include <signal.h>\n#include <x86intrin.h>\n"
                      "__attribute__((noinline)) void spend(void) { unsigned long long end ="
                      " __rdtsc() + 10000000; while (__rdtsc() < end) {} }\n"
                      "int main(void) { for (int i = 0; i < 5; i++) spend(); raise(SIGKILL); }\n")
    binary = build(place, source, "-O2")
    status, _, report = run(place, binary, "--mode", "time", "--clock", "cpu", "--slower-than", "10us")
    assert status == -signal.SIGKILL, status
    spend = by_name(report)["spend"]
    assert spend["timed_calls"] == 5, spend
    wanted = 5 * 10000000 * 1e9 / report["time"]["ticks_per_second"]
    assert wanted * (1 - WITHIN) <= spend["total_ns"], (wanted, spend)
    slow = [(report["functions"][s["function"]]["name"], s["callers"]) for s in report["slow_calls"]]
    own = sorted(s for s in slow if s[0] in ("main", "spend"))       # start-up functions may have waited for a CPU
    assert own == [("main", [])] + 5 * [("spend", ["main"])], slow   # main was killed in its call


def the_report_warns_if_the_hooks_cost_more_than_all_functions(place):
    source = place / "many.c"
    source.write_text("volatile long x; __attribute__((noinline)) void tiny(void) { x++; }\n"
                      "int main(int argc, char **argv) { for (long i = 0; i < 2000000; i++) tiny(); return argc < 1; }\n")
    binary = build(place, source, "-O2")
    for options in ((), ("--flat",), ("--sample", "4")):
        status, _, report = run(place, binary, "--mode", "time", "--clock", "cpu", *options)
        time = report["time"]
        assert status == 0 and time["cost_inside_ns"] + time["cost_outside_ns"] > 0, (status, time)
        assert by_name(report)["tiny"]["calls"] == 2000000, report["functions"]
        table = subprocess.run([HOTFN, "report", place / "run.hfr"], capture_output=True, text=True, check=True).stdout
        calls, own = (sum(f[key] or 0 for f in report["functions"]) for key in ("timed_calls", "self_ns"))
        took = (time["cost_inside_ns"] + time["cost_outside_ns"]) * calls
        noted = options[:1] != ("--sample",) and took > own
        rounded = abs(took - own) <= 0.001 * calls      # JSON has a call's cost to the picosecond
        assert rounded or ("\nthe hooks cost " in table) == noted, (options, took, own, table)


def the_report_can_show_a_single_process(place):
    """Threads, slow calls, events and busy time are those of the requested process."""
    source = place / "two.c"
    source.write_text("#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
                      "volatile int x; __attribute__((noinline)) void parents(void) { usleep(3000); x++; }\n"
                      "__attribute__((noinline)) void childs(void) { usleep(3000); x--; }\n"
                      "int main(void) { x = 1; pid_t pid = fork(); for (int i = 0; i < 5; i++)"
                      " if (pid) parents(); else childs();"
                      " if (!pid) exit(0); waitpid(pid, 0, 0); }\n")
    binary = build(place, source, "-O2")
    _, _, both = run(place, binary, "--mode", "time", "--clock", "cpu", "--slower-than", "1ms", "--events")
    record = place / "run.hfr"
    info = json.loads(subprocess.run([HOTFN, "info", "--json", record], capture_output=True,
                                     check=True).stdout)
    assert len(info["threads"]) == 2 and info["time"]["slow_calls"] >= 10, info
    assert info["time"]["call_stack_bytes"] == 64, info["time"]     # the manual names it
    assert info["time"]["count_cost_ns"] < info["time"]["cost_ns"], info["time"]
    for pid in {t["pid"] for t in info["threads"]}:
        main = pid == info["pid"]
        one = json.loads(subprocess.run(
            [HOTFN, "report", "--json", "-n", "0", "--process", str(pid), record],
            capture_output=True, check=True).stdout)
        assert [t["pid"] for t in one["threads"]] == [pid], one["threads"]
        assert 0 < one["time"]["busy_ns"] < both["time"]["busy_ns"], one["time"]
        assert len(one["slow_calls"]) >= 5, one["slow_calls"]
        slow = {one["functions"][s["function"]]["name"] for s in one["slow_calls"]}
        assert slow <= {"parents" if main else "childs", "main"} and len(slow) > 0, slow
        assert {s["thread"] for s in one["slow_calls"]} == {0}, one["slow_calls"]
        chrome = subprocess.run([HOTFN, "export", "-F", "chrome", "--process", str(pid), record],
                                capture_output=True, text=True, check=True).stdout
        assert ("parents" in chrome) == main and ("childs" in chrome) != main, chrome


def the_report_can_show_a_single_thread(place):
    """Calls and percentiles of a function that one thread calls 20 times for 1 ms, and another 40 times for 10 us."""
    source = place / "apart.c"
    source.write_text("#include <pthread.h>\n#include <time.h>\nvolatile long x;\n"
                      "static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);"
                      " return t.tv_sec * 1000000000 + t.tv_nsec; }\n"
                      "__attribute__((noinline)) void work(long ns) { for (long end = now() + ns; now() < end;) x++; }\n"
                      "void *other(void *p) { for (int i = 0; i < 40; i++) work(10000); return p; }\n"
                      "int main(void) { pthread_t t; pthread_create(&t, 0, other, 0);"
                      " for (int i = 0; i < 20; i++) work(1000000); pthread_join(t, 0); }\n")
    binary = build(place, source, "-O2")
    _, _, both = run(place, binary, "--mode", "time", "--clock", "cpu")
    found = {}
    for thread in both["threads"]:
        one = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", "--thread", str(thread["tid"]), place / "run.hfr"],
                                        capture_output=True, check=True).stdout)
        assert [t["tid"] for t in one["threads"]] == [thread["tid"]], one["threads"]
        work = by_name(one)["work"]
        found[work["calls"]] = work["p50_ns"]
    assert by_name(both)["work"]["calls"] == 60 and set(found) == {20, 40}, found
    assert found[20] > 900_000 > found[40], found
    refused = subprocess.run([HOTFN, "report", "--thread", "1", place / "run.hfr"], capture_output=True, text=True)
    assert refused.returncode == 1 and "no thread 1 in this record" in refused.stderr, refused


def a_childs_busy_time_is_at_most_the_runs(place):
    """With the C library hooked, the first events of a forked child close calls that began in the parent."""
    source = place / "forks.c"
    source.write_text("#include <sys/wait.h>\n#include <unistd.h>\n"
                      "int main(void) { for (int i = 0; i < 3; i++) if (!fork()) _exit(0);"
                      " while (wait(0) > 0) {} }\n")
    binary = build(place, source, "-O2")
    for options in (), ("--flat",), ("--sample", "4"):
        _, _, report = run(place, binary, "--module", "*", "--mode", "time", "--clock", "cpu", *options)
        took = report["record"]["end_ns"] - report["record"]["start_ns"]
        busy = [thread["busy_ns"] for thread in report["threads"]]
        assert len(busy) == 4 and max(busy) <= 2 * took, (took, busy)
        if "--sample" not in options:
            cases.check_own_times_sum_to_busy(report)
            assert report["time"]["abandoned_exits"] == 0, report["time"]


def outlined_functions_find_their_callers_arguments(place):
    """Functions that clang outlined use their callers' frame pointer, and the callers' code does not show that."""
    if not shutil.which("clang"):
        raise cases.Skipped("no clang")
    binary = build(place, SRC.parent.parent / "cross" / "pieces.c", "-Oz", "-fno-omit-frame-pointer", "-fno-pic",
                   "-no-pie", "-mllvm", "-enable-machine-outliner=always", compiler="clang")
    bare = run_bare(binary)
    status, output, report = run(place, binary, "--mode", "time", "--clock", "cpu")
    functions = by_name(report)
    assert (status, output) == bare, (status, output, bare)
    assert any(name.startswith("OUTLINED_FUNCTION_") for name in functions), sorted(functions)
    for name in ("one", "two", "three", "four", "five"):
        assert functions[name]["calls"] == functions[name]["timed_calls"] == 1000, functions[name]


def wrong_options_are_refused(place):
    for words in (["--mode", "fast"], ["--flat"], ["--slower-than", "1ms"], ["--events"],
                  ["--sample", "8"], ["--mode", "time", "--clock", "cpu", "--sample", "0"]):
        done = subprocess.run([HOTFN, "run", *words, "--", "/bin/true"], cwd=place,
                              capture_output=True, text=True)
        assert done.returncode == 125 and "hotfn run:" in done.stderr, (words, done)


CASES = [
    times_are_those_the_program_measured,
    generated_programs_show_their_times,
    own_times_sum_to_busy,
    percentiles_are_ordered_and_lie_below_the_maximum,
    edges_have_the_exact_calls,
    a_sample_counts_exactly_and_times_one_call_in_n,
    counts_are_those_of_count_mode,
    output_is_the_same_as_without_hooks,
    functions_with_stack_arguments_are_timed,
    the_stack_stays_aligned_to_64_bytes,
    calls_left_by_a_jump_or_thread_end_are_closed,
    functions_not_proven_for_timing_are_counted_with_a_reason,
    functions_that_compare_frame_addresses_are_not_moved,
    nested_procedures_of_pascal_read_the_arguments_of_their_parent,
    tail_jumps_through_the_plt_are_timed_if_the_target_is_certain,
    functions_called_through_a_table_find_their_callers_arguments,
    the_report_warns_if_the_hooks_cost_more_than_all_functions,
    the_report_can_show_a_single_process,
    the_report_can_show_a_single_thread,
    a_childs_busy_time_is_at_most_the_runs,
    a_call_ends_at_a_tail_jump_out_of_its_frame,
    exceptions_close_the_calls_they_leave,
    calls_on_switched_stacks_are_closed_once,
    perf_unwinds_through_timed_stubs,
    times_of_a_killed_program_are_kept,
    outlined_functions_find_their_callers_arguments,
    wrong_options_are_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
