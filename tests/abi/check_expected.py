#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/expected.md: each "yes" and "partly" names a test that exists, is run by its file, and whose file is run by a
meson.build or a script; a "no" names what to use in its place.  The tests of docs/design/collector-proof.md, too."""
import re

import tree

PAGE = "docs/expected.md"
PROOF = "docs/design/collector-proof.md"  # each row names tests
TEST = re.compile(r"`([\w/.]+)::(\w+)`")
FOLDERS = ("tests", "bindings/python/tests")
MIN_ROWS = 30


def read_rows(text):
    """[(line number, cells)] of the table, without its head and without the headings of its groups."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[2] and cells[2] not in ("---", "hotfn"):
            rows.append((number, cells))
    return rows


def is_run(path, name, text):
    """Whether the file defines the test and runs it: pytest runs test_*; other files must name it a second time, or
    run every function whose parameter is `case`."""
    if path.startswith("bindings/"):
        return name.startswith("test_") and re.search(rf"^def {name}\(", text, re.MULTILINE)
    if "globals().values()" in text and re.search(rf"^def {name}\(case", text, re.MULTILINE):
        return True
    definition = rf"^static void {name}\(void\)" if path.endswith(".c") else rf"^def {name}\("
    return re.search(definition, text, re.MULTILINE) and len(re.findall(rf"\b{name}\b", text)) > 1


def is_run_by_a_build(path):
    """Whether the meson.build of the folder, or of one above it, or a script names the file."""
    if path.startswith("bindings/"):
        return True                          # pytest finds it
    stem = path.rsplit("/", 1)[1].rsplit(".", 1)[0]
    names = re.compile(rf"\b({stem}|{re.sub('_test$', '', stem)})\b")
    folder = (tree.ROOT / path).parent
    while folder != tree.ROOT:
        build = folder / "meson.build"
        if build.exists() and names.search(build.read_text(encoding="utf-8")):
            return True
        folder = folder.parent
    return any(re.search(rf"\b{stem}\b", tree.text_of(name) or "")
               for name in tree.files() if str(name).startswith("scripts/"))


def check_test(file, name):
    """A problem, or None."""
    path = next((f"{folder}/{file}" for folder in FOLDERS if (tree.ROOT / folder / file).is_file()), None)
    if path is None:
        return f"no file {file} in {' or '.join(FOLDERS)}"
    if not is_run(path, name, tree.text_of(path)):
        return f"{path} has no test {name} that it runs"
    return None if is_run_by_a_build(path) else f"no meson.build and no script runs {path}"


def check_row(cells):
    """The problems of a row."""
    expectation, _, answer, proof = cells
    tests = TEST.findall(proof)
    if answer.split(":")[0] in ("yes", "partly"):
        found = [check_test(file, name) for file, name in tests] or [f"'{expectation}' names no test"]
        return [problem for problem in found if problem]
    if answer != "no":
        return [f"the answer '{answer}' is neither yes, partly nor no"]
    return [f"'{expectation}' is no, but names a test"] if tests else [] if proof else [
        f"'{expectation}' does not name what to use"]


def main():
    rows = read_rows(tree.text_of(PAGE))
    problems = [f"{PAGE}:{number}: {problem}" for number, cells in rows for problem in check_row(cells)]
    for line in tree.text_of(PROOF).splitlines():
        if line.startswith("| ") and "---" not in line and line != "| promise | test |":
            found = [check_test(file, name) for file, name in TEST.findall(line)] or [f"no test in '{line[:60]}'"]
            problems += [f"{PROOF}: {problem}" for problem in found if problem]
    if len(rows) < MIN_ROWS:
        problems.append(f"{PAGE}: only {len(rows)} rows were read, the table has at least {MIN_ROWS}")
    for wrong in (["x", "", "yes", ""], ["x", "", "yes", "`programs/attach_test.py::not_a_test`"],
                  ["x", "", "yes", "`programs/none.py::end`"], ["x", "", "perhaps", "y"], ["x", "", "no", ""]):
        if not check_row(wrong):             # the check itself works
            problems.append(f"{PAGE}: the check accepts {wrong}")
    tree.finish(problems, f"{len(rows)} expectations")


main()
