#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the function entries of images with binutils, and compares them with the hooks of `hotfn scan`.

    coverage.py --hotfn BUILD/tools/hotfn/hotfn IMAGE ...
    coverage.py --scan scan.json IMAGE           reads an existing hotfn.scan/1
    coverage.py --entries IMAGE                  only counts the entries, by their evidence

An entry is an address with a function symbol or an FDE that is called, exported, or whose address is taken.
Excluded, and printed: PLT, .init/.fini, start-up code, ifunc resolvers, FDEs that begin inside a frame, and
addresses that are only jumped to or not referenced.
Status 1: fewer than --minimum percent are hookable without int3, or an entry is refused without a reason.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

import entries


def run_scan(hotfn, image):
    done = subprocess.run([hotfn, "scan", image, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"hotfn scan {image}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def functions_by_rva(scan):
    if scan.get("schema") != "hotfn.scan/1":
        raise RuntimeError(f"not a hotfn.scan/1 but {scan.get('schema')!r}")
    return {function["rva"]: function for function in scan["functions"]}


def outcome(function):
    """hotfn's result for one entry, as a row of the table."""
    if function is None:
        return "MISSING: not listed"
    if function["verdict"] == "hookable":
        return f"hookable: {function['strategy']}"
    if function["verdict"] == "fragment":
        return "WRONG: called a fragment"
    return f"refused: {function['reason']}" if function["reason"] else "WRONG: refused, no reason"


def compare(found, scan):
    """{outcome: list of entries}."""
    judged = functions_by_rva(scan)
    outcomes = collections.defaultdict(list)
    for entry in found.true_entries():
        outcomes[outcome(judged.get(entry.address - found.base))].append(entry)
    return outcomes


def print_entry_counts(image, found):
    print(f"\n{image}: {len(found.true_entries())} true entries")
    for evidence, count in found.evidence_counts().most_common():
        print(f"    {count:8}  {evidence}")
    print(f"  excluded ({found.candidate_count()} candidates in all):")
    for why, count in found.excluded_counts().most_common():
        print(f"    {count:8}  {why}")


def print_outcomes(outcomes, limit):
    """Print the table; returns (share in percent, number of wrong entries)."""
    total = sum(map(len, outcomes.values()))
    good = sum(len(found_entries) for text, found_entries in outcomes.items()
               if text.startswith("hookable") and text != "hookable: int3")
    print("  hotfn's results for these entries:")
    for text, found_entries in sorted(outcomes.items(), key=lambda item: -len(item[1])):
        print(f"    {len(found_entries):8}  {100 * len(found_entries) / total:7.3f} %  {text}")
    for text, found_entries in outcomes.items():
        if not text.startswith("hookable") or text == "hookable: int3":
            for entry in found_entries[:limit]:
                print(f"      {text}: 0x{entry.address:x} {entry.name} ({entry.evidence()})")
    wrong = sum(len(found_entries) for text, found_entries in outcomes.items()
                if text.startswith(("WRONG", "MISSING")))
    return 100 * good / total if total else 0, wrong


def print_extra(found, scan):
    """Print hooks that are not at entries: harmless if only jumped to, wrong inside a frame."""
    hooked = {address + found.base for address, function in functions_by_rva(scan).items()
              if function["verdict"] == "hookable"}
    extra = collections.Counter(found.exclusion_reason(address) for address in
                                 hooked - {entry.address for entry in found.true_entries()})
    for why, count in extra.most_common():
        print(f"  extra: {count} hookable for hotfn, excluded here as '{why}'")
    return extra[entries.IN_FRAME]


def check(image, arguments):
    """True if the image passes."""
    found = entries.find(image)
    print_entry_counts(image, found)
    if arguments.entries:
        return True
    scan = json.loads(arguments.scan.read_text()) if arguments.scan else run_scan(arguments.hotfn,
                                                                                 image)
    share, wrong = print_outcomes(compare(found, scan), arguments.limit)
    in_frame = print_extra(found, scan)
    holds = share >= arguments.minimum and not wrong and not in_frame
    print(f"  {'holds' if holds else 'FAILS'}: {share:.3f} % hookable without int3 (minimum "
          f"{arguments.minimum} %), {wrong} wrong, {in_frame} hooks inside frames")
    return holds


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", type=pathlib.Path)
    parser.add_argument("--scan", type=pathlib.Path)
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--minimum", type=float, default=99.9, metavar="PERCENT")
    parser.add_argument("--limit", type=int, default=10, help="entries listed per outcome [10]")
    parser.add_argument("images", nargs="+")
    arguments = parser.parse_args()
    if not (arguments.hotfn or arguments.scan or arguments.entries):
        parser.error("one of --hotfn, --scan, --entries is needed")
    return arguments


def main():
    arguments = parse_arguments()
    missing = [image for image in arguments.images if not os.path.isfile(image)]
    for image in missing:
        print(f"coverage: {image}: no such file", file=sys.stderr)
    if missing:
        return 2
    verdicts = [check(image, arguments) for image in arguments.images]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
