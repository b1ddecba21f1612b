#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaching at hard moments: while a process loads and unloads libraries, forks, replaces itself, ends, or starts
threads as fast as it can; and processes that are stopped, have ended, are in other namespaces, filter their system
calls, or have no memory left.  Each is counted or refused in one sentence, and goes on unharmed.

HOTFN names the program.  HOTFN_ROUNDS is the number of rounds for each moment [3].
"""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import attach_test as base
import cases
from attach_test import HOTFN, Program, attach, calls_in, check_text, own_mappings
from cases import Skipped

ROUNDS = int(os.environ.get("HOTFN_ROUNDS", "3"))
SOURCES = pathlib.Path(__file__).parent / "src"
CC = os.environ.get("CC", "gcc").split()
BUILT = tempfile.TemporaryDirectory(prefix="hotfn_moments_")
TIMED = ("--mode", "time")
LIBRARY = "long answer(long x);\nlong answer(long x) { return x * 8 + 7; }\n"


def build(*flags):
    program = pathlib.Path(BUILT.name, "moments" + "".join(flags))
    if not program.exists():
        subprocess.run([*CC, "-O1", "-pthread", "-Wall", "-Werror", *flags, "-o", program, SOURCES / "moments.c"],
                       check=True)
    return program


def build_library():
    library = pathlib.Path(BUILT.name, "libanswer.so")
    if not library.exists():
        subprocess.run([*CC, "-O1", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=LIBRARY, text=True,
                       check=True)
    return library


def finish(target):
    """The target has found no wrong result."""
    target.process.stdin.close()
    assert target.process.wait(timeout=60) == 0, target.process.returncode


def check_one_sentence(done):
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done


def survive_rounds(folder, *words):
    """Attach and detach, counted and timed, while the target does this."""
    with Program([build(), *words], env={**os.environ, "MALLOC_ARENA_MAX": "2"}) as target:
        target.expect("ready")
        for i in range(ROUNDS):
            done = attach(target.pid, "--for", "10ms", "-o", str(folder / "moment.hfr"), *(TIMED if i % 3 == 1 else ()),
                          *(("--module", "*") if i % 3 == 2 else ()))
            assert re.search(r"[1-9][0-9]* functions hooked", done.stderr), done
            if "mapped" not in done.stderr:
                check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
        finish(target)


# ---- The cases.

def libraries_are_loaded_and_unloaded(folder):
    survive_rounds(folder, "dlopen", str(build_library()))


def data_in_place_of_a_library_are_unharmed(folder):
    with Program([build(), "data", str(build_library())]) as target:
        target.expect("ready")
        target.expect("loaded")
        hotfn = subprocess.Popen([HOTFN, "attach", "-q", "--module", "*", "-o", folder / "data.hfr", str(target.pid)])
        base.wait_until_attached(target, hotfn)
        target.process.stdin.write("x")
        target.process.stdin.flush()
        target.expect("replaced")
        hotfn.send_signal(signal.SIGINT)
        assert hotfn.wait(timeout=60) == 0
        check_text(target.pid)
        assert not own_mappings(target.pid), own_mappings(target.pid)
        finish(target)


def processes_are_forked(folder):
    survive_rounds(folder, "fork")


def threads_are_started_as_fast_as_possible(folder):
    survive_rounds(folder, "storm")


def the_program_is_replaced(folder):
    """An attach meets the old program, the new one, or the moment between."""
    rounds = counted = 0
    with Program([build(), "exec", "0"]) as target:
        target.expect("ready")
        while rounds < 5 * ROUNDS or not counted:
            done = attach(target.pid, "--for", "10ms", "-o", str(folder / "exec.hfr"),
                          *(TIMED if rounds % 2 else ()), check=False)
            rounds += 1
            counted += done.returncode == 0
            assert done.returncode in (0, 1), done
            if done.returncode == 1:
                check_one_sentence(done)
            assert rounds < 100 * ROUNDS, "no attach has counted a program"
        time.sleep(0.05)
        assert target.process.poll() is None, target.process.returncode
        finish(target)
    print(f"# {counted} of {rounds} attaches counted")


def the_process_ends(folder):
    chance = random.Random(20)
    for kind in ("exit", "kill"):
        for _ in range(3 * ROUNDS):
            with Program([build(), "exit"]) as target:
                target.expect("ready")
                hotfn = subprocess.Popen([HOTFN, "attach", "--for", "20ms", "-o", folder / "end.hfr", str(target.pid)],
                                         stderr=subprocess.PIPE, text=True)
                time.sleep(chance.uniform(0, 0.1))
                if kind == "exit":
                    target.process.stdin.close()
                else:
                    target.process.kill()
                assert target.process.wait(timeout=60) == (0 if kind == "exit" else -9), target.process.returncode
                text = hotfn.communicate(timeout=60)[1]
                assert hotfn.returncode == 0 or (hotfn.returncode == 1 and len(text.splitlines()) == 1), text


def the_main_thread_has_ended(folder):
    with Program([build(), "leave"]) as target:
        target.expect("ready")
        while ") Z " not in pathlib.Path(f"/proc/{target.pid}/stat").read_text():
            time.sleep(0.01)
        done = attach(target.pid, "-o", str(folder / "no.hfr"), check=False)
        check_one_sentence(done)
        assert "after its main thread has ended" in done.stderr, done
        finish(target)


def a_process_that_has_ended_is_refused(folder):
    with Program(["/bin/true"]) as target:
        while ") Z " not in pathlib.Path(f"/proc/{target.pid}/stat").read_text():
            time.sleep(0.01)
        done = attach(target.pid, "-o", str(folder / "no.hfr"), check=False)
        check_one_sentence(done)
        assert "has ended" in done.stderr, done


def a_stopped_process_is_refused_and_stays_stopped(folder):
    with Program([build(), "wait"]) as target:
        target.expect("ready")
        os.kill(target.pid, signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        done = attach(target.pid, "-o", str(folder / "no.hfr"), check=False)
        check_one_sentence(done)
        assert "kill -CONT" in done.stderr, done
        assert ") T " in pathlib.Path(f"/proc/{target.pid}/stat").read_text()
        os.kill(target.pid, signal.SIGCONT)
        hotfn = subprocess.Popen([HOTFN, "attach", "-q", "-o", folder / "stop.hfr", str(target.pid)])
        base.wait_until_attached(target, hotfn)
        os.kill(target.pid, signal.SIGSTOP)  # at the detach
        os.waitpid(target.pid, os.WUNTRACED)
        hotfn.send_signal(signal.SIGINT)
        assert hotfn.wait(timeout=60) == 0
        check_text(target.pid)
        assert ") T " in pathlib.Path(f"/proc/{target.pid}/stat").read_text()
        os.kill(target.pid, signal.SIGCONT)
        finish(target)


def processes_in_other_namespaces_are_counted(folder):
    for words in (["--mount"], ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
                  ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]):
        command = ["unshare", *words, "--"]
        if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            raise Skipped(f"unshare {' '.join(words)} is not permitted here")
        with Program([*command, build(), "storm"]) as started:
            started.expect("ready")
            children = pathlib.Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
            pid = int(children[0]) if "--fork" in words else started.pid
            for options in ((), TIMED):
                done = attach(pid, "--for", "20ms", "-o", str(folder / "space.hfr"), *options)
                assert re.search(r"[1-9][0-9]* functions hooked", done.stderr), done
                if "mapped" not in done.stderr:
                    check_text(pid)
                assert calls_in(folder / "space.hfr")["work"] > 0
            finish(started)


def root_counts_a_process_of_another_user(folder):
    if os.geteuid() != 0:
        raise Skipped("only root can start a process of another user")
    os.chmod(BUILT.name, 0o755)
    privileged = pathlib.Path(BUILT.name, "privileged")
    shutil.copy(build(), privileged)
    has_rights = shutil.which("setcap") and subprocess.run(["setcap", "cap_net_raw+ep", privileged]).returncode == 0
    for program in (build(), privileged) if has_rights else (build(),):
        count_process_of_another_user(folder, program)


def count_process_of_another_user(folder, program):
    with Program([program, "storm"], user=65534, group=65534, extra_groups=[]) as target:
        target.expect("ready")
        hotfn = subprocess.Popen([HOTFN, "attach", "-q", "-o", folder / "user.hfr", str(target.pid)])
        base.wait_until_attached(target, hotfn)
        hotfn.kill()
        hotfn.wait()
        base.detach(target.pid, folder / "user.hfr")
        check_text(target.pid)
        assert not own_mappings(target.pid) and calls_in(folder / "user.hfr")["work"] > 0
        finish(target)


FILTER = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000), 8)  # all calls are allowed
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code)), 16)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def a_filter_of_system_calls_is_reported(folder):
    with Program([sys.executable, "-c", FILTER, build(), "wait"]) as target:
        target.expect("ready")
        done = attach(target.pid, "-o", str(folder / "no.hfr"), check=False)
        check_one_sentence(done)
        assert "filters its system calls" in done.stderr and "hotfn run" in done.stderr, done
        finish(target)


def a_process_without_memory_is_refused_and_goes_on(folder):
    """The limit begins without a free page, and grows until an attach succeeds."""
    with Program([build(), "fork"]) as target:
        target.expect("ready")
        attach(target.pid, "--for", "5ms", "-o", str(folder / "first.hfr"))
        status = pathlib.Path(f"/proc/{target.pid}/status").read_text()
        used = 1024 * int(re.search(r"VmPeak:\s*(\d+)", status)[1])
        done = free = 0
        refused = set()
        while not done:
            resource.prlimit(target.pid, resource.RLIMIT_AS, (used + free, resource.RLIM_INFINITY))
            result = attach(target.pid, "--for", "5ms", "-o", str(folder / "limit.hfr"), check=False)
            check_text(target.pid)
            assert not own_mappings(target.pid), own_mappings(target.pid)
            if result.returncode:
                check_one_sentence(result)
                assert "Cannot allocate memory" in result.stderr, result
                refused.add(result.stderr)
            done = result.returncode == 0
            free = max(16 * free, 64 << 10)
            assert free < 1 << 40
        finish(target)


def a_process_that_limits_its_system_calls_later_goes_on(folder):
    """A thread with a filter makes no call at detach; its code is restored, and the pages stay."""
    program = pathlib.Path(BUILT.name, "limited_calls")
    subprocess.run([*CC, "-O1", "-pthread", "-Wall", "-Werror", "-o", program, SOURCES / "limited_calls.c"], check=True)
    for how in "prctl", "syscall", "strict":
        for mode in (), TIMED:
            with Program([program, how, "wait"]) as target:
                target.expect("ready")
                hotfn = subprocess.Popen([HOTFN, "attach", *mode, "-o", folder / "limited.hfr", str(target.pid)],
                                         stderr=subprocess.PIPE, text=True)
                base.wait_until_attached(target, hotfn)
                target.process.stdin.write("\n")
                target.process.stdin.flush()
                target.expect("limited")
                hotfn.send_signal(signal.SIGINT)
                messages = hotfn.communicate(timeout=60)[1]
                assert hotfn.returncode == 0 and "filters its system calls" in messages, (how, mode, messages)
                check_text(target.pid)
                check_one_sentence(attach(target.pid, check=False))
                target.process.stdin.write("\n")
                target.process.stdin.flush()
                target.expect("done")
                assert target.process.wait(timeout=60) == 3, (how, mode, target.process.returncode)
            counted = calls_in(folder / "limited.hfr")["counted"]
            expected = 2000 if how == "strict" else 12000
            assert expected <= counted <= expected + 1000 * (how != "strict"), (how, mode, counted)


CASES = [
    libraries_are_loaded_and_unloaded,
    data_in_place_of_a_library_are_unharmed,
    processes_are_forked,
    threads_are_started_as_fast_as_possible,
    the_program_is_replaced,
    the_process_ends,
    the_main_thread_has_ended,
    a_process_that_has_ended_is_refused,
    a_stopped_process_is_refused_and_stays_stopped,
    processes_in_other_namespaces_are_counted,
    root_counts_a_process_of_another_user,
    a_filter_of_system_calls_is_reported,
    a_process_that_limits_its_system_calls_later_goes_on,
    a_process_without_memory_is_refused_and_goes_on,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=CC[:1], make=base.make))
