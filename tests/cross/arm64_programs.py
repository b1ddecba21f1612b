#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real AArch64 programs under qemu-user, hooked with all their libraries.

    arm64_programs.py BUILD NATIVE BUILT CASE ...

lua, sqlite3: built from Debian's source packages; their output is the same as without hooks, and for each function the
count equals that of the compiler's own instrumentation of the same source.  debian: Debian's own sqlite3:arm64 and
lua5.4:arm64.  covered: hotfn can hook at least 99.9 % of the function entries that the coverage oracle finds in the
libraries and in the other cases' binaries.  decoder: all words of the same files, decoded by hotfn and by capstone.
BUILT keeps sources, packages and binaries.  A case whose programs are not available is skipped, with the reason."""
import os
import pathlib
import re
import subprocess
import sys

import arm64_test
from arm64_test import CPUS, HERE, ROOT, Bench, Skipped, run

sys.path.insert(0, os.path.join(HERE, "..", "programs"))
import apt_source  # noqa: E402  (a sibling folder)

WORK = pathlib.Path(HERE).parent / "programs" / "work"
GCC = "aarch64-linux-gnu-gcc"
# Calls that the compiler omits, adds or turns into jumps would differ between the two builds.
FLAGS = ["-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-pure-const", "-fno-ipa-reference",
         "-fno-ipa-modref", "-fno-builtin", "-w", "-mbranch-protection=standard"]
# lua caches strings by their address, which differs between runs: the cache gets a single entry.
LUA_FLAGS = ["-std=gnu99", "-DLUA_USE_LINUX", "-Dluai_makeseed(L)=((void)(L),20231u)", "-DSTRCACHE_N=1", "-DSTRCACHE_M=1"]
PACKAGES = ("sqlite3", "libsqlite3-0", "lua5.4", "libreadline8", "libtinfo6", "zlib1g", "libc6", "libgcc-s1",
            "libstdc++6")
PYTHON_PACKAGES = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libexpat1", "libssl3")


class Programs(Bench):
    built = None        # where sources and binaries are kept

    def source(self, package):
        folder = self.built / "arm64" / "source" / package
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            subprocess.run(["rm", "-rf", partial], check=True)
            apt_source.unpack(self.built, package, partial)
            partial.rename(folder)
        return folder

    def built_once(self, name, command):
        """The binary that command with `-o` builds; built once."""
        binary = self.built / "arm64" / name
        binary.parent.mkdir(parents=True, exist_ok=True)
        if not binary.exists():
            run([*command, "-o", f"{binary}.partial"])
            os.rename(f"{binary}.partial", binary)
        return str(binary)

    def lua(self):
        source = self.source("lua5.4") / "src"
        files = sorted(str(f) for f in source.glob("*.c") if f.name != "luac.c")
        return [GCC, *FLAGS, *LUA_FLAGS, *files, "-Wl,-E", "-lm", "-ldl"], [str(WORK / "calls.lua")], os.devnull

    def sqlite3(self):
        source = self.source("sqlite3")
        make = source / "make"
        if not (make / "shell.c").exists():
            make.mkdir(exist_ok=True)
            run(["../configure", "--disable-tcl"], cwd=make)
            run(["make", "sqlite3.c", "shell.c"], cwd=make)
        return [GCC, *FLAGS, "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_MATH_FUNCTIONS",
                str(make / "shell.c"), str(make / "sqlite3.c"), "-lpthread", "-ldl", "-lm"], [], WORK / "statements.sql"

    def start(self, command, stdin, **more):
        """(status, stdout)"""
        with open(stdin, encoding="utf-8") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=900, check=False, **more)
        return done.returncode, done.stdout

    def hooked(self, command, stdin, target, *options):
        """(status, stdout, report)"""
        record = self.path("r.hfr")
        result = self.start([*command[:5], self.hotfn, "run", "-q", "-o", record, "--target", target, *options, "--",
                             *command], stdin, env=self.environment)
        return *result, self.report(record)


def instrumented_counts(bench, program, arguments, stdin, emulator):
    """{name: [calls, ...]}, several static functions may have the same name"""
    counts = bench.path("counts")
    bench.start([*emulator, program, *arguments], stdin, env=dict(os.environ, INSTRUMENT_OUT=counts))
    names = {}
    for line in run(["aarch64-linux-gnu-nm", program]).stdout.splitlines():
        match = re.match(r"([0-9a-f]{16}) [TtWwVv] (\S+)", line)
        if match:
            names.setdefault(int(match[1], 16), set()).add(match[2])
    result = {}
    with open(counts, encoding="utf-8") as file:
        for address, calls in map(str.split, file):
            for name in names.get(int(address, 16), ()):
                result.setdefault(name, []).append(int(calls))
    return result


def difference(name, want, report):
    """None, or a text that lists the functions whose counts differ."""
    got, loops = {}, set()
    for function in report["functions"]:
        for known in {function["name"], *function.get("names", [])}:
            if function["calls"]:
                got.setdefault(known, []).append(function["calls"])
            if function["entry_is_loop"]:
                loops.add(known)
    differ = {f: (sorted(want[f]), sorted(got.get(f, []))) for f in want if sorted(want[f]) != sorted(got.get(f, []))}
    unexplained = {f: d for f, d in differ.items() if f not in loops or sum(d[1]) < sum(d[0])}
    print(f"# {name}: {len(want)} functions, {sum(map(sum, want.values()))} calls, unexplained {len(unexplained)}, "
          f"entry is a loop {sorted(set(differ) - set(unexplained))}")
    return f"unexplained: {unexplained}" if unexplained or len(want) < 500 else None


def check_counts(bench, name, cpu):
    command, arguments, stdin = getattr(bench, name)()
    agent = bench.path("instrument.o")
    run([GCC, "-O2", "-c", os.path.join(HERE, "instrument.c"), "-o", agent])
    # Both paths have the same length: lua keeps its own path as a string, whose size affects when it collects garbage.
    plain = bench.built_once(f"plain/{name}", command)
    other = bench.built_once(f"probe/{name}", [*command[:1], "-finstrument-functions", *command[1:], agent])
    emulator = ["qemu-aarch64", *CPUS[cpu], "-L", ROOT]
    expected = bench.start([*emulator, plain, *arguments], stdin)
    want = instrumented_counts(bench, other, arguments, stdin, emulator)
    *result, report = bench.hooked([*emulator, plain, *arguments], stdin, os.path.basename(plain))
    if tuple(result) != expected:
        return f"status {result[0]}, wanted {expected[0]}, output same: {result[1] == expected[1]}"
    return difference(name, want, report)


def download(bench, *packages):
    """Download Debian's packages for arm64; returns their files."""
    folder = bench.built / "apt-arm64"
    debs = folder / "debs" / packages[0]
    for name in ("apt/lists/partial", "apt/cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    debs.mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    lines = [line.replace("deb-src ", "deb ", 1) for line in apt_source.source_lines()]
    (folder / "apt" / "sources.list").write_text("\n".join(lines) + "\n")
    options = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64", "-o", f"Dir::State::status={folder}/status"]
    apt_source.apt(folder, "update", *options)
    apt_source.apt(folder, "download", *options, *packages, cwd=debs)
    return sorted(debs.glob("*.deb"))


def debian_root(bench):
    root = bench.built / "arm64" / "debian"
    if root.exists():
        return root
    partial = root.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    for package in [*download(bench, *PACKAGES), *download(bench, *PYTHON_PACKAGES)]:
        run(["dpkg-deb", "-x", str(package), str(partial)])
    partial.rename(root)
    return root


def check_debian(bench, _name, cpu):
    """Debian's binaries with its own libraries: counted, timed and sampled."""
    root = debian_root(bench)
    for name, arguments, stdin in (("sqlite3", [], WORK / "statements.sql"), ("lua5.4", [str(WORK / "calls.lua")], os.devnull)):
        command = ["qemu-aarch64", *CPUS[cpu], "-L", str(root), str(root / "usr/bin" / name), *arguments]
        expected = bench.start(command, stdin)
        for options in ((), ("--mode", "time"), ("--mode", "time", "--sample", "32")):
            *result, report = bench.hooked(command, stdin, name, "--module", "*", *options)
            called = sum(bool(f["calls"]) for f in report["functions"])
            if tuple(result) != expected or called < 300:
                return f"{name} {options}: status {result[0]}, wanted {expected[0]}, output same: " \
                       f"{result[1] == expected[1]}, {called} functions called"
    return None


PYTHON_WORK = """
import sys
counts = {}
def note(frame, event, arg):
    if event == "call":
        counts[frame.f_code.co_name] = counts.get(frame.f_code.co_name, 0) + 1
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
class Node:
    def __init__(self, value): self.value = value
    def get(self): return self.value
def count(n):
    for i in range(n): yield i
def fail(): raise ValueError
def work():
    try: fail()
    except ValueError: pass
    return fib(12) + sum(Node(i).get() for i in range(50)) + sum(count(20))
sys.setprofile(note if sys.argv[1:] else None)
result = work()
sys.setprofile(None)
print(result)
for name, calls in counts.items(): print(name, calls)
"""


def check_python(bench, _name, cpu):
    """Debian's CPython: its functions are called as often as sys.setprofile reports."""
    root, script = debian_root(bench), pathlib.Path(bench.path("work.py"))
    script.write_text(PYTHON_WORK)
    command = ["qemu-aarch64", *CPUS[cpu], "-L", str(root), str(root / "usr/bin/python3.11"), "-S", "-E", str(script)]
    expected = bench.start(command, os.devnull)
    lines = bench.start([*command, "x"], os.devnull)[1].splitlines()[1:]
    wanted = {name: int(calls) for name, calls in map(str.split, lines)}
    if len(wanted) != 7 or wanted["fib"] != 465:
        return f"sys.setprofile reports {wanted}"
    for options in ((), ("--mode", "time")):
        *result, report = bench.hooked(command, os.devnull, "python3.11", "--runtime", "python", "-f", "* (*", *options)
        found = {f["name"].split(" (")[0].split(".")[-1]: f["calls"] for f in report["functions"] if "work.py:" in f["name"]}
        wrong = {name: (calls, found.get(name)) for name, calls in wanted.items() if found.get(name) != calls}
        if tuple(result) != expected or wrong:
            return f"{options}: status {result[0]}, output same: {result[1] == expected[1]}, wrong: {wrong}"
    return None


def find_images(bench):
    """Libraries, and the files that the other cases built or unpacked."""
    found = [os.path.join(ROOT, "lib", name) for name in ("libc.so.6", "libstdc++.so.6", "libm.so.6")]
    for pattern in ("plain/*", "debian/usr/bin/lua5.4", "debian/usr/bin/sqlite3",
                    "debian/usr/lib/aarch64-linux-gnu/libsqlite3.so.0"):
        found += map(str, sorted(bench.built.glob(f"arm64/{pattern}")))
    return found


def check_covered(bench, _name, _cpu):
    oracle = os.path.join(HERE, "..", "oracle", "coverage.py")
    done = subprocess.run([sys.executable, oracle, "--hotfn", bench.native, *find_images(bench)], capture_output=True,
                          text=True, timeout=600, check=False)
    for line in done.stdout.splitlines():
        if re.match(r"\S.*true entries|  (holds|FAILS)|.*refused", line):
            print("#", line.strip())
    return None if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:]


