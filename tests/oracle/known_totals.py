#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares hotfn's counts with totals that the program prints itself.

    known_totals.py --hotfn BUILD/tools/hotfn/hotfn [--module GLOB] -- ./program
    known_totals.py --report r.json --output its_stdout -- ./program

The program prints lines (tests/programs/src/totals.h):
    total [MODULE:]NAME N       NAME was called N times and must be hooked
    total? [MODULE:]NAME N|M    hotfn may refuse NAME; if it is hooked, the count is N, or M and the
                                entry is flagged as a loop
    refused [MODULE:]NAME REASON  NAME must be refused for this reason (its id)
Status 1: a count differs, or a function that must be hooked is not.
"""
import argparse
import os
import pathlib
import re
import sys
import tempfile

import hotfn_report
from callgrind_counts import ENVIRONMENT

LINE = re.compile(r"^total(\?)? (?:([^:\s]+):)?(\S+) ([\d|]+)$", re.M)
REFUSED = re.compile(r"^refused (?:([^:\s]+):)?(\S+) (\S+)$", re.M)
SKIPPED = 77


def parse_totals(output, main_module):
    """[(may be refused, module, name, [count, count with loops])] from the program's output."""
    return [(bool(optional), module or main_module, name, [int(n) for n in counts.split("|")])
            for optional, module, name, counts in LINE.findall(output)]


def check_total(total, functions):
    """(whether it holds, text) of one total line."""
    optional, module, name, allowed = total
    function = functions.get((module, name))
    wanted = " or ".join(map(str, allowed))
    if function is None:
        return False, f"{module}:{name} is not in the report (wanted {wanted})"
    if function["calls"] is None:
        text = f"{module}:{name} {function['state']} ({function['reason']}), wanted {wanted}"
        return optional and bool(function["reason"]), text
    text = f"{module}:{name} {function['calls']}, wanted {wanted}"
    return function["calls"] in allowed[:2 if function.get("entry_is_loop") else 1], text


def check_refused(module, name, reason, functions):
    """(whether it holds, text) of one refused line."""
    function = functions.get((module, name), {"state": "not listed", "reason": None})
    text = f"{module}:{name} {function['state']} ({function['reason']}), wanted refused ({reason})"
    return (function["state"], function["reason"]) == ("refused", reason), text


def by_module_and_name(report):
    return {(function["module"], name): function for function in report["functions"]
            for name in {function["name"], *function["names"]}}


def run(arguments):
    """(the program's output, hotfn's report)"""
    if arguments.report:
        return arguments.output.read_text(), hotfn_report.load(arguments.report.read_text())
    # The totals are those of this program, also if it becomes another one by exec.
    options = [f"--target={os.path.realpath(arguments.command[0])}"]
    options += [f"--module={glob}" for glob in arguments.module]
    with tempfile.TemporaryDirectory(prefix="hotfn_totals_") as name:
        folder = pathlib.Path(name)
        status, report = hotfn_report.run(arguments.hotfn, arguments.command, folder, ENVIRONMENT,
                                          options)
        if status == SKIPPED:
            print((folder / "stdout").read_text(), end="")
            sys.exit(SKIPPED)
        if status:
            problems = (folder / "stderr").read_text(errors="replace")
            raise SystemExit(f"known_totals: the program ended with {status}: {problems[-2000:]}")
        return (folder / "stdout").read_text(), report


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if not arguments.hotfn and not (arguments.report and arguments.output):
        parser.error("--hotfn, or --report and --output, are needed")
    return arguments


def main():
    arguments = parse_arguments()
    output, report = run(arguments)
    main_module = os.path.basename(os.path.realpath(arguments.command[0]))
    totals = parse_totals(output, main_module)
    functions = by_module_and_name(report)
    verdicts = [check_total(total, functions) for total in totals]
    verdicts += [check_refused(module or main_module, name, reason, functions)
                 for module, name, reason in REFUSED.findall(output)]
    for holds, text in verdicts:
        print("ok    " if holds else "WRONG ", text)
    wrong = sum(not holds for holds, _ in verdicts)
    print(f"{len(verdicts)} totals, {wrong} wrong")
    return 1 if wrong or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
