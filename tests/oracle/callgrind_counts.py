#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares hotfn's counts with callgrind's, function by function.

    callgrind_counts.py --hotfn BUILD/tools/hotfn/hotfn -- ./program args
    callgrind_counts.py --report r.json -- ./program args     reads an existing hotfn.report/1
    callgrind_counts.py --counts -- ./program args            only callgrind's counts, as JSON

Status 0: every difference belongs to a known class, which is computed and printed.  1: some differences are
unexplained.  2: usage, or the program behaved differently under hotfn and callgrind.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import sys
import tempfile

import breakpoints
import callgrind_file
import eh_frame
import elf_tables
import entries
import explain
import hotfn_report

# valgrind's processor has no AVX-512: make libc select the same variants of its functions natively.
ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
               "PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": "/dev/null",
               "PYTHONHASHSEED": "0", "PYTHONHOME": "/usr"}


def run_layout(arguments, folder, layout):
    """((before, after), (status, output)) of one callgrind run."""
    place = folder / f"layout{layout}"
    place.mkdir()
    status, parts = callgrind_file.run(arguments.command, place, ENVIRONMENT, layout,
                                       arguments.stdin, arguments.cwd)
    return parts, (status, (place / "stdout").read_bytes())


def run_layouts(arguments, folder):
    """[(before, after)] of --layouts callgrind runs, each with another memory layout."""
    runs, outcomes = [], set()
    for layout in range(arguments.layouts):
        parts, outcome = run_layout(arguments, folder, layout)
        runs.append(parts)
        outcomes.add(outcome)
    if len(outcomes) != 1:
        print("warning: callgrind's runs differ in output or status", file=sys.stderr)
    return runs, outcomes


def run_hotfn(arguments, folder, outcomes, mode=(), ask=()):
    """hotfn's report; output and status of the program must be the same as under callgrind."""
    if arguments.report:
        return hotfn_report.load(arguments.report.read_text())
    place = folder / "hotfn"
    place.mkdir()
    options = [*mode, *(f"--module={glob}" for glob in arguments.module)]
    environment = callgrind_file.make_environment(ENVIRONMENT, place, 0,
                                                callgrind_file.UNDER_HOTFN)
    status, report = hotfn_report.run(arguments.hotfn, arguments.command, place, environment,
                                      options, arguments.stdin, arguments.cwd, ask,
                                      callgrind_file.without_randomisation())
    if (status, (place / "stdout").read_bytes()) not in outcomes and not arguments.any_output:
        raise RuntimeError(f"output or status ({status}) differs from the run under callgrind: "
                           + (place / "stderr").read_text(errors="replace")[-2000:])
    return report


class Image:
    """Callgrind's results for one image in all runs, by address."""

    def __init__(self, path, runs):
        self.path, self.runs = path, runs
        fdes = list(eh_frame.ranges(path))
        self.landing_pads = eh_frame.landing_pads(path, fdes)
        self.in_frame = {fde.start for fde in fdes if fde.begins_in_frame}
        self.sections = elf_tables.Sections(path)
        self.decoded = callgrind_file.decoded_sources(path, [part for parts in runs
                                                             for part in parts])
        self.origins = runs[0][1].reached_by(path)
        self.entries_found = None

    def count(self, part, address):
        return part.count(self.path, address, part.load_bias(self.path, self.decoded))

    def observed(self, symbol):
        """explain.Observed of one function."""
        seen = explain.Observed(
            symbol=symbol,
            landing_pad=symbol.address in self.landing_pads,
            in_frame=symbol.address in self.in_frame,
            section=self.sections.code_section(symbol.address) or "",
            before=self.count(self.runs[0][0], symbol.address),
            entries=[self.count(after, symbol.address) for _, after in self.runs])
        seen.add_origins(self.path, self.origins[symbol.address], self.decoded)
        if seen.entries[0] and not seen.called:
            seen.by_code = self.found().exclusion_reason(symbol.address) == entries.JUMPED
        return seen

    def found(self):
        """Entries found in the code itself, for entries whose callers callgrind does not record."""
        if self.entries_found is None:
            self.entries_found = entries.find(self.path)
        return self.entries_found


