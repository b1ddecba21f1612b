#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs random programs of assembly functions (generated/program.py) with and without hotfn, in several modes: the
output, the exit status and the calls of each hooked function must be the same.

generated_functions.py HOTFN [--cpu x86_64|i386|arm64] [--seed N] [--functions N] [--per-program N] [--seconds N]

For arm64, HOTFN is an AArch64 build, run by qemu, and --report a native program that reads its records.

Seed 0 is a new one.  A program that fails is reduced to few functions and kept, with the command that repeats it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from generated import arm64, arm64_functions
from generated.program import Program
from generated.x86 import Cpu32, Cpu64
from generated.x86_functions import Writer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))

MODES = {"count": [], "count again": [], "time": ["--mode", "time"], "flat": ["--mode", "time", "--flat"],
         "tick": ["--mode", "time", "--clock", "tick"], "sample": ["--mode", "time", "--sample", "8"]}
MAKERS = {"x86_64": ([["gcc", "-pie"], ["gcc", "-no-pie"]], Cpu64, Writer),
          "i386": ([["gcc", "-m32", "-no-pie"]], Cpu32, Writer),
          "arm64": ([["aarch64-linux-gnu-gcc", "-pie"], ["aarch64-linux-gnu-gcc", "-no-pie"]], arm64.Cpu,
                    arm64_functions.Writer)}
ATTACHED = {"attach": [], "attach time": ["--mode", "time"]}  # hooked by another process before main
NOT_THERE = {"arm64": ["tick", *ATTACHED], "i386": [*ATTACHED]}  # modes
EMULATORS = {"arm64": ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]}


class Bench:
    def __init__(self, hotfn, reporter, cpu, folder):
        self.hotfn, self.reporter, self.cpu, self.folder = hotfn, reporter or hotfn, cpu, folder
        self.emulator = EMULATORS.get(cpu, [])
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(folder / "cache"),
                                G_SLICE="always-malloc")  # see arm64_test.py
        self.hooked = self.timed = self.refused = 0

    def make(self, seed, count):
        commands, cpu, writer = MAKERS[self.cpu]
        self.command = commands[seed % len(commands)]
        return Program(seed, count, lambda whole, rng: writer(whole, rng, cpu, "-pie" in self.command))

    def run(self, command):
        return subprocess.run(command, capture_output=True, timeout=240, env=self.environment, cwd=self.folder)

    def build(self, text):
        source, program = self.folder / "generated.s", self.folder / "generated"
        source.write_text(text)
        built = self.run([*self.command, "-Wl,-z,now", str(source), "-o", str(program)])
        assert built.returncode == 0, built.stderr.decode()
        return program

    def report(self, record):
        result = self.run([self.reporter, "report", "--json", str(record)])
        return json.loads(result.stdout)["functions"]

    def run_attached(self, path, record, options):
        os.environ["HOTFN"] = self.hotfn
        from attached import run_attached
        return run_attached([str(path)], record, options, self.folder, self.environment)[0]

    def check(self, program, keep=None, modes=(*MODES, *ATTACHED)):
        """The differences, as a list of lines."""
        path = self.build(program.text(keep))
        bare = self.run([*self.emulator, str(path)])
        if bare.returncode < 0 or len(bare.stdout) == 0:
            return [f"the program itself ends with {bare.returncode}"]
        if bare.stdout != self.run([*self.emulator, str(path)]).stdout:
            return ["the program itself has two outputs"]
        modes = [mode for mode in modes if mode not in NOT_THERE.get(self.cpu, [])]
        return [line for mode in modes for line in self.check_mode(program, keep, path, bare, mode)]

    def check_mode(self, program, keep, path, bare, mode):
        record = self.folder / "generated.hfr"
        try:
            target = ["--target", path.name] if self.emulator else []
            run = self.run_attached(path, record, ATTACHED[mode]) if mode in ATTACHED else self.run(
                [*self.emulator, self.hotfn, "run", "-q", "-o", str(record), *target, *MODES[mode], "--",
                 *self.emulator, str(path)])
        except subprocess.TimeoutExpired:
            return [f"{mode}: does not end"]
        if run.returncode != bare.returncode and (run.returncode < 0 or run.returncode > 255 or not run.stdout):
            return [f"{mode}: ends with {run.returncode}, not {bare.returncode}; {run.stderr.decode()[:200]}"]
        if run.stdout != bare.stdout or run.returncode != bare.returncode:
            at = next((i for i, (a, b) in enumerate(zip(run.stdout, bare.stdout)) if a != b), -1)
            return [f"{mode}: other output from byte {at}, status {run.returncode}, not {bare.returncode}"]
        return self.check_calls(program, keep, self.report(record), mode)

    def check_calls(self, program, keep, functions, mode):
        expected, again, behind_pad = program.expected(keep)
        differences, hooked = [], 0
        for f in functions:
            name = f["name"]
            if not name.startswith(("f", "h_", "main")) or name.startswith("frame_"):
                continue
            if f["state"] != "hooked":
                self.refused += mode == "count"
                continue
            hooked += 1
            self.timed += mode == "time" and f["timing"] == "full"
            most = expected.get(name, 0) + again.get(name, 0) * f["entry_is_loop"] + behind_pad.get(name, 0)
            if not expected.get(name, 0) <= f["calls"] <= most:
                differences.append(f"{mode}: {name} has {f['calls']} calls, not {expected.get(name, 0)} to {most}")
        self.hooked += hooked if mode == "count" else 0
        if hooked == 0:
            differences.append(f"{mode}: no function is hooked")
        return differences


