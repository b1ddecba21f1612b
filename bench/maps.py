# SPDX-License-Identifier: MIT
"""The cost of reading linker maps: maps that are repeated to 100 MB, compared with `wc -lw`, and maps with a growing
number of functions."""
import os
import pathlib
import shutil

import figures
import tools

WANTED_BYTES = 100 << 20
FUNCTIONS = 5000
CURVE = (125_000, 250_000, 500_000, 1_000_000)
BODY = "int function_of_some_length_{0:05}(int a) {{ return a * {0} + (a >> {1}); }}\n"


def linked_map(folder, linker, flags):
    """The map of a program with 5000 functions, written by this linker."""
    source, path = folder / "maps.c", folder / f"{linker}.map"
    if not path.exists():
        source.write_text("".join(BODY.format(i, i % 31) for i in range(FUNCTIONS)) +
                          "int main(void) { return function_of_some_length_00001(1) & 0; }\n",
                          encoding="utf-8")
        tools.output_of(["gcc", "-O1", *flags, f"-Wl,-Map,{path}", source, "-o", folder / linker])
    return path


def originals(folder):
    """{name: path of a map}: maps made here, and samples if there are any."""
    found = {}
    for linker, flags in (("GNU ld", ["-fuse-ld=bfd"]), ("gold", ["-fuse-ld=gold"]), ("lld", ["-fuse-ld=lld"])):
        if shutil.which({"GNU ld": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld"}[linker]):
            found[linker] = linked_map(folder, linker.replace(" ", "-"), flags)
    samples = pathlib.Path(os.environ.get("HOTFN_SAMPLES", "/nonexistent"), "map")
    for path in sorted(samples.glob("*.map")):
        found[path.stem] = path
    return found


def repeated(folder, name, path):
    big = folder / f"{name.replace(' ', '-')}.100mb"
    text = path.read_bytes()
    if not big.exists():
        with open(big, "wb") as out:
            for _ in range(WANTED_BYTES // len(text) + 1):
                out.write(text)
    return big


def run_repeated(report, options, symbols):
    folder = tools.WORK / "maps"
    folder.mkdir(parents=True, exist_ok=True)
    report.heading("Linker maps, each repeated to 100 MB",
                   f"Ratios: min, median, upper quartile of {options.start_runs} interleaved runs.",
                   "Target: wc -lw over hotfn, minimum 1.")
    rows = []
    maps = originals(folder)
    for name, path in list(maps.items())[:1] if options.quick else maps.items():
        big = repeated(folder, name, path)
        found = symbols.interleaved({"hotfn": [tools.HOTFN, "symbols", "--data", big],
                                     "wc": ["wc", "-lw", big]}, options.start_runs)
        ratio = [wc / hotfn for (hotfn, _), (wc, _) in zip(found["hotfn"], found["wc"])]
        report.add(f"symbols/maps/{name}/wc over hotfn", "ratio", ratio)
        rows.append([name, figures.spread(ratio), f"{1000 * min(s for s, _ in found['hotfn']):.0f}",
                     f"{1000 * min(s for s, _ in found['wc']):.0f}",
                     f"{max(mib for _, mib in found['hotfn']):.0f}"])
        big.unlink()
    report.table(["map", "wc -lw/hotfn", "hotfn, min ms", "wc, min ms", "hotfn, peak MiB"], rows)


def msvc_map(path, count):
    with open(path, "w", encoding="utf-8") as out:
        out.write(" game\n\n Timestamp is 5a2b9e20 (Sat Dec  9 09:26:08 2017)\n\n"
                  " Preferred load address is 0000000140000000\n\n"
                  " Start         Length     Name                   Class\n"
                  f" 0001:00000000 {count * 32:08x}H .text$mn                CODE\n\n"
                  "  Address         Publics by Value              Rva+Base               Lib:Object\n\n")
        for i in range(count):
            out.write(f" 0001:{i * 32:08x}       ?function_{i}@module_{i // 50}@@YAHH@Z "
                      f"{0x140001000 + i * 32:016x} f   module_{i // 50}.obj\n")


def run_curve(report, options, symbols):
    folder = tools.WORK / "maps"
    report.heading("Maps with a growing number of functions", "Target: nearly linear, constant time per function.")
    rows = []
    for count in CURVE[:2] if options.quick else CURVE:
        path = folder / f"curve-{count}.map"
        msvc_map(path, count)
        values = [symbols.measured(tools.HOTFN, "symbols", path) for _ in range(options.start_runs)]
        per_function = [1e9 * seconds / count for seconds, _ in values]
        report.add(f"symbols/maps/{count}/a function", "ns", per_function)
        rows.append([f"{count:,}", f"{path.stat().st_size / 2**20:.0f}", figures.spread(per_function, 0),
                     f"{1000 * min(s for s, _ in values):.0f}", f"{max(mib for _, mib in values):.0f}"])
        path.unlink()
    report.table(["functions", "MiB", "ns per function", "min ms", "peak MiB"], rows)
