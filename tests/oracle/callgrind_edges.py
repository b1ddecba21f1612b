#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares hotfn's caller-callee edges and their counts with callgrind's.

    callgrind_edges.py --hotfn BUILD/tools/hotfn/hotfn [--stdin FILE] -- ./program args

Callgrind records calls of the program's functions by address.  An edge of hotfn starts at the nearest timed
function further out, and a function with a tail exit (`hotfn scan --timed`: ends_at_jump_to) does not call its
tail target.  Edges into a function that only timed functions call must therefore be equal.  For a function that
other functions or a library call too (qsort's comparison), hotfn must have at least callgrind's count for each
timed caller, and all edges together must equal its calls.  Functions whose counts already differ, because they
depend on the memory layout, are checked by callgrind_counts.py.
Status 0: all edges match.  1: an edge differs.  2: usage, or the program behaved differently.
"""
import argparse
import bisect
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import callgrind_counts
import elf_tables
import hotfn_report

MIN_EQUAL = 0.98      # share of the called functions; the others' counts depend on the layout
START_UP = 2             # _init and _fini, which callgrind attributes to another object


class Owners:
    """Finds the function of an address; a part NAME.cold belongs to NAME."""

    def __init__(self, path):
        symbols = elf_tables.own_text_symbols(path)
        by_name = {name: address for address, symbol in symbols.items() for name in symbol.names}
        self.begins = sorted(symbols)
        self.ends = [address + symbols[address].size for address in self.begins]
        self.owners = []
        for address in self.begins:
            wholes = [name.partition(".cold")[0] for name in symbols[address].names
                      if ".cold" in name]
            self.owners.append(by_name.get(wholes[0], address) if wholes else address)

    def of(self, address):
        i = bisect.bisect_right(self.begins, address) - 1
        return self.owners[i] if i >= 0 and address < self.ends[i] else None


def callgrind_edges(profile, path, owners):
    """{callee: Counter of callers}; None: outside this program."""
    edges = collections.defaultdict(collections.Counter)
    for callee, sources in profile.reached_by(path).items():
        for source_object, source, times in sources:
            caller = owners.of(source) if source_object == path else None
            edges[callee][caller] += times
    return edges


def hotfn_edges(report, functions, base):
    """The same from a report, which has edges between timed functions only."""
    place = {index: base + f["rva"] for index, f in enumerate(report["functions"])
             if f["rva"] in functions and functions[f["rva"]] is f}
    edges = collections.defaultdict(collections.Counter)
    for edge in report["edges"]:
        edges[place.get(edge["callee"])][place.get(edge["caller"])] += edge["calls"]
    return edges


def differences(function, callers, timed, seen):
    """Yields the differences between hotfn's and callgrind's edges into a function."""
    whole = all(caller in timed for caller in callers)
    for caller in sorted(set(callers) | set(seen), key=str):
        expected, actual = callers[caller], seen[caller]
        if caller in timed and (actual != expected if whole else actual < expected):
            yield caller, expected, actual
    if sum(seen.values()) != function["calls"]:
        yield None, function["calls"], sum(seen.values())


def find_tail_exits(hotfn, path, base):
    """{tail target: functions with a tail exit to it}"""
    scan = json.loads(subprocess.run([hotfn, "scan", "--json", "--timed", path], capture_output=True, text=True,
                                     check=True).stdout)
    tail_exits = collections.defaultdict(set)
    for f in scan["functions"]:
        if f["ends_at_jump_to"] is not None:
            tail_exits[base + f["ends_at_jump_to"]].add(base + f["rva"])
    return tail_exits


def compare(arguments, folder, path):
    (_, profile), outcome = callgrind_counts.run_layout(arguments, folder, 0)
    report = callgrind_counts.run_hotfn(arguments, folder, {outcome}, ["--mode", "time"],
                                        ["--edges"])
    base = elf_tables.lowest_load_address(path)
    functions = hotfn_report.functions_of(report, path)
    owners = Owners(path)
    expected, actual = callgrind_edges(profile, path, owners), hotfn_edges(report, functions, base)
    timed = {base + rva for rva, f in functions.items() if f["timing"] == "full"}
    name = {base + rva: f["name"] for rva, f in functions.items()}
    tail_exits, tally, wrong = find_tail_exits(arguments.hotfn, path, base), collections.Counter(), []
    for rva, function in sorted(functions.items()):
        at = base + rva
        if at not in timed or not function["calls"]:
            continue
        callers, known = expected.get(at, collections.Counter()), timed - tail_exits[at]
        tally["called"] += 1
        if sum(callers.values()) != function["calls"] or function["entry_is_loop"]:
            tally["counts differ, or from outside"] += 1
            continue
        found = list(differences(function, callers, known, actual.get(at, collections.Counter())))
        tally["by timed callers only" if all(c in known for c in callers) else "by others too"] += 1
        tally["edges compared"] += len(callers)
        wrong += [(function["name"], name.get(caller, "outside"), *rest) for caller, *rest in found]
    return tally, wrong


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", type=pathlib.Path, required=True)
    parser.add_argument("--stdin", help="file given to the command as its input")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    arguments.stdin = arguments.stdin and os.path.abspath(arguments.stdin)
    arguments.cwd = arguments.report = None
    arguments.module, arguments.any_output = [], False
    return arguments


def main():
    arguments = parse_arguments()
    path = os.path.realpath(arguments.command[0])
    with tempfile.TemporaryDirectory(prefix="hotfn_edges_") as folder:
        try:
            tally, wrong = compare(arguments, pathlib.Path(folder), path)
        except (RuntimeError, ValueError) as problem:
            print(f"callgrind_edges: {problem}", file=sys.stderr)
            return 2
    print(", ".join(f"{count} {what}" for what, count in tally.items()))
    for callee, caller, expected, actual in wrong[:20]:
        print(f"  {caller} -> {callee}: callgrind {expected}, hotfn {actual}")
    equal = tally["by timed callers only"] + tally["by others too"]
    print(f"edges that differ: {len(wrong)}; {equal} of {tally['called']} functions compared")
    return 1 if wrong or equal < MIN_EQUAL * tally["called"] - START_UP or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