def compare_image(image, report):
    """[(class, Observed, hotfn's function or None)] of every function of one image."""
    path = image.path
    base = elf_tables.lowest_load_address(path)
    functions = hotfn_report.functions_of(report, path)
    if not functions:
        raise RuntimeError(f"the report has no function of {os.path.basename(path)}")
    symbols = elf_tables.own_text_symbols(path)
    for rva, function in functions.items():    # functions that hotfn found without a symbol are compared too
        symbols.setdefault(base + rva, elf_tables.Symbol(base + rva, function["size"],
                                                         [function["name"]]))
    rows = []
    for address in sorted(symbols):
        observed, function = image.observed(symbols[address]), functions.get(address - base)
        rows.append((explain.classify(observed, function), observed, function))
    return rows


def find_unexplained(tables, most_hits):
    """{(path, address): Observed} of as many functions as gdb can count in a few seconds."""
    found = [(path, observed, function) for path, rows in tables.items()
             for name, observed, function in rows
             if name == explain.UNEXPLAINED and function and function["state"] == "hooked"]
    asked, hits = {}, 0
    for path, observed, function in sorted(found, key=lambda one: count_hits(*one[1:])):
        hits += count_hits(observed, function)
        if hits <= most_hits:
            asked[path, observed.symbol.address] = observed
    return asked


def count_hits(observed, function):
    return max([*observed.entries, function["calls"] or 0])


def ask_witness(tables, arguments, folder):
    """Count with gdb the functions on which callgrind and hotfn disagree; updates the tables.

    The first run has the memory layout of hotfn's run: no randomisation, and the stack at the same address.
    The others are randomised: a count that differs between them depends on the layout.
    """
    place = callgrind_file.read_place(folder / "hotfn")
    for turn in range(arguments.witness_runs):
        environment = callgrind_file.make_environment(ENVIRONMENT, folder, turn,
                                                    callgrind_file.NATIVE)
        asked = find_unexplained(tables, arguments.witness_hits)
        counts = breakpoints.count(set(asked), arguments.command, folder, environment,
                                   arguments.stdin, arguments.cwd, fixed=turn == 0,
                                   place=place if turn == 0 else None)
        if not counts:
            return
        for place, hits in counts.items():
            asked[place].native.append(hits)
        classify_again(tables)


def classify_again(tables):
    for path, rows in tables.items():
        tables[path] = [(explain.classify(observed, function), observed, function)
                        for _, observed, function in rows]


def ask_more_layouts(tables, images, arguments, folder):
    """Run callgrind with more layouts while anything is unexplained, since a count that depends on addresses
    may have been the same in the first runs by chance; updates the tables."""
    for layout in range(arguments.layouts, arguments.layouts + arguments.more_layouts):
        if not any(name == explain.UNEXPLAINED and function and function["state"] == "hooked"
                   and any(observed.entries)
                   for rows in tables.values() for name, observed, function in rows):
            return
        (_, after), _ = run_layout(arguments, folder, layout)
        for image in images:
            for _, observed, _ in tables[image.path]:
                observed.entries.append(image.count(after, observed.symbol.address))
        classify_again(tables)


def print_table(path, rows, verbose):
    """Print one line for each class, then the functions that differ."""
    classes = collections.defaultdict(list)
    for name, observed, function in rows:
        classes[name].append((observed, function))
    entered = [observed for _, observed, _ in rows if observed.entries[0]]
    print(f"\n{path}: {len(entered)} of {len(rows)} functions entered, "
          f"{sum(observed.entries[0] for observed in entered)} times")
    print(f"  {'class':44} {'functions':>9} {'callgrind':>12} {'hotfn':>12}")
    for name in sorted(classes, key=explain.ORDER.index):
        pairs = classes[name]
        counted = sum((function or {}).get("calls") or 0 for _, function in pairs)
        print(f"  {name:44} {len(pairs):9} {sum(o.entries[0] for o, _ in pairs):12} {counted:12}")
    for name in sorted(set(classes) - explain.QUIET, key=explain.ORDER.index):
        listed = [(observed, function) for observed, function in classes[name]
                        if verbose or name == explain.UNEXPLAINED
                        or any(observed.entries + observed.native)]
        for observed, function in listed[:None if verbose else 10]:
            print(f"    {name}: {observed.describe(function)}")
    return len(classes[explain.UNEXPLAINED])


