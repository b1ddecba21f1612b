#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare what hotfn reads from PE images with the output of llvm-readobj, objdump and nm.

pe_equal.py HOTFN [FILE...]: without FILE it checks images that it makes with clang, lld and mingw,
and the images in $HOTFN_SAMPLES/pdb if the variable is set.  It compares headers, sections, the id
of the PDB, exports, COFF symbols and .pdata, and prints how many functions have the same size in
.pdata and in their PDB.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pe_oracle as oracle

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("HOTFN_LIBRARY", str(
    pathlib.Path(os.environ.get("HOTFN_BUILD_ROOT", "build")) / "src/libhotfn.so"))
sys.path.insert(0, str(ROOT / "bindings/python"))
from hotfn import _structs as s  # noqa: E402
from hotfn._native import lib  # noqa: E402
import ctypes  # noqa: E402

MACHINES = {0x14c: 1, 0x8664: 2, 0xaa64: 4}
EXECUTE, WRITE, LOADED = 1, 2, 4
problems = []


def expect(path, what, found, expected):
    if found == expected:
        return
    if isinstance(found, (set, dict)):
        found, expected = ([x for x in a if x not in b][:5] for a, b in ((found, expected), (expected, found)))
    problems.append(f"{path}: {what}: hotfn {found}, oracle {expected}")


def run_json(hotfn, command, path, *words):
    done = subprocess.run([hotfn, command, "--json", *words, str(path)], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def check_headers(path, image):
    info, expected = s.ImageInfo(), oracle.headers(path)
    lib.hotfn_image_get_info(image, ctypes.byref(info))
    expect(path, "machine", info.machine, MACHINES[expected["Machine"]])
    expect(path, "image base", info.link_base, expected["ImageBase"])
    expect(path, "size", info.loaded_bytes, expected["SizeOfImage"])
    expect(path, "entry", info.entry_rva, expected["AddressOfEntryPoint"])
    pdb = oracle.pdb_id(path)
    if pdb:
        guid = bytes(info.id[:16])
        written = guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]
        expect(path, "GUID", guid if pdb[0] == guid else written, pdb[0])
        expect(path, "age", int.from_bytes(bytes(info.id[16:20]), "little"), pdb[1])
    elif expected["TimeDateStamp"]:
        expect(path, "id", (bytes(info.id[:4]), bytes(info.id[4:8])),
               (expected["TimeDateStamp"].to_bytes(4, "little"),
                expected["SizeOfImage"].to_bytes(4, "little")))
    return info.link_base


def check_sections(path, image):
    found = []
    for i in range(lib.hotfn_image_get_section_count(image)):
        section = s.Section()
        lib.hotfn_image_get_section(image, i, ctypes.byref(section))
        found.append((section.name.decode(), section.rva, section.byte_count, section.file_offset,
                     section.file_bytes, section.flags & (EXECUTE | WRITE)))
    expected = [(name, rva, size or raw, offset, raw,
               (EXECUTE if flags & 0x20000000 else 0) | (WRITE if flags & 0x80000000 else 0))
              for name, rva, size, offset, raw, flags in oracle.sections(path)]
    expect(path, "sections", found, expected)
    return [(rva, rva + size) for _, rva, size, _, _, flags in expected if flags & EXECUTE]


def check_exports(path, symbols):
    """Forwarders are not symbols: their RVAs lie in the export directory, not in code."""
    found = {(f["name"], f["rva"]) for f in symbols if f["exported"]}
    expected = {(name or f"#{ordinal}", rva) for ordinal, name, rva in oracle.exports(path)}
    headers = oracle.headers(path)
    low = headers["ExportTableRVA"]
    directory = range(low, low + headers["ExportTableSize"])
    expect(path, "exports", found, {(name, rva) for name, rva in expected if rva not in directory})
    return len(found)


def check_coff(path, symbols, base):
    """hotfn must find exactly the symbols that nm marks as code, apart from section names such as .text and the
    lists of constructors.  On x86 an underscore precedes the names of C."""
    nm = "x86_64-w64-mingw32-nm"
    if not shutil.which(nm) or not any(f["source"] == "symtab" for f in symbols):
        return 0
    found = {(f["rva"], f["name"]) for f in symbols if f["source"] == "symtab" and f["kind"] != "data" and not f["name"].endswith("TOR_LIST__")}
    is_x86 = "file format pei-i386" in oracle.output("objdump", "-f", path)
    expected = set()
    for line in oracle.output(nm, path).splitlines():
        match = re.match(r"(\w+) ([Tt]) (.+)", line)
        if match and not match[3].startswith(".") and not match[3].endswith("TOR_LIST__"):
            name = match[3][1:] if is_x86 and match[3].startswith("_") and len(match[3]) > 1 else match[3]
            expected.add((int(match[1], 16) - base, name))
    expect(path, "COFF symbols", found, expected)
    return len(found)


