#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn ctl` on programs under `hotfn run` and `hotfn attach`: a function that is off has the bytes of the file
and counts nothing, a function that is on again counts on, timed functions can be counted and timed again while calls are
open, and what cannot be done is refused in one sentence.

HOTFN names the program.
"""
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys

import attach_test as base
import cases

HOTFN, CXX = os.environ["HOTFN"], os.environ.get("CXX", "g++")
CALLS = 1000

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#define WORK(name) extern "C" __attribute__((noinline)) long name(long x) { __asm__ volatile(""); return x * 3 + 1; }
WORK(first) WORK(second) WORK(third)
extern "C" __attribute__((noinline)) void wait_open(int in) /* a call that is open while functions are switched */
{
    char byte;
    if (read(in, &byte, 1) != 1) {
        abort();
    }
}
static void call_all(int calls)
{
    for (int i = 0; i < calls; i++) {
        first(i), second(i), third(i);
    }
}
int main(int argc, char **argv)
{
    int gate[2], to_child[2], from_child[2];
    char line[16], byte;
    pid_t child = 0;
    if (pipe(gate) || pipe(to_child) || pipe(from_child)) {
        return 1;
    }
    std::thread waiting;
    if (argc > 1 && (child = fork()) == 0) { /* works when its parent does */
        close(to_child[1]);
        while (read(to_child[0], &byte, 1) == 1) {
            call_all(1000);
            if (write(from_child[1], "x", 1) != 1) {
                _exit(1);
            }
        }
        _exit(0);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'w') {
            waiting = std::thread(wait_open, gate[0]);
        } else if (line[0] == 'e') {
            if (write(gate[1], "x", 1) != 1) {
                return 1;
            }
            waiting.join();
        } else {
            call_all(1000);
            if (child && (write(to_child[1], "x", 1) != 1 || read(from_child[0], &byte, 1) != 1)) {
                return 1;
            }
        }
        puts("done");
        fflush(stdout);
    }
    if (child) {
        close(to_child[1]);
        int status;
        return waitpid(child, &status, 0) != child || status != 0;
    }
    return 0;
}
"""


def build(folder, *flags):
    source, program = folder / "switched.cpp", folder / "switched"
    if flags or not program.exists():
        source.write_text(SOURCE)
        subprocess.run([CXX, "-O2", "-pthread", *flags, "-o", program, source], check=True)
    return program


class Counted:
    """The program, under `hotfn run` or attached to, and a record at `record`."""

    def __init__(self, folder, way, *options, arguments=(), command=None):
        self.record = folder / f"{way}.hfr"
        command = command or [build(folder), *arguments]
        if way == "run":
            self.hotfn = self.target = subprocess.Popen(
                [HOTFN, "run", "-q", "-o", self.record, *options, "--", *command], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            self.expect("ready")
            children = pathlib.Path(f"/proc/{self.hotfn.pid}/task/{self.hotfn.pid}/children").read_text().split()
            self.pid = int(children[0])
        else:
            self.target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.pid = self.target.pid
            self.expect("ready")
            self.hotfn = subprocess.Popen([HOTFN, "attach", "-q", "-o", self.record, *options, str(self.pid)])
            base.wait_until_attached(self, self.hotfn)

    @property
    def process(self):
        return self.target

    def expect(self, line):
        found = self.target.stdout.readline()
        assert found == line + "\n", (found, self.target.poll())

    def send(self, letter):
        self.target.stdin.write(letter + "\n")
        self.target.stdin.flush()
        self.expect("done")

    def ctl(self, *options, by_record=False):
        return ctl(*options, str(self.record if by_record else self.pid))

    def finish(self):
        if self.hotfn is not self.target:
            self.hotfn.send_signal(signal.SIGINT)
            assert self.hotfn.wait(timeout=60) == 0
            base.check_text(self.pid)
            assert not base.own_mappings(self.pid), base.own_mappings(self.pid)
            self.send("c")  # not counted
        self.target.stdin.close()
        assert self.target.wait(timeout=60) == 0
        return read_functions(self.record)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.hotfn, self.target):
            process.kill()
            process.wait()


