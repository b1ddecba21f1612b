# SPDX-License-Identifier: MIT
"""The cost of starting: scanning and hooking whole files, and starting node."""
import glob
import os
import shutil
import statistics
import tempfile

import figures
import tools

CURVE = (1000, 3000, 10_000, 30_000, 100_000)


def start_program():
    return tools.compile_c(tools.WORK / "start", [tools.HERE / "start.c"],
                           ["-D_GNU_SOURCE", "-lZydis"])


def measure(path, runs, count=0):
    """{name: [value of each run]} from bench/start.c for a file."""
    found = {}
    for _ in range(runs):
        cache = tempfile.mkdtemp(dir=tools.WORK)
        for line in tools.output_of([start_program(), path, cache, count], timeout=600).splitlines():
            name, value = line.split()
            found.setdefault(name, []).append(int(value))
        shutil.rmtree(cache, ignore_errors=True)
    return found


def files():
    """Installed programs and libraries, by increasing size."""
    wanted = ["/usr/bin/sqlite3", "/usr/bin/python3.11", "/usr/bin/cmake", "/usr/bin/node",
              *sorted(glob.glob("/usr/lib/*/libLLVM-[0-9]*.so.1"))[-1:]]
    return [path for path in wanted if os.path.exists(path)]


def ratio_list(found, over, under):
    return [a / b for a, b in zip(found[over], found[under])]


def scan_row(report, path, found):
    name = os.path.basename(path)
    cold = ratio_list(found, "cold_ns", "decode_ns")
    warm = [(scan + opened + hook) / copy for scan, opened, hook, copy in zip(
        found["warm_ns"], found["plan_open_ns"], found["hook_ns"], found["copy_ns"])]
    hook = ratio_list(found, "hook_ns", "copy_ns")
    report.add(f"start/{name}/cold over linear decode", "ratio", cold)
    report.add(f"start/{name}/warm over page copy", "ratio", warm)
    report.add(f"start/{name}/hook over page copy", "ratio", hook)
    middle = {key: statistics.median(values) for key, values in found.items()}
    memory = (middle["stub_bytes"] + middle["unwind_bytes"] + middle["table_bytes"]) / max(
        middle["hooked"], 1)
    report.add(f"start/{name}/memory a hook", "bytes", [memory])
    return [name, int(middle["hooked"]), figures.spread(cold), figures.spread(warm),
            figures.spread(hook), f"{middle['cold_ns'] / 1e6:.0f}",
            f"{(middle['warm_ns'] + middle['plan_open_ns'] + middle['hook_ns']) / 1e6:.1f}",
            f"{memory:.1f}", f"{middle['copied_page_bytes'] / 2**20:.1f}"]


def run_files(report, options):
    report.heading("Scanning and hooking a whole file",
                   "cold: read, symbols, scan and plan (all CPUs) over one linear minimal decode "
                   "of the same text by Zydis (one CPU).",
                   "warm: cached scan and all hooks over a plain copy of the patched pages; "
                   "hook: the hooks alone.",
                   f"Ratios: min, median, upper quartile of {options.start_runs} runs. Memory per "
                   "hook: stubs, unwind data, tables.")
    rows = [scan_row(report, path, measure(path, options.start_runs)) for path in files()]
    report.table(["file", "hooks", "cold/decode", "warm/copy", "hook/copy", "cold ms", "warm ms",
                  "bytes a hook", "copied MiB"], rows)


def run_curve(report, options):
    """The time to set an increasing number of hooks in one large file."""
    present = files()
    if not present:
        return
    path = present[-1]
    report.heading(f"The curve: hooks set in {os.path.basename(path)}",
                   "ms to set the hooks, ns per hook, and the ratio to a copy of the patched pages.")
    rows = []
    for count in CURVE:
        found = measure(path, options.start_runs, count)
        hooked = found["hooked"][0]
        per_hook = [ns / max(hooked, 1) for ns in found["hook_ns"]]
        report.add("curve/ns a hook", "ns", per_hook, hooks=hooked)
        rows.append([hooked, f"{statistics.median(found['hook_ns']) / 1e6:.2f}",
                     figures.spread(per_hook, 0),
                     figures.spread(ratio_list(found, "hook_ns", "copy_ns"))])
        if hooked < count:
            break
    report.table(["hooks", "ms", "ns a hook", "over copy"], rows)


NODE_SCRIPT = "process.stdout.write(String(process.resourceUsage().maxRSS))"


def node_run(words, env):
    """(wall seconds, peak resident KiB of node itself)."""
    wall, _ = tools.timed([*words, "-e", "0"], env=env)
    peak = int(tools.output_of([*words, "-e", NODE_SCRIPT], env=env))
    return wall, peak


def run_node(report, options):
    report.heading("Starting node, all its functions hooked",
                   "`node -e 0`: wall time and peak memory of node, over the bare start's.")
    node = tools.need("node")
    scratch = tempfile.mkdtemp(dir=tools.WORK)
    hooked_node = [tools.HOTFN, "run", "-q", "-o", f"{scratch}/r.hfr", "--", node]
    cache = f"{scratch}/cache"
    env = {**os.environ, "XDG_CACHE_HOME": cache}
    found = {"bare": [], "cold": [], "warm": []}
    for _ in range(options.start_runs):
        shutil.rmtree(cache, ignore_errors=True)
        found["bare"].append(node_run([node], env))
        cold, _ = tools.timed([*hooked_node, "-e", "0"], env=env)
        found["warm"].append(node_run(hooked_node, env))
        found["cold"].append((cold, found["warm"][-1][1]))
    shutil.rmtree(scratch, ignore_errors=True)
    rows = []
    for kind in ("cold", "warm"):
        walls = [a[0] / b[0] for a, b in zip(found[kind], found["bare"])]
        peaks = [a[1] / b[1] for a, b in zip(found[kind], found["bare"])]
        report.add(f"node/{kind}/start", "ratio", walls)
        report.add(f"node/{kind}/peak memory", "ratio", peaks)
        more = statistics.median((a[1] - b[1]) / 1024 for a, b in zip(found[kind], found["bare"]))
        rows.append([kind, figures.spread(walls),
                     f"{statistics.median(a[0] for a in found[kind]) * 1e3:.0f}",
                     figures.spread(peaks), f"{more:.1f}"])
    report.table(["", "start ratio", "ms", "memory ratio", "MiB more"], rows)


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    run_files(report, options)
    run_curve(report, options)
    try:
        run_node(report, options)
    except tools.Missing as missing:
        print(f"missing: node: {missing}")
