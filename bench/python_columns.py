# SPDX-License-Identifier: MIT
"""The cost of a record as a pandas frame, compared with numpy.frombuffer and the decoding of the same names."""
import os
import subprocess
import sys
import time

import figures
import tools

FUNCTIONS = 240_000
GROUP = 400              # functions that one caller calls
RUNS = 15
BODY = """.globl {0}
.type {0},@function
.p2align 4
{0}:
 movl $1,%eax
 addl $2,%eax
 addl $3,%eax
 ret
.size {0},.-{0}
"""


def c_name(index):
    return f"game_engine_component_update_{index:06}"


def cxx_name(index):
    """game::engine::component::update_000000(std::string const&, int)"""
    return f"_ZN4game6engine9component13update_{index:06}ERKSsi"


def write_source(path, name):
    """FUNCTIONS small functions in assembly; main calls each of them once, in groups."""
    groups = range(FUNCTIONS // GROUP)
    with open(path, "w", encoding="ascii") as out:
        out.write(".text\n")
        for index in range(FUNCTIONS):
            out.write(BODY.format(name(index)))
        for group in (*groups, "all"):
            calls = [f"group_{i}" for i in groups] if group == "all" else [
                name(i) for i in range(group * GROUP, (group + 1) * GROUP)]
            label = "main" if group == "all" else f"group_{group}"
            out.write(f".globl {label}\n.type {label},@function\n{label}:\n pushq %rbx\n movl $1,%ebx\n")
            out.writelines(f" call {called}\n" for called in calls)
            out.write(f" xorl %eax,%eax\n popq %rbx\n ret\n.size {label},.-{label}\n")
        out.write('.section .note.GNU-stack,"",@progbits\n')


def make_record(name, mode):
    """The record of a program with FUNCTIONS functions, each of them called once."""
    kind = "cxx" if name is cxx_name else "c"
    program = tools.WORK / f"columns-{kind}"
    record = tools.WORK / f"columns-{kind}-{mode}.hfr"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        write_source(program.with_suffix(".s"), name)
        subprocess.run([os.environ.get("CC", "gcc").split()[-1], program.with_suffix(".s"), "-o", program], check=True)
    if not record.exists():
        tools.output_of([tools.HOTFN, "run", "-q", "--mode", mode, "-o", record, "--", program])
    return record


def load_hotfn():
    """The package of this tree with the library of this build."""
    os.environ.setdefault("HOTFN_LIBRARY", str(tools.BUILD / "src/libhotfn.so"))
    sys.path.insert(0, str(tools.ROOT / "bindings/python"))
    try:
        import numpy  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as problem:
        raise tools.Missing(f"{problem}; scripts/setup bench installs it") from None
    import hotfn
    return hotfn


class Baseline:
    """What any reader must do: view the numbers as arrays, and decode the names."""

    def __init__(self, record):
        from hotfn import _structs as s
        from hotfn import columns
        self.columns = columns
        handle, count = record._open_handle, record.info.function_count
        self.blocks = [(bytes(columns.read_block(handle, kind, struct, count)), columns.view_block((struct * 0)()).dtype)
                       for kind, struct in ((columns.FUNCTIONS, s.RecordFunction), (columns.TIMINGS, s.RecordTiming))]
        self.names = [columns.read_names(handle, kind, count) for kind in (columns.LINKER, columns.READABLE)]
        self.demangle = lambda: columns.read_names(handle, columns.READABLE, count)

    def run(self):
        import numpy
        arrays = [numpy.frombuffer(block, dtype=kind) for block, kind in self.blocks]
        return arrays, [names.decode().split("\0") for names in self.names]


def measure(function):
    """Seconds of processor time: all of this runs in one thread, and other programs disturb it less than elapsed time."""
    begin = time.process_time()
    result = function()
    seconds = time.process_time() - begin
    del result
    return seconds


def compare(report, hotfn, title, record_path, runs):
    """[row] of one record: the frame over the baseline."""
    with hotfn.open(record_path) as record:
        base = Baseline(record)
        found = {"base": [], "demangle": [], "frame": []}
        for round_ in range(runs + 1):
            values = {"base": measure(base.run), "demangle": measure(base.demangle),
                      "frame": measure(record.to_pandas)}
            for key, value in values.items():
                if round_:      # the first round warms up
                    found[key].append(value)
        rows = len(record.to_pandas())
    decoded = found["base"]
    if "C++" in title:          # decoding such a name includes demangling it
        decoded = [a + b for a, b in zip(found["base"], found["demangle"])]
    ratio = [frame / base for frame, base in zip(found["frame"], decoded)]
    report.add(f"python/{title}/frame over frombuffer and names", "ratio", ratio)
    report.add(f"python/{title}/frame", "s", found["frame"])
    milliseconds = [1000 * value for value in found["frame"]], [1000 * value for value in decoded]
    return [title, f"{rows:,}", figures.spread(ratio), *(figures.spread(values, 0) for values in milliseconds),
            f"{min(found['frame']) / min(decoded):.2f}"]


def measure_trees(report, hotfn, record_path, runs):
    """Rows of the call tree by name, and of its flame graph."""
    with hotfn.open(record_path) as record:
        rows = []
        for title, function in (("tree()", record.tree), ("plot.flame()", record.plot.flame)):
            seconds = [measure(function) for _ in range(runs + 1)][1:]
            report.add(f"python/{title}", "s", seconds)
            rows.append([title, figures.spread([1000 * value for value in seconds], 0)])
    return rows


def run(report, options):
    report.heading("A record as a pandas frame, over numpy.frombuffer and decoding of the same names",
                   f"Processor time: min, median, upper quartile of {RUNS} interleaved rounds.  Each function was called.",
                   "C++ names: decoding includes the demangler.  Target: ratio maximum 3.")
    try:
        hotfn = load_hotfn()
        runs = 3 if options.quick else RUNS
        rows = [compare(report, hotfn, f"{'C++' if name is cxx_name else 'C'} names, {mode}", make_record(name, mode), runs)
                for name in (c_name, cxx_name) for mode in ("count", "time")]
        trees = measure_trees(report, hotfn, make_record(c_name, "time"), runs)
    except tools.Missing as missing:
        report.heading("python: missing", str(missing))
        return
    report.table(["record", "rows", "ratio", "frame ms", "baseline ms", "min/min"], rows)
    report.table(["call tree of 240,000 functions", "ms"], trees)


if __name__ == "__main__":
    import argparse
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(figures.Report(), parser.parse_args())
