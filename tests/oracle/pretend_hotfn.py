#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Replaces `hotfn` in the tests of the oracles, with counts from callgrind.

    pretend_hotfn.py run -o RECORD [options] -- command     run it under callgrind
    pretend_hotfn.py report RECORD -n 0 --json              a hotfn.report/1 of the counts
    pretend_hotfn.py scan IMAGE --json                      a hotfn.scan/1: all entries hookable

PRETEND_FAULTS injects faults, which the oracles must find.  Words:
    add:NAME=N  state:NAME=STATE  drop:NAME  unflag:NAME     in a report
    verdict:NAME=VERDICT  inside:N                  in a scan
    break:status  break:output  break:hang          in a run
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import callgrind_file
import elf_tables
import entries


def run(words):
    """Exec valgrind; the record contains the process id, callgrind's files are next to it."""
    record = pathlib.Path(words[words.index("-o") + 1]).resolve()
    command = words[words.index("--") + 1:]
    record.write_text(str(os.getpid()))
    valgrind = callgrind_file.valgrind_command(f"{record}.callgrind", command)
    broken = {name for name, _ in faults("break")}
    if "output" in broken:
        print("an extra line", flush=True)
    if "hang" in broken:
        time.sleep(1000)
    if "status" in broken:
        with subprocess.Popen(valgrind) as process:
            record.write_text(str(process.pid))
        sys.exit(99)
    os.execvp(valgrind[0], valgrind)


def function_of(symbol, base, path, calls):
    return {"module": os.path.basename(path), "file": path, "rva": symbol.address - base,
            "size": symbol.size, "name": symbol.name, "display": symbol.name,
            "names": symbol.names, "calls": calls, "state": "hooked", "strategy": "jump",
            "reason": None, "reason_text": None, "entry_is_loop": True}


def report_of(path, profile):
    base = elf_tables.lowest_load_address(path)
    bias = profile.load_bias(path, callgrind_file.decoded_sources(path, [profile]))
    return [function_of(symbol, base, path, profile.count(path, address, bias))
            for address, symbol in elf_tables.own_text_symbols(path).items()]


def faults(kind):
    """[(name, value)] of the requested faults of one kind."""
    words = [word.split(":", 1) for word in os.environ.get("PRETEND_FAULTS", "").split()]
    return [tuple((text.split("=") + [""])[:2]) for which, text in words if which == kind]


def add_faults(functions):
    by_name = {name: function for function in functions for name in function["names"]}
    for name, count in faults("add"):
        by_name[name]["calls"] += int(count)
    for name, state in faults("state"):
        by_name[name].update(state=state, calls=None, reason="made_up")
    for name, _ in faults("unflag"):
        del by_name[name]["entry_is_loop"]
    dropped = {name for name, _ in faults("drop")}
    return [function for function in functions if not dropped & set(function["names"])]


def report(record):
    before, after = callgrind_file.read_parts(f"{record}.callgrind", record.read_text())
    after.add(before)
    paths = [path for path in after.executed if os.path.isfile(path) and "valgrind" not in path]
    functions = [function for path in paths for function in report_of(path, after)]
    return {"schema": "hotfn.report/1", "version": 1, "functions": add_faults(functions)}


def scan(image):
    """All entries hookable, except for faults; `inside` adds hooks inside frames."""
    found = entries.find(image)
    verdicts = dict(faults("verdict"))
    functions = [{"rva": entry.address - found.base, "size": entry.size, "name": entry.name,
                  "verdict": verdicts.get(entry.name, "hookable"), "strategy": "jump",
                  "reason": None} for entry in found.true_entries()]
    in_frame = [address for address in sorted(found.in_frame)
                if found.exclusion_reason(address) == entries.IN_FRAME]
    inside = in_frame[:sum(int(count) for count, _ in faults("inside"))]
    functions += [{"rva": address - found.base, "size": 1, "name": "", "verdict": "hookable",
                   "strategy": "jump", "reason": None} for address in inside]
    dropped = {name for name, _ in faults("drop")}
    return {"schema": "hotfn.scan/1", "image": image,
            "functions": [function for function in functions if function["name"] not in dropped]}


def main():
    command_name, *words = sys.argv[1:]
    if command_name == "run":
        run(words)
    result = report(pathlib.Path(words[0])) if command_name == "report" else scan(words[0])
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
