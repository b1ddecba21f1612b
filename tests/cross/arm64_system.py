#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""AArch64 programs on Linux for AArch64, in an emulated machine of two processors: what qemu-user cannot show, for it has
the kernel of its host: hooks that are taken out and put back from outside (`--budget`: ptrace, /proc/PID/mem), text
guarded by the kernel, membarrier.

    arm64_system.py BUILD NATIVE BUILT

Debian's kernel and busybox for arm64 are kept in BUILT.  Skipped, with the reason, where they or qemu-system-aarch64
cannot be had."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import arm64_programs
from arm64_programs import apt_source
from arm64_test import BUILDS, CXX, HERE, PROGRAMS, ROOT, Skipped, run

ROUNDS = 30000      # 66 million calls of tiny: half a minute
GCC = ["aarch64-linux-gnu-gcc", "-O2", "-pthread", "-D_GNU_SOURCE", "-rdynamic", *BUILDS["protected"]]
LIBRARIES = ("libc.so.6", "ld-linux-aarch64.so.1", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /tmp
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
stty -F /dev/console -onlcr
. /job
poweroff -f
"""
# Each part writes `@@ name`, what it has to tell, and `@@ end status`.
BUDGET = """echo '@@ {name}'
$H run -q --no-cache -o /tmp/r.hfr {options} -- /p/budget {rounds} >/tmp/out
status=$?
cat /tmp/out; echo '@@ report'
$H report --json /tmp/r.hfr
echo "@@ end $status"
"""
SAME = """echo '@@ {name}'
{program} >/tmp/bare; $H run -q -o /tmp/r.hfr {options} --module '*' -- {program} >/tmp/out
status=$?
cmp /tmp/bare /tmp/out && wc -l </tmp/out
$H info /tmp/r.hfr | grep -c 'hooked'
echo "@@ end $status"
"""
BUDGETS = {"counted": "--budget 5%", "timed": "--mode time --budget 5%"}
PROGRAMS_RUN = {"work counted": ("/p/work", ""), "shapes timed": ("/p/shapes", "--mode time"),
                "exceptions timed": ("/p/exceptions", "--mode time")}


def newc(root):
    """An archive of the files below root, as the kernel unpacks it (Linux, Documentation/driver-api/early-userspace)."""
    out = bytearray()

    def put(name, mode, data):
        nonlocal out
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    for path in sorted(root.rglob("*")):
        put(str(path.relative_to(root)), path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
    put("TRAILER!!!", 0, b"")
    return bytes(out)


def machine(bench):
    """(kernel, busybox)"""
    place = bench.built / "arm64" / "system"
    if not place.exists():
        meta, = arm64_programs.download(bench, "linux-image-arm64")
        depends = run(["dpkg-deb", "-f", str(meta), "Depends"]).stdout.split()
        partial = place.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        for package in (depends[0].rstrip(","), "busybox-static"):
            file, = arm64_programs.download(bench, package)
            run(["dpkg-deb", "-x", str(file), str(partial)])
        shutil.rmtree(partial / "lib", ignore_errors=True)      # modules
        partial.rename(place)
    return next((place / "boot").glob("vmlinuz-*")), next(place.glob("**/bin/busybox"))


def fill(root, build, busybox):
    for name in ("bin", "lib", "proc", "sys", "dev", "tmp", "h/tools/hotfn", "h/tools/agent", "p"):
        (root / name).mkdir(parents=True)
    shutil.copy(busybox, root / "bin/busybox")
    for name in LIBRARIES:
        shutil.copy(os.path.join(ROOT, "lib", name), root / "lib" / name)
    for name in ("tools/hotfn/hotfn", "tools/agent/hotfn-agent.so"):
        shutil.copy(os.path.join(build, name), root / "h" / name)
    run([*GCC, os.path.join(PROGRAMS, "budget.c"), "-o", str(root / "p/budget")])
    run([*GCC, os.path.join(PROGRAMS, "timed_shapes.c"), "-o", str(root / "p/shapes")])
    run([*CXX, "-O2", *BUILDS["protected"], os.path.join(HERE, "work.cpp"), "-o", str(root / "p/work")])
    run([*CXX, "-O2", *BUILDS["protected"], os.path.join(PROGRAMS, "cxx_exceptions.cc"), "-o", str(root / "p/exceptions")])
    job = "H=/h/tools/hotfn/hotfn\n"
    job += "".join(SAME.format(name=name, program=p, options=o) for name, (p, o) in PROGRAMS_RUN.items())
    job += "".join(BUDGET.format(name=name, options=o, rounds=ROUNDS) for name, o in BUDGETS.items())
    (root / "job").write_text(job)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)


def parts_of(console):
    """{name: (lines, status)}"""
    parts, name = {}, None
    for line in console.splitlines():
        if line.startswith("@@ end "):
            parts[name] = (lines, int(line.split()[2]))
            name = None
        elif name:
            lines.append(line)
        elif line.startswith("@@ "):
            name, lines = line[3:], []
    return parts


def wrong_same(lines):
    return None if len(lines) == 2 and all(line.strip().isdigit() and int(line) > 0 for line in lines) else lines


def wrong_budget(name, lines):
    """The program's own counts are right; tiny went and came back; what it is short of is marked."""
    at = lines.index("@@ report")
    told = dict(line.split() for line in lines[:at] if len(line.split()) == 2)
    report = json.loads("\n".join(lines[at + 1:]))
    functions, budget = {f["name"]: f for f in report["functions"]}, report["budget"]
    changes = [(c["to"], c["why"]) for c in budget["changes"] if c["function"] == "tiny"]
    tiny = functions["tiny"]
    if told.get("tiny") != str(ROUNDS * 2200 + ROUNDS // 10 * 2) or budget["note"] or budget["failed_stops"] == budget["stops"]:
        return f"{told}, {budget}"
    if ("unhooked", "too-dear") not in changes or not any(why == "try-again" for _, why in changes):
        return f"changes: {changes}"
    if not tiny["calls_at_least"] or not 0 < tiny["calls"] < int(told["tiny"]):
        return f"tiny: {tiny}"
    whole = {n: (functions[n]["calls"], told[n]) for n in ("batch", "calm", "work")}
    return None if all(calls == int(text) for calls, text in whole.values()) else f"{name}: {whole}"


def console_of(bench, build):
    if not shutil.which("qemu-system-aarch64"):
        raise Skipped("no qemu-system-aarch64")
    try:
        kernel, busybox = machine(bench)
    except apt_source.Unavailable as reason:
        raise Skipped(str(reason)) from None
    root = pathlib.Path(bench.folder) / "root"
    fill(root, build, busybox)
    (root.parent / "initrd").write_bytes(newc(root))
    return subprocess.run(
        ["qemu-system-aarch64", "-M", "virt", "-cpu", "max", "-smp", "2", "-m", "1536", "-display", "none", "-net", "none",
         "-nodefaults", "-serial", "stdio", "-no-reboot", "-kernel", str(kernel), "-initrd", str(root.parent / "initrd"),
         "-append", "console=ttyAMA0 quiet loglevel=1 panic=-1 rdinit=/init"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=3000, check=True).stdout


def main():
    build, native, built = sys.argv[1:]
    names, failed = [*PROGRAMS_RUN, *BUDGETS], 0
    print(f"1..{len(names)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = arm64_programs.Programs(build, native, folder)
        bench.built = pathlib.Path(built)
        try:
            console = console_of(bench, build)
        except Skipped as reason:
            for number, name in enumerate(names, 1):
                print(f"ok {number} {name} # SKIP {reason}")
            return 0
    parts = parts_of(console)
    for number, name in enumerate(names, 1):
        lines, status = parts.get(name, (console.splitlines()[-40:], None))
        wrong = f"status {status}: {lines}" if status else wrong_budget(name, lines) if name in BUDGETS and status == 0 \
            else wrong_same(lines)
        if wrong:
            print("#", str(wrong)[:3000])
        failed += bool(wrong)
        print(f"{'not ' if wrong else ''}ok {number} {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
