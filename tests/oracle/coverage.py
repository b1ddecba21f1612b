#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Count the true function entries of images by binutils, and see what `hotfn scan` can hook.

    coverage.py --hotfn BUILD/tools/hotfn/hotfn IMAGE ...
    coverage.py --scan scan.json IMAGE           a hotfn.scan/1 made before
    coverage.py --entries IMAGE                  only count, list the entries with their evidence

An entry is an address that a symbol of type function or an FDE names, and that something calls,
takes the address of, or exports.  Left out, and printed: PLT, .init/.fini, start-up code, ifunc
resolvers, FDEs that begin inside a frame, and what is only jumped to or not named at all.
Status 1: less than --at-least percent hookable without int3, or an entry without a reason.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

import entries


def scan_of(hotfn, image):
    done = subprocess.run([hotfn, "scan", image, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"hotfn scan {image}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def judged_by_rva(scan):
    if scan.get("schema") != "hotfn.scan/1":
        raise RuntimeError(f"not a hotfn.scan/1 but {scan.get('schema')!r}")
    return {function["rva"]: function for function in scan["functions"]}


def outcome(function):
    """What hotfn says of one true entry, as a line of the table."""
    if function is None:
        return "MISSING: not listed"
    if function["verdict"] == "hookable":
        return f"hookable: {function['strategy']}"
    if function["verdict"] == "fragment":
        return "WRONG: called a fragment"
    return f"refused: {function['reason']}" if function["reason"] else "WRONG: refused, no reason"


def compare(found, scan):
    """outcome -> list of entries."""
    judged = judged_by_rva(scan)
    outcomes = collections.defaultdict(list)
    for entry in found.true_entries():
        outcomes[outcome(judged.get(entry.address - found.base))].append(entry)
    return outcomes


def print_denominator(image, found):
    print(f"\n{image}: {len(found.true_entries())} true entries")
    for evidence, count in found.evidence_counts().most_common():
        print(f"    {count:8}  {evidence}")
    print(f"  left out ({found.candidate_count()} candidates in all):")
    for why, count in found.left_out_counts().most_common():
        print(f"    {count:8}  {why}")


def print_outcomes(outcomes, limit):
    """The table; returns (share in percent, entries that hotfn got wrong)."""
    total = sum(map(len, outcomes.values()))
    good = sum(len(some) for text, some in outcomes.items()
               if text.startswith("hookable") and text != "hookable: int3")
    print("  hotfn says of the true entries:")
    for text, some in sorted(outcomes.items(), key=lambda item: -len(item[1])):
        print(f"    {len(some):8}  {100 * len(some) / total:7.3f} %  {text}")
    for text, some in outcomes.items():
        if not text.startswith("hookable") or text == "hookable: int3":
            for entry in some[:limit]:
                print(f"      {text}: 0x{entry.address:x} {entry.name} ({entry.evidence()})")
    wrong = sum(len(some) for text, some in outcomes.items()
                if text.startswith(("WRONG", "MISSING")))
    return 100 * good / total if total else 0, wrong


def print_beyond(found, scan):
    """What hotfn hooks that is no true entry here: harmless if only jumped to, bad in a frame."""
    hooked = {address + found.base for address, function in judged_by_rva(scan).items()
              if function["verdict"] == "hookable"}
    beyond = collections.Counter(found.why_left_out(address) for address in
                                 hooked - {entry.address for entry in found.true_entries()})
    for why, count in beyond.most_common():
        print(f"  beyond: {count} hookable for hotfn, left out here as '{why}'")
    return beyond[entries.IN_FRAME]


def check(image, arguments):
    """True if the image holds the bar."""
    found = entries.find(image)
    print_denominator(image, found)
    if arguments.entries:
        return True
    scan = json.loads(arguments.scan.read_text()) if arguments.scan else scan_of(arguments.hotfn,
                                                                                 image)
    share, wrong = print_outcomes(compare(found, scan), arguments.limit)
    in_frame = print_beyond(found, scan)
    holds = share >= arguments.at_least and not wrong and not in_frame
    print(f"  {'holds' if holds else 'FAILS'}: {share:.3f} % hookable without int3 (at least "
          f"{arguments.at_least} %), {wrong} wrong, {in_frame} hooks inside frames")
    return holds


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", type=pathlib.Path)
    parser.add_argument("--scan", type=pathlib.Path)
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--at-least", type=float, default=99.9, metavar="PERCENT")
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