def print_notes(rows):
    """Print how functions were reached if calls= and entries differ; information only."""
    notes = collections.Counter()
    for _, observed, _ in rows:
        if observed.own_jumps:
            notes["have a jump to their own entry (callgrind: a call)"] += 1
        if observed.entries[0] > observed.called:
            notes["entered other than by a call or jump (signal, start of a thread)"] += 1
        if observed.before:
            notes["ran before the agent's constructor could"] += 1
    for text, count in notes.items():
        print(f"  note: {count} functions {text}")


def list_images(arguments, runs):
    main = os.path.realpath(shutil.which(arguments.command[0]) or arguments.command[0])
    if not arguments.module:
        return [main]
    loaded = [path for path in runs[0][1].executed if os.path.isfile(path)
              and "valgrind" not in path and "layout_shift" not in path]
    return sorted(loaded, key=lambda path: path != main)


def counts_as_json(runs):
    """{object basename: {symbol: entries}} of the first run."""
    table = {}
    for path, counts in runs[0][1].executed.items():
        if os.path.isfile(path):
            symbols = elf_tables.own_text_symbols(path)
            table[os.path.basename(path)] = {
                symbol.name: counts[address] for address, symbol in symbols.items()
                if counts[address]}
    return table


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path, help="a hotfn.report/1 instead of a run")
    parser.add_argument("--counts", action="store_true", help="print callgrind's counts as JSON")
    parser.add_argument("--layouts", type=int, default=4, help="callgrind runs [4]")
    parser.add_argument("--witness-runs", type=int, default=6,
                        help="maximum of gdb runs while anything is unexplained [6]")
    parser.add_argument("--witness-hits", type=int, default=400000,
                        help="calls that gdb may count, at 50 microseconds each [400000]")
    parser.add_argument("--more-layouts", type=int, default=0,
                        help="further callgrind runs while anything is unexplained [0]")
    parser.add_argument("--module", action="append", default=[], help="compare libraries too")
    parser.add_argument("--stdin", help="file given to the command as its input")
    parser.add_argument("--cwd", help="folder the command runs in")
    parser.add_argument("--any-output", action="store_true", help="do not compare outputs")
    parser.add_argument("--verbose", action="store_true", help="list every function of a class")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if not (arguments.hotfn or arguments.report or arguments.counts):
        parser.error("one of --hotfn, --report, --counts is needed")
    arguments.stdin = arguments.stdin and os.path.abspath(arguments.stdin)
    return arguments


def main():
    arguments = parse_arguments()
    callgrind_file.compile_for(arguments.command[0])
    with tempfile.TemporaryDirectory(prefix="hotfn_oracle_") as name:
        folder = pathlib.Path(name)
        runs, outcomes = run_layouts(arguments, folder)
        if arguments.counts:
            json.dump(counts_as_json(runs), sys.stdout, indent=1, sort_keys=True)
            return 0
        try:
            report = run_hotfn(arguments, folder, outcomes)
            images = [Image(path, runs) for path in list_images(arguments, runs)]
            tables = {image.path: compare_image(image, report) for image in images}
            ask_witness(tables, arguments, folder)
            ask_more_layouts(tables, images, arguments, folder)
        except (RuntimeError, ValueError) as problem:
            print(f"callgrind_counts: {problem}", file=sys.stderr)
            return 2
    unexplained = 0
    for path, rows in tables.items():
        unexplained += print_table(path, rows, arguments.verbose)
        print_notes(rows)
    print(f"\nunexplained: {unexplained}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
