# SPDX-License-Identifier: MIT
"""What timing costs: a timed call beside two bare rdtsc, and sqlite3 with all functions timed; and how near
the times of a full run and of a sample are to those of each function timed alone."""
import json
import os
import shutil
import statistics
import tempfile

import figures
import programs
import tools

TOP, AGREEMENT_RUNS = 20, 3
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
    """What a hook adds to a function of known work, and what is taken out for it."""
    binary = tools.compile_c(tools.WORK / "overlap", [tools.HERE / "overlap.c"])
    record = tools.WORK / "o.hfr"
    out = tools.output_of([tools.HOTFN, "run", "-q", "--mode", "time", "--flat", "-f", "timed_*",
                           "-o", record, "--", binary])
    time = json.loads(tools.output_of([tools.HOTFN, "report", "--json", record]))["time"]
    taken_out = time["cost_inside_ns"] + time["cost_outside_ns"]
    for line in out.splitlines():
        name, count, bare, timed = line.split()
        added = float(timed) - float(bare)
        report.add(f"timing/overlap/{name} {count}", "ns added", [added])
        yield [f"{name} {count}", bare, f"{added:.1f}", f"{taken_out:.1f}"]


def wrapped(words):
    def wrap(command, folder):
        return [tools.HOTFN, "run", "-q", "--mode", "time", *words,
                "-o", os.path.join(folder, "r.hfr"), "--", *command]
    return wrap


def functions_timed(program, words, env):
    """name -> what the report says of it."""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    tools.timed(wrapped(words)(program.command(programs.BIG), folder), program.input(programs.BIG), env=env)
    report = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "0",
                                         os.path.join(folder, "r.hfr")]))
    shutil.rmtree(folder, ignore_errors=True)
    return {f["name"]: f for f in report["functions"] if f["total_ns"] is not None}


def shares(program, words, env):
    """name -> its total as a share of main's; the median of some runs, for one may be interrupted."""
    runs = [functions_timed(program, words, env) for _ in range(AGREEMENT_RUNS)]
    return {name: statistics.median(run[name]["total_ns"] / run["main"]["total_ns"] for run in runs)
            for name in runs[0]}


def agreement_rows(report, program, env):
    """The functions with the largest totals of a full run: how far runs are from each other, and from runs in
    which only that one function (and main) is hooked, so that there is hardly a hook's cost in its time."""
    full, again, sample = [shares(program, words, env)
                           for words in (MODES["flat"], MODES["flat"], MODES["1 in 32"])]
    top = sorted(full, key=full.get, reverse=True)[:TOP]
    alone = {name: shares(program, ["--flat", "-f", name, "-f", "main"], env)[name] for name in top}
    for what, run, against, truth in (("full, once more", again, "full", full),
                                      ("1 in 32", sample, "full", full),
                                      ("full", full, "each alone", alone),
                                      ("1 in 32", sample, "each alone", alone)):
        off = sorted(abs(run.get(name, 0) / truth[name] - 1) for name in top)
        report.add(f"timing/sqlite3/top {TOP}/{what} against {against}", "difference", off)
        yield [what, against, f"{100 * statistics.median(off):.1f} %", f"{100 * off[-1]:.1f} %",
               sum(one <= 0.05 for one in off)]


def program_rows(report, options, env, program):
    runs = [(f"ours, {mode}", wrapped(words), programs.BIG, options.runs)
            for mode, words in MODES.items()]
    if not options.skip_peers:
        runs.append(("uftrace -P .", programs.wrapped_uftrace, programs.SMALL, options.slow_runs))
    for name, wrap, scale, pairs in runs:
        try:
            took = programs.measure(program, name, wrap, scale, pairs, env)
        except tools.Missing as missing:
            yield [name, report.left_out(name, missing), "", "", 0]
            continue
        walls = [one[0] for one in took]
        report.add(f"timing/sqlite3/{name}", "wall ratio", walls)
        yield [name, figures.spread(walls), figures.spread([one[1] for one in took]),
               f"{statistics.median(one[2] for one in took):.2f}", pairs]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("A timed call over a function with two bare rdtsc, in the same run",
                   "Least, median, upper quartile over runs and threads; nested: half of a call in a "
                   "call.")
    report.table(["kept", "threads", "a call", "nested", "bare ns", "runs"],
                 list(call_rows(report, options)))
    report.heading("What a timed hook adds to a function of known work (ns)",
                   "chain waits for its own results, wide leaves the processor nothing to do beside it.")
    report.table(["work", "bare", "added", "taken out"], list(overlap_rows(report)))
    program = next((p for name, p, problem in programs.programs() if name == "sqlite3" and p), None)
    if not program:
        return
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache")}
    report.heading("sqlite3, all functions of the program timed",
                   "Run time over the bare run's, side by side.")
    report.table(["", "wall ratio", "CPU ratio", "bare s", "pairs"],
                 list(program_rows(report, options, env, program)))
    report.heading(f"sqlite3: the {TOP} functions with the largest totals of a full run",
                   "Their share of main's total, against that in a full run and in runs that time that function "
                   f"alone; medians of {AGREEMENT_RUNS}. Times are wall-clock, so that a busy machine shows here.")
    report.table(["run", "against", "median difference", "largest", f"within 5 % of {TOP}"],
                 list(agreement_rows(report, program, env)))
