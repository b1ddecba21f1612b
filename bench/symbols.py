# SPDX-License-Identifier: MIT
"""The cost of reading names: PDBs compared with llvm-pdbutil, a large library with nm, maps with wc."""
import glob
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import figures
import maps
import tools

FUNCTIONS = 50_000
CURVE = (10_000, 50_000, 200_000, 1_000_000)
MODULE_FUNCTIONS = 2500
BODY = """int function_0000_{0:05}(int a, int b) {{
  int x = a * {0};
  x += table[b & 15];
  if (x > {0}) x -= b;
  return x;
}}
"""


def run_checked(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise tools.failure(command, done)


def measured(*command):
    """(wall seconds, peak MiB) of one run whose output is discarded."""
    peak = tools.compile_c(tools.WORK / "peak", [tools.HERE / "peak.c"])
    wall_ns, peak_bytes = map(int, tools.output_of([peak, *command]).split())
    return wall_ns / 1e9, peak_bytes / 2**20


def make_module(folder):
    """An object file by clang-cl; the modules are copies of it with other names of the same length."""
    source = folder / "module.c"
    source.write_text("extern int table[16];\n" + "".join(
        BODY.format(i) for i in range(MODULE_FUNCTIONS)), encoding="utf-8")
    run_checked(tools.need("clang"), "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "/O1", "/Z7",
        "/GS-", "/c", source, f"/Fo{folder / 'module.obj'}")
    first = folder / "first.c"
    first.write_text("int table[16]; int entry(void) { return table[0]; }\n", encoding="utf-8")
    run_checked("clang", "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "/O1", "/Z7", "/GS-", "/c",
        first, f"/Fo{folder / 'first.obj'}")
    return (folder / "module.obj").read_bytes()


def make_pdb(count):
    """A PDB with `count` functions and its .exe in the same folder, built with clang and lld, cached."""
    folder = tools.WORK / f"pdb-{count}"
    pdb = folder / "bench.pdb"
    if pdb.exists() and pdb.with_suffix(".exe").exists():
        return pdb
    tools.need("lld-link")
    folder.mkdir(parents=True, exist_ok=True)
    module = make_module(folder)
    objects = [folder / "first.obj"]
    for i in range(count // MODULE_FUNCTIONS):
        objects.append(folder / f"m{i:04}.obj")
        objects[-1].write_bytes(module.replace(b"function_0000_", b"function_%04d_" % i))
    (folder / "objects.rsp").write_text("\n".join(map(str, objects)), encoding="utf-8")
    run_checked("lld-link", "/debug", f"/pdb:{pdb}.new", "/nodefaultlib", "/subsystem:console",
        "/entry:entry", "/opt:noref,noicf", f"/out:{folder / 'bench.exe'}",
        f"@{folder / 'objects.rsp'}")
    os.replace(f"{pdb}.new", pdb)
    for path in objects:
        path.unlink()
    return pdb


def interleaved(commands, runs):
    """{name: [(seconds, MiB)]} of interleaved runs; the first round warms up."""
    found = {name: [] for name in commands}
    for round_ in range(runs + 1):
        for name, command in commands.items():
            value = measured(*command)
            if round_:
                found[name].append(value)
    return found


def compare(report, title, found, file_bytes):
    """One row per command: its time over the first command's, and memory over the file's size."""
    hotfn = [seconds for seconds, _ in next(iter(found.values()))]
    rows = []
    for name, values in found.items():
        ratio = [seconds / base for (seconds, _), base in zip(values, hotfn)]
        memory = [mib * 2**20 / file_bytes for _, mib in values]
        report.add(f"symbols/{title}/{name}/time over hotfn", "ratio", ratio)
        report.add(f"symbols/{title}/{name}/memory over the file", "ratio", memory)
        rows.append([name, figures.spread(ratio), f"{1000 * min(s for s, _ in values):.0f}",
                     f"{1000 * statistics.median(s for s, _ in values):.0f}",
                     f"{max(mib for _, mib in values):.1f}", f"{max(memory):.2f}"])
    report.table(["command", "time/hotfn", "min ms", "median ms", "peak MiB", "peak/file"], rows)


def run_pdb(report, options):
    pdb = make_pdb(FUNCTIONS)
    pdbutil = tools.need("llvm-pdbutil")
    report.heading(f"A PDB of {FUNCTIONS:,} functions, {pdb.stat().st_size / 2**20:.1f} MiB",
                   f"Ratios: min, median, upper quartile of {options.start_runs} interleaved runs.",
                   "Target: -symbols minimum 10, -publics minimum 1, hotfn's peak/file maximum 2.")
    found = interleaved({"hotfn symbols": [tools.HOTFN, "symbols", pdb],
                         "hotfn symbols --data": [tools.HOTFN, "symbols", "--data", pdb],
                         "hotfn symbols --json": [tools.HOTFN, "symbols", "--json", pdb],
                         "llvm-pdbutil -publics": [pdbutil, "dump", "-publics", pdb],
                         "llvm-pdbutil -symbols": [pdbutil, "dump", "-symbols", pdb]},
                        options.start_runs)
    compare(report, "pdb", found, pdb.stat().st_size)


def run_pdb_curve(report, options):
    report.heading("PDBs with a growing number of functions",
                   "Target: nearly linear, constant time per function.")
    rows = []
    for count in CURVE[:2] if options.quick else CURVE:
        pdb = make_pdb(count)
        values = [measured(tools.HOTFN, "symbols", pdb) for _ in range(options.start_runs)]
        a_function = [1e9 * seconds / count for seconds, _ in values]
        report.add(f"symbols/pdb/{count}/a function", "ns", a_function)
        memory = max(mib for _, mib in values)
        rows.append([f"{count:,}", f"{pdb.stat().st_size / 2**20:.0f}", figures.spread(a_function, 0),
                     f"{1000 * min(s for s, _ in values):.0f}", f"{memory:.0f}",
                     f"{memory * 2**20 / pdb.stat().st_size:.2f}"])
    report.table(["functions", "MiB", "ns a function", "min ms", "peak MiB", "peak/file"], rows)


def run_pe(report, options):
    pdb = make_pdb(FUNCTIONS)
    image = pdb.with_suffix(".exe")
    readobj = tools.need("llvm-readobj")
    report.heading(f"Its image, {image.stat().st_size / 2**20:.1f} MiB: sections, exports, .pdata, judged",
                   "llvm-readobj prints the unwind table, hotfn lists functions; scan also decides about each.")
    found = interleaved({"hotfn list, alone": [tools.HOTFN, "list", "--no-separate", image],
                         "hotfn list, with its PDB": [tools.HOTFN, "list", image],
                         "hotfn scan, with its PDB": [tools.HOTFN, "scan", image],
                         "llvm-readobj --unwind": [readobj, "--unwind", image]}, options.start_runs)
    compare(report, "pe", found, image.stat().st_size)


def run_elf(report, options):
    libraries = sorted(glob.glob("/usr/lib/*/libLLVM-[0-9]*.so.1"),
                       key=lambda name: (not name.endswith("-14.so.1"), name))
    if not libraries or not shutil.which("nm"):
        raise tools.Missing("no libLLVM or no nm on this system")
    path = pathlib.Path(os.path.realpath(libraries[0]))
    report.heading(f"{path.name}, {path.stat().st_size / 2**20:.0f} MiB",
                   "Target: nm -D's time ratio minimum 1, hotfn's peak below nm's.")
    found = interleaved({"hotfn symbols": [tools.HOTFN, "symbols", "--no-separate", "--data", path],
                         "nm -D": ["nm", "-D", path]}, options.start_runs)
    compare(report, "elf", found, path.stat().st_size)


def run_maps(report, options):
    maps.run_repeated(report, options, sys.modules[__name__])


def run_maps_curve(report, options):
    maps.run_curve(report, options, sys.modules[__name__])


def run(report, options):
    for part in (run_pdb, run_pdb_curve, run_pe, run_elf, run_maps, run_maps_curve):
        try:
            part(report, options)
        except tools.Missing as missing:
            report.heading(f"{part.__name__}: missing", str(missing))
