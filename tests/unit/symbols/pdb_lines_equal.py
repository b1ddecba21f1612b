#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that hotfn_symbols_find_line finds each line of a PDB that llvm-pdbutil and breakpad list.

pdb_lines_equal.py [FILE...]: PDBs made here, and those of $HOTFN_SAMPLES where it is set; through the
Python bindings' declarations, at each address where a line begins.
"""
import bisect
import ctypes
import os
import pathlib
import re
import sys
import tempfile

import pdb_oracle as oracle

os.environ.setdefault("HOTFN_LIBRARY", str(
    pathlib.Path(os.environ.get("HOTFN_BUILD_ROOT", "build")) / "src/libhotfn.so"))
sys.path.insert(0, str(oracle.ROOT / "bindings/python"))
from hotfn import _structs as s  # noqa: E402
from hotfn._native import lib  # noqa: E402

FILE = re.compile(r"^(\S.*) \((?:MD5|SHA-1|SHA-256|no checksum|None)[^()]*\)$")
CONTRIBUTION = re.compile(r"^  (\w{4}):(\w{8})-(\w{8}), line/addr entries = (\d+)")
ENTRY = re.compile(r"(\d+|NSI|ASI) ([0-9A-F]{8})(?: [!?])?(?=\s|$)")


def lines_of(pdb, folder):
    """{RVA: {(file, line)}} where llvm-pdbutil says that a line begins.

    Omitted: lines of a table inside of which another one begins before them (MSVC's assembler for
    ARM64 places all its functions at the first): which of them is right the PDB does not say.
    """
    headers, omap = oracle.sections(pdb), oracle.omap_from_source(pdb, folder)
    found, file, table, begins, tables = [], None, None, set(), {}
    for text in oracle.output("llvm-pdbutil", "dump", "-l", pdb).splitlines():
        match = CONTRIBUTION.match(text)
        if match:
            table = (int(match[1], 16), int(match[2], 16))
            begins.add(table)
        elif FILE.match(text):
            file = FILE.match(text)[1]
        elif text.startswith(" ") and table and table[0] <= len(headers):
            found += [(table, int(address, 16), file, line) for line, address in ENTRY.findall(text)]
        elif text.startswith("Mod "):
            table = None
    begins = sorted(begins)
    for table, address, file, line in found:
        if begins[bisect.bisect_right(begins, (table[0], address)) - 1] == table:
            for rva, _ in oracle.pieces(omap, headers[table[0] - 1][0] + address, 0):
                tables.setdefault(rva, set()).add((file, line))
    return tables


def lines_of_breakpad(sym):
    """The same of breakpad's line records."""
    files, found = {}, {}
    for text in sym.read_text(encoding="latin-1").splitlines():
        match = re.match(r"FILE (\d+) (.*)", text)
        if match:
            files[match[1]] = match[2]
        match = re.match(r"([0-9a-f]+) [0-9a-f]+ (\d+) (\d+)$", text)
        if match:
            found.setdefault(int(match[1], 16), set()).add((files[match[3]], match[2]))
    return found


def ask(symbols, rva):
    """(file, line), or None."""
    line = s.SourceLine()
    line.size = ctypes.sizeof(line)
    if lib.hotfn_symbols_find_line(symbols, rva, ctypes.byref(line)) != 0:
        return None
    if not line.rva <= rva < line.rva + max(line.byte_count, 1):
        return ("not around its address", line.rva)
    return (line.file.decode("utf-8", "surrogateescape"), str(line.line))


def compare(symbols, wanted, same):
    return [f"{rva:#x}: hotfn {ask(symbols, rva)}, expected {sorted(lines)}"
            for rva, lines in sorted(wanted.items())
            if all(line.isdigit() for _, line in lines)
            and not any(same(ask(symbols, rva), line) for line in lines)]


def check(pdb, folder):
    symbols = ctypes.c_void_p()
    error = s.Error()
    if lib.hotfn_symbols_load_pdb(ctypes.byref(symbols), str(pdb).encode(), None, None, None,
                                  ctypes.byref(error)) != 0:
        return [] if pdb.name in ("dr_dwarf64.pdb", "rz_fuzzed.pdb") else ["cannot be loaded"]
    wanted = lines_of(pdb, folder)
    wrong = compare(symbols, wanted, lambda found, expected: found == expected)
    sym = pdb.with_suffix(".sym")
    note = ""
    if sym.exists():
        breakpads = lines_of_breakpad(sym)
        note = f", {len(breakpads)} of breakpad's"
        wrong += compare(symbols, breakpads,
                         lambda found, expected: found and (found[0].lower(), found[1])
                         == (expected[0].lower(), expected[1]))
    if len(wanted) < 10:
        wrong.append("llvm-pdbutil lists too few lines: nothing was compared")
    lib.hotfn_symbols_destroy(symbols)
    print(f"{pdb.name}: {len(wanted)} addresses{note}, {len(wrong)} differences")
    return wrong


def main():
    missing = oracle.missing_tool()
    if missing:
        print(f"skipped: {missing} is not installed")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        made = [oracle.make_lld(folder, cpu, page) for cpu, page in
                [("x64", 4096), ("x86", 8192), ("arm64", 16384)]]
        for pdb in [pathlib.Path(name) for name in sys.argv[1:]] or made + oracle.samples():
            wrong = check(pdb, folder)
            failed += bool(wrong)
            for line in wrong:
                print(f"  {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