def read_functions(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", str(record)], capture_output=True, check=True)
    return {f["name"]: f for f in base.json.loads(done.stdout)["functions"]}


def ctl(*words, code=0):
    done = subprocess.run([HOTFN, "ctl", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done
    assert len(done.stderr.splitlines()) == 1 or code == 2, done
    return done.stderr


def differing_bytes(pid, program):
    """The addresses at which code of the program in memory is not that of its file."""
    found = set()
    with open(f"/proc/{pid}/mem", "rb") as memory, open(program, "rb") as file:
        for line in base.maps_of(pid):
            words = line.split(maxsplit=5)
            if "x" in words[1] and words[-1] == str(program):
                begin, end = (int(w, 16) for w in words[0].split("-"))
                memory.seek(begin)
                file.seek(int(words[2], 16))
                now, before = memory.read(end - begin), file.read(end - begin)
                found |= {begin + i for i, (a, b) in enumerate(zip(now, before)) if a != b}
    return found


def connect(name):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(30)
    connection.connect("\0" + name)
    return connection


def check_counts(found, **expected):
    assert {name: found.get(name, {}).get("calls", 0) for name in expected} == expected, found


# ---- The cases.

def off_restores_the_bytes_and_on_counts_on(folder):
    for way in ("run", "attach"):
        with Counted(folder, way) as target:
            program = folder / "switched"
            hooked = differing_bytes(target.pid, program)
            target.send("c")
            text = target.ctl("--mode", "off")
            assert re.search(r"hotfn: [1-9][0-9]* functions are now off; threads were stopped", text), text
            assert hooked and not differing_bytes(target.pid, program)
            target.send("c")
            assert "hotfn: 0 functions are now off; " in target.ctl("--mode", "off", by_record=True)
            text = target.ctl("--mode", "count", "-f", "first", "-f", "second", "-x", "second", by_record=True)
            assert "1 function is now counted" in text, text
            assert differing_bytes(target.pid, program) < hooked
            target.send("c")
            target.ctl("--mode", "count", "--module", "switched")
            assert differing_bytes(target.pid, program) == hooked
            target.send("c")
            found = target.finish()
            check_counts(found, first=3 * CALLS, second=2 * CALLS, third=2 * CALLS)
            assert found["second"]["calls_at_least"] and found["first"]["calls_at_least"], found


def functions_of_a_static_program_are_switched(folder):
    """Changed system calls, by which new threads are found, stay."""
    program = build(folder, "-static-pie")
    with Counted(folder, "run") as target:
        hooked = differing_bytes(target.pid, program)
        target.send("c")
        target.ctl("--mode", "off")
        off = differing_bytes(target.pid, program)
        assert off < hooked and len(off) < len(hooked) / 10, (len(off), len(hooked))
        target.send("c")
        target.ctl("--mode", "count")
        assert differing_bytes(target.pid, program) == hooked
        target.send("c")
        check_counts(target.finish(), first=2 * CALLS, third=2 * CALLS)


def functions_of_forked_processes_are_switched_too(folder):
    for way in ("run", "attach"):
        with Counted(folder, way, arguments=["fork"]) as target:
            target.send("c")
            children = pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
            target.ctl("--mode", "off")
            if way == "run":  # a process that was forked before the attach is not counted
                assert not differing_bytes(int(children[0]), folder / "switched")
            target.send("c")
            target.ctl("--mode", "count")
            target.send("c")
            each = 2 if way == "run" else 1
            check_counts(target.finish(), first=2 * each * CALLS, third=2 * each * CALLS)


def timed_functions_can_be_counted_and_timed_again(folder):
    for way, options in (("run", ("--clock", "cpu")), ("attach", ()), ("run", ("--sample", "4"))):
        with Counted(folder, way, "--mode", "time", *options) as target:
            target.send("w")  # an open call
            target.send("c")
            text = target.ctl("--mode", "count")
            assert "now counted" in text, text
            target.send("c")
            target.send("c")
            text = target.ctl("--mode", "time", "-f", "first", "-f", "wait_open")
            assert "2 functions are now timed" in text, text
            target.send("c")
            target.ctl("--mode", "off", "-f", "third")
            target.send("c")
            target.ctl("--mode", "time", "-f", "third")
            target.send("c")
            target.send("e")  # its stub ends the call although it was counted only meanwhile
            found = target.finish()
            check_counts(found, first=6 * CALLS, second=6 * CALLS, third=5 * CALLS, wait_open=1)
            timed = {name: f["timed_calls"] for name, f in found.items()}
            if "--sample" not in options:
                assert timed["first"] == 4 * CALLS and timed["second"] == CALLS, (timed, found["first"])
                assert timed["third"] == 2 * CALLS, timed


def threads_that_call_meanwhile_are_unharmed(folder):
    """64 threads with exceptions call a function that is switched again and again."""
    totals = base.build_totals(folder)
    for mode in ("count", "time"):
        record = folder / "busy.hfr"
        with base.Program([totals, "16", "2", "20000"]) as target:
            target.expect("ready")
            hotfn = subprocess.Popen([HOTFN, "attach", "-q", "--mode", mode, "-o", record, str(target.pid)])
            base.wait_until_attached(target, hotfn)
            target.process.stdin.write("x")
            target.process.stdin.flush()
            for i in range(6):
                subprocess.run([HOTFN, "ctl", "-q", "--mode", mode if i % 2 else "off", str(target.pid)], check=True,
                               timeout=60)
            target.expect("done")
            hotfn.send_signal(signal.SIGINT)
            assert hotfn.wait(timeout=60) == 0
            base.check_text(target.pid)
            base.run_once(target)


def what_cannot_be_done_is_refused_in_one_sentence(folder):
    with Counted(folder, "run") as target:
        assert "start it with --mode time" in ctl("--mode", "time", str(target.pid), code=1)
        assert "no hooked function matches" in ctl("--mode", "off", "-f", "nothing", str(target.pid), code=1)
        assert "not off, count or time" in ctl("--mode", "slow", str(target.pid), code=2)
        assert "--mode is missing" in ctl(str(target.pid), code=2)
        assert "name a process" in ctl("--mode", "off", code=2)
        found = target.finish()
        check_counts(found, main=1)
        assert "has ended" in ctl("--mode", "off", str(target.record), code=1)
    assert "no hotfn counts process" in ctl("--mode", "off", str(os.getpid()), code=1)
    assert "there is no process" in ctl("--mode", "off", str(2 ** 22 - 1), code=1)
    (folder / "text").write_text("text" * 100)
    assert "not a record" in ctl("--mode", "off", str(folder / "text"), code=1)
    assert "cannot be read" in ctl("--mode", "off", str(folder / "missing"), code=1)
    with Counted(folder, "run", "--budget", "5%") as target:
        assert "without --budget" in ctl("--mode", "off", str(target.pid), code=1)


NARROW = """
long write(int, const void *, unsigned long);
int getchar(void);
int main(void) { return write(1, "ready\\n", 6) != 6 || getchar() != -1; }
"""


def a_32_bit_program_is_refused(folder):
    if os.environ.get("HOTFN_EXEC32") != "native":
        raise cases.Skipped("this machine does not execute 32-bit programs")
    program, record = folder / "narrow", folder / "narrow.hfr"
    subprocess.run(["gcc", "-m32", "-fno-builtin", "-x", "c", "-o", program, "-"], input=NARROW, text=True, check=True)
    with subprocess.Popen([HOTFN, "run", "-q", "-o", record, "--", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "ready\n"
        assert "32-bit programs cannot be switched" in ctl("--mode", "off", str(record), code=1)
        run.stdin.close()
        assert run.wait(timeout=60) == 0


def a_killed_launcher_and_another_version_are_reported(folder):
    with Counted(folder, "attach") as target:
        target.hotfn.kill()
        target.hotfn.wait()
        assert "no hotfn serves this record" in ctl("--mode", "off", str(target.pid), code=1)
        base.detach(target.pid, folder / "rescued.hfr")
    with Counted(folder, "run") as target:
        uuid = open(target.record, "rb").read(48)[32:].hex()
        with connect(f"hotfn-switch-{uuid}") as other:  # an order of another version
            other.send(struct.pack("<Q32sIIIIQQ", 0x31726564726F6668, b"0.0.9", 1, 0, 0, 0, 0, 0))
            answer = other.recv(4096)
            assert b"the order is from hotfn 0.0.9" in answer, answer
        with connect(f"hotfn-switch-{uuid}") as other:  # not an order
            other.send(b"x" * 1000)
            assert b"not an order" in other.recv(4096)
        target.send("c")
        target.finish()


def another_user_is_refused(folder):
    if os.geteuid() != 0:
        raise cases.Skipped("only root can act for another user here")
    with Counted(folder, "run") as target:
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", HOTFN, "ctl", "--mode", "off",
                               str(target.pid)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert "run hotfn as its user, or as root" in done.stderr, done
        assert differing_bytes(target.pid, folder / "switched")


if __name__ == "__main__":
    sys.exit(cases.run([
        off_restores_the_bytes_and_on_counts_on,
        functions_of_a_static_program_are_switched,
        functions_of_forked_processes_are_switched_too,
        timed_functions_can_be_counted_and_timed_again,
        threads_that_call_meanwhile_are_unharmed,
        what_cannot_be_done_is_refused_in_one_sentence,
        a_32_bit_program_is_refused,
        a_killed_launcher_and_another_version_are_reported,
        another_user_is_refused,
    ]))
