#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check licence lines, paths, web addresses and the language of all files.

Each source file has one SPDX line, near its top.  No file contains a path of the machine on which it
was written, and every web address has a host of hosts.list, so that addresses of private mirrors and
package registries are found.  language.py has the rules of plain English.
"""
import os
import re

import language
import tree

SPDX = "SPDX-License-Identifier: "
CODE = {".c", ".h", ".S", ".cc", ".cpp", ".py", ".sh", ".list", ".build"}
# Files of other projects, and generated files.
FOREIGN = re.compile(r"fuzz/corpus/|.*/upstream/|subprojects/.*/")
HOST = re.compile(r"\b(?:https?|ftp|git|ssh)://(?:[^/\s@\"'<>]*@)?([A-Za-z0-9.-]+)")
# Not in the middle of a longer path and not after a variable.
PATH_START = r"(?<![\w./$}~-])"
HOME = re.compile(PATH_START + r"/(?:(?:home|Users)/(?!(?:user|me|you|\.\.\.)\b)[a-z]\w*|root)/")
# Folders that exist on many machines: the path of a checkout directly below one of them is not private.
COMMON = {"/", "/app", "/build", "/builds", "/home", "/mnt", "/opt", "/root", "/src", "/srv", "/tmp",
          "/usr", "/usr/src", "/var"}


def is_code(path, text):
    return path.suffix in CODE or path.name == "meson_options.txt" or text.startswith("#!")


def spdx_problem(path, text):
    count = text.count(SPDX + "MIT")
    if count != 1:
        return f"{path}: {count} lines '{SPDX}MIT', exactly one is required"
    if not any(SPDX in line for line in text.splitlines()[:5]):
        return f"{path}: the SPDX line is not among the first five"
    return None


def machine_paths():
    """Expressions for the paths of the sources and the build on this machine."""
    places = {str(tree.ROOT), os.environ.get("HOTFN_BUILD_ROOT", "")} - COMMON - {""}
    patterns = [re.compile(PATH_START + re.escape(place) + r"(?![\w-])") for place in sorted(places)]
    if str(tree.ROOT.parent) not in COMMON:
        patterns.append(re.compile(PATH_START + re.escape(str(tree.ROOT.parent)) + "/"))
    return patterns


def known_hosts():
    lines = (tree.ROOT / "tests/abi/hosts.list").read_text().splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def host_is_known(host, known):
    parts = host.lower().rstrip(".").split(".")
    return any(".".join(parts[i:]) in known for i in range(len(parts)))


def path_and_host_problems(path, text, patterns, known):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in patterns:
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: private path {found[0]}"
        for host in HOST.findall(line):
            if not host_is_known(host, known):
                yield f"{path}:{number}: host {host} is not in tests/abi/hosts.list"


def main():
    problems, checked = [], 0
    patterns, known, checked_texts = [HOME, *machine_paths()], known_hosts(), []
    for path in tree.files():
        text = tree.text_of(path)
        if text is None or FOREIGN.match(str(path)):
            continue
        checked += 1
        if is_code(path, text):
            problem = spdx_problem(path, text)
            problems += [problem] if problem else []
        problems += path_and_host_problems(path, text, patterns, known)
        checked_texts.append((path, text))
    problems += language.problems(checked_texts)
    tree.finish(problems, f"texts of {checked} files")


if __name__ == "__main__":
    main()
