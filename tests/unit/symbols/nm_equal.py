#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that `hotfn symbols` lists the same (rva, size, name) as nm, on programs of this system.

nm_equal.py HOTFN [FILE...]: compares each FILE's own tables and, if its build-id leads to a separate
debug file, the symbols of both together.  Files that are not installed are skipped; the test fails
if all are.  Symbols that hotfn drops by contract are dropped from nm's list too: data, absolute and
undefined symbols, addresses in no segment.  A default version ('f@@V') is not part of a name.
"""
import json
import os
import re
import subprocess
import sys

FILES = ["/bin/bash", "/usr/bin/git", "/usr/bin/cmake", "/usr/bin/node", "/usr/bin/python3",
         "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
         "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "/usr/bin/ld", "/usr/bin/redis-server"]


def output(*command):
    """The standard output of a command, C locale; '' if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape",
                          env=dict(os.environ, LC_ALL="C"))
    return done.stdout if done.returncode == 0 else ""


def segments(path):
    """[(start, end)] of the loaded segments."""
    found = re.findall(r"^  LOAD +0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x(\w+)",
                       output("readelf", "-lW", path), re.MULTILINE)
    return [(int(start, 16), int(start, 16) + int(size, 16)) for start, size in found]


def code_sections(path):
    return {match[1] for match in re.finditer(
        r"^ *\[ *\d+\] (\S+) .* +\w*AX\w* +\d+ +\d+ +\d+$", output("readelf", "-SW", path),
        re.MULTILINE)}


def nm_symbols(path, dynamic, loaded, code):
    """{(link address, size, name)} of the functions that nm lists."""
    found = set()
    for line in output("nm", "-f", "sysv", "--defined-only", *(["-D"] if dynamic else []),
                       path).splitlines():
        fields = [field.strip() for field in line.rsplit("|", 6)]
        if len(fields) != 7 or fields[0] == "Name" or not fields[0]:
            continue
        name, value, _, kind, size, _, section = fields
        # IFUNC is 'OS specific: 10' to nm.
        if kind not in ("FUNC", "NOTYPE", "<OS specific>: 10") or section == "*ABS*":
            continue
        if kind == "NOTYPE" and section not in code:
            continue
        address = int(value, 16)
        if any(start <= address < end for start, end in loaded):
            found.add((address, int(size or "0", 16),
                       re.sub(r"@@.*", "", name) if dynamic else name))
    return found


def hotfn_symbols(hotfn, path, *options):
    text = subprocess.run([hotfn, "symbols", "--json", *options, path], check=True,
                          stdout=subprocess.PIPE).stdout
    return {(s["rva"], s["size"], s["name"]) for s in json.loads(text)["symbols"]}


def debug_file(path):
    build_id = re.search(r"Build ID: (\w+)", output("readelf", "-n", path))
    found = build_id and f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug"
    return found if found and os.path.exists(found) else None


def plain(symbols):
    """Removes default versions, so that a symbol with and without one is counted once."""
    return {(rva, size, re.sub(r"@@.*", "", name)) for rva, size, name in symbols}


def compare(path, what, found, expected):
    extra, missing = sorted(found - expected), sorted(expected - found)
    print(f"{path} ({what}): {len(expected)} of nm, {len(missing)} missing, "
          f"{len(extra)} extra")
    for label, some in (("missing", missing), ("extra", extra)):
        for rva, size, name in some[:5]:
            print(f"  {label}: {rva:#x} {size} {name}")
    return not extra and not missing


def check(hotfn, path):
    loaded, code = segments(path), code_sections(path)
    base = min(start for start, _ in loaded) & ~0xfff
    debug = debug_file(path)
    good = True
    own = nm_symbols(path, True, loaded, code) | nm_symbols(path, False, loaded, code)
    shifted = {(address - base, size, name) for address, size, name in own}
    good &= compare(path, "its own tables", hotfn_symbols(hotfn, path, "--no-separate"), shifted)
    if debug and not nm_symbols(path, False, loaded, code):
        both = own | nm_symbols(debug, False, loaded, code)
        shifted = {(address - base, size, name) for address, size, name in both}
        good &= compare(path, "with its debug file", plain(hotfn_symbols(hotfn, path)),
                        plain(shifted))
    return good


def main():
    hotfn, files = sys.argv[1], [f for f in sys.argv[2:] or FILES if os.path.exists(f)]
    results = [check(hotfn, path) for path in files]
    print(f"{sum(results)} of {len(results)} files equal")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
