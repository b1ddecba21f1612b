# SPDX-License-Identifier: MIT
"""What timing adds to the processor time of whole programs, compared with the floor: stubs that push and pop an
open-call stack and keep nothing else.  And two busy threads on two processors, where the ticker has none to itself."""
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import tempfile

import calls
import figures
import programs
import tools

ROUNDS, MAX_ROUNDS_FACTOR = 15, 3   # at least so many rounds without disturbance; ended after 3 times as many
FOREIGN = 0.05                      # a round is dropped if others had more of the processor in one of its runs
BARS = {"flat": 0.4, "callers and tree": 1.0}   # above the floor, in bare times
THREAD_CALLS = 40_000_000


def build_floor():
    """A hotfn whose agent has the probes of floor_probes.S: the agent is linked anew, with this file first, so that
    the linker takes nothing from the product's file of the same functions."""
    folder = tools.WORK / "floor"
    agent, tool = folder / "src/agent/hotfn-agent.so", folder / "tools/hotfn/hotfn"
    for path in (agent, tool):
        path.parent.mkdir(parents=True, exist_ok=True)
    probes = folder / "floor_probes.o"
    subprocess.run(["gcc", "-c", "-fPIC", "-I", tools.ROOT / "src", "-I", tools.BUILD / "src/counters",
                    tools.HERE / "floor_probes.S", "-o", probes], check=True)
    link = tools.output_of(["ninja", "-C", tools.BUILD, "-t", "commands", "-s", "src/agent/hotfn-agent.so"])
    words = shlex.split(link.splitlines()[-1])
    words[words.index("-o") + 1] = str(agent)
    words.insert(words.index(str(agent)) + 1, str(probes))
    subprocess.run(words, cwd=tools.BUILD, check=True)
    shutil.copy2(tools.HOTFN, tool)
    library = folder / "src/libhotfn.so"
    library.unlink(missing_ok=True)
    library.symlink_to(tools.BUILD / "src/libhotfn.so")
    return tool


def timed_by(hotfn, *words):
    def wrap(program, command, folder):
        return [hotfn, "run", "-q", "--mode", "time", *words, "--target", os.path.basename(program),
                "-o", os.path.join(folder, "r.hfr"), "--", *command]
    return wrap


def wrapped_uftrace(_, command, folder):
    tools.need("uftrace")
    return [*command[:3], "uftrace", "record", "--no-pager", "-P", ".", "-d", os.path.join(folder, "u"), *command[3:]]


def run_once(program, wrap, scale, cpu, env):
    """(processor seconds of the program, share that others had of its processor)"""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    took = os.path.join(folder, "took")
    runner = tools.compile_c(tools.WORK / "cpu_of", [tools.HERE / "cpu_of.c"])
    command = [str(word) for word in [runner, took, cpu, *program.command(scale)]]
    command = wrap(program.path, command, folder) if wrap else command
    try:
        tools.timed(command, program.input(scale), env=env)
        own, others, stolen, elapsed = map(int, pathlib.Path(took).read_text().split())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return own / 1e9, (others + stolen) / elapsed


def measure_rounds(program, variants, rounds, env):
    """({variant: ratios to the bare run of the same round}, the same of all rounds, number of dropped rounds)"""
    cpu = tools.CPUS[-1]
    kept, every, dropped = {name: [] for name in variants}, {name: [] for name in variants}, 0
    for name, (wrap, scale) in variants.items():   # warms caches and stores scans
        run_once(program, wrap, scale, cpu, env)
    for number in range(rounds if rounds < ROUNDS else MAX_ROUNDS_FACTOR * rounds):
        order = list(variants) if number % 2 else list(variants)[::-1]
        found = {name: run_once(program, variants[name][0], variants[name][1], cpu, env) for name in order}
        bare = {programs.BIG: found["bare"][0]}
        bare[programs.SMALL] = found["bare, small"][0] if "bare, small" in found else 0
        is_kept = all(foreign <= FOREIGN for _, foreign in found.values())
        dropped += not is_kept
        for name, (own, _) in found.items():
            base = bare[variants[name][1]]
            every[name].append((own / base, own))
            kept[name] += [own / base] if is_kept else []
        if len(kept["bare"]) >= rounds:
            break
    return kept, every, dropped


def find_fault_of_uftrace(program, options, env):
    """Why uftrace has no row; None: it traces the program."""
    if options.skip_peers or not shutil.which("uftrace"):
        return "it is not installed, or --skip-peers"
    try:
        run_once(program, wrapped_uftrace, programs.SMALL, tools.CPUS[-1], env)
    except tools.Missing as fault:
        return str(fault)
    return None


