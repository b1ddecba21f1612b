#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn attach` and `hotfn run` of programs whose threads have no word of glibc's for the address of a row: linked
statically, linked with musl, or written in Go.  Known totals are exact, threads and processes that start meanwhile
included; rounds of attach and detach leave the program as it was.

HOTFN names the program.  HOTFN_ROUNDS is the number of rounds for each program [10].
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import cases
from attach_test import (HOTFN, Program, ROUNDS, attach, calls_in, check_text, count_files, detach, make, own_mappings, run_once,
                         run_rounds, wait_until_attached)
from cases import Skipped

SOURCES = pathlib.Path(__file__).parent / "src"
CC = os.environ.get("CC", "gcc").split()
KINDS = {
    "static": [*CC, "-static", "-pthread"],
    "static-pie": [*CC, "-static-pie", "-pthread"],
    "musl-static": ["musl-gcc", "-static"],
    "musl-dynamic": ["musl-gcc"],
    "musl-stripped": ["musl-gcc", "-static", "-s"],
}


def build(folder, kind):
    command = KINDS[kind]
    if not shutil.which(command[0]):
        raise Skipped(f"no {command[0]} on this system")
    program = folder / f"totals-{kind}"
    subprocess.run([*command, "-O1", "-g", "-o", program, SOURCES / "static_totals.c"], check=True)
    return program


def build_kinds(folder):
    """Each kind that this system can build."""
    built = {kind: build(folder, kind) for kind in KINDS if shutil.which(KINDS[kind][0])}
    if not built:
        raise Skipped("no compiler on this system")
    return built


def build_go(folder, *options, **environment):
    if not shutil.which("go"):
        raise Skipped("no go on this system")
    program = folder / "totals-go"
    caches = {"GOCACHE": os.environ.get("GOCACHE", str(folder.parent / "hotfn-go-cache")), "GO111MODULE": "off"}
    subprocess.run(["go", "build", *options, "-o", program, SOURCES / "totals.go"], check=True,
                   env={**os.environ, **caches, "HOME": str(folder), **environment})
    return program


def check_go_totals(found, rounds, goroutines, calls):
    expected = {"main.work": goroutines * (calls + 100), "main.deep": goroutines * 3001,
                "main.produce": goroutines, "main.tree": goroutines * 2047, "main.(*node).sum": goroutines * 4095,
                "main.answer": goroutines, "main.request": goroutines, "main.run": goroutines}
    assert {name: found.get(name) for name in expected} == {n: rounds * c for n, c in expected.items()}, \
        {name: (found.get(name), rounds * calls) for name, calls in expected.items()}


