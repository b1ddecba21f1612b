# SPDX-License-Identifier: MIT
"""What hotfn, other tools and a hook without a counter (the floor) add to one call, over many random placements."""
import shutil
import statistics
import tempfile

import calls_source
import figures
import tools

SHAPES = [(1, 1), (64, 1), (1000, 1), (1, 2), (64, 2), (1000, 2)]  # functions, threads
PEERS = {  # name: (command before the program, calls per thread: fewer, because each costs much more)
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
    """{mode: ns per call, median of the rounds}; modes alternate within each round."""
    functions, threads = shape
    lines = tools.output_of([*before, program, functions, threads, calls, rounds, *modes],
                            timeout=900).splitlines()
    found = {mode: [] for mode in modes}
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] in found:  # uftrace and valgrind may print lines too
            found[words[0]].append(float(words[1]))
    return {mode: statistics.median(values) for mode, values in found.items()}


def measure_hotfn(shape, seeds, options):
    """For each placement: ns per call without hook, with the floor and with hotfn."""
    return [measure(build(seed, "bare"), shape, options.calls, options.rounds,
                    ["bare", "floor", "hotfn"]) for seed in seeds]


def measure_rebuilt(variant, shape, seeds, options, bare):
    """What the counters that are compiled into a program add to a call, in ns."""
    return [measure(build(seed, variant), shape, options.calls, options.rounds, ["bare"])["bare"]
            - base for seed, base in zip(seeds, bare)]


def measure_peer(name, shape, seeds, bare):
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


def compute_ratios(values, floors):
    """value/floor, where the floor is measurable (0.05 ns)."""
    return [value / floor for value, floor in zip(values, floors) if floor >= 0.05]


def make_row(report, shape, name, added, bare, floors):
    """A row of the table.  `floors` is None for the row of the floor itself."""
    about = {"functions": shape[0], "threads": shape[1]}
    report.add(f"call/{name}", "added ns", added, **about)
    if floors is None:
        return [name, *shape, figures.spread(added), "", "", len(added)]
    times = compute_ratios(added, floors)
    whole = [(a + b) / (f + b) for a, b, f in zip(added, bare, floors)]
    report.add(f"call/{name}/whole call over floor's", "ratio", whole, **about)
    if times:
        report.add(f"call/{name}/added over floor's", "ratio", times, **about)
    return [name, *shape, figures.spread(added), figures.spread(times) if times else "-",
            figures.spread(whole), len(added)]


def shape_rows(report, shape, seeds, options):
    found = measure_hotfn(shape, seeds, options)
    bare = [one["bare"] for one in found]
    floors = [one["floor"] - one["bare"] for one in found]
    counted = [one["hotfn"] - one["bare"] for one in found]
    rows = [make_row(report, shape, "floor", floors, bare, None),
            make_row(report, shape, "hotfn", counted, bare, floors)]
    for name, variant in (("-finstrument-functions", "instrument"), ("shared counter", "shared")):
        added = measure_rebuilt(variant, shape, seeds, options, bare)
        rows.append(make_row(report, shape, name, added, bare, floors))
    few = seeds[:options.slow_placements]
    for name in PEERS:
        try:
            rows.append(make_row(report, shape, name, measure_peer(name, shape, few, bare), bare, floors))
        except tools.Missing as missing:
            rows.append([name, *shape, report.note_missing(f"{name} {shape}", missing), "", "", 0])
    return rows


def run(report, options):
    seeds = list(range(1, options.placements + 1))
    report.heading("Added cost of one call",
                   f"Min, median, upper quartile over {len(seeds)} random placements "
                   f"({options.slow_placements} for callgrind and uftrace), each the median of "
                   f"{options.rounds} interleaved rounds; CPU time of the calling thread.",
                   "floor: jump in, jump back, no counter. added ns: relative to the bare call. over "
                   "floor: added ns over the floor's; call: whole call over the floor's.",
                   "-finstrument-functions has a thread-local counter, shared counter a counter "
                   "compiled into each function; both are rebuilt with another layout than bare.")
    header = ["", "functions", "threads", "added ns", "over floor", "call", "placements"]
    rows = []
    for shape in SHAPES if len(tools.CPUS) > 1 else SHAPES[:3]:
        rows += shape_rows(report, shape, seeds, options)
    report.table(header, rows)
