#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what docs/pipeline.md states about docs/examples/game.c: pipeline_test.py GAME."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HOTFN = os.environ["HOTFN"]


def hotfn(*words, cwd):
    done = subprocess.run([HOTFN, *words], cwd=cwd, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"hotfn {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done


def expect(condition, claim, seen):
    if not condition:
        sys.exit(f"failed: {claim}\n{seen}")


def main():
    game = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        bare = subprocess.run([game], capture_output=True, text=True, check=True).stdout
        run = hotfn("run", "--", game, cwd=folder)
        expect(run.stdout == bare, "the program's output is unchanged", run.stdout)
        expect("functions hooked" in run.stderr and "record hotfn.hfr" in run.stderr,
               "hotfn prints a summary on stderr", run.stderr)
        expect(pathlib.Path(folder, "hotfn.hfr").is_file(), "the record exists", folder)
        report = json.loads(hotfn("report", "--json", "-n", "0", "hotfn.hfr", cwd=folder).stdout)
    functions = {function["name"]: function for function in report["functions"]}
    calls = {name: function["calls"] for name, function in functions.items()}
    expect((calls["next_random"], calls["fill"], calls["main"]) == (100_000, 5, 1),
           "100,000 names in 5 rounds", calls)
    expect(calls["compare"] > 1_000_000 and max(calls, key=lambda n: calls[n] or 0) == "compare",
           "compare is the hottest, although only qsort calls it", calls)
    expect(functions["compare"]["strategy"] == "jump", "compare is hooked by a jump", functions["compare"])
    expect(functions["_start"]["reason"] == "glue" and calls["_start"] is None,
           "_start is refused, and its calls are null", functions["_start"])
    print("docs/pipeline.md is correct")


if __name__ == "__main__":
    main()
