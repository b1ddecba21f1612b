# SPDX-License-Identifier: MIT
"""The cost of timing: a timed call compared with two bare rdtsc, and sqlite3 with all functions timed; and the
accuracy of times of a full run and of a sample, compared with each function timed alone."""
import json
import os
import random
import shutil
import statistics
import tempfile

import figures
import programs
import tools

TOP, AGREEMENT_ROUNDS, AGREEMENT_SCALE = 20, 9, 10  # the scale takes a third of a second bare
MODES = {"flat": ["--flat"], "tree and histograms": [], "1 in 32": ["--sample", "32"]}


def call_rows(report, options):
    binary = tools.compile_c(tools.WORK / "timing", [tools.HERE / "timing.c"])
    for threads in (1, 2):
        for mode, words in MODES.items():
            ratios = {"a call": [], "nested": []}
            floors = []
            for _ in range(options.rounds):
                out = tools.output_of([tools.HOTFN, "run", "-q", "--mode", "time", *words,
                                       "-f", "timed_*", "-o", tools.WORK / "t.hfr", "--", binary,
                                       threads])
                for line in out.splitlines():
                    bare, leaf, outer = (float(word) for word in line.split())
                    floors.append(bare)
                    ratios["a call"].append(leaf / bare)
                    ratios["nested"].append(outer / bare)
            for kind, values in ratios.items():
                report.add(f"timing/{mode}/{kind}/{threads} threads", "ratio", values)
            yield [mode, threads, figures.spread(ratios["a call"]), figures.spread(ratios["nested"]),
                   f"{statistics.median(floors):.1f}", options.rounds]


def overlap_rows(report):
    """The time that a hook adds to a function of known work, and the time that is subtracted for it."""
    binary = tools.compile_c(tools.WORK / "overlap", [tools.HERE / "overlap.c"])
    record = tools.WORK / "o.hfr"
    out = tools.output_of([tools.HOTFN, "run", "-q", "--mode", "time", "--flat", "-f", "timed_*",
                           "-o", record, "--", binary])
    time = json.loads(tools.output_of([tools.HOTFN, "report", "--json", record]))["time"]
    subtracted = time["cost_inside_ns"] + time["cost_outside_ns"]
    for line in out.splitlines():
        name, count, bare, timed = line.split()
        added = float(timed) - float(bare)
        report.add(f"timing/overlap/{name} {count}", "ns added", [added])
        yield [f"{name} {count}", bare, f"{added:.1f}", f"{subtracted:.1f}"]


def wrapped(words):
    def wrap(command, folder):
        return [tools.HOTFN, "run", "-q", "--mode", "time", *words,
                "-o", os.path.join(folder, "r.hfr"), "--", *command]
    return wrap


def read_totals(program, words, env):
    """({name: total processor time in ns}, the estimated cost of a call) of one run."""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    tools.timed(wrapped(words)(program.command(AGREEMENT_SCALE), folder), program.input(AGREEMENT_SCALE), env=env)
    report = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "0",
                                         os.path.join(folder, "r.hfr")]))
    shutil.rmtree(folder, ignore_errors=True)
    totals = {f["name"]: f["total_ns"] - (f["total_waited_ns"] or 0) for f in report["functions"] if f["total_ns"]}
    return totals, report["time"]["cost_inside_ns"] + report["time"]["cost_outside_ns"]


def main_rows(report, options, env):
    """The reported time of main with all functions timed, over main timed alone."""
    for name, program, problem in programs.programs():
        if problem or name == "CPython":  # CPython's main calls another function named main
            continue
        for mode, words in MODES.items():
            ratios, costs = [], []
            for _ in range(options.rounds):
                alone, _ = read_totals(program, ["--flat", "-f", "main"], env)
                reported, cost = read_totals(program, words, env)
                ratios.append(reported.get("main", 0) / alone["main"])
                costs.append(cost)
            report.add(f"timing/main/{name}/{mode}", "of main alone", ratios)
            yield [name, mode, figures.spread(ratios), f"{statistics.median(costs):.1f}", options.rounds]


def measure_shares(program, words, env):
    """{name: total as a share of main's in the same run}, which does not depend on the machine's speed.  Empty if
    main's time is 0, because the cost of a call was overestimated (docs/lab/timing.md)."""
    totals, _ = read_totals(program, words, env)
    return {name: total / totals["main"] for name, total in totals.items()} if "main" in totals else {}


def run_interleaved(program, kinds, env):
    """({kind: results of its runs}, number of empty runs); each round runs all kinds in random order."""
    runs = {kind: [] for kind in kinds}
    empty = 0
    for number in range(AGREEMENT_ROUNDS):
        order = list(kinds)
        random.Random(number).shuffle(order)
        for kind in order:
            reported = measure_shares(program, kinds[kind], env)
            runs[kind] += [reported] if reported else []
            empty += not reported
    return runs, empty


