#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotfn attach` on running programs: known totals are exact, and rounds of attach and detach leave a
server, scripts with threads and a program with exceptions as they were: same results, the text of the
files, no additional mapping or file descriptor.

HOTFN names the program.  HOTFN_ROUNDS is the number of rounds for each program [10].
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import cases
from cases import Skipped

HOTFN, CXX = os.environ["HOTFN"], os.environ.get("CXX", "g++")
ROUNDS = int(os.environ.get("HOTFN_ROUNDS", "10"))
MANY_ROUNDS = 500  # in soak
JOURNAL_STATE_AT, ATTACHED = 12, 2  # launch/attach/journal.h

TOTALS = r"""
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
extern "C" __attribute__((noinline)) long work(long x)
{
    __asm__ volatile("");
    if (x % 97 == 0) {
        throw std::runtime_error("x");
    }
    return x + 1;
}
extern "C" __attribute__((noinline)) long fork_work(long x)
{
    __asm__ volatile("");
    return x + 1;
}
static void call(long calls)
{
    for (long i = 0; i < calls; i++) {
        try {
            work(i);
        } catch (const std::exception &) {
        }
    }
}
static void fork_once()
{
    int status = 0;
    pid_t pid = fork();
    for (long i = 0; i < 1000; i++) {
        fork_work(i);
    }
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (status) {
        fprintf(stderr, "a child ended with %#x\n", status);
        abort();
    }
}
int main(int, char **argv)
{
    int threads = atoi(argv[1]), forks = atoi(argv[2]);
    long calls = atol(argv[3]);
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) == 1) {
        std::vector<std::thread> all;
        for (int i = 0; i < threads; i++) {
            all.emplace_back([=] {
                call(calls);
                if (i % 8 == 0) { /* a thread that starts a thread */
                    std::thread(call, calls).join();
                }
            });
        }
        for (int i = 0; i < forks; i++) {
            fork_once();
        }
        for (auto &thread : all) {
            thread.join();
        }
        puts("done");
        fflush(stdout);
    }
}
"""

FAMILY = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#define WORK(name) extern "C" __attribute__((noinline)) long name(long x) { __asm__ volatile(""); return x + 1; }
WORK(main_work) WORK(worker_work) WORK(leaf_work) WORK(forked_work)
static void repeat(long (*work)(long), int calls)
{
    for (int i = 0; i < calls; i++) {
        work(i);
    }
}
int main(int argc, char **argv)
{
    int to[2], from[2];
    char byte, line[16];
    if (argc > 1) { /* a child after its exec */
        usleep(100000 * atoi(argv[1]));
        repeat(leaf_work, 500);
        return 0;
    }
    if (pipe(to) || pipe(from)) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            close(to[1]);
            while (read(to[0], &byte, 1) == 1) {
                repeat(worker_work, 1000);
                if (write(from[1], "x", 1) != 1) {
                    _exit(1);
                }
                usleep(20000); /* the other worker takes the next byte */
            }
            _exit(0);
        }
        printf("%d\n", pid);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        pid_t pid = 0;
        int status = 0;
        repeat(main_work, 10);
        if (line[0] == 'w') {
            for (int i = 0; i < 2; i++) {
                if (write(to[1], "x", 1) != 1 || read(from[0], &byte, 1) != 1) {
                    return 1;
                }
            }
        } else if ((pid = fork()) == 0) {
            if (line[0] == 's') {
                execl(argv[0], argv[0], "8", (char *)0);
                _exit(1);
            }
            repeat(forked_work, 100);
            _exit(0);
        } else if (waitpid(pid, &status, 0) != pid || status != 0) {
            return 1;
        }
        printf("%d\n", pid);
        fflush(stdout);
    }
}
"""

NODE = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
if (isMainThread) {
    for (let i = 0; i < 3; i++) {
        new Worker(__filename).on('message', n => { if (n !== 6765) { process.exit(9); } });
    }
    let last = 0;
    setInterval(() => { last++; }, 5);
    process.on('SIGTERM', () => process.exit(last > 10 ? 0 : 8));
    console.log('ready');
} else {
    setInterval(() => parentPort.postMessage(fib(20)), 3);
}
"""