def check_decoder(bench, _name, _cpu):
    agreement = os.path.join(os.path.dirname(bench.native), "..", "..", "tests", "property", "arm64_agreement")
    if not os.path.exists(agreement):
        raise Skipped("built without capstone")
    done = subprocess.run([agreement, "1", "0", *find_images(bench)], capture_output=True, text=True, timeout=600,
                          check=False)
    for line in done.stdout.splitlines():
        print("#", line)
    return None if done.returncode == 0 and "SKIP" not in done.stdout else done.stdout[:2000]


def unless_unavailable(check):
    def checked(*arguments):
        try:
            return check(*arguments)
        except apt_source.Unavailable as reason:
            raise Skipped(reason) from reason
    checked.__name__ = check.__name__
    return checked


CASES = {"lua": (check_counts, "lua", "max"), "sqlite3": (check_counts, "sqlite3", "max"),
         "debian": (check_debian, "debian", "cortex-a57"), "python": (check_python, "python", "max"), "covered": (check_covered, "covered", "max"),
         "decoder": (check_decoder, "decoder", "max")}


def main():
    Programs.built = pathlib.Path(sys.argv[3]).resolve()
    (Programs.built / "arm64").mkdir(parents=True, exist_ok=True)
    return arm64_test.main([(unless_unavailable(CASES[name][0]), *CASES[name][1:]) for name in sys.argv[4:]], Programs)


if __name__ == "__main__":
    sys.exit(main())
