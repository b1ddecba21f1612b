#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn attach --mode time` on running programs: counts are exact and times plausible; exceptions pass
timed calls; calls that are open at a detach return later; the text is that of the files afterwards.

HOTFN names the program.  HOTFN_ROUNDS is the number of rounds for each program [3].
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import attach_test as base
import cases
from attach_test import HOTFN, CXX, Program, attach, calls_in, check_text, own_mappings, wait_until_attached
from cases import Skipped

ROUNDS = int(os.environ.get("HOTFN_ROUNDS", "3"))
TIMED = ("--mode", "time")

WORKER = r"""
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>
#define CALLED extern "C" __attribute__((noinline))
static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
CALLED double spin(double seconds)
{
    double end = now() + seconds;
    while (now() < end) {
    }
    return end;
}
CALLED double long_part() { return spin(0.0009) + 1; }
CALLED double short_part() { return spin(0.0003) + 1; }
CALLED long quick(long x)
{
    __asm__ volatile("");
    return x + 1;
}
CALLED long thrower(long x)
{
    if (x % 3 == 0) {
        throw std::runtime_error("x");
    }
    return x + 1;
}
CALLED long passed(long x)
{
    long y = 1;
    y += thrower(x) + quick(y);
    __asm__ volatile("");
    return y;
}
static long caught(long x)
{
    try {
        return passed(x) * 0;
    } catch (const std::exception &) {
        return 1;
    }
}
CALLED long wait_for_byte()
{
    char byte = 0;
    long got = read(0, &byte, 1);
    if (byte == 't') {
        throw std::runtime_error("t");
    }
    return got + byte;
}
CALLED long waiter(long x)
{
    long y = x + wait_for_byte();
    __asm__ volatile("");
    return y + 1;
}
/* pass_on ends with a jump to a function that must not run below a stub's frame, since it finds its stack arguments where
 * the caller has left them: the timed call ends at the jump. */
CALLED long sum_of(int count, ...)
{
    va_list rest;
    long all = 0;
    va_start(rest, count);
    for (int i = 0; i < count; i++) {
        all = all * 3 + va_arg(rest, long);
    }
    va_end(rest);
    return all;
}
CALLED long pass_on(int count, long a, long b, long c, long d, long e, long f, long g)
{
    return a & 1 ? b : sum_of(count, a + 1, b, c, d, e, f, g);
}
static void pass_some(long times)
{
    for (long i = 0; i < times; i++) {
        if (pass_on(7, i, 2, 3, 4, 5, 6, i) != (i & 1 ? 2 : 729 * (i + 1) + 900 + i)) {
            abort();
        }
    }
}
static void in_threads(int threads, void (*work)(long), long times)
{
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) {
        all.emplace_back(work, times);
    }
    for (auto &thread : all) {
        thread.join();
    }
}
static void spend(long times)
{
    for (long i = 0; i < times; i++) {
        long_part();
        short_part();
        quick(i);
    }
}
static void throw_some(long times)
{
    long sum = 0;
    for (long i = 0; i < times; i++) {
        sum += caught(i);
    }
    if (sum != (times + 2) / 3) {
        abort();
    }
}
static void fork_some(long times)
{
    for (long i = 0; i < times; i++) {
        int status = 0;
        pid_t pid = fork();
        throw_some(300);
        if (pid == 0) {
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || status != 0) {
            abort();
        }
    }
}
int main()
{
    char command;
    puts("ready");
    fflush(stdout);
    while (read(0, &command, 1) == 1) {
        switch (command) {
        case 's': in_threads(2, spend, 100); break;
        case 'e': in_threads(8, throw_some, 3000); break;
        case 'f': fork_some(5); break;
        case 't': in_threads(3, pass_some, 2000); break;
        case 'c': {
            pid_t pid = fork();
            while (pid == 0) { /* until it is killed */
                throw_some(30);
                usleep(1000);
            }
            printf("%d\n", pid);
            break;
        }
        case 'w':
            try {
                if (waiter(1) == 0) {
                    abort();
                }
            } catch (const std::exception &) {
                puts("thrown");
            }
            break;
        }
        puts("done");
        fflush(stdout);
    }
}
"""


BUILT = tempfile.TemporaryDirectory(prefix="hotfn_attach_time_")


def build(*options, name="worker"):
    """The program, compiled once and linked with these options."""
    program, code = pathlib.Path(BUILT.name, name), pathlib.Path(BUILT.name, "worker.o")
    if not code.exists():
        code.with_suffix(".cpp").write_text(WORKER)
        subprocess.run([CXX, "-O2", "-pthread", "-c", "-o", code, code.with_suffix(".cpp")], check=True)
    if not program.exists():
        subprocess.run([CXX, "-pthread", *options, "-o", program, code], check=True)
    return program


def order(target, command, *, expect=("done",)):
    target.process.stdin.write(command)
    target.process.stdin.flush()
    for line in expect:
        target.expect(line)