def quartiles(values):
    values = sorted(values)
    return [values[round(part * (len(values) - 1))] for part in (0.25, 0.5, 0.75)]


def compare_medians(runs, against, name):
    """(relative difference of the median from that of other runs, distance of the quartiles)."""
    truth = statistics.median(run.get(name, 0) for run in against)
    low, middle, high = quartiles([run.get(name, 0) / truth - 1 for run in runs])
    return middle, high - low


def agreement(program, env):
    """(functions with the largest totals of a full run, {kind: runs}, number of empty runs).  Runs of kind ("alone",
    name) hook only that function and main, so that hooks hardly add to their time."""
    first = next(filter(None, (measure_shares(program, MODES["flat"], env) for _ in range(AGREEMENT_ROUNDS))))
    top = sorted(first, key=first.get, reverse=True)[1:TOP + 1]  # main is the reference
    kinds = {"full": MODES["flat"], "full, once more": MODES["flat"], "1 in 32": MODES["1 in 32"],
             **{("alone", name): ["--flat", "-f", name, "-f", "main"] for name in top}}
    return top, *run_interleaved(program, kinds, env)


def agreement_rows(report, top, runs):
    for what, against in (("full, once more", "full"), ("1 in 32", "full"), ("full", "alone"), ("1 in 32", "alone")):
        off = [compare_medians(runs[what], runs.get(against) or runs[against, name], name) for name in top]
        distances = sorted(abs(middle) for middle, _ in off)
        report.add(f"timing/sqlite3/top {TOP}/{what} against {against}", "difference", distances)
        yield [what, against, f"{100 * statistics.median(distances):.1f} %", f"{100 * distances[-1]:.1f} %",
               f"{100 * statistics.median(spread for _, spread in off):.1f} %",
               sum(one <= 0.05 for one in distances)]


def function_rows(top, runs):
    for name in top:
        yield [name, *(f"{100 * middle:+.1f} ({100 * spread:.1f})" for middle, spread in (
            compare_medians(runs[what], against, name) for what, against in (
                ("full, once more", runs["full"]), ("1 in 32", runs["full"]),
                ("full", runs["alone", name]), ("1 in 32", runs["alone", name]))))]


def program_rows(report, options, env, program):
    runs = [(f"hotfn, {mode}", wrapped(words), programs.BIG, options.runs)
            for mode, words in MODES.items()]
    if not options.skip_peers:
        runs.append(("uftrace -P .", programs.wrapped_uftrace, programs.SMALL, options.slow_runs))
    for name, wrap, scale, pairs in runs:
        try:
            took = programs.measure(program, name, wrap, scale, pairs, env)
        except tools.Missing as missing:
            yield [name, report.note_missing(name, missing), "", "", 0]
            continue
        walls = [one[0] for one in took]
        report.add(f"timing/sqlite3/{name}", "wall ratio", walls)
        yield [name, figures.spread(walls), figures.spread([one[1] for one in took]),
               f"{statistics.median(one[2] for one in took):.2f}", pairs]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("A timed call over a function with two bare rdtsc, in the same run",
                   "Min, median, upper quartile over runs and threads; nested: half of a nested call.")
    report.table(["kept", "threads", "a call", "nested", "bare ns", "runs"],
                 list(call_rows(report, options)))
    report.heading("Time that a timed hook adds to a function of known work (ns)",
                   "chain: dependent instructions; wide: independent instructions, which use the whole processor.")
    report.table(["work", "bare", "added", "subtracted"], list(overlap_rows(report)))
    program = next((p for name, p, problem in programs.programs() if name == "sqlite3" and p), None)
    if not program:
        return
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache")}
    report.heading("sqlite3, all functions of the program timed",
                   "Run time over the bare run's, in pairs.")
    report.table(["", "wall ratio", "CPU ratio", "bare s", "pairs"],
                 list(program_rows(report, options, env, program)))
    report.heading("Time of main with all functions timed, over main timed alone",
                   "1.00 is correct; 0: the cost of calls was estimated higher than the whole run.")
    report.table(["program", "kept", "of main alone", "a call's cost, ns", "runs"],
                 list(main_rows(report, options, env)))
    top, runs, empty = agreement(program, env)
    report.heading(f"sqlite3: the {TOP} functions below main with the largest totals of a full run",
                   "Their share of main's total, compared with full runs and with runs that time only that function; "
                   f"medians of {AGREEMENT_ROUNDS} interleaved runs of each kind.",
                   "Processor time where the clock knows it; distant quartiles indicate other programs on the processor.",
                   f"Omitted: {empty} runs in which main's time became 0.")
    report.table(["run", "against", "median difference", "largest", "quartiles apart", f"within 5 % of {TOP}"],
                 list(agreement_rows(report, top, runs)))
    report.heading("The same by function: difference in %, and distance of the quartiles")
    report.table(["function", "full, once more", "1 in 32 of full", "full of alone", "1 in 32 of alone"],
                 list(function_rows(top, runs)))
