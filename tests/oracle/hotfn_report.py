# SPDX-License-Identifier: MIT
"""Runs a command under `hotfn run` and loads its report (hotfn.report/1)."""
import json
import os
import subprocess


def load(text):
    report = json.loads(text)
    if report.get("schema") != "hotfn.report/1":
        raise ValueError(f"not a hotfn.report/1 but {report.get('schema')!r}")
    return report


def run(hotfn, command, folder, environment, options=(), stdin=None, cwd=None,
        ask=(), before=()):
    """(exit status, report) of one counted run.  `before` precedes hotfn on the command line, `ask` are options of
    `hotfn report`.  Forked children are excluded, as in callgrind's counts and in the programs' totals.  stdout and
    stderr go to files in folder.  Scans are not cached: a warning about the cache on stderr would change how CPython
    behaves, because it queries the position in that file."""
    record = folder / "run.hfr"
    with open(stdin or os.devnull, "rb") as source, open(folder / "stdout", "wb") as output, \
            open(folder / "stderr", "wb") as problems:
        status = subprocess.run([*before, hotfn, "run", "-q", "--no-cache", "-o", record, *options, "--",
                                 *command],
                                env=environment, stdin=source, stdout=output, stderr=problems,
                                cwd=cwd).returncode
    text = subprocess.run([hotfn, "report", record, "-n", "0", "--json", "--no-lines", "--process", "main", *ask],
                          capture_output=True, text=True, check=True).stdout
    return status, load(text)


def functions_of(report, path):
    """{rva: function} of the module whose file is `path`."""
    name = os.path.basename(path)
    return {function["rva"]: function for function in report["functions"]
            if function["module"] == name}
