#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a hotfn.report/1 from callgrind's counts, with faults on request.

    report_from_callgrind.py [--add NAME=N] [--state NAME=STATE] [--drop NAME] -- ./program args

It stands in for hotfn in the oracle's own tests: callgrind against callgrind must agree, and each
fault put in must be found.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

import callgrind_file
import elf_tables
from callgrind_counts import ENVIRONMENT


def function_of(symbol, base, path, calls):
    return {"module": os.path.basename(path), "file": path, "rva": symbol.address - base,
            "size": symbol.size, "name": symbol.name, "display": symbol.name,
            "names": symbol.names, "calls": calls, "state": "hooked", "strategy": "jump",
            "reason": None, "reason_text": None}


def report_of(path, profile):
    base = elf_tables.lowest_load_address(path)
    counts = profile.executed[path]
    return [function_of(symbol, base, path, counts[address])
            for address, symbol in elf_tables.own_text_symbols(path).items()]


def spoil(functions, arguments):
    """Put the faults in that were asked for."""
    by_name = {name: function for function in functions for name in function["names"]}
    for fault in arguments.add:
        name, count = fault.split("=")
        by_name[name]["calls"] += int(count)
    for fault in arguments.state:
        name, state = fault.split("=")
        by_name[name].update(state=state, calls=None, reason="made_up")
    return [function for function in functions if not set(arguments.drop) & set(function["names"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="append", default=[])
    parser.add_argument("--state", action="append", default=[])
    parser.add_argument("--drop", action="append", default=[])
    parser.add_argument("--stdin")
    parser.add_argument("--output", help="where the program's output goes")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hotfn_oracle_") as name:
        folder = pathlib.Path(name)
        _, (_, after) = callgrind_file.run(arguments.command, folder, ENVIRONMENT,
                                           stdin=arguments.stdin)
        if arguments.output:
            shutil.copy(folder / "stdout", arguments.output)
    paths = [path for path in after.executed if os.path.isfile(path)]
    functions = spoil([function for path in paths for function in report_of(path, after)],
                      arguments)
    json.dump({"schema": "hotfn.report/1", "version": 1, "functions": functions}, sys.stdout,
              indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
