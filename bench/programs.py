# SPDX-License-Identifier: MIT
"""Whole programs: the slowdown with every function counted, compared with other tools."""
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

import figures
import tools

sys.path.insert(0, str(tools.HERE / "work"))
import statements  # noqa: E402  (needs the path above)

BIG, SMALL = 30, 4  # workload scales: BIG takes about a second bare, SMALL is for slow tools


class Program:
    """A command with a scalable workload."""

    def __init__(self, name, path, words, stdin=None):
        self.name, self.path, self.words, self.stdin = name, path, words, stdin

    def command(self, scale):
        return [self.path, *[word.format(scale=scale) for word in self.words]]

    def input(self, scale):
        return statements.write(tools.WORK / f"statements-{scale}.sql", 3 * scale) if self.stdin else None


def built(name):
    """A program of tests/programs with symbols, built from Debian's source."""
    folder = pathlib.Path(os.environ.get("HOTFN_PROGRAMS", tools.BUILD / "programs"))
    maker = tools.ROOT / "tests/programs/build_programs"
    tools.output_of([maker, folder, name, "--compiler", "gcc"], timeout=900)
    return str(folder / "gcc" / name)


def programs():
    """Yields (name, program or None, problem)."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else tools.need("python3")
    wanted = [
        ("sqlite3", lambda: Program("sqlite3", built("sqlite3"), [":memory:"], stdin=True)),
        ("lua", lambda: Program("lua", built("lua"), [tools.HERE / "work/loop.lua", "{scale}"])),
        ("CPython", lambda: Program("CPython", os.path.realpath(python),
                                    ["-I", tools.HERE / "work/loop.py", "{scale}"])),
    ]
    for name, make in wanted:
        try:
            program = make()
            program.words = [str(word) for word in program.words]
            yield name, program, None
        except tools.Missing as missing:
            yield name, None, str(missing)


def wrapped_hotfn(command, folder):
    return [tools.HOTFN, "run", "-q", "-o", os.path.join(folder, "r.hfr"), "--", *command]


def wrapped_uftrace(command, folder):
    tools.need("uftrace")
    return ["uftrace", "record", "--no-pager", "-P", ".", "-d", os.path.join(folder, "u"), *command]


def wrapped_callgrind(command, folder):
    tools.need("valgrind")
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/c", *command]


HOTFN_COUNT = "hotfn"
TOOLS = [(HOTFN_COUNT, wrapped_hotfn, BIG), ("uftrace -P .", wrapped_uftrace, SMALL), ("callgrind", wrapped_callgrind, SMALL)]


def pair(program, wrap, scale, bare_first, env):
    """One pair, bare and under a tool: (wall ratio, CPU ratio, bare seconds, CPU seconds, bare CPU seconds)."""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    bare = program.command(scale)
    commands = {"bare": bare, "tool": wrap(bare, folder)}
    took = {}
    for which in ("bare", "tool") if bare_first else ("tool", "bare"):
        took[which] = tools.timed(commands[which], program.input(scale), env=env)
    shutil.rmtree(folder, ignore_errors=True)
    (bare_wall, bare_cpu), (wall, cpu) = took["bare"], took["tool"]
    return wall / bare_wall, cpu / max(bare_cpu, 1e-3), bare_wall, cpu, max(bare_cpu, 1e-3)


def measure(program, wrap, scale, runs, env):
    pair(program, wrap, scale, True, env)  # warms caches and stores scans
    return [pair(program, wrap, scale, i % 2 == 0, env) for i in range(runs)]


def calls_made(program, env):
    """The number of calls of one run of the workload."""
    folder = tempfile.mkdtemp(dir=tools.WORK)
    tools.timed(wrapped_hotfn(program.command(BIG), folder), program.input(BIG), env=env)
    report = json.loads(tools.output_of([tools.HOTFN, "report", "--json", "-n", "0",
                                         os.path.join(folder, "r.hfr")]))
    shutil.rmtree(folder, ignore_errors=True)
    return sum(function["calls"] or 0 for function in report["functions"])


def program_rows(report, name, program, options, env):
    for tool, wrap, scale in TOOLS:
        runs = options.runs if tool == HOTFN_COUNT else options.slow_runs
        if tool != HOTFN_COUNT and options.skip_peers:
            continue
        try:
            pairs = measure(program, wrap, scale, runs, env)
        except tools.Missing as missing:
            yield [name, tool, report.note_missing(f"{name}, {tool}", missing), "", "", "", "", 0]
            continue
        walls, cpus, bare_walls, cpu_seconds, bare_cpu_seconds = zip(*pairs)
        bare = statistics.median(bare_walls)
        report.add(f"program/{name}/{tool}", "wall ratio", walls, bare_seconds=bare)
        report.add(f"program/{name}/{tool}/cpu", "CPU ratio", cpus)
        min_ratio = min(cpu_seconds) / min(bare_cpu_seconds)
        report.add(f"program/{name}/{tool}/min", "CPU ratio", [min_ratio])
        speed = calls_made(program, env) / bare / 1e6 if tool == HOTFN_COUNT else 0
        yield [name, tool, figures.spread(walls), figures.spread(cpus), f"{min_ratio:.3f}", f"{bare:.2f}",
               f"{speed:.0f}" if speed else "", runs]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    report.heading("Whole programs, all functions of the program counted",
                   "Run time over the bare run's, including start and end of the tool: min, median, "
                   "upper quartile of interleaved pairs.",
                   "Min: minimum CPU time of all runs over the bare runs' minimum, which is less sensitive "
                   "to other programs.",
                   f"uftrace and callgrind get {options.slow_runs} pairs and a workload of "
                   f"{SMALL}/{BIG} the size. Scans are warm.")
    env = {**os.environ, "XDG_CACHE_HOME": str(tools.WORK / "cache"), "PYTHONHASHSEED": "0"}
    rows = []
    for name, program, problem in programs():
        if problem:
            rows.append([name, "", report.note_missing(name, problem), "", "", "", "", 0])
        else:
            rows += program_rows(report, name, program, options, env)
    report.table(["", "tool", "wall ratio", "CPU ratio", "min", "bare s", "M calls/s", "pairs"], rows)
