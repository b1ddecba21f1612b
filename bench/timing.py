# SPDX-License-Identifier: MIT
"""What timing costs: a timed call beside two bare rdtsc, and sqlite3 with all functions timed."""
import os
import statistics

import figures
import programs
import tools

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


def wrapped(words):
    def wrap(command, folder):
        return [tools.HOTFN, "run", "-q", "--mode", "time", *words,
                "-o", os.path.join(folder, "r.hfr"), "--", *command]
    return wrap


def program_rows(report, options, env):
    program = next((p for name, p, problem in programs.programs() if name == "sqlite3" and p), None)
    if not program:
        return
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


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("A timed call over a function with two bare rdtsc, in the same run",
                   "Least, median, upper quartile over runs and threads; nested: half of a call in a "
                   "call.")
    report.table(["kept", "threads", "a call", "nested", "bare ns", "runs"],
                 list(call_rows(report, options)))
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache")}
    report.heading("sqlite3, all functions of the program timed",
                   "Run time over the bare run's, side by side.")
    report.table(["", "wall ratio", "CPU ratio", "bare s", "pairs"],
                 list(program_rows(report, options, env)))