PYTHON = """
import hashlib, json, signal, sys, threading, time
ends = False
def end(*_):
    global ends
    ends = True
signal.signal(signal.SIGTERM, end)
text = json.dumps([list(range(200))] * 5)
digest = hashlib.sha256(text.encode()).hexdigest()
bad = []
def work():
    while not ends:
        if hashlib.sha256(json.dumps(json.loads(text)).encode()).hexdigest() != digest:
            bad.append(1)
        try:
            int("x")
        except ValueError:
            pass
        time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not ends:
    time.sleep(0.01)
for thread in threads:
    thread.join()
sys.exit(len(bad) > 0)
"""


# ---- What /proc reports.

def maps_of(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()


def is_text_of_file(pid, memory, place, offset, path):
    begin, end = (int(w, 16) for w in place.split("-"))
    with open(f"/proc/{pid}/root{path}", "rb") as file:
        file.seek(offset)
        expected = file.read(end - begin)
    try:
        memory.seek(begin)
        return memory.read(end - begin)[:len(expected)] == expected
    except OSError:  # it was unloaded
        return False


def check_text(pid):
    """The code in memory is that of the files.  A program may unload a library between the list and the comparison."""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps_of(pid):
            words = line.split(maxsplit=5)
            if "x" not in words[1] or len(words) < 6 or not words[5].startswith("/"):
                continue
            for _ in range(100):
                if is_text_of_file(pid, memory, words[0], int(words[2], 16), words[5]) or line not in maps_of(pid):
                    break
            else:
                raise AssertionError(f"the code of {words[5]} differs from the file")


def own_mappings(pid):
    return [line for line in maps_of(pid) if "hotfn-record" in line or "hotfn-attach" in line]


def count_code_mappings(pid):
    return sum("x" in line.split()[1] for line in maps_of(pid))


def count_files(pid):
    """Open files, without the sockets of clients that come and go."""
    found = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            pass
    return found


# ---- Attaching.

def attach(pid, *options, check=True):
    words = [] if pid is None else [str(pid)]
    done = subprocess.run([HOTFN, "attach", *options, *words], capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, done
    return done


def check_growth(samples, noise_kib):
    """Compares the medians of the second and of the last quarter of many rounds.  The first attach gives the process
    its own copies of code pages; a leak of one page or of one mapping in each round is far above the limits."""
    quarter = len(samples) // 4
    for i, (unit, limit) in enumerate((("mappings", 16), ("KiB of its own", noise_kib))):
        early = statistics.median(s[i] for s in samples[quarter:2 * quarter])
        late = statistics.median(s[i] for s in samples[-quarter:])
        print(f"# {len(samples)} rounds: {early:.0f} -> {late:.0f} {unit}", flush=True)
        assert late - early <= limit, (unit, early, late)


def anonymous_kib(pid):
    return int(re.search(r"RssAnon:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def run_rounds(pid, folder, *options, counts_files=True, noise_kib=1024, compiled=0):
    """compiled: mappings of code that the program's own compiler may add."""
    before = count_code_mappings(pid), count_files(pid)
    samples = []
    for _ in range(ROUNDS):
        done = attach(pid, "--for", "5ms", "-o", str(folder / "rounds.hfr"), *options)
        assert re.search(r"[1-9][0-9]* functions hooked", done.stderr) and "failed" not in done.stderr, done
        assert "counted for" in done.stderr and "prepared" not in done.stderr, done  # the process runs meanwhile
        check_text(pid)
        assert not own_mappings(pid), own_mappings(pid)
        samples.append((len(maps_of(pid)), anonymous_kib(pid)))
    if ROUNDS >= MANY_ROUNDS:
        check_growth(samples, noise_kib)
    after = count_code_mappings(pid), count_files(pid)
    assert after[0] <= before[0] + compiled and (after[1] <= before[1] or not counts_files), (before, after)


def calls_in(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", str(record)], capture_output=True, check=True)
    return {f["name"]: f["calls"] for f in json.loads(done.stdout)["functions"]}


class Program:
    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid

    def expect(self, line):
        found = self.process.stdout.readline()
        assert found == line + "\n", (found, self.process.poll())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def build_totals(folder):
    source, program = folder / "totals.cpp", folder / "totals"
    source.write_text(TOTALS)
    subprocess.run([CXX, "-O2", "-pthread", "-o", program, source], check=True)
    return program


# ---- The cases.

def totals_between_attach_and_detach_are_exact(folder):
    program = build_totals(folder)
    for threads, forks, calls, options in ((8, 10, 30000, ()), (64, 3, 3000, ("--module", "*"))):
        record = folder / "totals.hfr"
        with Program([program, str(threads), str(forks), str(calls)]) as target:
            target.expect("ready")
            hotfn = subprocess.Popen([HOTFN, "attach", "-o", record, *options, str(target.pid)],
                                     stderr=subprocess.PIPE, text=True)
            wait_until_attached(target, hotfn)
            for _ in range(2):
                target.process.stdin.write("x")
                target.process.stdin.flush()
                target.expect("done")
            hotfn.send_signal(signal.SIGINT)
            messages = hotfn.communicate(timeout=60)[1]
            assert hotfn.returncode == 0 and "the threads were stopped" in messages, messages
            check_text(target.pid)
            target.process.stdin.write("x")  # not counted
            target.process.stdin.flush()
            target.expect("done")
        found = calls_in(record)
        assert found["work"] == 2 * (threads + (threads + 7) // 8) * calls, found["work"]
        assert found["fork_work"] == 2 * 2 * forks * 1000, found["fork_work"]


def is_attached(pid):
    """The journal that the target maps says so, and no thread stands."""
    for line in maps_of(pid):
        if "hotfn-attach" in line:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(int(line.split("-")[0], 16) + JOURNAL_STATE_AT)
                state = int.from_bytes(memory.read(4), "little")
            return state == ATTACHED and "TracerPid:\t0\n" in pathlib.Path(f"/proc/{pid}/status").read_text()
    return False


def wait_until_attached(target, hotfn):
    while not is_attached(target.pid):
        assert hotfn.poll() is None, hotfn.communicate()
        time.sleep(0.01)


def a_program_with_exceptions_survives_rounds(folder):
    with Program([build_totals(folder), "64", "2", "800"]) as target:
        target.expect("ready")
        for _ in range(ROUNDS):
            target.process.stdin.write("x")
        target.process.stdin.flush()
        run_rounds(target.pid, folder)
        for _ in range(ROUNDS):
            target.expect("done")


def a_server_under_load_survives_rounds(folder):
    server, benchmark = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if not server or not benchmark:
        raise Skipped("redis is not installed")
    socket = str(folder / "redis.sock")
    with Program([server, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(folder)],
                 ) as target:
        while not os.path.exists(socket):
            time.sleep(0.01)
        load = subprocess.Popen([benchmark, "-s", socket, "-q", "-l", "-t", "set,get,incr,sadd,hset,mset"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            run_rounds(target.pid, folder, "--module", "*")
            assert load.poll() is None, load.communicate()
        finally:
            load.kill()
            output = load.communicate()[0]
        assert "rror" not in output, output[-500:]
        assert target.process.poll() is None


def scripts_with_threads_survive_rounds(folder):
    node = shutil.which("node")
    for command, text, suffix in (([node], NODE, ".js"), ([os.path.realpath(shutil.which("python3"))], PYTHON, ".py")):
        if not command[0]:
            continue
        script = folder / ("script" + suffix)
        script.write_text(text)
        with Program([*command, str(script)]) as target:
            target.expect("ready")
            time.sleep(0.3)
            more = {"noise_kib": 32 << 10, "compiled": 8} if suffix == ".js" else {}
            run_rounds(target.pid, folder, **more)
            target.process.send_signal(signal.SIGTERM)
            assert target.process.wait(timeout=60) == 0, (command, target.process.returncode)


def detach(pid, record, check=True):
    done = subprocess.run([HOTFN, "detach", "-o", record, str(pid)], capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, done
    return done


def run_once(target, rounds=1):
    for _ in range(rounds):
        target.process.stdin.write("x")
        target.process.stdin.flush()
        target.expect("done")


def counts_of_a_killed_launcher_are_kept(folder):
    record = folder / "killed.hfr"
    with Program([build_totals(folder), "8", "2", "2000"]) as target:
        target.expect("ready")
        calls = 2 * 9 * 2000
        for saves in ("detach", "attach"):
            hotfn = subprocess.Popen([HOTFN, "attach", "-o", folder / "never.hfr", str(target.pid)])
            wait_until_attached(target, hotfn)
            run_once(target)
            hotfn.kill()
            hotfn.wait()
            run_once(target)  # it counts on
            if saves == "detach":
                done = detach(target.pid, record)
                assert "was killed" in done.stderr and "has its own code again" in done.stderr, done
                found = calls_in(record)
            else:
                done = attach(target.pid, "--for", "5ms", "-o", str(record))
                assert "was killed" in done.stderr, done
                found = calls_in(str(record) + ".killed")
            assert found["work"] == calls and found["fork_work"] == 2 * 2 * 2 * 1000, found
            check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
            run_once(target)
        done = detach(target.pid, record, check=False)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done


def a_launcher_that_runs_ends_when_its_process_is_detached(folder):
    with Program([build_totals(folder), "8", "2", "2000"]) as target:
        target.expect("ready")
        hotfn = subprocess.Popen([HOTFN, "attach", "-o", folder / "own.hfr", str(target.pid)],
                                 stderr=subprocess.PIPE, text=True)
        wait_until_attached(target, hotfn)
        run_once(target)
        second = attach(target.pid, "-o", str(folder / "second.hfr"), check=False)
        assert second.returncode == 1 and f"hotfn detach {target.pid}" in second.stderr, second
        detach(target.pid, folder / "unused.hfr")
        assert hotfn.wait(timeout=60) == 0, hotfn.communicate()
        assert not (folder / "unused.hfr").exists()
        assert calls_in(folder / "own.hfr")["work"] == 9 * 2000
        check_text(target.pid)
        assert not own_mappings(target.pid)
        run_once(target)


def a_launcher_may_be_killed_at_any_moment(folder):
    """At random times between its start and the end of a short attach; the target works all the time."""
    chance = random.Random(20)
    with Program([build_totals(folder), "4", "2", "1000"]) as target:
        target.expect("ready")
        began = time.monotonic()
        attach(target.pid, "-q", "--for", "20ms", "-o", str(folder / "killed.hfr"))
        whole = time.monotonic() - began
        left = rounds = 0
        while rounds < 3 * ROUNDS or (left == 0 and rounds < 100):
            rounds += 1
            hotfn = subprocess.Popen([HOTFN, "attach", "-q", "--for", "20ms", "-o", folder / "killed.hfr",
                                      str(target.pid)], stderr=subprocess.DEVNULL)
            target.process.stdin.write("x")
            target.process.stdin.flush()
            time.sleep(chance.uniform(0, whole))
            hotfn.kill()
            hotfn.wait()
            target.expect("done")
            left += bool(own_mappings(target.pid))
            if chance.random() < 0.5:
                detach(target.pid, folder / "rescued.hfr", check=bool(own_mappings(target.pid)))
            else:
                attach(target.pid, "-q", "--for", "5ms", "-o", str(folder / "next.hfr"))
            check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
            run_once(target)
        assert left > 0, "no launcher was killed while it was attached"


def a_process_is_found_by_its_name(folder):
    program = folder / "unusual-name"
    build_totals(folder).rename(program)
    record = str(folder / "named.hfr")
    with Program([program, "1", "1", "10"]) as target:
        target.expect("ready")
        assert attach(None, "--name", "unusual-*", "--for", "5ms", "-o", record).returncode == 0
        with Program([program, "1", "1", "10"]) as second:
            second.expect("ready")
            done = attach(None, "--name", "unusual-name", check=False)
            assert done.returncode == 1 and f"{target.pid} (unusual-name)" in done.stderr, done
            assert "2 processes" in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert attach(target.pid, "--name", "x", check=False).returncode == 2
    assert attach(None, check=False).returncode == 2
    done = attach(None, "--name", "unusual-name", check=False)
    assert done.returncode == 1 and "no process is named" in done.stderr, done


def children_are_counted_each_in_its_record(folder):
    source, program, record = folder / "family.cpp", folder / "family", folder / "family.hfr"
    source.write_text(FAMILY)
    subprocess.run([CXX, "-O2", "-o", program, source], check=True)
    with Program([program]) as target:
        workers = [int(target.process.stdout.readline()) for _ in range(2)]
        target.expect("ready")
        with subprocess.Popen([HOTFN, "attach", "--children", "-o", record, str(target.pid)], stderr=subprocess.PIPE,
                              text=True) as hotfn:
            for pid in (target.pid, *workers):
                end = time.monotonic() + 30
                while not is_attached(pid):
                    assert hotfn.poll() is None and time.monotonic() < end, pid
                    time.sleep(0.01)

            def order(line):
                target.process.stdin.write(line + "\n")
                target.process.stdin.flush()
                return int(target.process.stdout.readline())
            order("work")
            order("fork")
            leaves = [order("spawn"), order("spawn")]
            order("work")
            hotfn.send_signal(signal.SIGINT)
            errors = hotfn.stderr.read()
        assert hotfn.returncode == 0 and "not counted" not in errors, errors
        for pid in (target.pid, *workers):
            check_text(pid)
            assert not own_mappings(pid), own_mappings(pid)
        order("work")
    calls = calls_in(record)
    assert (calls["main_work"], calls["forked_work"], calls["worker_work"]) == (50, 100, 0), (calls, errors)
    worked = [calls_in(f"{record}.{pid}")["worker_work"] for pid in workers]
    assert sum(worked) == 4000 and all(worked), (worked, errors)
    for pid in leaves:
        assert calls_in(f"{record}.{pid}")["leaf_work"] == 500, (pid, errors)
    assert len(list(folder.glob("family.hfr*"))) == 5


def refusals_are_one_sentence(folder):
    done = attach(2 ** 22 + 1, check=False)
    assert done.returncode == 1 and re.search("there is no process", done.stderr), done
    assert attach("x", check=False).returncode == 2
    with Program(["/bin/sleep", "1000"]) as target:
        time.sleep(0.1)
        os.kill(target.pid, signal.SIGSTOP)
        time.sleep(0.1)
        done = attach(target.pid, check=False)
        assert done.returncode == 1 and "kill -CONT" in done.stderr, done
        os.kill(target.pid, signal.SIGCONT)
        time.sleep(0.1)
        done = attach(target.pid, "-o", str(folder / "none" / "x.hfr"), check=False)
        assert done.returncode == 1 and "x.hfr" in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done.stderr
        check_text(target.pid)


CASES = [
    totals_between_attach_and_detach_are_exact,
    a_program_with_exceptions_survives_rounds,
    a_server_under_load_survives_rounds,
    scripts_with_threads_survive_rounds,
    counts_of_a_killed_launcher_are_kept,
    a_launcher_that_runs_ends_when_its_process_is_detached,
    a_launcher_may_be_killed_at_any_moment,
    a_process_is_found_by_its_name,
    children_are_counted_each_in_its_record,
    refusals_are_one_sentence,
]


def make(folder):
    os.environ["XDG_CACHE_HOME"] = folder
    return pathlib.Path(folder)


if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[CXX], make=make))