def kind(difference):
    return next(word for word in ("output", "calls", "ends", "end", "hooked") if word in difference)


def reduce_program(bench, program, differences):
    """The smallest set of functions found that still differs in one mode."""
    mode = differences[0].split(":")[0]
    modes = [mode] if mode in MODES or mode in ATTACHED else [*MODES, *ATTACHED]
    modes = ["count", mode] if mode == "count again" else modes
    keep = sorted(f.number for f in program.functions)

    def fails(numbers):
        return any(kind(line) == kind(differences[0]) for line in bench.check(program, frozenset(numbers), modes))
    size = max(1, len(keep) // 2)
    while size >= 1:
        i, changed = 0, False
        while i < len(keep):
            rest = keep[:i] + keep[i + size:]
            if rest and fails(rest):
                keep, changed = rest, True
            else:
                i += size
        if size == 1 and not changed:
            break
        size = size // 2 if size > 1 else 1
    return frozenset(keep), bench.check(program, frozenset(keep), modes)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hotfn")
    parser.add_argument("--report", help="the program that reads records, if not HOTFN")
    parser.add_argument("--cpu", choices=MAKERS, default="x86_64")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=10000, help="in all")
    parser.add_argument("--per-program", type=int, default=250)
    parser.add_argument("--seconds", type=float, help="go on with new seeds for so long")
    parser.add_argument("--keep-going", action="store_true", help="after a failure")
    parser.add_argument("--failures", type=pathlib.Path, default=pathlib.Path("."), help="folder for failed programs")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    seed = options.seed or int(time.time()) * 1000
    end = time.monotonic() + (options.seconds or 0)
    done = failed = 0
    with tempfile.TemporaryDirectory(prefix="hotfn_generated_") as folder:
        bench = Bench(os.path.abspath(options.hotfn), options.report and os.path.abspath(options.report), options.cpu,
                      pathlib.Path(folder))
        print(f"# seed {seed}", flush=True)
        while done < options.functions if not options.seconds else time.monotonic() < end:
            program = bench.make(seed, options.per_program)
            differences = bench.check(program)
            if differences:
                failed += 1
                print(f"not ok: seed {seed}: {len(differences)} differences", *differences[:4], sep="\n    ", flush=True)
                keep, differences = reduce_program(bench, program, differences)
                source = options.failures / f"generated-{options.cpu}-{seed}.s"
                source.write_text(program.text(keep))
                print(f"  reduced to {sorted(keep)} in {source}, {' '.join(bench.command)}:", *differences[:4],
                      sep="\n    ", flush=True)
                if not options.keep_going:
                    break
            done += options.per_program
            seed += 1
    print(f"{done} functions, {bench.hooked} hooked, {bench.refused} not, {bench.timed} timed; {failed} programs failed")
    return 1 if failed or not bench.hooked else 0


if __name__ == "__main__":
    sys.exit(main())
