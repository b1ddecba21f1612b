# SPDX-License-Identifier: MIT
"""Paths, and helpers to compile, pin and time a command."""
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", HERE.parent))
BUILD = pathlib.Path(os.environ.get("HOTFN_BUILD_ROOT", ROOT / "build/bench")).resolve()
HOTFN = os.environ.get("HOTFN", str(BUILD / "tools/hotfn/hotfn"))
WORK = BUILD / "work"  # all output of the benches
CPUS = sorted(os.sched_getaffinity(0))


class Missing(Exception):
    """A figure cannot be measured; the text is the reason."""


def need(program):
    found = shutil.which(program)
    if not found:
        raise Missing(f"no '{program}' on this system")
    return found


def failure(command, done):
    """One line about a failed command."""
    reason = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    text = done.stderr if isinstance(done.stderr, str) else done.stderr.decode(errors="replace")
    last = (text.strip().splitlines() or [""])[-1].strip()
    return Missing(f"{os.path.basename(str(command[0]))} ended with {reason}: {last[:60]}")


def compile_c(output, sources, flags=(), stamp=()):
    """Compile a C program unless it is newer than its sources and libhotfn."""
    output.parent.mkdir(parents=True, exist_ok=True)
    library = BUILD / "src/libhotfn.so"
    inputs = [pathlib.Path(path) for path in (*sources, *stamp, library)]
    if output.exists() and all(output.stat().st_mtime > path.stat().st_mtime for path in inputs):
        return output
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-pthread", "-I", ROOT / "include",
               *sources, "-o", output, "-L", BUILD / "src", "-lhotfn",
               f"-Wl,-rpath,{BUILD / 'src'}", *flags]
    subprocess.run([str(word) for word in command], check=True)
    return output


def pinned(cpus):
    """A preexec_fn for Popen that restricts the process to these CPUs."""
    return lambda: os.sched_setaffinity(0, cpus)


def output_of(command, cpus=None, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          preexec_fn=pinned(cpus) if cpus else None, **options)
    if done.returncode != 0:
        raise failure(command, done)
    return done.stdout


def timed(command, stdin=None, cpus=None, env=None):
    """(wall seconds, CPU seconds including children) of one run whose output is discarded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(stdin or os.devnull, "rb") as source:
        begin = time.perf_counter()
        done = subprocess.run([str(word) for word in command], stdin=source,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env,
                              preexec_fn=pinned(cpus) if cpus else None)
        wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise failure(command, done)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu


def version_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    return (done.stdout or done.stderr).splitlines()[0] if (done.stdout or done.stderr) else None


def about_this_run():
    """Properties of the machine and of the tools."""
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), "unknown")
    return {"cpu": model, "cpus": len(CPUS), "kernel": platform.release(),
            "load_at_start": os.getloadavg()[0],
            "versions": {name: version_line([name, "--version"])
                         for name in ("gcc", "uftrace", "valgrind", "node", "python3")},
            "hotfn": version_line([HOTFN, "--version"])}
