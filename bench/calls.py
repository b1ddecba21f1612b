# SPDX-License-Identifier: MIT
"""Added cost of one call: the floor, ours, and what others do, over many random placements."""
import shutil
import statistics
import tempfile

import calls_source
import figures
import tools

SHAPES = [(1, 1), (64, 1), (1000, 1), (1, 2), (64, 2), (1000, 2)]  # functions, threads
PEERS = {  # name: (command before the program, calls a thread); each call costs them much more
    "callgrind": (["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], 400_000),
    "uftrace -P .": (["uftrace", "record", "--no-pager", "-P", ".", "-d", "{folder}"], 200_000),
}


def build(seed, variant):
    """The program of one placement."""
    folder = tools.WORK / "calls"
    source = calls_source.write(folder / f"place_{variant}_{seed}.c", seed, variant)
    flags = ["-D_GNU_SOURCE", "-fno-toplevel-reorder", "-fno-reorder-functions"]
    if variant == "instrument":
        flags.append("-finstrument-functions")
    return tools.compile_c(folder / f"place_{variant}_{seed}", [tools.HERE / "calls.c", source],
                           flags)


def measure(program, shape, calls, rounds, modes, before=()):
    """{mode: median ns a call over the rounds}; modes alternate within each round."""
    functions, threads = shape
    lines = tools.output_of([*before, program, functions, threads, calls, rounds, *modes],
                            timeout=900).splitlines()
    found = {mode: [] for mode in modes}
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] in found:  # uftrace and valgrind may talk too
            found[words[0]].append(float(words[1]))
    return {mode: statistics.median(values) for mode, values in found.items()}


def ours(shape, seeds, options):
    """Per placement: ns a call bare, with the floor and with ours."""
    return [measure(build(seed, "bare"), shape, options.calls, options.rounds,
                    ["bare", "floor", "ours"]) for seed in seeds]


def rebuilt(variant, shape, seeds, options, bare):
    """Added ns a call of a program that was built with its counters in it."""
    return [measure(build(seed, variant), shape, options.calls, options.rounds, ["bare"])["bare"]
            - base for seed, base in zip(seeds, bare)]


def peer(name, shape, seeds, bare):
    before, calls = PEERS[name]
    tools.need(before[0])
    added = []
    for seed, base in zip(seeds, bare):
        folder = tempfile.mkdtemp(dir=tools.WORK)
        command = [word.format(folder=folder) for word in before]
        took = measure(build(seed, "bare"), shape, calls, 1, ["bare"], command)["bare"]
        added.append(took - base)
        shutil.rmtree(folder, ignore_errors=True)
    return added


def ratios(values, floors):
    """value/floor where the floor can be told from nothing (0.05 ns)."""
    return [value / floor for value, floor in zip(values, floors) if floor >= 0.05]


def row(report, shape, name, added, floors):
    functions, threads = shape
    times = ratios(added, floors)
    about = {"functions": functions, "threads": threads}
    report.add(f"call/{name}", "ns", added, **about)
    if times and name != "floor":
        report.add(f"call/{name}/floor", "ratio", times, **about)
    shown = figures.spread(times) if times and name != "floor" else "-"
    return [name, functions, threads, figures.spread(added), shown, len(added)]


def shape_rows(report, shape, seeds, options):
    found = ours(shape, seeds, options)
    bare = [one["bare"] for one in found]
    floors = [one["floor"] - one["bare"] for one in found]
    rows = [row(report, shape, "floor", floors, floors),
            row(report, shape, "ours", [one["ours"] - one["bare"] for one in found], floors)]
    for name, variant in (("-finstrument-functions", "instrument"), ("shared counter", "shared")):
        rows.append(row(report, shape, name, rebuilt(variant, shape, seeds, options, bare), floors))
    few = seeds[:options.slow_placements]
    for name in PEERS:
        try:
            rows.append(row(report, shape, name, peer(name, shape, few, bare), floors))
        except tools.Missing as missing:
            rows.append([name, *shape, f"left out: {missing}", "-", 0])
    return rows


def run(report, options):
    seeds = list(range(1, options.placements + 1))
    report.heading("Added cost of one call",
                   f"ns a call more than bare, and that over the floor: least, median, upper "
                   f"quartile over {len(seeds)} random placements ({options.slow_placements} for "
                   "callgrind and uftrace);",
                   f"each the median of {options.rounds} interleaved rounds. floor: jump in, jump "
                   "back, no counter. Rebuilt programs (-finstrument-functions with a thread-local",
                   "counter, a shared counter in the function) have another layout than bare.")
    header = ["", "functions", "threads", "added ns", "over floor", "placements"]
    rows = []
    for shape in SHAPES if len(tools.CPUS) > 1 else SHAPES[:3]:
        rows += shape_rows(report, shape, seeds, options)
    report.table(header, rows)
