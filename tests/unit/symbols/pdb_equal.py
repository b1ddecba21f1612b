#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that `hotfn symbols` lists the same (RVA, size, name) of a PDB as llvm-pdbutil and breakpad.

pdb_equal.py HOTFN [FILE...]: PDBs made here for x64, x86 and ARM64 with blocks of all sizes, and
those of $HOTFN_SAMPLES where it is set.  Every difference is printed.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import pdb_oracle as oracle

# Files that must be refused, and a part of the message.
NOT_PDBS = {"dr_dwarf64.pdb": "has only types", "rz_fuzzed.pdb": "offset 52: the block map"}


def read_symbols(hotfn, pdb, *options):
    return json.loads(oracle.output(hotfn, "symbols", "--json", *options, pdb))["symbols"]


def check_refused(hotfn, pdb, why):
    done = subprocess.run([hotfn, "symbols", str(pdb)], capture_output=True, text=True)
    if done.returncode == 1 and why in done.stderr and not done.stdout:
        return []
    return [f"not refused with '{why}': status {done.returncode}, {done.stderr.strip()}"]


def compare(found, wanted):
    """The differences, a line each; llvm-pdbutil has no names for trampolines."""
    wrong = []
    trampolines = {rva: sizes for (rva, name), sizes in wanted.items() if name is None}
    wanted = {key: sizes for key, sizes in wanted.items() if key[1] is not None}
    for symbol in found:
        rva, size, name = symbol["rva"], symbol["size"], symbol["name"]
        if name.startswith("@ILT+") and symbol["kind"] == "thunk":
            sizes = trampolines.pop(rva, None)
        else:
            sizes = wanted.pop((rva, name), None)
        if sizes is None:
            wrong.append(f"hotfn only: {rva:#x} {size} {name}")
        elif size not in (sizes - {0} or {0}):
            wrong.append(f"size of {name} at {rva:#x}: hotfn {size}, llvm-pdbutil {sorted(sizes)}")
    wrong += [f"llvm-pdbutil only: {rva:#x} {sorted(sizes)} {name}"
              for (rva, name), sizes in [*wanted.items()]]
    return wrong + [f"llvm-pdbutil only: trampoline {rva:#x}" for rva in trampolines]


def check_functions(found_all, found_functions):
    """Without --data the list must be the same except for variables."""
    kinds = [symbol for symbol in found_all if symbol["kind"] != "data"]
    return [] if found_functions == kinds else ["the functions differ with and without --data"]


def check_breakpad(found, sym):
    """Compare each FUNC by address, size and name.  A PUBLIC is compared by address only, because
    breakpad removes the @bytes of 32-bit names."""
    functions, publics = oracle.breakpad(sym)
    sized = {}
    for symbol in found:
        sized.setdefault((symbol["rva"], symbol["size"]), []).append(symbol["name"])
    addresses = {s["rva"] for s in found}
    wrong = [f"breakpad only: {rva:#x} {size} {name}" for rva, size, name in sorted(functions)
             if (rva, size) not in sized]
    wrong += [f"breakpad calls {rva:#x} {name}, hotfn {sized[rva, size]}"
              for rva, size, name in sorted(functions)
              if (rva, size) in sized and not any(same_name(name, our) for our in sized[rva, size])]
    return wrong + [f"breakpad only: public {rva:#x} {name}" for rva, name in sorted(publics)
                    if rva not in addresses]


def same_name(theirs, name):
    """True for the same name as in breakpad, which undecorates the public name, and in CodeView,
    which has the name in the source."""
    def bare(text):
        text = re.sub(r"^@(.*)@\d+$", r"\1", text)  # fastcall
        return re.sub(r"^(public: |private: |protected: |static |virtual |_+)+", "",
                      oracle.plain(text)).lstrip("_")
    return bare(theirs) == bare(name) or bare(theirs).endswith(bare(name))


def check(hotfn, pdb, folder):
    if pdb.name in NOT_PDBS:
        wrong = check_refused(hotfn, pdb, NOT_PDBS[pdb.name])
        print(f"{pdb.name}: refused")
        return wrong
    found, wanted = read_symbols(hotfn, pdb, "--data"), oracle.expected(pdb, folder)
    wrong = compare(found, wanted) + check_functions(found, read_symbols(hotfn, pdb))
    compared = f"{len(found)} symbols"
    sym = pdb.with_suffix(".sym")
    if sym.exists():
        wrong += check_breakpad(found, sym)
        compared += f", {len(oracle.breakpad(sym)[0])} of breakpad's"
    if len(found) < 5 or not any(symbol["size"] for symbol in found):
        wrong.append(f"only {len(found)} symbols, or none with a size: nothing was compared")
    print(f"{pdb.name}: {compared}, {len(wrong)} differences")
    return wrong


def check_far(hotfn, pdb):
    """A copy of the file with its streams beyond 4 GiB must have the same symbols."""
    far = oracle.move_far(pdb, 5 << 30)
    same = read_symbols(hotfn, far, "--data") == read_symbols(hotfn, pdb, "--data")
    print(f"{far.name}: {far.stat().st_size / 2**30:.1f} GiB, {'the same' if same else 'DIFFERENT'}")
    far.unlink()
    return [] if same else ["beyond 4 GiB the symbols differ"]


def main():
    hotfn, names = sys.argv[1], sys.argv[2:]
    missing = oracle.missing_tool()
    if missing:
        print(f"skipped: {missing} is not installed")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        made = [oracle.make_lld(folder, cpu, page) for cpu in oracle.TARGETS for page in (4096, 8192, 16384, 32768)]
        made += [oracle.make_mingw(folder, triple) for triple in ("x86_64", "i686")]
        files = [pathlib.Path(name) for name in names] or [pdb for pdb in made if pdb]
        for pdb in files + ([] if names else oracle.samples()):
            wrong = check(hotfn, pdb, folder)
            failed += bool(wrong)
            for line in wrong:
                print(f"  {line}")
        failed += 0 if names else bool(check_far(hotfn, made[0]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
