# SPDX-License-Identifier: MIT
"""How true times are: a program whose functions have known shares of its time, and whether the reported errors are
honest."""
import json
import statistics

import figures
import tools

ROUNDS = 500              # a function takes about 40 ms
MIN_NS = 20_000_000       # below that, no time is judged


def build():
    return tools.compile_c(tools.WORK / "truth", [tools.HERE / "truth.c"])


def read_run(binary):
    """{function: (own time, its standard error)} of one run, and its report."""
    record = tools.WORK / "truth.hfr"
    tools.output_of([tools.HOTFN, "run", "-q", "--mode", "time", "-o", record, "--", binary, ROUNDS])
    report = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "0", record]))
    return ({f["name"]: (f["self_ns"] or 0, f["self_error_ns"] or 0) for f in report["functions"] if f.get("self_ns")},
            report)


def collect(binary, truth, runs):
    """{function: [(share over the true share, error of it)]}, and [the sum of own times over what the program takes
    without hotfn]."""
    off, sums = {name: [] for name in truth}, []
    for _ in range(runs):
        _, bare = tools.timed([binary, ROUNDS])
        times, report = read_run(binary)
        whole = sum(times[name][0] for name in truth if name in times)
        for name, share in truth.items():
            own, error = times.get(name, (0, 0))
            if own >= MIN_NS:
                off[name].append((own / whole / share, error / whole / share))
        sums.append(report["time"]["self_ns"] / (bare * 1e9))
    return off, sums


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    binary = build()
    steps = {name: int(calls) * int(each)
             for name, calls, each in (line.split() for line in tools.output_of([binary, "list"]).splitlines())}
    truth = {name: count / sum(steps.values()) for name, count in steps.items()}
    off, sums = collect(binary, truth, options.truth_runs)
    report.heading("A program whose functions have equal shares of its time by construction",
                   f"The reported share over the true one, in runs in which the function has {MIN_NS // 1000000} ms; chain_20: "
                   "20 dependent steps a call.",
                   "within 1, 2: share of the runs in which the difference is at most so many reported standard errors.")
    rows = []
    for name, found in off.items():
        ratios = [ratio for ratio, _ in found]
        if not ratios:
            rows.append([name, "too short", "", "", "", 0])
            continue
        report.add(f"truth/{name}", "of the true share", ratios)
        within = [statistics.mean(abs(ratio - 1) <= k * error for ratio, error in found) for k in (1, 2)]
        rows.append([name, figures.spread(ratios, 3), f"{100 * statistics.median(e for _, e in found):.1f} %",
                     *(f"{100 * part:.0f} %" for part in within), len(found)])
    report.table(["function", "share, of the true one", "error", "within 1", "within 2", "runs"], rows)
    report.add("truth/sum of own times", "of the bare program's processor time", sums)
    print(f"own times of all functions over the bare program's processor time: {figures.spread(sums)}")
