#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check `hotfn list` against readelf's reading of .eh_frame, on programs of this system.

readelf_equal.py HOTFN [FILE...]: each FDE of a file must be a function or lie inside the function of a
symbol; each function with the flag "fde" must begin where an FDE does; and a function must be a
fragment exactly if its first row in readelf's table has another CFA than rsp+8, or a saved register.
"""
import json
import os
import re
import subprocess
import sys

FILES = ["/bin/bash", "/usr/bin/git", "/usr/bin/cmake", "/usr/bin/node", "/usr/bin/redis-server",
         "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
         "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"]
ENTRY = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE) ?(?:cie=([0-9a-f]+) pc="
                   r"([0-9a-f]+)\.\.([0-9a-f]+)|\"([^\"]*)\")")


def lines(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace", env=dict(os.environ, LC_ALL="C")) as process:
        yield from process.stdout


def base(path):
    starts = [int(line.split()[2], 16) for line in lines("readelf", "-lW", path)
              if line.startswith("  LOAD")]
    return min(starts) & ~0xfff


def is_inside(columns, row):
    """True if a row proves a frame; a row has the columns LOC, CFA and one rule a register."""
    rules = dict(zip(columns[1:], row[1:]))
    saved = [name for name, rule in rules.items()
             if name not in ("CFA", "ra") and (rule.startswith("c") or rule == "exp")]
    return rules["CFA"] != "rsp+8" or bool(saved)


def frames(path):
    """{start: (end, starts inside a frame)}; None for signal frames, which prove nothing.

    readelf shows the row of a CIE after its own instructions, and no row for an FDE without instructions.
    """
    found, signal_cies, of_cie, columns, cie, fde = {}, set(), {}, [], None, None
    for line in lines("readelf", "--debug-dump=frames-interp", "-W", path):
        entry = ENTRY.match(line)
        if entry and entry[1] == "CIE":
            cie, fde, columns = line.split()[0], None, []
            if "S" in (entry[5] or ""):
                signal_cies.add(cie)
        elif entry:
            cie, fde, columns = None, int(entry[3], 16), []
            if int(entry[4], 16) > fde and fde not in found:
                known = None if entry[2] in signal_cies else of_cie.get(entry[2], False)
                found[fde] = (int(entry[4], 16), known)
            else:
                fde = None
        elif line.lstrip().startswith("LOC"):
            columns = line.split()
        elif columns and re.match(r"[0-9a-f]{8,16} ", line):
            row, inside = line.split(), is_inside(columns, line.split())
            if cie is not None:
                of_cie[cie] = inside
            elif fde is not None and int(row[0], 16) == fde and found[fde][1] is not None:
                found[fde] = (found[fde][0], inside)
            cie, fde = None, None
    return found


def share_alike(hotfn, path, fdes):
    """The share of functions whose symbol and FDE have the same size, as a text."""
    text = subprocess.run([hotfn, "symbols", "--json", "--no-separate", path], check=True,
                          stdout=subprocess.PIPE).stdout
    sizes = {}
    for symbol in json.loads(text)["symbols"]:
        if symbol["kind"] == "function" and symbol["size"] and symbol["rva"] in fdes:
            sizes.setdefault(symbol["rva"], set()).add(symbol["size"])
    alike = sum(fdes[rva] in known for rva, known in sizes.items())
    return f"{100 * alike / len(sizes):.2f} % of {len(sizes)}" if sizes else "none"


def check(hotfn, path):
    low = base(path)
    text = subprocess.run([hotfn, "list", "--json", "--no-separate", path], check=True,
                          stdout=subprocess.PIPE).stdout
    functions = json.loads(text)["functions"]
    fdes = {start - low: value for start, value in frames(path).items()}
    at = {f["rva"]: f for f in functions}
    symbols = sorted((f["rva"], f["rva"] + f["size"]) for f in functions if "symbol" in f["flags"])
    bytes_of_symbols = set()
    problems = [f"{f['rva']:#x} has no FDE according to readelf" for f in functions
                if "fde" in f["flags"] and f["rva"] not in fdes
                and not ("signal-frame" in f["flags"] and f["rva"] - 1 in fdes)]
    for start, (_, inside) in fdes.items():
        f = at.get(start)
        if f is None:
            bytes_of_symbols.add(start)
        elif inside is not None and f["kind"] in ("plain", "fragment") and \
                (f["kind"] == "fragment") != inside:
            problems.append(f"{start:#x} {f['name']}: {f['kind']}, but readelf has inside={inside}")
    problems += [f"{start:#x}: hotfn has no function there" for start in bytes_of_symbols
                 if not any(first <= start < last for first, last in symbols)
                 and "signal-frame" not in at.get(start + 1, {"flags": []})["flags"]]
    print(f"{path}: {len(fdes)} FDEs, {sum(1 for _, i in fdes.values() if i)} inside frames, "
          f"{len(bytes_of_symbols)} parts of symbols, {len(problems)} problems; sizes by FDE and symbol alike: "
          + share_alike(hotfn, path, {start: end - low - start for start, (end, _) in fdes.items()}))
    for problem in problems[:10]:
        print(" ", problem)
    return bool(fdes) and not problems


def main():
    hotfn, files = sys.argv[1], [f for f in sys.argv[2:] or FILES if os.path.exists(f)]
    results = [check(hotfn, path) for path in files]
    print(f"{sum(results)} of {len(results)} files equal")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
