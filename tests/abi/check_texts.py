#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what every file must have and must not have.

Each source file has one SPDX line, near its top.  No file names a path of the machine it was
written on, and every web address leads to a host of hosts.list: a private mirror's or a package
registry's address is found because it is not there.  language.py adds the rules of plain English.
"""
import os
import re

import language
import tree

SPDX = "SPDX-License-Identifier: "
CODE = {".c", ".h", ".S", ".cc", ".cpp", ".py", ".sh", ".list", ".build"}
# Data and texts that others wrote or that programs made.
FOREIGN = re.compile(r"fuzz/corpus/|.*/upstream/|subprojects/.*/")
HOST = re.compile(r"\b(?:https?|ftp|git|ssh)://(?:[^/\s@\"'<>]*@)?([A-Za-z0-9.-]+)")
# Not in the middle of a longer path, nor after a variable.
BEGIN = r"(?<![\w./$}~-])"
HOME = re.compile(BEGIN + r"/(?:(?:home|Users)/(?!(?:user|me|you|\.\.\.)\b)[a-z]\w*|root)/")
# A checkout directly below one of these is not specific to a machine.
COMMON = {"/", "/app", "/build", "/builds", "/home", "/mnt", "/opt", "/root", "/src", "/srv", "/tmp",
          "/usr", "/usr/src", "/var"}


def is_code(path, text):
    return path.suffix in CODE or path.name == "meson_options.txt" or text.startswith("#!")


def spdx_problem(path, text):
    count = text.count(SPDX + "MIT")
    if count != 1:
        return f"{path}: {count} lines '{SPDX}MIT', one wanted"
    if not any(SPDX in line for line in text.splitlines()[:5]):
        return f"{path}: the SPDX line is not among the first five"
    return None


def machine_paths():
    """Paths that only this machine knows: where the sources and the build are."""
    places = {str(tree.ROOT), os.environ.get("HOTFN_BUILD_ROOT", "")} - COMMON - {""}
    patterns = [re.compile(BEGIN + re.escape(place) + r"(?![\w-])") for place in sorted(places)]
    if str(tree.ROOT.parent) not in COMMON:
        patterns.append(re.compile(BEGIN + re.escape(str(tree.ROOT.parent)) + "/"))
    return patterns


def known_hosts():
    lines = (tree.ROOT / "tests/abi/hosts.list").read_text().splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def host_is_known(host, known):
    parts = host.lower().rstrip(".").split(".")
    return any(".".join(parts[i:]) in known for i in range(len(parts)))


def place_problems(path, text, patterns, known):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in patterns:
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: a path of one machine: {found[0]}"
        for host in HOST.findall(line):
            if not host_is_known(host, known):
                yield f"{path}:{number}: host {host} is not in tests/abi/hosts.list"


def main():
    problems, checked = [], 0
    patterns, known, own = [HOME, *machine_paths()], known_hosts(), []
    for path in tree.files():
        text = tree.text_of(path)
        if text is None or FOREIGN.match(str(path)):
            continue
        checked += 1
        if is_code(path, text):
            problem = spdx_problem(path, text)
            problems += [problem] if problem else []
        problems += place_problems(path, text, patterns, known)
        own.append((path, text))
    problems += language.problems(own)
    tree.finish(problems, f"texts of {checked} files")


if __name__ == "__main__":
    main()