def start(target, record, *options):
    hotfn = subprocess.Popen([HOTFN, "attach", "-o", record, *TIMED, *options, str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    wait_until_attached(target, hotfn)
    return hotfn


def end(hotfn):
    hotfn.send_signal(signal.SIGINT)
    messages = hotfn.communicate(timeout=60)[1]
    assert hotfn.returncode == 0, messages
    return messages


def check_clean(target):
    check_text(target.pid)
    assert not own_mappings(target.pid), own_mappings(target.pid)


def functions_in(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", str(record)], capture_output=True, check=True)
    return {f["name"]: f for f in json.loads(done.stdout)["functions"]}


# ---- The cases.

def counts_are_exact_and_times_are_shares(folder):
    record = folder / "times.hfr"
    with Program([build()]) as target:
        target.expect("ready")
        hotfn = start(target, record)
        order(target, "s")
        order(target, "e")
        messages = end(hotfn)
        assert "the threads were stopped" in messages and "mapped" not in messages, messages
        check_clean(target)
        order(target, "se", expect=("done", "done"))
    found = functions_in(record)
    calls = {name: f["calls"] for name, f in found.items()}
    assert (calls["long_part"], calls["short_part"], calls["spin"]) == (200, 200, 400), calls
    assert (calls["passed"], calls["thrower"]) == (24000, 24000) and calls["quick"] == 200 + 16000, calls
    total = {name: f["total_ns"] or 0 for name, f in found.items() if "total_ns" in f}
    share = total["long_part"] / (total["long_part"] + total["short_part"])
    assert 0.55 < share < 0.92, (share, total)
    assert 0.1e9 < total["long_part"] < 60e9, total


def tail_jumps_end_timed_calls(folder):
    record = folder / "tails.hfr"
    with Program([build()]) as target:
        target.expect("ready")
        hotfn = start(target, record)
        order(target, "t")
        end(hotfn)
        check_clean(target)
    found = functions_in(record)
    assert (found["pass_on"]["calls"], found["sum_of"]["calls"]) == (6000, 3000), found
    assert (found["pass_on"]["timing"], found["sum_of"]["timing"]) == ("full", "count-only"), found


def exceptions_pass_timed_calls_in_rounds(folder):
    options = (TIMED, (*TIMED, "--sample", "4"), (*TIMED, "--module", "*"))
    with Program([build()]) as target:
        target.expect("ready")
        before = base.count_code_mappings(target.pid)
        for i in range(ROUNDS):
            target.process.stdin.write("ef")
            target.process.stdin.flush()
            done = attach(target.pid, "--for", "20ms", "-o", str(folder / "rounds.hfr"), *options[i % 3 if i else 0])
            assert re.search(r"[1-9][0-9]* functions hooked", done.stderr), done
            target.expect("done")
            target.expect("done")
            if "mapped" not in done.stderr:
                check_clean(target)
                assert base.count_code_mappings(target.pid) <= before
            assert not own_mappings(target.pid), own_mappings(target.pid)


def a_server_and_a_script_are_timed_under_load(folder):
    server, benchmark = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if not server or not benchmark:
        raise Skipped("redis is not installed")
    socket = str(folder / "redis.sock")
    with Program([server, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(folder)]) as target:
        while not os.path.exists(socket):
            time.sleep(0.01)
        load = subprocess.Popen([benchmark, "-s", socket, "-q", "-l", "-t", "set,get,incr,lpush,mset"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            for _ in range(2):
                attach(target.pid, *TIMED, "--for", "50ms", "-o", str(folder / "redis.hfr"))
                check_clean(target)
            found = functions_in(folder / "redis.hfr")
            assert any((f.get("total_ns") or 0) > 0 for f in found.values()), list(found)[:9]
            assert load.poll() is None, load.communicate()
        finally:
            load.kill()
            output = load.communicate()[0]
        assert "rror" not in output and target.process.poll() is None, output[-500:]
    script = folder / "script.py"
    script.write_text(base.PYTHON)
    with Program([os.path.realpath(shutil.which("python3")), str(script)]) as target:
        target.expect("ready")
        attach(target.pid, *TIMED, "--module", "*python*", "--for", "50ms", "-o", str(folder / "python.hfr"))
        assert len(calls_in(folder / "python.hfr")) > 50
        check_clean(target)
        target.process.send_signal(signal.SIGTERM)
        assert target.process.wait(timeout=60) == 0


def times_of_a_killed_launcher_are_kept(folder):
    record = folder / "killed.hfr"
    with Program([build()]) as target:
        target.expect("ready")
        hotfn = start(target, folder / "never.hfr")
        order(target, "s")
        hotfn.kill()
        hotfn.communicate()
        order(target, "se", expect=("done", "done"))  # it counts on, without a clock
        done = base.detach(target.pid, record)
        assert "was killed" in done.stderr, done
        check_clean(target)
        found = functions_in(record)
        assert found["long_part"]["calls"] == 400 and found["passed"]["calls"] == 24000, found["passed"]
        assert found["long_part"]["total_ns"] > 0, found["long_part"]
        attach(target.pid, *TIMED, "--for", "5ms", "-o", str(folder / "next.hfr"))
        check_clean(target)
        order(target, "e")


def a_call_that_is_open_at_a_detach_returns_later(folder):
    program = build()
    for byte, lines, is_forced in (("r", ("done",), False), ("t", ("thrown", "done"), True)):
        with Program([program]) as target:
            target.expect("ready")
            hotfn = start(target, folder / "open.hfr", "-f", "wait*")
            order(target, "w", expect=())
            while calls_in(folder / "open.hfr")["wait_for_byte"] == 0:
                time.sleep(0.01)
            messages = end(hotfn)
            assert "have not returned" in messages and "hotfn detach removes it" in messages, messages
            before = os.stat(folder / "open.hfr")
            done = base.detach(target.pid, folder / "no.hfr")  # still open; the record was written
            assert "have not returned" in done.stderr and not (folder / "no.hfr").exists(), done
            assert os.stat(folder / "open.hfr").st_ino == before.st_ino
            if is_forced:
                done = attach(target.pid, *TIMED, "-o", str(folder / "no.hfr"), check=False)
                assert done.returncode == 1 and "have not returned" in done.stderr, done
                assert not own_mappings(target.pid), own_mappings(target.pid)
                attach(target.pid, "--for", "5ms", "-o", str(folder / "counted.hfr"))
                order(target, byte, expect=lines)
            else:
                order(target, byte, expect=lines)
                done = base.detach(target.pid, folder / "no.hfr")
                assert "have not returned" not in done.stderr and not (folder / "no.hfr").exists(), done
                check_clean(target)
                attach(target.pid, *TIMED, "--for", "5ms", "-o", str(folder / "timed.hfr"))
                check_clean(target)
            order(target, "e")


def forked_children_that_outlive_the_attach_lose_their_hooks(folder):
    for options, ends in (((), False), (TIMED, False), ((), True)):
        with Program([build()]) as target:
            target.expect("ready")
            hotfn = start(target, folder / "forked.hfr", *(("--mode", "count") if not options else ()))
            order(target, "c", expect=())
            child = int(target.process.stdout.readline())
            try:
                while not own_mappings(child):  # it has begun
                    time.sleep(0.01)
                if ends:
                    target.process.kill()
                    assert hotfn.wait(timeout=60) == 0, hotfn.communicate()
                else:
                    end(hotfn)
                assert not own_mappings(child), own_mappings(child)
                if not options:
                    check_text(child)
                used = pathlib.Path(f"/proc/{child}/schedstat").read_text().split()[2]
                while pathlib.Path(f"/proc/{child}/schedstat").read_text().split()[2] == used:
                    time.sleep(0.01)  # it works on
                attach(child, "--for", "5ms", "-o", str(folder / "child.hfr"))
            finally:
                os.kill(child, signal.SIGKILL)


def what_cannot_be_timed_is_refused_in_one_sentence(folder):
    other = folder / "libother.so"
    (folder / "other.c").write_text("void _Unwind_RaiseException(void) {}\n")
    subprocess.run([CXX, "-shared", "-fPIC", "-x", "c", "-o", other, folder / "other.c"], check=True)
    for name, options, text in (("own", ("-static-libgcc", "-static-libstdc++"), "unwinder of its own"),
                                ("other", ("-Wl,--no-as-needed", "-lstdc++", "-lgcc_s", other), "unwinder of its own"),
                                ("static", ("-static",), "linked statically")):
        with Program([build(*options, name=name)]) as target:
            target.expect("ready")
            done = attach(target.pid, *TIMED, "-o", str(folder / "no.hfr"), check=False)
            assert done.returncode == 1 and text in done.stderr and len(done.stderr.splitlines()) == 1, done
            check_clean(target)
            order(target, "e")
            attach(target.pid, "--for", "5ms", "-o", str(folder / "yes.hfr"))
    with Program([build()]) as target:
        target.expect("ready")
        for option in (("--events",), ("--clock", "cpu")):
            done = attach(target.pid, *TIMED, *option, "-o", str(folder / "no.hfr"), check=False)
            assert done.returncode == 1 and "tick clock" in done.stderr and len(done.stderr.splitlines()) == 1, done
        done = attach(target.pid, "--sample", "2", "-o", str(folder / "no.hfr"), check=False)
        assert done.returncode in (1, 2) and "mode time" in done.stderr, done


CASES = [
    counts_are_exact_and_times_are_shares,
    tail_jumps_end_timed_calls,
    exceptions_pass_timed_calls_in_rounds,
    a_server_and_a_script_are_timed_under_load,
    times_of_a_killed_launcher_are_kept,
    a_call_that_is_open_at_a_detach_returns_later,
    forked_children_that_outlive_the_attach_lose_their_hooks,
    what_cannot_be_timed_is_refused_in_one_sentence,
]

if __name__ == "__main__":
    if sys.argv[1:] == ["--quick"]:
        sys.argv[1:] = [case.__name__ for case in CASES if case not in (
            a_server_and_a_script_are_timed_under_load, what_cannot_be_timed_is_refused_in_one_sentence)]
    sys.exit(cases.run(CASES, needs=[CXX], make=base.make))