class Attached:
    """A `hotfn attach` that runs until the block ends."""

    def __init__(self, target, record, *options):
        self.target, self.record = target, record
        self.hotfn = subprocess.Popen([HOTFN, "attach", "-o", record, *options, str(target.pid)],
                                      stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        wait_until_attached(self.target, self.hotfn)

    def __exit__(self, kind, *_):
        self.hotfn.send_signal(signal.SIGINT)
        messages = self.hotfn.communicate(timeout=60)[1]
        assert kind or (self.hotfn.returncode == 0 and "the threads were stopped" in messages), messages


def check_totals(found, rounds, threads, forks, calls):
    if "work" in found:  # not stripped
        assert found["work"] == rounds * (threads + (threads + 7) // 8) * calls, found["work"]
        assert found["fork_work"] == rounds * 2 * forks * 1000, found["fork_work"]


# ---- The cases.

def totals_between_attach_and_detach_are_exact(folder):
    for kind, program in build_kinds(folder).items():
        threads, forks, calls = 64, 5, 3000
        record = folder / f"{kind}.hfr"
        with Program([program, str(threads), str(forks), str(calls)]) as target:
            target.expect("ready")
            with Attached(target, record, "--module", "*"):
                run_once(target, 3)
            check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
            run_once(target)  # not counted
        found = calls_in(record)
        assert kind == "musl-stripped" or found["work"] > 0, kind
        check_totals(found, 3, threads, forks, calls)


def programs_survive_rounds(folder):
    for program in build_kinds(folder).values():
        with Program([program, "8", "1", "1000"]) as target:
            target.expect("ready")
            for _ in range(4 * ROUNDS):
                target.process.stdin.write("x")
            target.process.stdin.flush()
            run_rounds(target.pid, folder, "--module", "*")
            for _ in range(4 * ROUNDS):
                target.expect("done")


def counts_of_a_killed_launcher_are_kept(folder):
    record = folder / "killed.hfr"
    with Program([build(folder, "musl-static"), "8", "2", "2000"]) as target:
        target.expect("ready")
        hotfn = subprocess.Popen([HOTFN, "attach", "-o", folder / "never.hfr", str(target.pid)])
        wait_until_attached(target, hotfn)
        run_once(target)
        hotfn.kill()
        hotfn.wait()
        run_once(target)
        detach(target.pid, record)
        check_totals(calls_in(record), 2, 8, 2, 2000)
        check_text(target.pid)
        assert not own_mappings(target.pid), own_mappings(target.pid)
        run_once(target)


def times_are_refused_with_the_reason(folder):
    with Program([build(folder, "static")]) as target:
        target.expect("ready")
        done = attach(target.pid, "--mode", "time", check=False)
        assert done.returncode == 1 and "count its calls" in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done.stderr


def a_program_that_uses_gs_is_refused(folder):
    source, program = folder / "gs.c", folder / "gs"
    source.write_text(r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static long cell[4];
int main(int count, char **words)
{
    if (count > 1) {
        syscall(SYS_arch_prctl, 0x1001, cell);
    } else {
        __asm__ volatile("mov %%gs:8, %%rax" ::: "rax");
    }
    puts("ready");
    fflush(stdout);
    return getchar() == 0;
}
""")
    subprocess.run([*CC, "-static", "-O1", "-o", program, source], check=True)
    with Program([program, "set"]) as target:
        target.expect("ready")
        done = attach(target.pid, check=False)
        assert done.returncode == 1 and "gs segment" in done.stderr, done
        check_text(target.pid)


def totals_of_go_programs_are_exact(folder):
    program = build_go(folder, CGO_ENABLED="0")
    record = folder / "go.hfr"
    with Program([program, "9", "20000"]) as target:
        target.expect("ready")
        run_once(target)
        with Attached(target, record):
            run_once(target, 3)
        check_text(target.pid)
        assert not own_mappings(target.pid), own_mappings(target.pid)
        run_once(target)
    check_go_totals(calls_in(record), 3, 9, 20000)


def go_functions_are_switched(folder):
    """While a function is off, stacks that grow take no counts back."""
    record = folder / "go.hfr"
    with Program([build_go(folder, CGO_ENABLED="0"), "9", "200"]) as target:
        target.expect("ready")
        with Attached(target, record):
            for mode in ("off", "count"):
                run_once(target)
                subprocess.run([HOTFN, "ctl", "-q", "--mode", mode, "-f", "main.deep", str(target.pid)], check=True)
            run_once(target)
        check_text(target.pid)
        assert not own_mappings(target.pid), own_mappings(target.pid)
    found = calls_in(record)
    assert (found["main.deep"], found["main.work"]) == (2 * 9 * 3001, 3 * 9 * 300), found["main.deep"]


def go_programs_survive_rounds(folder):
    with Program([build_go(folder, CGO_ENABLED="0"), "9", "20000"]) as target:
        target.expect("ready")
        run_once(target)
        before = count_files(target.pid)
        for _ in range(2 * ROUNDS):
            target.process.stdin.write("x")
        target.process.stdin.flush()
        run_rounds(target.pid, folder, counts_files=False)  # pipes of programs come and go
        for _ in range(2 * ROUNDS):
            target.expect("done")
        assert count_files(target.pid) <= before


WEAK = """
#include <cstdio>
#include <string>
extern "C" __attribute__((weak)) void missing(); /* called at address 0, far below the code */
extern "C" __attribute__((noinline)) int maybe(int x)
{
    __asm__ volatile("");
    if (x < 0) {
        missing();
    }
    return x + 1;
}
int main(int count, char **)
{
    std::string text = std::to_string(maybe(count));
    puts(text.c_str());
}
"""


def a_position_independent_go_program_runs(folder):
    """It names glibc's loader, but no agent may enter it."""
    program = build_go(folder, "-ldflags=-s", "-buildmode=pie", CGO_ENABLED="0")
    done = run(folder / "pie.hfr", program, 9, 2000, input="xx")
    assert done.returncode == 0 and done.stdout == "ready\ndone\ndone\n", done
    hooked, refused = map(int, re.search(r"(\d+) functions hooked, (\d+) refused", done.stderr).groups())
    assert refused < hooked / 20, (hooked, refused)
    found = calls_in(folder / "pie.hfr")
    assert (found["main.work"], found["main.deep"]) == (2 * 9 * 2100, 2 * 9 * 3001), found
    with Program([program, "9", "2000"]) as target:
        target.expect("ready")
        with Attached(target, folder / "pie.hfr"):
            run_once(target, 2)
        check_text(target.pid)
    assert calls_in(folder / "pie.hfr")["main.work"] == 2 * 9 * 2100


def a_program_that_calls_a_missing_weak_function_is_counted(folder):
    source, program, record = folder / "weak.cpp", folder / "weak", folder / "weak.hfr"
    source.write_text(WEAK)
    compiler = os.environ.get("CXX", "g++").split()
    for flags in (["-no-pie"], ["-static", "-no-pie"], ["-static-pie"]):
        subprocess.run([*compiler, "-O1", *flags, "-o", program, source], check=True)
        done = run(record, program)
        assert done.returncode == 0 and done.stdout == "2\n", done
        found = calls_in(record)
        assert found["maybe"] == 1 and found["main"] == 1, (flags, done.stderr)


def run(record, *command, options=(), **more):
    return subprocess.run([HOTFN, "run", *options, "-o", str(record), "--", *map(str, command)], capture_output=True,
                          text=True, timeout=120, **more)


def a_run_counts_from_the_entry_point(folder):
    threads, forks, calls = 16, 3, 2000
    for kind, program in build_kinds(folder).items():
        record = folder / f"run-{kind}.hfr"
        done = run(record, program, threads, forks, calls, input="xx")
        assert done.returncode == 0 and done.stdout == "ready\ndone\ndone\n", (kind, done)
        found = calls_in(record)
        assert kind == "musl-stripped" or found["main"] == 1, (kind, found.get("main"))
        check_totals(found, 2, threads, forks, calls)


def a_run_of_a_go_program_is_exact(folder):
    for options in ((), ("-ldflags=-s",)):  # without a symbol table: names are those of the runtime's
        program = build_go(folder, *options, CGO_ENABLED="0")
        done = run(folder / "go.hfr", program, 9, 2000, input="xx")
        assert done.returncode == 0 and done.stdout == "ready\ndone\ndone\n", (options, done)
        found = calls_in(folder / "go.hfr")
        check_go_totals(found, 2, 9, 2000)
        assert found["main.main"] == 1, found["main.main"]
    table = subprocess.run([HOTFN, "report", "-n", "0", folder / "go.hfr"], capture_output=True, text=True, check=True)
    loops = [line for line in table.stdout.splitlines() if "entry is a loop" in line and " main." in line]
    assert not loops, loops  # they begin again when their stacks grow, and are counted once


def busybox_behaves_as_without_hotfn(folder):
    """Debian's, which is linked statically and has no names."""
    busybox, record = "/bin/busybox", folder / "busybox.hfr"
    if not os.path.exists(busybox):
        raise Skipped("busybox-static is not installed")
    script = "for i in 1 2 3; do (echo $i; seq $i | sort -r); done; sed s/a/b/ </etc/passwd | md5sum; kill -TERM $$"
    for words in (["seq", "1", "50"], ["sh", "-c", "exit 7"], ["sh", "-c", script], ["md5sum", "/bin/busybox"]):
        bare = subprocess.run([busybox, *words], capture_output=True, text=True)
        done = run(record, busybox, *words)
        assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), (words, done, bare)
        assert sum(calls or 0 for calls in calls_in(record).values()) > 100, words


def refusals_of_a_run_are_one_sentence(folder):
    program, record = build(folder, "static"), folder / "none.hfr"
    for options, text in ((["--mode", "time"], "not timed"), (["--follow"], "cannot be followed")):
        done = run(record, program, options=options)
        assert done.returncode == 2 and text in done.stderr and len(done.stderr.splitlines()) == 1, done
    if os.getuid() == 0:
        if shutil.which("setcap") and subprocess.run(["setcap", "cap_net_raw+ep", program]).returncode == 0:
            assert run(record, program).returncode == 0  # root gains nothing
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        done = run(record, program)
        assert done.returncode == 125 and "setuid" in done.stderr and len(done.stderr.splitlines()) == 1, done


CASES = [
    totals_between_attach_and_detach_are_exact,
    programs_survive_rounds,
    counts_of_a_killed_launcher_are_kept,
    times_are_refused_with_the_reason,
    a_program_that_uses_gs_is_refused,
    totals_of_go_programs_are_exact,
    go_functions_are_switched,
    go_programs_survive_rounds,
    a_run_counts_from_the_entry_point,
    a_run_of_a_go_program_is_exact,
    a_program_that_calls_a_missing_weak_function_is_counted,
    busybox_behaves_as_without_hotfn,
    refusals_of_a_run_are_one_sentence,
]

# It compiles Go's library again.
SOAK_CASES = [a_position_independent_go_program_runs]

if __name__ == "__main__":
    sys.exit(cases.run(CASES + SOAK_CASES if len(sys.argv) > 1 else CASES, make=make))