def check_pdata(path, functions, base):
    expected = {}
    for begin, end, parent, inside in oracle.unwinds(path, base):
        last = max(expected, default=None)
        if parent is not None and last == parent and expected[last][0] == begin:
            expected[last] = (end, expected[last][1])  # the rest of the function, not a fragment
        else:
            expected[begin] = (end, inside)
    found = {f["rva"]: (f["rva"] + f["size"], f["kind"] == "fragment") for f in functions
            if "fde" in f["flags"]}
    if any("frame" in name for name, *_ in oracle.sections(path)) and not expected:
        return 0  # .eh_frame
    expect(path, ".pdata", found, expected)
    return len(found)


def compare_sizes(hotfn, path, code):
    """Return the functions that both .pdata and the PDB list, and those whose sizes differ."""
    by_pdata = {f["rva"]: f["size"] for f in run_json(hotfn, "list", path, "--no-separate")["functions"]
             if "fde" in f["flags"] and f["kind"] != "fragment"}
    by_pdb = {}
    for symbol in run_json(hotfn, "symbols", path)["symbols"]:
        if symbol["source"] == "pdb" and symbol["kind"] == "function" and symbol["size"] and \
                any(low <= symbol["rva"] < high for low, high in code):
            by_pdb.setdefault(symbol["rva"], set()).add(symbol["size"])
    both = [rva for rva in by_pdata if rva in by_pdb]
    differing = [(hex(rva), by_pdata[rva], by_pdb[rva]) for rva in both if by_pdata[rva] not in by_pdb[rva]]
    return both, differing


def check_forwarders(hotfn, folder):
    first = oracle.make_forwarding(folder)
    third = first.with_name("third.dll")
    entry = next(rva for _, name, rva in oracle.exports(third) if name == "three")
    rows = {row["name"]: row for row in run_json(hotfn, "symbols", first)["forwards"]}
    found = {name: (row["to"], row.get("file"), row.get("rva")) for name, row in rows.items()}
    expect(first, "forwarders", found, {
        "one": ("SECOND.two", str(third.resolve()), entry), "lost": ("NOWHERE.f", None, None),
        "round": ("first.round", None, None), "gone": ("second.none", None, None)})
    with tempfile.TemporaryDirectory() as elsewhere:
        moved = pathlib.Path(elsewhere, "first.dll")
        shutil.copy(first, moved)
        rows = run_json(hotfn, "symbols", moved)["forwards"]
        expect(moved, "alone", [row for row in rows if "file" in row], [])
        rows = run_json(hotfn, "symbols", moved, "--symbol-dir", str(folder))["forwards"]
        expect(moved, "by --symbol-dir", [row["name"] for row in rows if "file" in row], ["one"])


def check(hotfn, path):
    image, err = ctypes.c_void_p(), s.Error()
    if lib.hotfn_image_open(ctypes.byref(image), os.fsencode(path), None, ctypes.byref(err)) != 0:
        problems.append(f"{path}: {err.text}")
        return
    base, code = check_headers(path, image), check_sections(path, image)
    symbols = run_json(hotfn, "symbols", path, "--no-separate", "--data")["symbols"]
    functions = run_json(hotfn, "list", path, "--no-separate")["functions"]
    counts = (check_exports(path, symbols), check_coff(path, symbols, base),
              check_pdata(path, functions, base))
    lib.hotfn_image_close(image)
    both, differing = compare_sizes(hotfn, path, code)
    share = f"{100 - 100 * len(differing) / len(both):.2f} % of {len(both)}" if both else "none"
    print(f"# {path.name}: {counts[0]} exports, {counts[1]} COFF symbols, {counts[2]} .pdata; "
          f"sizes by .pdata and PDB alike: {share}")
    for rva, found, expected in differing[:5]:
        print(f"#   {rva}: .pdata {found}, PDB {expected}")
    if both and len(differing) > len(both) // 20:
        problems.append(f"{path}: sizes by .pdata and PDB differ in {len(differing)} of {len(both)}")


def main():
    hotfn, given = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    missing = oracle.missing_tool()
    if missing:
        print(f"1..0 # SKIP {missing} is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for path in given or [*oracle.make_all(folder), *oracle.samples()]:
            check(hotfn, path)
        if not given:
            check_forwarders(hotfn, folder)
    for problem in problems:
        print("#", problem)
    if not oracle.samples():
        print("skipped: HOTFN_SAMPLES is not set: no real images")
    print(f"1..1\n{'not ' if problems else ''}ok 1 pe_equal")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
