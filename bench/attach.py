# SPDX-License-Identifier: MIT
"""How long all threads of a process stand at `hotfn attach` and at the detach, compared with a plain copy of the
patched pages, with gdb and with uprobes; and the cost of a call after attach, compared with that under `hotfn run`."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import figures
import tools

COUNTS = (1_000, 10_000, 96_000)
ATTACHED_STATE, STATE_AT = 2, 12  # src/launch/attach/journal.h
TRACING = pathlib.Path("/sys/kernel/tracing")


def build(count):
    """The target with so many functions."""
    folder = tools.WORK / f"attach_{count}"
    folder.mkdir(parents=True, exist_ok=True)
    header, binary = folder / "functions.h", folder / "attach"
    if not binary.exists() or binary.stat().st_mtime < (tools.HERE / "attach.c").stat().st_mtime:
        lines = [f"__attribute__((noinline)) static long function_{i}(long x)"
                 f" {{ __asm__ volatile(\"\" : \"+r\"(x)); return x * 3 + {i}; }}" for i in range(count)]
        lines += [f"enum {{ FUNCTIONS = {count} }};", "static long (*const functions[])(long) = {"]
        lines += [f"    function_{i}," for i in range(count)] + ["};"]
        header.write_text("\n".join(lines) + "\n")
        subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-pthread", "-I", folder, tools.HERE / "attach.c",
                        "-o", binary], check=True)
    return binary


class Target:
    def __init__(self, command):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def is_attached(pid):
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "hotfn-attach" in line:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(int(line.split("-")[0], 16) + STATE_AT)
                return int.from_bytes(memory.read(4), "little") == ATTACHED_STATE
    return False


def attached(target, mode):
    """A `hotfn attach` that runs."""
    hotfn = subprocess.Popen([tools.HOTFN, "attach", "--mode", mode, "-o", str(tools.WORK / "attach.hfr"),
                              str(target.pid)], stderr=subprocess.PIPE, text=True)
    while not is_attached(target.pid):
        if hotfn.poll() is not None:
            raise tools.Missing(hotfn.communicate()[1].strip().splitlines()[-1])
        time.sleep(0.005)
    return hotfn


def detach(hotfn):
    """Returns the stops that the summary states, in ms."""
    hotfn.send_signal(signal.SIGINT)
    text = hotfn.communicate()[1]
    found = re.search(r"stopped for ([0-9.]+) ms at attach, ([0-9.]+) ms at detach", text)
    if not found:
        raise tools.Missing(text.strip().splitlines()[-1])
    return float(found[1]), float(found[2])


def measure_gdb(target, breakpoints):
    """The longest stop in ms, as the target's threads saw it."""
    words = ["-ex", "rbreak ^function_[0-9]*$"] if breakpoints else []
    target.ask("gap")
    tools.output_of([tools.need("gdb"), "-p", target.pid, "-batch", "-ex", "set pagination off", *words,
                     "-ex", "delete", "-ex", "detach"], timeout=600)
    return target.ask("gap") / 1e6


def check_uprobes():
    tools.need("perf")
    if not (TRACING / "uprobe_events").exists():
        raise tools.Missing("the kernel has no uprobe_events, or they are not mounted")


def measure_uprobes(target, binary, count):
    """Uprobes on the same functions, enabled and disabled: the longest stop in ms."""
    offsets = [line.split() for line in tools.output_of(["nm", binary]).splitlines() if " function_" in line]
    base = tools.output_of(["readelf", "-lW", binary])
    code = next(line.split() for line in base.splitlines() if "LOAD" in line and "R E" in line)
    delta = int(code[1], 16) - int(code[2], 16)
    text = "".join(f"p:hotfnbench/{name} {binary}:{int(at, 16) + delta:#x}\n" for at, _, name in offsets[:count])
    (TRACING / "uprobe_events").write_text(text)
    try:
        target.ask("gap")
        enable = TRACING / "events/hotfnbench/enable"
        enable.write_text("1")
        enable.write_text("0")
        return target.ask("gap") / 1e6
    finally:
        (TRACING / "uprobe_events").write_text("")


def stop_rows(report, options):
    rounds = max(3, options.start_runs)
    for count in COUNTS:
        binary = build(count)
        with Target([binary, "threads"]) as target:
            copies = [target.ask("copy") / 1e6 for _ in range(rounds)]
            for mode in ("count", "time"):
                stops = [detach(attached(target, mode)) for _ in range(rounds)]
                bar = 3 * min(copies) + 2
                for number, what in enumerate(("attach", "detach")):
                    values = [stop[number] for stop in stops]
                    report.add(f"attach/{count}/{mode}/{what}", "ms", values)
                    yield [f"{count:,}", f"hotfn {what}, {mode}", figures.spread(values, 1),
                           figures.spread(copies, 2), f"{bar:.1f}", "yes" if min(values) <= bar else "no"]
            yield from peer_rows(report, target, binary, count, rounds)


def peer_rows(report, target, binary, count, rounds):
    peers = {"gdb attach and detach": lambda: measure_gdb(target, False)}
    if count == COUNTS[0]:
        peers["gdb, a breakpoint each"] = lambda: measure_gdb(target, True)
    peers["uprobes"] = lambda: (check_uprobes(), measure_uprobes(target, binary, count))[1]
    for name, measure in peers.items():
        try:
            values = [measure() for _ in range(rounds)]
            report.add(f"attach/{count}/{name}", "ms", values)
            yield [f"{count:,}", name, figures.spread(values, 1), "", "", ""]
        except tools.Missing as problem:
            yield [f"{count:,}", name, report.note_missing(f"{name}, {count:,}", problem), "", "", ""]


def cost_rows(report, options):
    """Interleaved: bare, under run, after attach.  A ratio is that of two processes of the same round."""
    binary = build(COUNTS[0])
    for mode in ("count", "time"):
        found = {"run": [], "attach": [], "attach - run": []}
        for _ in range(options.runs):
            with Target([binary]) as bare, Target([tools.HOTFN, "run", "-q", "--mode", mode, "-o",
                                                   tools.WORK / "run.hfr", "--", binary]) as run, \
                    Target([binary]) as later:
                hotfn = attached(later, mode)
                times = {name: min(target.ask("call") for _ in range(5))
                         for name, target in (("bare", bare), ("run", run), ("attach", later))}
                detach(hotfn)
                found["run"].append(times["run"] / times["bare"])
                found["attach"].append(times["attach"] / times["bare"])
                found["attach - run"].append((times["attach"] - times["run"]) / times["bare"])
        for name, values in found.items():
            report.add(f"attach/cost/{mode}/{name}", "ratio", values)
        yield [mode, *(figures.spread(found[name], 3) for name in found), options.runs]


def run(report, options):
    shutil.rmtree(tools.WORK / "attach.hfr", ignore_errors=True)
    report.heading("How long all threads stand, in ms",
                   "hotfn: as its summary states; the others: the longest pause of a thread of the target.",
                   "bar: three times a plain copy of the pages with the functions, plus 2 ms.")
    report.table(["functions", "", "stop", "copy", "bar", "kept"], list(stop_rows(report, options)))
    report.heading("The cost of a call of some 40 ns after attach and under run, over bare")
    report.table(["mode", "run", "attach", "attach - run", "rounds"], list(cost_rows(report, options)))
