#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sum the results of a run of scripts/test and print `N passed, N failed[, N skipped]` as the last line.

Before it print the last lines of output of each failed test, so that they are near the end of the log, and the
parts that a passed test skipped ("skipped ...", "# SKIP", unittest's "... skipped"), so that a part that is
skipped everywhere is noticed.

Input: a file of lines `step<TAB>exit status<TAB>log`.  The log is meson's testlog.json (a JSON
object per line), pytest's junit XML, or `-` for a step without tests; of a step with the
status `passed`, only the skipped parts in its log are printed.  A step that failed although
no test in its log did (a broken build, an interrupted run) counts as one failed test.
"""
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

OUTPUT_LINES, OUTPUT_CHARACTERS = 12, 2000
PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}


def meson_results(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            test = json.loads(line)
            outcome = test["result"]
            kind = ("passed" if outcome in PASSED else
                    "skipped" if outcome in SKIPPED else "failed")
            yield test["name"], kind, test.get("stdout", "") + test.get("stderr", "")


def pytest_results(path):
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag: child.text or "" for child in case}
        kind = ("failed" if kinds.keys() & {"failure", "error"} else
                "skipped" if "skipped" in kinds else "passed")
        yield f"{case.get('classname')}.{case.get('name')}", kind, "".join(kinds.values())


def step_results(name, status, log):
    """The tests of one step, as (name, kind, output)."""
    if status == "skipped":
        with open(log, encoding="utf-8") as names:
            return [(f"{name}: {test.strip()}", "skipped", "") for test in names]
    if status == "passed":
        with open(log, encoding="utf-8", errors="replace") as lines:
            return [(name, "step", "".join(line for line in lines if line.startswith("skipped ")))]
    status, results = int(status), []
    if log != "-" and os.path.exists(log):
        results = list(pytest_results(log) if log.endswith(".xml") else meson_results(log))
    # pytest exits with 5 if it finds no test.
    nothing_to_do = status == 5 and log.endswith(".xml") and not results
    if status != 0 and not nothing_to_do and all(kind != "failed" for _, kind, _ in results):
        results.append(("(the step itself)", "failed", ""))
    return [(f"{name}: {test}", kind, output) for test, kind, output in results]


def skipped_parts(output):
    return [line.strip() for line in output.splitlines()
            if line.startswith("skipped") or "# SKIP" in line or "... skipped" in line]


def failed_cases(lines):
    """Each `not ok` line with the lines below it, up to the next case, and the `#` lines directly above it."""
    remarks, inside = [], False
    for line in lines:
        if line.startswith("not ok"):
            yield from remarks
            inside = True
        elif line.startswith(("ok ", "skipped ")):
            inside = False
        remarks = [*remarks, line] if line.startswith("#") and not inside else []
        if inside:
            yield line


def last_output(output):
    """The output of the failed cases if the test reports cases, or else its last lines; indented, cut at the front."""
    lines = output.splitlines()
    lines = list(failed_cases(lines)) or lines[-OUTPUT_LINES:]
    return "".join(f"    {line}\n" for line in "\n".join(lines)[-OUTPUT_CHARACTERS:].splitlines())


def main():
    results = []
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            name, status, log = line.rstrip("\n").split("\t")
            results += step_results(name, status, log)
    by_kind = {kind: [(name, output) for name, k, output in results if k == kind]
               for kind in ("passed", "failed", "skipped", "step")}
    for name, _ in by_kind["skipped"]:
        print(f"skipped: {name}")
    for name, output in by_kind["passed"] + by_kind["step"]:
        for part in skipped_parts(output):
            print(f"passed, but skipped a part: {name}: {part}")
    for name, output in by_kind["failed"]:
        print(f"failed: {name}\n{last_output(output)}", end="")
    count = len(results) - len(by_kind["step"])
    ran = count - len(by_kind["skipped"])
    print(f"ran {ran} of {count} tests")
    skipped = f", {len(by_kind['skipped'])} skipped" if by_kind["skipped"] else ""
    print(f"{len(by_kind['passed'])} passed, {len(by_kind['failed'])} failed{skipped}")
    sys.exit(1 if by_kind["failed"] or not by_kind["passed"] else 0)


if __name__ == "__main__":
    main()