def program_rows(report, name, program, floor, options, env):
    variants = {"bare": (None, programs.BIG),
                "floor": (timed_by(floor, "--clock", "tick", "--flat"), programs.BIG),
                "flat": (timed_by(tools.HOTFN, "--clock", "tick", "--flat"), programs.BIG),
                "callers and tree": (timed_by(tools.HOTFN, "--clock", "tick"), programs.BIG),
                "--clock cpu": (timed_by(tools.HOTFN, "--clock", "cpu"), programs.BIG)}
    missing = find_fault_of_uftrace(program, options, env)
    if missing:
        report.note_missing(f"{name}, uftrace", missing)
    else:
        variants.update({"bare, small": (None, programs.SMALL), "uftrace -P .": (wrapped_uftrace, programs.SMALL)})
    rounds = ROUNDS if not options.quick else 2
    kept, every, dropped = measure_rounds(program, variants, rounds, env)
    shortest = {which: min(own for _, own in values) for which, values in every.items()}
    for which in variants:
        if which.startswith("bare"):
            continue
        values = kept[which] or [ratio for ratio, _ in every[which]]
        bare = shortest["bare, small" if variants[which][1] == programs.SMALL else "bare"]
        report.add(f"cheap/{name}/{which}", "of the bare processor time", values, dropped=dropped)
        floors = kept["floor"] or [ratio for ratio, _ in every["floor"]]
        above = statistics.median(values) - statistics.median(floors)
        bar = BARS.get(which)
        verdict = "" if bar is None else f"{'yes' if above <= bar else 'NO'} (+{bar})"
        yield [name, which, figures.spread(values), f"{shortest[which] / bare:.2f}", f"{above:+.2f}", verdict,
               len(kept[which]), dropped]


def run_threads(clock):
    """(ns of a call, processor time of the ticker over that of the threads, share of the run with coarse ticks)"""
    binary = calls.build(1, "bare")
    record = tools.WORK / "threads.hfr"
    out = tools.output_of([tools.HOTFN, "run", "-q", "--mode", "time", "--clock", clock, "-f", "place_*", "-o", record,
                           "--", binary, 64, 2, THREAD_CALLS // 2, 1, "bare"])
    time = json.loads(tools.output_of([tools.HOTFN, "info", "--json", record]))["time"]
    each = next(float(line.split()[1]) for line in out.splitlines() if line.startswith("bare"))
    used = each * THREAD_CALLS * 1.2          # one of six batches warms up
    return each, time["ticker_cpu_ns"] / used, time["coarse_share"] + time["missing_share"]


def thread_rows(report, options):
    binary = calls.build(1, "bare")
    found = {clock: [] for clock in ("bare", "auto", "cpu")}
    for _ in range(ROUNDS if not options.quick else 2):
        line = tools.output_of([binary, 64, 2, THREAD_CALLS // 2, 1, "bare"]).split()
        found["bare"].append((float(line[1]), 0, 0))
        for clock in ("auto", "cpu"):
            found[clock].append(run_threads(clock))
    by_cpu = [each for each, _, _ in found["cpu"]]
    for clock, runs in found.items():
        each = [one for one, _, _ in runs]
        gentle = statistics.median(one * (1 + ticker) / other for (one, ticker, _), other in zip(runs, by_cpu))
        coarse = statistics.median(share for _, _, share in runs)
        mark = "" if clock != "auto" else "the ticker sleeps" if coarse > 0.5 else "the ticker spins"
        report.add(f"cheap/threads/{clock}", "ns of a call", each)
        report.add(f"cheap/threads/{clock}/of cpu", "of the same under --clock cpu, with the ticker", [gentle])
        yield [clock, figures.spread(each), f"{gentle:.2f}", f"{100 * statistics.median(t for _, t, _ in runs):.1f} %",
               mark, len(runs)]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache"), "PYTHONHASHSEED": "0"}
    floor = build_floor()
    report.heading("The processor time of a program with all functions timed, over that of its bare run",
                   f"Min, median, upper quartile of at least {ROUNDS} interleaved rounds, the program on one processor; "
                   f"rounds in which others had more than {100 * FOREIGN:.0f} % of it are dropped.  If all were, the "
                   "values are those of the dropped ones.",
                   "shortest: the shortest run of all rounds over the shortest bare run.  floor: stubs that push and pop an "
                   "open-call stack.",
                   f"uftrace gets a workload of {programs.SMALL}/{programs.BIG} the size.")
    rows = []
    for name, program, problem in programs.programs():
        if problem:
            rows.append([name, "", report.note_missing(name, problem), "", "", "", 0, 0])
        else:
            rows += program_rows(report, name, program, floor, options, env)
    report.table(["", "timed", "ratio", "shortest", "above floor", "within bar", "rounds", "dropped"], rows)
    if len(tools.CPUS) < 2:
        return
    report.heading("Two busy threads on two processors: ns of processor time for a call",
                   "of cpu: with the ticker's own processor time, of what it takes under --clock cpu in the same round "
                   "(bar of auto: 1.05).")
    report.table(["clock", "a call", "of cpu", "ticker", "", "rounds"], list(thread_rows(report, options)))
