#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn doctor PID` and `hotfn attach PID` agree about real processes: where the doctor finds a problem, attach
refuses with its first sentence; where it finds none, attach counts.

HOTFN names the program.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import cases
from cases import Skipped

HOTFN, CC = os.environ["HOTFN"], os.environ.get("CC", "cc").split()[-1]
OTHER_USER = 65534
SYSTEM_HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]  # linux/, asm/

PROGRAM = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) static int work(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}
int main(int argc, char **argv)
{
    static char page[4096];
    struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog filter = { 1, allow };
    const char *what = argc > 1 ? argv[1] : "";
    int x = 0;
    if (strcmp(what, "filter") == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
            return 1;
        }
    }
    if (strcmp(what, "lock") == 0 && mlock(page, sizeof page) != 0) {
        return 1;
    }
    if (argc > 2) {
        fork(); /* links the function */
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        x = work(x);
        usleep(1000);
    }
}
"""

GO = """package main
import ("fmt"; "time")
func main() { fmt.Println("ready"); for { time.Sleep(time.Millisecond) } }
"""


def build(folder, *options, compiler=None):
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    done = subprocess.run([*(compiler or [CC]), "-O1", *options, "-o", program, source], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"the program cannot be built with {[*(compiler or []), *options]}")
    return program


@contextlib.contextmanager
def running(*command, **options):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        if process.stdout.readline() != "ready\n":
            raise Skipped(f"{command[0]} cannot be executed here")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen within 30 seconds"
        time.sleep(0.01)


def status_of(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].strip()
    return ""


def hotfn(*words, **options):
    return subprocess.run([HOTFN, *map(str, words)], capture_output=True, text=True, timeout=120, **options)


def problems_of(pid, compare=True, **options):
    """The conditions that do not hold, by name, after a check that text, JSON and exit status agree."""
    data = hotfn("doctor", "--json", pid, **options)
    report = json.loads(data.stdout)
    if compare:
        check_text(report, data, hotfn("doctor", pid, **options))
    return {c["name"]: c["text"] for c in report["checks"] if c["state"] == "problem"}


def warnings_of(pid):
    report = json.loads(hotfn("doctor", "--json", pid).stdout)
    return {c["name"]: c["text"] for c in report["checks"] if c["state"] == "warning"}


def check_text(report, data, text):
    problems = {c["name"]: c["text"] for c in report["checks"] if c["state"] == "problem"}
    assert report["can_attach"] == (not problems), report
    assert text.returncode == data.returncode == (1 if problems else 0), (text, data)
    for check in report["checks"]:
        assert f"{check['state']:<8} {check['name']:<14} " in text.stdout, (check, text.stdout)
        assert check["name"] == "threads" or check["text"] in text.stdout, (check, text.stdout)


def attach(folder, pid, **options):
    return hotfn("attach", "--for", "20ms", "-o", folder / "doctor.hfr", pid, **options)


def expect_refusal(folder, pid, name, *parts, **options):
    problems = problems_of(pid, **options)
    assert name in problems and all(part in problems[name] for part in parts), problems
    done = attach(folder, pid, **options)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert done.stderr == f"hotfn attach: {next(iter(problems.values()))}\n", (done.stderr, problems)
    return problems


def expect_success(folder, pid):
    assert problems_of(pid) == {}, problems_of(pid)
    done = attach(folder, pid)
    assert done.returncode == 0 and "functions hooked" in done.stderr, done


# ---- The cases.

def a_process_that_runs_is_unchanged_and_can_be_attached_to(folder):
    for options in ((), ("-static",)):
        with running(build(folder, *options)) as target:
            before = pathlib.Path(f"/proc/{target.pid}/maps").read_text()
            assert problems_of(target.pid) == {}
            warnings = warnings_of(target.pid)  # what a timed attach refuses
            assert list(warnings) == (["times"] if options else []), warnings
            assert "linked statically" in warnings.get("times", "linked statically"), warnings
            assert pathlib.Path(f"/proc/{target.pid}/maps").read_text() == before
            assert status_of(target.pid, "TracerPid") == "0" and target.poll() is None
            expect_success(folder, target.pid)


def a_number_without_a_process_is_reported(folder):
    expect_refusal(folder, 2 ** 22 + 1, "process", "there is no process")
    assert hotfn("doctor", "x").returncode == 2 and hotfn("doctor", "1", "2").returncode == 2
    assert hotfn("doctor", "0").returncode == 2


def a_process_that_has_ended_is_reported(folder):
    with running(build(folder)) as target:
        target.send_signal(signal.SIGKILL)
        wait_for(lambda: status_of(target.pid, "State").startswith("Z"))
        expect_refusal(folder, target.pid, "end", "has ended")


def a_process_that_is_stopped_is_reported(folder):
    with running(build(folder)) as target:
        target.send_signal(signal.SIGSTOP)
        wait_for(lambda: status_of(target.pid, "State").startswith("T"))
        problems = expect_refusal(folder, target.pid, "stop", f"kill -CONT {target.pid}")
        assert list(problems) == ["stop"], problems
        target.send_signal(signal.SIGCONT)
        wait_for(lambda: not status_of(target.pid, "State").startswith("T"))
        expect_success(folder, target.pid)


def another_tracer_is_named(folder):
    tracers = {"strace": ["-o", "/dev/null", "-p"], "gdb": ["-q", "-nx", "-ex", "continue", "-p"]}
    found = [name for name in tracers if shutil.which(name)]
    if not found:
        raise Skipped("neither strace nor gdb is installed")
    program = build(folder)
    for name in found:
        with running(program) as target:
            tracer = subprocess.Popen([name, *tracers[name], str(target.pid)], stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for(lambda: status_of(target.pid, "TracerPid") != "0" and
                         not status_of(target.pid, "State").startswith("T"))
                expect_refusal(folder, target.pid, "tracer", f"traced by {name}")
            finally:
                tracer.kill()
                tracer.wait()
                tracer.stdin.close()


def a_filter_of_system_calls_and_locked_memory_are_reported(folder):
    program = build(folder)
    with running(program, "filter") as target:
        expect_refusal(folder, target.pid, "system-calls", "seccomp mode 2", "hotfn run")
    with running(program, "lock") as target:
        expect_refusal(folder, target.pid, "memory", "locks memory", "hotfn run")


def other_programs_are_reported(folder):
    if not os.environ.get("HOTFN_EXEC32"):
        print("# no 32-bit program: they are not executed here")
    else:
        with running(build(folder, "-m32", *SYSTEM_HEADERS)) as target:
            expect_refusal(folder, target.pid, "program", "word size")
    if shutil.which("musl-gcc"):
        for options in ((), ("-static",)):
            with running(build(folder, *options, *SYSTEM_HEADERS, compiler=["musl-gcc"])) as target:
                expect_success(folder, target.pid)
    if shutil.which("go"):
        (folder / "go.go").write_text(GO)
        subprocess.run(["go", "build", "-o", folder / "go", folder / "go.go"], check=True,
                       env={**os.environ, "GOCACHE": str(folder / "cache"), "CGO_ENABLED": "0"})
        with running(folder / "go") as target:
            expect_success(folder, target.pid)


def another_hotfn_is_reported(folder):
    program = build(folder)
    with running(program) as target:
        other = subprocess.Popen([HOTFN, "attach", "-q", "-o", folder / "other.hfr", str(target.pid)])
        try:
            wait_for(lambda: "hotfn-attach" in pathlib.Path(f"/proc/{target.pid}/maps").read_text())
            wait_for(lambda: list(problems_of(target.pid, compare=False)) == ["hotfn"])
            expect_refusal(folder, target.pid, "hotfn", f"process {other.pid}", f"hotfn detach {target.pid}")
        finally:
            other.kill()
            other.wait()
        assert problems_of(target.pid) == {}
        assert "that was killed" in hotfn("doctor", target.pid).stdout
        expect_success(folder, target.pid)
    run = subprocess.Popen([HOTFN, "run", "-q", "-o", folder / "run.hfr", "--", program], stdout=subprocess.PIPE,
                           text=True)
    try:
        assert run.stdout.readline() == "ready\n"
        child = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0]
        expect_refusal(folder, int(child), "hotfn", "started by hotfn run")
    finally:
        os.kill(int(child), signal.SIGKILL)
        run.communicate()


def another_user_is_reported(folder):
    if os.getuid() != 0:
        raise Skipped("only root can act for two users")
    try:
        subprocess.run([HOTFN, "--version"], user=OTHER_USER, group=OTHER_USER, extra_groups=[], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skipped("another user cannot execute the tool") from None
    with running(build(folder)) as target:
        problems = expect_refusal(folder, target.pid, "user", "you are user 65534", "as root", user=OTHER_USER,
                                  group=OTHER_USER, extra_groups=[], cwd="/")
        assert "permission" in problems and "capabilities" in problems, problems


CASES = [
    a_process_that_runs_is_unchanged_and_can_be_attached_to,
    a_number_without_a_process_is_reported,
    a_process_that_has_ended_is_reported,
    a_process_that_is_stopped_is_reported,
    another_tracer_is_named,
    a_filter_of_system_calls_and_locked_memory_are_reported,
    other_programs_are_reported,
    another_hotfn_is_reported,
    another_user_is_reported,
]


def make(folder):
    os.environ["XDG_CACHE_HOME"] = folder
    return pathlib.Path(folder)


if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[CC], make=make))
