# SPDX-License-Identifier: MIT
"""The cost of hooks with a budget of 5 %, for a tiny function called 10^9 times and for sqlite3, and the
accuracy of the budget's cost of a call."""
import json
import os

import figures
import programs
import tools

BUDGET = ["--budget", "5%"]
MODES = {"count": [], "count, budget 5%": BUDGET, "time, budget 5%": ["--mode", "time", *BUDGET]}


def hooked(words, record, command):
    return [tools.HOTFN, "run", "-q", *words, "-o", record, "--", *command]


def read_taken(record):
    """The hooks' share of time according to the report."""
    report = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "1", record]))
    return report["budget"]["taken"] if "budget" in report else None


def tiny_rows(report, options):
    binary = tools.compile_c(tools.WORK / "budget", [tools.HERE / "budget.c"])
    record = tools.WORK / "b.hfr"
    pairs = max(3, options.runs // 3)
    ratios = {mode: [] for mode in MODES}
    taken = {mode: [] for mode in MODES}
    for _ in range(pairs):
        bare = float(tools.output_of([binary], cpus=[1]))
        for mode, words in MODES.items():
            ratios[mode].append(float(tools.output_of(hooked(words, record, [binary]), cpus=[1])) / bare)
            if "budget" in mode:
                taken[mode].append(100 * read_taken(record))
    for mode, values in ratios.items():
        report.add(f"budget/tiny/{mode}", "CPU ratio", values)
        yield [mode, figures.spread(values, 3), figures.spread(taken[mode], 1) if taken[mode] else "",
               pairs]


def program_rows(report, options, env):
    program = next((p for name, p, problem in programs.programs() if name == "sqlite3" and p), None)
    for mode, words in MODES.items() if program else ():
        took = programs.measure(program, mode, lambda command, folder, words=words: hooked(
            words, os.path.join(folder, "r.hfr"), command), programs.BIG, options.runs, env)
        report.add(f"budget/sqlite3/{mode}", "CPU ratio", [pair[1] for pair in took])
        yield [mode, figures.spread([pair[0] for pair in took], 3),
               figures.spread([pair[1] for pair in took], 3), options.runs]


def cpu_and_calls(program, scale, is_counted, env):
    """(CPU seconds, calls, the budget's cost of a call in ns) of one run."""
    record = tools.WORK / "c.hfr"
    command = program.command(scale)
    if is_counted:
        command = hooked(["--budget", "100%"], record, command)
    cpu = tools.timed(command, program.input(scale), cpus=[1], env=env)[1]
    if not is_counted:
        return cpu, 0, 0
    found = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "0", record]))
    return cpu, sum(f["calls"] or 0 for f in found["functions"]), found["budget"]["count_cost_ns"]


def cost_rows(report, options, env):
    """The cost of a call is the difference between two scales, since both contain the start."""
    for name, program, problem in programs.programs():
        if problem:
            continue
        measured, assumed = [], []
        for _ in range(max(3, options.runs // 3)):
            small, large = [[cpu_and_calls(program, scale, counted, env) for counted in (False, True)]
                            for scale in (programs.SMALL, programs.BIG)]
            cost = (large[1][0] - small[1][0]) - (large[0][0] - small[0][0])
            measured.append(cost * 1e9 / (large[1][1] - small[1][1]))
            assumed.append(large[1][2])
        report.add(f"budget/cost/{name}/measured", "ns a call", measured)
        report.add(f"budget/cost/{name}/assumed", "ns a call", assumed)
        yield [name, figures.spread(measured), figures.spread(assumed), len(measured)]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("10^9 calls of a tiny function, with a budget",
                   "CPU time of the program over the preceding bare run's, on one CPU: min, median, upper "
                   "quartile.  hotfn's process shares the CPU, but is not included.")
    report.table(["mode", "CPU ratio", "reported, %", "pairs"],
                 list(tiny_rows(report, options)))
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache")}
    report.heading("Cost of a counted call, measured and assumed by the budget",
                   "Nanoseconds, all functions of the program, pinned to one CPU: min, median, upper "
                   "quartile.")
    report.table(["program", "measured", "assumed", "pairs"], list(cost_rows(report, options, env)))
    report.heading("sqlite3, all functions of the program, with a budget",
                   "Over the bare run's, in pairs, including start, scan and hotfn's process.")
    report.table(["mode", "wall ratio", "CPU ratio", "pairs"],
                 list(program_rows(report, options, env)))
