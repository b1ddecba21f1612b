# SPDX-License-Identifier: MIT
"""`hotfn run --mode time`: times are those that the program itself measured, counts are those of count
mode, and a program that reads its stack, throws, jumps and switches stacks does what it did bare."""
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
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same of 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
# A machine shared with others: what the hooks cost is measured at the start, and may be more later.
WITHIN = 0.02
# From the timestamp that the program takes at a function's begin to the hook's own, and back.
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
    """(status, stdout, what `hotfn report --json --edges` says) of a hooked run."""
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


def told_times(output, report):
    """What the program measured: name -> (calls, total_ns, self_ns)."""
    to_ns = 1e9 / report["time"]["ticks_per_second"]
    told = {}
    for line in output.splitlines():
        name, calls, total, own = line.split()
        told[name] = (int(calls), int(total) * to_ns, int(own) * to_ns)
    return told


def near(got, wanted, calls):
    return abs(got - wanted) <= WITHIN * wanted + SLACK_NS_A_CALL * calls


def times_that_differ(output, report):
    """{name: (what the program measured, function)}; how often each was called must be right in any case."""
    functions, off = by_name(report), {}
    for name, (calls, total, own) in told_times(output, report).items():
        f = functions[name]
        assert f["timing"] == "full", f
        assert f["calls"] == f["timed_calls"] == calls, (calls, f)
        assert f["min_ns"] <= f["max_ns"], f
        if not (near(f["total_ns"], total, calls)
                and near(f["self_ns"], own, calls + CALLEES.get(name, 0))):
            off[name] = ({"total": total, "self": own}, f)
    return off


