#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn src/api.list (lines: name since) into a linker version script or a Windows .def file.

Each `since` becomes a version node that inherits from the node before it, so that a program
records the oldest library version with which it can run.
"""
import argparse
import re
import sys


def read_api_list(path):
    """Return [(name, since)], in the order of the file; exit with file:line on a bad line."""
    entries = []
    seen = set()
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            text = line.split("#", 1)[0].strip()
            if not text:
                continue
            match = re.fullmatch(r"(hotfn_[a-z0-9_]+)\s+(\d+\.\d+)", text)
            if not match:
                sys.exit(f"{path}:{number}: expected 'hotfn_name X.Y', found '{text}'")
            if match[1] in seen:
                sys.exit(f"{path}:{number}: {match[1]} is listed twice")
            seen.add(match[1])
            entries.append((match[1], match[2]))
    return entries


def version_script(entries):
    by_version = {}
    for name, since in entries:
        by_version.setdefault(tuple(map(int, since.split("."))), []).append(name)
    if not by_version:
        return "HOTFN_0.1 {\n    local:\n        *;\n};\n"
    text, before = "", ""
    for version in sorted(by_version):
        node = "HOTFN_%d.%d" % version
        names = "".join(f"        {name};\n" for name in sorted(by_version[version]))
        local = "" if before else "    local:\n        *;\n"
        text += f"{node} {{\n    global:\n{names}{local}}}{before};\n"
        before = " " + node
    return text


def def_file(entries):
    names = "".join(f"    {name}\n" for name, _ in sorted(entries))
    return f"LIBRARY hotfn\nEXPORTS\n{names}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=["map", "def"], default="map")
    parser.add_argument("list")
    parser.add_argument("output")
    args = parser.parse_args()
    entries = read_api_list(args.list)
    text = version_script(entries) if args.format == "map" else def_file(entries)
    with open(args.output, "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    main()
