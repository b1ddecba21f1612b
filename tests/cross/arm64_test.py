#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AArch64 programs under qemu-user, counted by hooks: same output, and for each function the same
count as the compiler's own instrumentation of the same source.  Arguments: the AArch64 build (scripts/cross),
a native hotfn that reads its records."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "programs", "src")
ROOT = "/usr/aarch64-linux-gnu"
CXX = ["aarch64-linux-gnu-g++", "-pthread"]
# Optimisations that replace calls would make the counts of the two builds differ.
EXACT = ["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]
# A fork while another thread of qemu allocates would leave the lock of GLib's allocator held in the child.
os.environ["G_SLICE"] = "always-malloc"

BUILDS = {
    "plain": ["-mbranch-protection=none"],
    "protected": ["-mbranch-protection=standard"],
    "other key": ["-mbranch-protection=bti+pac-ret+b-key"],
}
CPUS = {"cortex-a57": ["-cpu", "cortex-a57"], "max": ["-cpu", "max"]}  # max signs and checks return addresses
RUNS = [("plain", "cortex-a57"), ("protected", "max")]  # (build, CPU)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, **more)


class Skipped(Exception):
    """A requirement of a check is missing; the text gives the reason."""


class Bench:
    def __init__(self, build, native, folder):
        self.build_folder, self.hotfn = build, os.path.join(build, "tools/hotfn/hotfn")
        self.native, self.folder = native, folder
        self.environment = dict(os.environ, XDG_CACHE_HOME=folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, *arguments):
        run([*CXX, os.path.join(HERE, "work.cpp"), *arguments, "-o", self.path(name)])
        return self.path(name)

    def plain(self, program, cpu, **more):
        return run(["qemu-aarch64", *cpu, "-L", ROOT, program], **more).stdout

    def counted(self, program, cpu, *options):
        """(stdout, the native report of the record)"""
        record = self.path("r.hfr")
        emulator = ["qemu-aarch64", *cpu, "-L", ROOT]
        out = run([*emulator, self.hotfn, "run", "-o", record, "--target", os.path.basename(program), *options, "--",
                   *emulator, program], env=self.environment).stdout
        return out, self.report(record)

    def report(self, record, *options):
        return json.loads(run([self.native, "report", "--json", *options, record]).stdout)


def instrumented(bench, flags):
    """{mangled name: calls}"""
    run(["aarch64-linux-gnu-gcc", "-O2", "-c", os.path.join(HERE, "instrument.c"), "-o", bench.path("instrument.o")])
    program = bench.compile("instrumented", *EXACT, *flags, "-finstrument-functions", bench.path("instrument.o"))
    counts = bench.path("counts")
    bench.plain(program, CPUS["max"], env=dict(os.environ, INSTRUMENT_OUT=counts))
    names = {}
    for line in run(["aarch64-linux-gnu-nm", program]).stdout.splitlines():
        match = re.match(r"([0-9a-f]{16}) [TtWwVv] (_Z\S+)", line)
        if match:
            names.setdefault(int(match.group(1), 16), set()).add(match.group(2))
    result = {}
    with open(counts) as file:
        for line in file:
            address, calls = line.split()
            for name in names.get(int(address, 16), ()):
                result[name] = int(calls)
    return result


def own_functions(report):
    """{mangled name: calls} of the program's own functions, namespace work."""
    result = {}
    for function in report["functions"]:
        for name in [function["name"], *function.get("names", [])]:
            if "4work" in name:
                result[name] = function["calls"]
    return result


def check_exact(bench, build, cpu):
    """None, or a text that describes the failure."""
    flags = BUILDS[build]
    want = {n: c for n, c in instrumented(bench, flags).items() if "4work" in n}
    program = bench.compile(f"work-{build}", *EXACT, *flags)
    expected = bench.plain(program, CPUS[cpu])
    for options in ([], ["--module", "*"]):
        out, report = bench.counted(program, CPUS[cpu], *options)
        got = own_functions(report)
        wrong = {n: (want[n], got.get(n)) for n in want if got.get(n) != want[n]}
        if out != expected:
            return f"output {out!r}, wanted {expected!r}"
        if wrong or len(want) < 15:
            return f"{len(want)} functions, of these differ: {wrong}"
    return None


def check_optimised(bench, build, cpu):
    program = bench.compile(f"fast-{build}", "-O3", *BUILDS[build])
    expected = bench.plain(program, CPUS[cpu])
    out, report = bench.counted(program, CPUS[cpu], "--module", "*")
    hookable = sum(f["calls"] is not None for f in report["functions"])
    if out != expected or hookable < 3000:
        return f"output {out!r}, wanted {expected!r}; {hookable} functions hooked"
    return None


def check_hooked_code_keeps_bti(bench, build, cpu):
    """An indirect branch past a landing pad is trapped (BTI) in hooked code as in unhooked code."""
    source, gcc = os.path.join(HERE, "guarded.c"), ["aarch64-linux-gnu-gcc", "-O2", *BUILDS[build]]
    run([*gcc, "-DLIBRARY", "-shared", "-fPIC", "-nostartfiles", "-Wl,-z,force-bti", source, "-o",
         bench.path("libguarded.so")])
    run([*gcc, source, "-o", bench.path("guarded"), f"-L{bench.folder}", "-lguarded", f"-Wl,-rpath,{bench.folder}"])
    expected = bench.plain(bench.path("guarded"), CPUS[cpu])
    out, report = bench.counted(bench.path("guarded"), CPUS[cpu], "--module", "*")
    calls = [f["calls"] for f in report["functions"] if f["name"] == "padded"]
    if not expected.startswith("guarded") or out != expected or calls != [100]:
        return f"output {out!r}, wanted {expected!r}; {calls} calls"
    return None


# What live.c prints last: the exact counts of its own thread, and the wrong results of all threads.
LIVE = """four_bytes 2000
four_bytes_on 1000
turns_forever 0
counts_down 0
scalable 0 cannot-move
streaming 0 cannot-move
mixes 1000
by_table 1000
wrong 0"""


def check_live_patching(bench, build, cpu):
    """A program that hooks itself while its threads run the patched functions (live.c)."""
    source = os.path.join(HERE, "..", "..")
    library = os.path.join(os.path.dirname(bench.hotfn), "..", "..", "src")
    program, root = bench.path("live"), bench.path("root")
    run(["aarch64-linux-gnu-gcc", "-O2", "-pthread", *BUILDS[build], "-I", os.path.join(source, "include"),
         os.path.join(HERE, "live.c"), "-o", program, "-L", library, "-lhotfn", f"-Wl,-rpath,{os.path.realpath(library)}"])
    os.makedirs(os.path.join(root, "proc/self/task"))
    for name in os.listdir(ROOT):
        os.symlink(os.path.join(ROOT, name), os.path.join(root, name))
    out = run(["qemu-aarch64", *CPUS[cpu], "-L", root, program], env=dict(os.environ, LIVE_ROOT=root)).stdout
    lines = [line.strip() for line in out.splitlines()]
    rounds, rough, exact = lines[:4], lines[4:12], "\n".join(lines[12:])
    if rounds != [f"round {i} hooked 1" for i in range(4)] or "four_bytes 1" not in rough or exact != LIVE:
        return out
    return None


BUDGET_TESTS = ["tests/cross/budget_bytes.c", "tests/unit/launch/budget/choose_test.c",
                "tests/unit/launch/budget/times_test.c"]


def check_budget(bench, build, cpu):
    """The decisions of a budget, and the bytes that it would change.  Stopping threads and running the changed code
    needs ptrace, which qemu-user does not have."""
    source = os.path.join(HERE, "..", "..")
    library = os.path.join(os.path.dirname(bench.hotfn), "..", "..", "src", "libhotfn.a")
    folders = [word for folder in ("src", "include", "tests/unit") for word in ("-I", os.path.join(source, folder))]
    for name in BUDGET_TESTS:
        program = bench.path("budget")
        run(["aarch64-linux-gnu-gcc", "-std=gnu11", "-O1", "-pthread", *BUILDS[build], *folders, os.path.join(source, name),
             library, "-o", program])
        done = subprocess.run(["qemu-aarch64", *CPUS[cpu], "-L", ROOT, program], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"
    return None


def check_wide_modules(bench, build, cpu):
    """Code that is farther apart than a branch reaches gets stubs near each part."""
    program = bench.path("wide")
    run(["aarch64-linux-gnu-gcc", "-O2", *BUILDS[build], "-Wl,--section-start=.far=0x13000000",
         os.path.join(HERE, "wide.c"), "-o", program])
    out, report = bench.counted(program, CPUS[cpu])
    calls = {f["name"]: f["calls"] for f in report["functions"] if f["name"].startswith(("near_", "far_"))}
    if out != bench.plain(program, CPUS[cpu]) or calls != dict.fromkeys(("near_one", "near_two", "far_one", "far_two"), 1000):
        return f"{out!r}: {calls}"
    return None


def check_text_in_one_piece(bench, build, cpu):
    """288 MiB of contiguous text (a sparse file): both ends are counted; functions in the middle, from which no
    stub is within reach of a branch, are refused and run unchanged."""
    source, program = os.path.join(HERE, "one_piece.c"), bench.path("one_piece")
    run(["clang", "--target=aarch64-linux-gnu", "-fuse-ld=lld", "-O2", *BUILDS[build], source, "-o", program,
         f"-Wl,-T,{os.path.join(HERE, 'one_piece.ld')}"])
    expected = bench.plain(program, CPUS[cpu])
    out, report = bench.counted(program, CPUS[cpu])
    got = {f["name"]: (f["calls"], f["reason"]) for f in report["functions"] if f["name"].startswith("of_")}
    wanted = {"of_begin": (1000, ""), "of_middle": (None, "no-near-memory"), "of_end": (1000, "")}
    if not expected or out != expected or got != wanted:
        return f"output {out!r}, wanted {expected!r}; {got}, wanted {wanted}"
    return None


def check_text_that_cannot_be_written(bench, build, cpu):
    """Under a W^X policy (sealed.c) the program's functions are refused with the reason and run unchanged; other
    modules are hooked."""
    source, gcc = os.path.join(PROGRAMS, "sealed.c"), ["aarch64-linux-gnu-gcc", "-O2", *BUILDS[build]]
    run([*gcc, "-DLIBRARY", "-shared", "-fPIC", source, "-o", bench.path("libsealed.so")])
    run([*gcc, source, "-o", bench.path("sealed"), f"-L{bench.folder}", "-lsealed", "-Wl,-z,now",
         f"-Wl,-rpath,{bench.folder}"])
    expected = bench.plain(bench.path("sealed"), CPUS[cpu])
    if not expected.startswith("sealed 1"):
        return f"bare: {expected!r}"
    for options in ((), ("--module", "*"), ("--mode", "time", "--module", "*")):
        out, report = bench.counted(bench.path("sealed"), CPUS[cpu], *options)
        own = {f["name"]: (f["calls"], f["reason"]) for f in report["functions"] if f["module"] == "sealed"}
        hooked = sum(f["state"] == "hooked" for f in report["functions"])
        if out != expected or own.get("own") != (None, "not-writable") or any(c is not None for c, _ in own.values()) \
                or hooked < (1000 if options else 0):
            return f"{options}: output {out!r}, wanted {expected!r}; {hooked} hooked, of the program {own}"
    return None


def named(report, name):
    return sorted(f["calls"] for f in report["functions"] if f["name"] == name)


def check_records_travel(bench, build, cpu):
    """A record made on AArch64 is read, merged and exported by the native tool; counts of another machine's
    build of the same program stay separate; a record of another byte order is refused."""
    name = "_ZN4work3fibEl"
    program = bench.compile("work-travels", *EXACT, *BUILDS[build])
    record, other, merged = bench.path("arm.hfr"), bench.path("native.hfr"), bench.path("merged.hfr")
    calls = named(bench.counted(program, CPUS[cpu])[1], name)
    os.rename(bench.path("r.hfr"), record)
    run([bench.native, "merge", record, record, "-o", merged])
    if not calls or named(bench.report(merged), name) != [2 * calls[0]]:
        return f"merged with itself: {named(bench.report(merged), name)}, {calls}"
    run(["g++", "-pthread", *EXACT, os.path.join(HERE, "work.cpp"), "-o", program])
    run([bench.native, "run", "-q", "-o", other, "--", program], env=bench.environment)
    run([bench.native, "merge", record, other, "-o", merged])
    machines = {m["machine"] for m in json.loads(run([bench.native, "info", "--json", merged]).stdout)["modules"]}
    if named(bench.report(merged), name) != calls * 2 or not {"arm64", "x86-64"} <= machines:
        return f"merged with another machine's: {named(bench.report(merged), name)}, {machines}"
    for form in ("html", "callgrind", "pprof", "csv", "json"):
        run([bench.native, "export", record, "-F", form, "-o", bench.path("exported")])
        if not os.path.getsize(bench.path("exported")):
            return f"{form}: empty"
    with open(record, "rb") as file:
        image = file.read()
    with open(other, "wb") as file:
        file.write(image[:8] + image[8:12][::-1] + image[12:])
    done = subprocess.run([bench.native, "report", other], capture_output=True, text=True, check=False)
    if done.returncode != 1 or "byte order" not in done.stderr:
        return f"another byte order: {done.returncode} {done.stderr}"
    return None


def check_images_are_refused(bench, _build, _cpu):
    """Both builds of hotfn refuse each function of big-endian and ILP32 images, with the reason."""
    source = bench.path("refused.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("int f(int x) { return x + 1; } int g(int x) { return f(x) * 2; }")
    for option in ("-mbig-endian", "-mabi=ilp32"):
        image = bench.path("refused.so")
        run(["aarch64-linux-gnu-gcc", option, "-O1", "-fPIC", "-nostdlib", "-shared", source, "-o", image])
        for tool in ([bench.native], ["qemu-aarch64", "-L", ROOT, bench.hotfn]):
            scan = json.loads(run([*tool, "scan", "--json", image]).stdout)
            reasons = [f["reason"] for f in scan["functions"]]
            if reasons != ["machine", "machine"]:
                return f"{option}: {reasons}"
    return None


def check_lists_and_kits_travel(bench, build, cpu):
    """A list that the native tool makes of an AArch64 program is accepted by the AArch64 tool, and refused for another
    CPU's build of the program; a kit contains its tool, so only the tool of its own CPU makes it."""
    name, listed, kit = "_ZN4work3fibEl", bench.path("fib.flf"), bench.path("kit")
    program = bench.compile("listed", *EXACT, *BUILDS[build])
    run([bench.native, "list", program, "--match", name, "-o", listed])
    report = bench.counted(program, CPUS[cpu], "--list", listed)[1]
    counted = {f["name"] for f in report["functions"] if f["calls"]}
    if counted != {name}:
        return f"{name} is in the list, but these were counted: {counted}"
    refused = subprocess.run([bench.native, "kit", program, "-o", kit], capture_output=True, text=True, check=False)
    if refused.returncode != 1 or "another CPU" not in refused.stderr or os.path.exists(kit):
        return f"a native kit: {refused.returncode} {refused.stderr}"
    run(["qemu-aarch64", *CPUS[cpu], "-L", ROOT, bench.hotfn, "kit", program, "-o", kit], env=bench.environment)
    run(["g++", "-pthread", *EXACT, os.path.join(HERE, "work.cpp"), "-o", program])
    refused = subprocess.run([bench.native, "run", "--list", listed, "--", program], capture_output=True, text=True,
                             check=False)
    if refused.returncode != 125 or "another build" not in refused.stderr:
        return f"another CPU's program: {refused.returncode} {refused.stderr}"
    return None


def main(checks, bench_class=Bench):
    build, native = sys.argv[1:3]
    failed = 0
    print(f"1..{len(checks)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = bench_class(build, native, folder)
        for number, (check, build_name, cpu) in enumerate(checks, 1):
            try:
                wrong = check(bench, build_name, cpu)
            except Skipped as reason:
                print(f"ok {number} {check.__name__} {build_name} on {cpu} # SKIP {reason}", flush=True)
                continue
            except (AssertionError, subprocess.TimeoutExpired) as problem:
                wrong = str(problem)
            except subprocess.CalledProcessError as error:
                wrong = f"{error.cmd[:6]}: status {error.returncode}: {error.stderr[-400:]}"
            for line in (wrong or "").splitlines():
                print("#", line)
            failed += wrong is not None
            print(f"{'not ' if wrong else ''}ok {number} {check.__name__} {build_name} on {cpu}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([(check, b, c) for check in (check_exact, check_optimised) for b, c in RUNS] +
                  [(check_hooked_code_keeps_bti, *RUNS[1]), (check_live_patching, *RUNS[1]), (check_budget, *RUNS[0]),
                   (check_wide_modules, *RUNS[1]), (check_text_in_one_piece, *RUNS[1]),
                   (check_text_that_cannot_be_written, *RUNS[1]), (check_records_travel, *RUNS[1]),
                   (check_lists_and_kits_travel, *RUNS[1]),
                   (check_images_are_refused, *RUNS[0])]))
