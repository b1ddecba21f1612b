# SPDX-License-Identifier: MIT
"""What timing costs: a timed call beside two bare rdtsc, and sqlite3 with all functions timed; and whether
a sample tells the times of the full run."""
import json
import os
import shutil
import statistics
import tempfile

import figures
import programs
import tools

TOP = 20
MODES = {"flat": ["--flat"], "tree and histograms": [], "1 in 32": ["--sample", "32"]}


def call_rows(report, options, bare_ns):
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
                    bare_ns.append(bare)
                    ratios["a call"].append(leaf / bare)
                    ratios["nested"].append(outer / bare)
            for kind, values in ratios.items():
                report.add(f"timing/{mode}/{kind}/{threads} threads", "ratio", values)
            yield [mode, threads, figures.spread(ratios["a call"]), figures.spread(ratios["nested"]),
                   f"{statistics.median(floors):.1f}", options.rounds]


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


def agreement_rows(report, program, options, env):
    """The functions with the largest totals: how far other runs are from a full one, as shares of main's."""
    runs = [functions_timed(program, words, env)
            for words in (MODES["flat"], MODES["flat"], MODES["1 in 32"])]
    share = [{name: f["total_ns"] / run["main"]["total_ns"] for name, f in run.items()} for run in runs]
    top = sorted(share[0], key=share[0].get, reverse=True)[:TOP]
    for what, other in (("full, once more", share[1]), ("1 in 32", share[2])):
        off = sorted(abs(other.get(name, 0) / share[0][name] - 1) for name in top)
        report.add(f"timing/sqlite3/top {TOP}/{what}", "largest difference", [off[-1]])
        yield [what, f"{100 * statistics.median(off):.1f} %", f"{100 * off[-1]:.1f} %",
               sum(one <= 0.05 for one in off)]


def program_rows(report, options, env, program, bare_ns):
    runs = [(f"ours, {mode}", wrapped(words), programs.BIG, options.runs)
            for mode, words in MODES.items()]
    if not options.skip_peers:
        runs.append(("uftrace -P .", programs.wrapped_uftrace, programs.SMALL, options.slow_runs))
    for name, wrap, scale, pairs in runs:
        try:
            took = programs.measure(program, wrap, scale, pairs, env)
        except tools.Missing as missing:
            yield [name, report.left_out(name, missing), "", "", 0]
            continue
        walls = [one[0] for one in took]
        report.add(f"timing/sqlite3/{name}", "wall ratio", walls)
        yield [name, figures.spread(walls), figures.spread([one[1] for one in took]),
               f"{statistics.median(one[2] for one in took):.2f}", pairs]
        if name == "ours, flat":
            calls = sum(f["timed_calls"] for f in functions_timed(program, MODES["flat"], env).values())
            bare = min(one[2] for one in took)
            yield [f"two bare rdtsc for each of {calls / 1e6:.0f} M timed calls, computed",
                   f"{1 + calls * min(bare_ns) / 1e9 / bare:.2f}", "", f"{bare:.2f}", ""]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("A timed call over a function with two bare rdtsc, in the same run",
                   "Least, median, upper quartile over runs and threads; nested: half of a call in a "
                   "call.")
    bare_ns = []
    report.table(["kept", "threads", "a call", "nested", "bare ns", "runs"],
                 list(call_rows(report, options, bare_ns)))
    program = next((p for name, p, problem in programs.programs() if name == "sqlite3" and p), None)
    if not program:
        return
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache")}
    report.heading("sqlite3, all functions of the program timed",
                   "Run time over the bare run's, side by side.")
    report.table(["", "wall ratio", "CPU ratio", "bare s", "pairs"],
                 list(program_rows(report, options, env, program, bare_ns)))
    report.heading(f"sqlite3: the {TOP} functions with the largest totals of a full run, in other runs",
                   "Their share of main's total against the full run's; times are wall-clock, so that a "
                   "busy machine shows here.")
    report.table(["run", "median difference", "largest", f"within 5 % of {TOP}"],
                 list(agreement_rows(report, program, options, env)))
