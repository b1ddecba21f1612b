# SPDX-License-Identifier: MIT
"""Runs a check of hotfn's results for each file: those given after the program, or the usual ones that exist."""
import os
import subprocess
import sys


def run(usual, check):
    """check(program, path) -> (summary; [problems, a row each]; whether enough was compared)"""
    program, files = sys.argv[1], sys.argv[2:] or usual
    print(f"1..{len(files)}")
    failed = 0
    for number, path in enumerate(files, 1):
        if not os.path.exists(path):
            print(f"ok {number} {path} # SKIP not installed")
            continue
        try:
            seen, wrong, enough = check(program, path)
        except FileNotFoundError as tool:
            print(f"ok {number} {path} # SKIP no {tool.filename} on this system")
            continue
        except subprocess.CalledProcessError as problem:
            seen, wrong, enough = "nothing", [(problem, problem.stderr)], False
        for row in wrong[:20]:
            print("#", *row)
        bad = bool(wrong) or not enough
        failed += bad
        print(f"{'not ' if bad else ''}ok {number} {path}: {seen}", flush=True)
    return 1 if failed else 0
