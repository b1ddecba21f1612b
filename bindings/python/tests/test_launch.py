# SPDX-License-Identifier: MIT
"""hotfn.run() launches a program, waits for its end and opens its record."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import pytest
from conftest import FIB_15_CALLS, TARGET_SOURCE

import hotfn

PROGRAM = TARGET_SOURCE + r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    fib(15);
    walk(argc > 1 ? 1000 : 0);
    if (argc > 2)
        for (;;)
            pause();
    return argc > 1 ? 3 : 0;
}
"""


@pytest.fixture(scope="module")
def program(compiler, tmp_path_factory):
    """fib(15), with an argument also walk(1000) and exit code 3; with two arguments it does not
    end."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", folder / "program.c", "-o",
                    folder / "program"], check=True)
    return folder / "program"


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_run_counts_a_program(program, tmp_path):
    run = hotfn.run([program, "walk"], record=tmp_path / "run.hfr", cache=False)
    assert (run.exit_code, run.info.state, run.info.joined, run.remaining) == (3, "finished", True, ())
    assert run.info.hooked >= 4 and run.info.run_ns > 0
    assert [(f.name, f.calls) for f in run.hot(2)] == [("fib", FIB_15_CALLS), ("hop", 1000)]
    run.close()
    assert run.record.find("hop").calls == 1000 and run.exit_code == 3
    with hotfn.open(tmp_path / "run.hfr") as record:
        assert record.info.state == "finished" and record.info.exit_code == 3
        assert record.find("fib").calls == FIB_15_CALLS


def test_events_are_sent(program, tmp_path):
    received = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "events"))
        listener.settimeout(60)

        def receive():
            while not received or received[-1][6] & 1 == 0:  # HOTFN_EVENTS_END
                received.append(listener.recv(1 << 16))

        thread = threading.Thread(target=receive)
        thread.start()
        assert hotfn.run([program, "walk"], send_to=f"unix:{tmp_path / 'events'}", cache=False).exit_code == 3
        thread.join()
    assert all(datagram[:6] == b"HFNE\1\0" for datagram in received)
    assert any(b"hop" in datagram for datagram in received)


def test_wrong_address_of_events_is_refused(program):
    with pytest.raises(hotfn.OptionError, match="udp:HOST:PORT"):
        hotfn.run([program], send_to="9000")


def test_functions_and_exclude_select(program):
    run = hotfn.run([program, "walk"], functions=["ho*", "fi*"], exclude="fib", cache=False)
    assert [f.name for f in run.hot(0)] == ["hop"]
    assert run.record.find("fib").state == "excluded"


def test_timed_run_has_callers(program):
    run = hotfn.run([program, "walk"], mode="time", cache=False)
    hop = run.record.find("hop")
    assert [(caller.function.name, caller.calls) for caller in hop.callers] == [("walk", 1000)]
    sampled = hotfn.run([program, "walk"], mode="time", sample=100, cache=False).record
    assert sampled.time.sample_mean == 100 and sampled.find("hop").calls == 1000


def test_functions_of_python_programs_are_counted():
    python = "/usr/bin/python3.11"
    if not os.access(python, os.X_OK):
        pytest.skip("no CPython 3.11")
    run = hotfn.run([python, "-c", "def f(): pass\nfor i in range(70): f()"], runtime="python", functions="f")
    assert [(f.name, f.calls) for f in run.hot(5)] == [("f (<string>:1)", 70)]


def test_functions_that_only_calls_show_are_counted_on_request(compiler, tmp_path):
    program = tmp_path / "stripped"
    (tmp_path / "program.c").write_text(PROGRAM.replace("KEPT uint64_t", "KEPT static uint64_t"))
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", "-fno-asynchronous-unwind-tables", "-s",
                    tmp_path / "program.c", "-o", program], check=True)
    plain, found = (hotfn.run([program], found=choice, cache=False).record.functions for choice in (False, True))
    assert FIB_15_CALLS not in [function.calls for function in plain]
    assert FIB_15_CALLS in [function.calls for function in found]


def test_running_program_has_a_live_record(program, tmp_path):
    with hotfn.run([program, "walk", "stay"], record=tmp_path / "run.hfr", cache=False, wait=False) as run:
        wait_for(lambda: run.info.joined and (run.record.find("hop").calls or 0) == 1000)
        assert run.exit_code is None and run.record.info.state == "live" and "running" in repr(run)
        with pytest.raises(TimeoutError):
            run.wait(timeout=0.01)
        subprocess.run(["kill", "-TERM", str(run.info.pid)], check=True)
        assert run.wait() == -signal.SIGTERM
        assert run.record.info.state == "killed" and run.record.find("hop").calls == 1000
    assert run.exit_code == -signal.SIGTERM
    assert run.wait() == -signal.SIGTERM


def test_with_waits_for_the_program(program):
    with hotfn.run([program], cache=False, wait=False) as run:
        pass
    assert run.exit_code == 0 and run.record.info.state == "finished"


def test_glob_that_matches_nothing_causes_a_warning(program):
    options = {"functions": ["fib", "nothing*"], "cache": False}
    with pytest.warns(UserWarning) as caught:
        hotfn.run([program], **options)
        hotfn.run([program], wait=False, **options).wait()
        with hotfn.run([program], wait=False, **options):
            pass
    assert [str(warning.message) for warning in caught] == 3 * ["'nothing*' matches no function"]
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hotfn.run([program], functions="fib", cache=False)


def test_program_that_cannot_be_started_is_reported(tmp_path):
    with pytest.raises(hotfn.NotFoundError, match="nowhere"):
        hotfn.run([tmp_path / "nowhere"])
    (tmp_path / "text").write_text("no program\n")
    with pytest.raises(hotfn.DeniedError, match="text"):
        hotfn.run([tmp_path / "text"])


def test_static_program_is_counted_but_not_timed(compiler, tmp_path):
    (tmp_path / "ends.c").write_text("int main(void) { return 0; }\n")
    if subprocess.run([compiler, "-static", tmp_path / "ends.c", "-o", tmp_path / "ends"]).returncode:
        pytest.skip("no static C library")
    run = hotfn.run([tmp_path / "ends"], record=tmp_path / "r.hfr", cache=False)
    assert run.record.find("main").calls == 1
    with pytest.raises(hotfn.OptionError, match="static"):
        hotfn.run([tmp_path / "ends"], mode="time", cache=False)


def test_record_that_cannot_be_written_is_reported(program, tmp_path):
    with pytest.raises(hotfn.FileError, match="missing"):
        hotfn.run([program], record=tmp_path / "missing" / "run.hfr")


@pytest.mark.parametrize("options", [{"mode": "times"}, {"sample": 8}, {"budget": 2}, {"budget": 0}, {"after": -1},
                                     {"memory": True}, {"functions": "[a"}, {"durable": True, "target": "[x"}])
def test_invalid_options_are_refused(program, options):
    with pytest.raises(ValueError):
        hotfn.run([program], **options)


@pytest.mark.parametrize("command", [[], "/bin/true", b"/bin/true"])
def test_command_must_be_a_list(command):
    with pytest.raises(ValueError, match="command"):
        hotfn.run(command)


def test_temporary_record_is_removed(program, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with hotfn.run([program], cache=False, wait=False) as run:
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == [] and run.record.find("fib").calls == FIB_15_CALLS


def test_interrupt_ends_the_wait(program):
    # A shell starts background commands with SIGINT ignored, so the handler is set here.
    code = ("import hotfn, sys, threading, os, signal\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "run = hotfn.run([sys.argv[1], 'walk', 'stay'], cache=False, wait=False)\n"
            "try:\n"
            "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "    run.wait()\n"
            "except KeyboardInterrupt:\n    os.kill(run.info.pid, signal.SIGKILL)\n"
            "    print(run.wait())\n")
    done = subprocess.run([sys.executable, "-c", code, program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "-9\n", done.stderr


LOOP = r"""
#include <unistd.h>
__attribute__((noinline)) int often(int x) { __asm__ volatile(""); return x + 1; }
int main(void)
{
    for (int x = 0;; usleep(1000))
        x = often(x);
}
"""


def test_attach_counts_a_process_that_runs(compiler, tmp_path):
    (tmp_path / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O1", tmp_path / "loop.c", "-o", tmp_path / "loop"], check=True)
    process = subprocess.Popen([tmp_path / "loop"])
    try:
        with hotfn.attach(process.pid, record=tmp_path / "loop.hfr", cache=False) as run:
            assert run.info.state == "running" and run.info.attach_stop_ns > 0
            wait_for(lambda: run.record.find("often").calls > 3)
        assert run.info.state == "finished" and run.info.detach_stop_ns > 0
        assert run.record.find("often").calls > 3 and process.poll() is None
        assert "hotfn-record" not in open(f"/proc/{process.pid}/maps").read()
        assert hotfn.attach(process.pid, duration=0.05, cache=False).wait() == 0
        with hotfn.attach(process.pid, mode="time", record=tmp_path / "times.hfr", cache=False) as run:
            time.sleep(0.05)
        assert run.record.times is not None
    finally:
        process.kill()
        process.wait()
    with pytest.raises(hotfn.NotFoundError, match="no process"):
        hotfn.attach(process.pid)


def test_functions_are_switched_while_the_program_runs(compiler, tmp_path):
    (tmp_path / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O1", tmp_path / "loop.c", "-o", tmp_path / "loop"], check=True)
    process = subprocess.Popen([tmp_path / "loop"])
    try:
        with hotfn.attach(process.pid, record=tmp_path / "loop.hfr", cache=False) as run:
            wait_for(lambda: run.record.find("often").calls > 3)
            done = run.switch("off", functions="often")
            assert (done.matched, done.switched, done.processes) == (1, 1, 1) and done.stop_ns > 0
            calls = run.record.find("often").calls
            time.sleep(0.02)
            assert run.record.find("often").calls == calls
            assert hotfn.ctl(process.pid, "count").switched == 1
            wait_for(lambda: run.record.find("often").calls > calls)
            assert hotfn.ctl(tmp_path / "loop.hfr", "off", exclude="often").matched >= 1
            with pytest.raises(hotfn.UnsupportedError, match="start it with --mode time"):
                run.switch("time")
            with pytest.raises(hotfn.NotFoundError):
                hotfn.ctl(process.pid, "off", modules="no_such_module")
            with pytest.raises(ValueError):
                run.switch("slow")
    finally:
        process.kill()
        process.wait()
    with pytest.raises(hotfn.StateError):
        hotfn.ctl(tmp_path / "loop.hfr", "off")


def test_check_attach_reports_each_condition(compiler, tmp_path):
    (tmp_path / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O1", tmp_path / "loop.c", "-o", tmp_path / "loop"], check=True)
    process = subprocess.Popen([tmp_path / "loop"])
    try:
        found = {condition.name: condition for condition in hotfn.check_attach(process.pid)}
        assert all(condition.holds and condition.text for condition in found.values()) and "threads" in found
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: "\nState:\tT" in open(f"/proc/{process.pid}/status").read())
        failed = [condition for condition in hotfn.check_attach(process.pid) if not condition.holds]
        assert [condition.name for condition in failed] == ["stop"] and "kill -CONT" in failed[0].text
    finally:
        process.kill()
        process.wait()
    assert [condition.holds for condition in hotfn.check_attach(process.pid)] == [False]


def test_detach_ends_an_attach_of_another_hotfn(compiler, tmp_path):
    (tmp_path / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O1", tmp_path / "loop.c", "-o", tmp_path / "loop"], check=True)
    process = subprocess.Popen([tmp_path / "loop"])
    tool = os.environ.get("HOTFN") or pytest.skip("hotfn was not built with the library")
    other = subprocess.Popen([tool, "attach", "-q", "-o", tmp_path / "other.hfr", str(process.pid)])
    try:
        wait_for(lambda: "hotfn-attach" in open(f"/proc/{process.pid}/maps").read())
        wait_for(lambda: _try_detach(process.pid))
        assert other.wait(timeout=20) == 0 and process.poll() is None
        with pytest.raises(hotfn.NotFoundError):
            hotfn.detach(process.pid)
    finally:
        for one in (other, process):
            one.kill()
            one.wait()


def _try_detach(pid):
    """False while the other hotfn still attaches."""
    try:
        return hotfn.detach(pid) >= 0
    except hotfn.StateError:
        return False