def times_are_those_the_program_measured(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    for options in (("--flat",), ()):
        def measure():
            status, output, report = run(place, binary, "--mode", "time", *options)
            assert status == 0, status
            return times_that_differ(output, report)
        cases.holds_in_most_runs(measure)


# Between our reading of the clock and the program's own, a function's first call in a thread finds its pages missing: of
# two calls of 0.14 ms each 7 to 23 us.
FIRST_CALL_NS, THREADS = 15_000, 3


def what_differs(output, report, calls):
    """Of a generated program: each time within 2 %, with nothing left over for hooks but for first calls."""
    told, functions = told_times(output, report), by_name(report)
    assert {name: times[0] for name, times in told.items()} == calls, (told, calls)
    off = {}
    for name, (number, total, own) in told.items():
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
                status, output, report = run(place, binary, "--mode", "time", *options)
                assert status == 0, status
                return what_differs(output, report, calls)
            cases.holds_in_most_runs(measure)


def raw_report(place, *options):
    """Of the last run, with nothing taken out for what hooks cost."""
    return json.loads(subprocess.run([HOTFN, "report", "--json", "--raw", "-n", "0", *options, place / "run.hfr"],
                                     capture_output=True, text=True, check=True).stdout)


def own_times_sum_to_busy(place):
    """Exactly: the intervals between events are shared out, none twice.  And so do the outermost calls."""
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time")
    raw = raw_report(place, "--edges")
    cases.own_sums_to_busy(raw)
    outermost = [edge["total_ns"] for edge in raw["edges"] if edge["caller"] is None]
    busy = [t["busy_ns"] for t in raw["threads"]]
    assert outermost and abs(sum(outermost) - sum(busy)) <= len(outermost) + len(busy), (outermost, busy)
    assert len(report["threads"]) >= 2, report["threads"]     # a row may serve again


def percentiles_lie_between_least_and_most(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time")
    for f in by_name(report).values():
        if f["timed_calls"]:
            assert f["min_ns"] * 0.97 - 2 <= f["p50_ns"] <= f["p90_ns"] <= f["p99_ns"], f
            assert f["p99_ns"] <= f["max_ns"] * 1.03 + 2, f


def edges_are_the_calls(place):
    binary = build(place, "timed.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time")
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


def a_sample_counts_exactly_and_knows_callers(place):
    """Every call is counted; a thousand of each function are timed, then one in 128 of the shortest and more of
    the others; and who called is known though the caller's own call went by untimed."""
    binary = build(place, "timed_often.c", "-O2", "-fno-optimize-sibling-calls")
    bare = run_bare(binary)
    status, output, report = run(place, binary, "--mode", "time", "--sample", "2")
    assert (status, output) == bare, (status, output, bare)
    functions = by_name(report)
    for name, calls in (("small", 425000), ("often", 100000), ("seldom", 25000), ("main", 1)):
        f = functions[name]
        wanted = min(calls, 1000) + max(calls - 1000, 0) / 128
        assert f["timing"] == "sampled" and f["calls"] == calls, f
        assert 0.85 * wanted <= f["timed_calls"] <= calls, (wanted, f)
    assert functions["small"]["timed_calls"] < 425000, functions["small"]
    names = [f["name"] for f in report["functions"]]
    told = {(names[e["caller"]], names[e["callee"]]): e["calls"] for e in report["edges"]
            if e["caller"] is not None}
    for edge, calls in ((("often", "small"), 400000), (("seldom", "small"), 25000),
                        (("main", "often"), 100000)):
        assert 0.85 * calls <= told.get(edge, 0) <= 1.15 * calls, (edge, told)


def counts_are_those_of_count_mode(place):
    binary = build(place, "timed_shapes.c", "-O2")
    counted = by_name(run(place, binary)[2])
    timed = by_name(run(place, binary, "--mode", "time")[2])
    assert counted.keys() == timed.keys(), counted.keys() ^ timed.keys()
    for name, f in counted.items():
        assert timed[name]["calls"] == f["calls"], (name, f["calls"], timed[name]["calls"])


def what_the_program_prints_is_the_same(place):
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if FLAGS:
        compilers = ["gcc"]     # clang's program of 32 bits faults bare: its jumps spoil an aligned stack
    for compiler in compilers:
        for level in ("-O0", "-O2", "-O3"):
            binary = build(place, "timed_shapes.c", level, compiler=compiler)
            bare = run_bare(binary)
            assert bare[0] == 0, bare
            wanted = [()] if level != "-O2" else [
                (), ("--flat",), ("--module", "*"), ("--sample", "8"),
                ("--events", "--slower-than", "1us")]
            for options in wanted:
                status, output, report = run(place, binary, "--mode", "time", *options)
                assert (status, output) == bare, (compiler, level, options, status, output, bare)
                assert any(f["timed_calls"] for f in report["functions"]), "nothing was timed"


def arguments_on_the_stack_do_not_hinder(place):
    """Where their places show in the code, they are copied for the call, and for what it jumps on to."""
    functions = by_name(run(place, build(place, "timed_shapes.c", "-O2"), "--mode", "time")[2])
    for name in ("many", "forwards", "by_value", "doubles", "long_doubles"):
        f = functions[name]
        assert f["timing"] == "full" and f["calls"] == f["timed_calls"] > 0, f


def functions_of_a_table_find_their_callers_arguments(place):
    """`return table[k](...)`: who is jumped on to takes what was passed to its caller, where that stood."""
    for compiler in [c for c in ("gcc", "clang") if shutil.which(c) and not (FLAGS and c == "clang")]:
        binary = build(place, "timed_tables.c", "-O2", "-fno-pie", "-no-pie", compiler=compiler)
        bare = run_bare(binary)
        assert bare[0] == 0, bare
        for more in ([], ["--flat"]):
            status, output, report = run(place, binary, "--mode", "time", *more)
            assert (status, output) == bare, (compiler, more, status, output, bare)
            functions = by_name(report)
            assert functions["mix"]["timed_calls"] > 0, functions["mix"]
            assert functions["unbounded"]["calls"] == 20000, functions["unbounded"]


def the_stack_stays_aligned_for_vectors(place):
    binary = build(place, "timed_aligned.c", "-O2", "-mpreferred-stack-boundary=6")
    bare = run_bare(binary)
    assert bare[1].startswith("0 misplaced"), bare
    for more in ([], ["--flat"], ["--sample", "2"], ["--with", "alloc"]):
        status, output, report = run(place, binary, "--mode", "time", *more)
        assert (status, output) == bare, (more, status, output)
        timed = [f["name"] for f in report["functions"] if f["name"].startswith("takes_") and f["timed_calls"]]
        assert len(timed) == 7, (more, timed)


def calls_that_end_early_are_accounted(place):
    """By longjmp, pthread_exit and pthread_cancel: each call of these ended, and none twice."""
    binary = build(place, "timed_shapes.c", "-O2")
    functions = by_name(run(place, binary, "--mode", "time")[2])
    for name in ("deep", "jumps", "faults", "touches", "ends_thread", "ending", "sleeps"):
        f = functions[name]
        assert f["timing"] == "full" and f["calls"] == f["timed_calls"], f


def what_is_not_proven_is_counted_with_a_reason(place):
    binary = build(place, "timed_shapes.c", "-O2")
    functions = by_name(run(place, binary, "--mode", "time")[2])
    for name, reason in (("by_index", "stack-arguments"), ("variable", "stack-arguments"),
                         ("whence", "return-address"), ("tail_even", None)):
        f = functions[name]
        assert f["timing"] == "count-only" and f["total_ns"] is None, f
        assert reason in (None, f["timing_reason"]) and f["timing_reason"], f


def who_compares_its_frame_with_an_earlier_calls_has_no_other(place):
    for compiler in [c for c in ("gcc", "clang") if shutil.which(c)]:
        for flag in ("-O0", "-O2"):
            binary = build(place, "timed_own_address.c", flag, compiler=compiler)
            status, output, report = run(place, binary, "--mode", "time", "--sample", "2")
            assert (status, output) == (0, "10000 kept, 0 elsewhere\n"), (compiler, flag, status, output)
            f = by_name(report)["turn"]
            assert f["calls"] == 20000 and f["timing_reason"] == "own-address", (compiler, flag, f)


def jumps_through_the_own_plt_lead_to_known_functions(place):
    """A tail jump by the PLT is trusted where a standard says what is passed, or C++ that there is one
    definition.  Any other function of a library may be another image's, even one that it has itself: the
    program's uses the argument on the stack, the library's does not."""
    if FLAGS:
        raise cases.Skipped("the PLT of 32-bit code wants a register that a tail jump has given back")
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
        status, output, report = run(place, binary, "--mode", "time", "--module", "libown*")
        assert (status, output) == bare, (plt, status, output, bare)
        functions = by_name(report)
        assert functions["inside"]["timing"] == functions["_Z5inneri"]["timing"] == "full", functions
        assert functions["inside"]["timed_calls"] == functions["_Z5inneri"]["calls"] == 1000, functions
        assert functions["outside"]["timed_calls"] == functions["elsewhere"]["timed_calls"] == 1000, functions
        for name in ("by_choice", "varies", "passes_on"):
            assert functions[name]["timing_reason"] == "tail-unknown", functions[name]


def a_call_ends_at_a_jump_to_what_may_not_run_within_it(place):
    """x86-64: what takes variable arguments finds its caller's, and functions that jump to each other are timed,
    however many of the calls are, and also if two threads are in them when the hooks come."""
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
        status, output, report = run(place, binary, "--mode", "time", *options)
        assert (status, output) == bare, (options, status, output, bare)
        exact = options[:1] not in (("--after",), ("--budget",))
        for name in wanted if exact else ():
            f = by_name(report)[name]
            assert f["calls"] == counts[name]["calls"], (options, f, counts[name])
            assert FLAGS or (f["timing"] == "count-only") == (name == "sum"), (options, f)
        if not options:
            functions = by_name(raw_report(place)).values()     # hooks take most of such calls: what is left may be nothing
            whole = {f["name"]: f["total_ns"] for f in functions if f["total_ns"] is not None}
            assert FLAGS or whole["some"] + whole["pass"] + whole["even"] <= whole["work"], whole


def exceptions_end_the_calls_they_pass(place):
    """Each function that throws or is passed ended as often as it began."""
    if not shutil.which("g++"):
        raise cases.Skipped("no g++ on this system")
    for flags in ((), ("-static-libgcc", "-static-libstdc++")):
        binary = build(place, "cxx_exceptions.cc", "-O2", *flags, compiler="g++")
        bare = run_bare(binary)
        status, output, report = run(place, binary, "--mode", "time")
        assert (status, output) == bare, (flags, status, output, bare)
        functions = by_name(report)
        for name in ("throw_number", "dive", "carry"):
            f = functions[name]
            assert f["calls"] == f["timed_calls"] > 100, f
        assert report["time"]["nodes"] < 5000, report["time"]


def no_call_ends_twice_whatever_stacks_it_ran_on(place):
    """Fibers that throw, migrate and are left; exceptions rethrown, nested and foreign; a cancelled thread:
    each call of these ended once."""
    if not shutil.which("g++"):
        raise cases.Skipped("no g++ on this system")
    binary = build(place, "fibers.cc", "-O2", compiler="g++")
    bare = run_bare(binary)
    for options in ((), ("--flat",)):
        status, output, report = run(place, binary, "--mode", "time", *options)
        assert (status, output) == bare, (options, status, output, bare)
        functions = {f["display"].partition("(")[0]: f for f in report["functions"]
                     if f["state"] == "hooked"}
        for name in ("main", "migrating", "abandoned", "resume", "throws", "nested", "raises",
                     "passes_foreign", "cancels", "holds", "guard::~guard"):
            f = functions[name]
            if FLAGS and f["timing_reason"] in ("stack-unknown", "patch-inside"):
                # nobody knows what its callees pop; a call is all that it begins with
                assert name in ("nested", "passes_foreign", "holds", "cancels", "guard::~guard"), f
                continue
            assert f["timing"] == "full" and f["calls"] == f["timed_calls"] > 0, (options, f)
        assert FLAGS or functions["waits"]["timing"] == "full", functions["waits"]
        cases.own_sums_to_busy(raw_report(place), left=0.002)


def perf_goes_through_timed_stubs(place):
    """By frame pointers, with a name for each stub; where there is perf and it may be used."""
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
        raise cases.Skipped("no perf that may be used here")
    done = subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", data, "--",
                           HOTFN, "run", "-q", "--perf-map", "--mode", "time", "-o", place / "p.hfr",
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


def a_killed_program_leaves_its_times(place):
    source = place / "dies.c"
    source.write_text("#include <signal.h>\n#include <x86intrin.h>\n"
                      "__attribute__((noinline)) void spend(void) { unsigned long long end ="
                      " __rdtsc() + 10000000; while (__rdtsc() < end) {} }\n"
                      "int main(void) { for (int i = 0; i < 5; i++) spend(); raise(SIGKILL); }\n")
    binary = build(place, source, "-O2")
    status, _, report = run(place, binary, "--mode", "time", "--slower-than", "10us")
    assert status == -signal.SIGKILL, status
    spend = by_name(report)["spend"]
    assert spend["timed_calls"] == 5, spend
    wanted = 5 * 10000000 * 1e9 / report["time"]["ticks_per_second"]
    assert wanted * (1 - WITHIN) <= spend["total_ns"], (wanted, spend)
    slow = [(report["functions"][s["function"]]["name"], s["callers"]) for s in report["slow_calls"]]
    own = sorted(s for s in slow if s[0] in ("main", "spend"))       # what starts a program may have waited for a processor
    assert own == [("main", [])] + 5 * [("spend", ["main"])], slow   # main was killed in its call


def what_calls_cost_is_learnt_as_the_program_runs(place):
    """Of two million calls, in full runs; of 20 nothing is learnt, and a sample learns otherwise."""
    source = place / "many.c"
    source.write_text("#include <stdlib.h>\nvolatile long x;\n"
                      "__attribute__((noinline)) void tiny(void) { x++; }\n"
                      "int main(int argc, char **argv) { long n = getenv(\"MANY\") ? 2000000 : 20;"
                      " for (long i = 0; i < n; i++) tiny(); return argc < 1; }\n")
    binary = build(place, source, "-O2")
    for many, options, learns in (("", (), False), ("1", (), True), ("1", ("--flat",), True), ("1", ("--sample", "4"), False)):
        os.environ.pop("MANY", None)
        os.environ.update({"MANY": many} if many else {})
        status, _, report = run(place, binary, "--mode", "time", *options)
        assert status == 0, status
        assert (report["time"]["cost_tries"] > 10) == learns, (options, many, report["time"])
        assert report["time"]["cost_outside_ns"] > 0, report["time"]
        assert by_name(report)["tiny"]["calls"] == (2000000 if many else 20), report["functions"]
        for raw in ((), ("--raw",)):    # where more was taken out than is left the report says so; 31 ns of 31 are raw, too
            table, told = (subprocess.run([HOTFN, "report", *words, *raw, place / "run.hfr"], capture_output=True,
                                          text=True, check=True).stdout for words in ((), ("--json", "-n", "0")))
            time, functions = (json.loads(told)[key] for key in ("time", "functions"))
            calls, own = (sum(f[key] or 0 for f in functions) for key in ("timed_calls", "self_ns"))
            took = (time["cost_inside_ns"] + time["cost_outside_ns"]) * calls
            noted = options[:1] != ("--sample",) and took > own
            rounded = abs(took - own) <= 0.001 * calls      # JSON has a call's cost to the picosecond
            assert rounded or ("\nhooks took " in table) == noted, (options, raw, took, table)
    os.environ.pop("MANY", None)


def one_process_alone_can_be_shown(place):
    """Threads, slow calls, events and the run's busy time are the parent's or the child's, as asked."""
    source = place / "two.c"
    source.write_text("#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
                      "volatile int x; __attribute__((noinline)) void parents(void) { usleep(3000); x++; }\n"
                      "__attribute__((noinline)) void childs(void) { usleep(3000); x--; }\n"
                      "int main(void) { x = 1; pid_t pid = fork(); for (int i = 0; i < 5; i++)"
                      " if (pid) parents(); else childs();"
                      " if (!pid) exit(0); waitpid(pid, 0, 0); }\n")
    binary = build(place, source, "-O2")
    _, _, both = run(place, binary, "--mode", "time", "--slower-than", "1ms", "--events")
    record = place / "run.hfr"
    told = json.loads(subprocess.run([HOTFN, "info", "--json", record], capture_output=True,
                                     check=True).stdout)
    assert len(told["threads"]) == 2 and told["time"]["slow_calls"] >= 10, told
    assert told["time"]["count_cost_ns"] < told["time"]["cost_ns"], told["time"]
    for pid in {t["pid"] for t in told["threads"]}:
        main = pid == told["pid"]
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


def one_thread_alone_can_be_shown(place):
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
    _, _, both = run(place, binary, "--mode", "time")
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
    assert refused.returncode == 1 and "no thread 1 there" in refused.stderr, refused


def a_child_is_busy_no_longer_than_the_run_took(place):
    """With the C library hooked, a forked child's first events end calls that began in the parent."""
    source = place / "forks.c"
    source.write_text("#include <sys/wait.h>\n#include <unistd.h>\n"
                      "int main(void) { for (int i = 0; i < 3; i++) if (!fork()) _exit(0);"
                      " while (wait(0) > 0) {} }\n")
    binary = build(place, source, "-O2")
    for options in (), ("--flat",), ("--sample", "4"):
        _, _, report = run(place, binary, "--module", "*", "--mode", "time", *options)
        took = report["record"]["end_ns"] - report["record"]["start_ns"]
        busy = [thread["busy_ns"] for thread in report["threads"]]
        assert len(busy) == 4 and max(busy) <= 2 * took, (took, busy)
        if "--sample" not in options:
            raw = subprocess.run([HOTFN, "report", "--json", "--raw", "-n", "0", place / "run.hfr"],
                                 capture_output=True, check=True)
            cases.own_sums_to_busy(json.loads(raw.stdout))
            assert report["time"]["abandoned_exits"] == 0, report["time"]


def nobody_is_called_by_a_place_that_nobody_called(place):
    """A sample's tree has places of callers that went by untimed: they are no edges."""
    binary = build(place, "timed_often.c", "-O2", "-fno-optimize-sibling-calls")
    _, _, report = run(place, binary, "--mode", "time", "--sample", "16")
    assert report["edges"] and all(e["calls"] > 0 for e in report["edges"]), report["edges"]


def recursion_counts_once_in_a_sample(place):
    """A function of a circle 60 deep took about what called it from outside, not 60 times that."""
    binary = build(place, "timed_often.c", "-O2", "-fno-optimize-sibling-calls")

    def measure():
        functions = by_name(run(place, binary, "--mode", "time", "--sample", "8")[2])
        pairs = [(functions[name], functions[outer]["total_ns"]) for name, outer in
                 (("even", "cycles"), ("odd", "cycles"), ("doubles", "doubling"))]
        assert all(f["timing"] == "sampled" for f, _ in pairs), pairs
        return {f["name"]: (f, most) for f, most in pairs if not 0.4 * most <= f["total_ns"] <= 2 * most}
    cases.holds_in_most_runs(measure)


def what_counted_only_functions_call_is_not_their_callers_own(place):
    """A sample finds the callers of such functions, and takes what was called out of their own time."""
    binary = build(place, "timed_between.c", "-O1")
    for sample in ("2", "32"):
        functions = by_name(run(place, binary, "--mode", "time", "--sample", sample)[2])
        ways = [(way, functions[way[0]], functions[way[-1]]) for way in
                (["first", "variadic", "one"], ["second", "twice", "looks", "two"], ["deeper", "between", "deeper"])
                if all(functions[name]["timing"] == "count-only" for name in way[1:-1])]
        assert len(ways) == 3 or (FLAGS and ways), functions
        folded = subprocess.run([HOTFN, "export", "-F", "folded", "-o", "-", place / "run.hfr"],
                                capture_output=True, text=True, check=True).stdout
        stacks = [line.rsplit(" ", 1)[0].split(";")[1:] for line in folded.splitlines()]
        for way, caller, callee in ways:
            assert [s for s in stacks if s[-1] == way[-1] and s[-2] in way] == [way], (way, folded)
            if caller != callee:
                assert abs(caller["total_ns"] - caller["self_ns"] - callee["total_ns"]) < 10, (caller, callee)


def calls_from_parts_that_stand_elsewhere_are_their_functions(place):
    """What gcc puts aside (.cold) calls in the name of the function whose part it is."""
    binary = build(place, "timed_cold.c", "-O2", "-fno-optimize-sibling-calls")
    report = run(place, binary, "--mode", "time", "--sample", "2")[2]
    names = [f["name"] for f in report["functions"]]
    if not {"timed.cold", "counted.cold"} <= set(names):
        raise cases.Skipped("this gcc puts nothing aside")
    calls = {(names[e["caller"]], names[e["callee"]]): e["calls"] for e in report["edges"] if e["caller"] is not None}
    assert calls["timed", "one"] == calls["counted", "two"] == 2000, calls
    if by_name(report)["counted"]["timing"] == "count-only":
        folded = subprocess.run([HOTFN, "export", "-F", "folded", "-o", "-", place / "run.hfr"],
                                capture_output=True, text=True, check=True).stdout
        assert ";calls_it;counted;two " in folded, folded


def wrong_unwind_data_do_no_harm(place):
    """A sample finds callers by them; what they say of a frame's size may lead out of the stack."""
    binary = build(place, "timed_wrong_rows.c", "-O1", "-fno-optimize-sibling-calls")
    bare = run_bare(binary)
    status, output, report = run(place, binary, "--mode", "time", "--sample", "2")
    functions = by_name(report)
    assert (status, output) == bare, (status, output, bare)
    assert functions["claims"]["timing"] == "count-only" and functions["work"]["timed_calls"] > 2000, functions


def outlined_pieces_find_their_callers_arguments(place):
    """What clang's outliner made of several functions works by their frame pointer, and none of it shows in them."""
    if not shutil.which("clang"):
        raise cases.Skipped("no clang")
    binary = build(place, SRC.parent.parent / "cross" / "pieces.c", "-Oz", "-fno-omit-frame-pointer", "-fno-pic",
                   "-no-pie", "-mllvm", "-enable-machine-outliner=always", compiler="clang")
    bare = run_bare(binary)
    status, output, report = run(place, binary, "--mode", "time")
    functions = by_name(report)
    assert (status, output) == bare, (status, output, bare)
    assert any(name.startswith("OUTLINED_FUNCTION_") for name in functions), sorted(functions)
    for name in ("one", "two", "three", "four", "five"):
        assert functions[name]["calls"] == functions[name]["timed_calls"] == 1000, functions[name]


def wrong_words_are_refused(place):
    for words in (["--mode", "fast"], ["--flat"], ["--slower-than", "1ms"], ["--events"],
                  ["--sample", "8"], ["--mode", "time", "--sample", "0"]):
        done = subprocess.run([HOTFN, "run", *words, "--", "/bin/true"], cwd=place,
                              capture_output=True, text=True)
        assert done.returncode == 125 and "hotfn run:" in done.stderr, (words, done)


CASES = [
    times_are_those_the_program_measured,
    generated_programs_show_their_times,
    own_times_sum_to_busy,
    percentiles_lie_between_least_and_most,
    edges_are_the_calls,
    a_sample_counts_exactly_and_knows_callers,
    counts_are_those_of_count_mode,
    what_the_program_prints_is_the_same,
    arguments_on_the_stack_do_not_hinder,
    the_stack_stays_aligned_for_vectors,
    calls_that_end_early_are_accounted,
    what_is_not_proven_is_counted_with_a_reason,
    who_compares_its_frame_with_an_earlier_calls_has_no_other,
    jumps_through_the_own_plt_lead_to_known_functions,
    functions_of_a_table_find_their_callers_arguments,
    what_calls_cost_is_learnt_as_the_program_runs,
    one_process_alone_can_be_shown,
    one_thread_alone_can_be_shown,
    a_child_is_busy_no_longer_than_the_run_took,
    nobody_is_called_by_a_place_that_nobody_called,
    recursion_counts_once_in_a_sample,
    what_counted_only_functions_call_is_not_their_callers_own,
    a_call_ends_at_a_jump_to_what_may_not_run_within_it,
    exceptions_end_the_calls_they_pass,
    no_call_ends_twice_whatever_stacks_it_ran_on,
    perf_goes_through_timed_stubs,
    a_killed_program_leaves_its_times,
    outlined_pieces_find_their_callers_arguments,
    calls_from_parts_that_stand_elsewhere_are_their_functions,
    wrong_unwind_data_do_no_harm,
    wrong_words_are_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
