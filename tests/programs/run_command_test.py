# SPDX-License-Identifier: MIT
"""`hotfn run` does not change the target's exit status, signals, environment or stdio, refuses
programs that it cannot hook, and loses no counts when the target is killed."""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import cases

HOTFN = os.environ["HOTFN"]
HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src" / "target.c"
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets


class Case:
    """A temporary folder that contains the built target."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.target = self.folder / "target"
        self.record = self.folder / "r.hfr"
        subprocess.run(["gcc", *FLAGS, "-O2", "-o", self.target, SOURCE], check=True)
        while time.time() - self.target.stat().st_ctime < 0.05:     # the cache ignores newer files
            time.sleep(0.01)

    @contextlib.contextmanager
    def start(self, *args, options=(), **more):
        child = subprocess.Popen([HOTFN, "run", "-o", self.record, *options, "--", *map(str, args)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, **more)
        try:
            yield child
        finally:  # no process may survive, even if a check failed
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()

    def run(self, *args, options=(), feed=None, **more):
        with self.start(*args, options=options, stdin=subprocess.PIPE, **more) as child:
            out, err = child.communicate(feed, timeout=300)
        return child.returncode, out, err

    def calls(self, name):
        out = subprocess.run([HOTFN, "report", self.record, "--json", "-n", "0"], check=True,
                             capture_output=True, text=True).stdout
        return {f["name"]: f["calls"] for f in json.loads(out)["functions"]}[name]

    def calls_by_module(self, name):
        out = subprocess.run([HOTFN, "report", self.record, "--json", "-n", "0"], check=True,
                             capture_output=True, text=True).stdout
        return {f["module"]: f["calls"] for f in json.loads(out)["functions"] if f["name"] == name}


def check(holds, text):
    if not holds:
        raise AssertionError(text)


def the_exit_status_is_that_of_the_target(case):
    for status in (0, 7, 255):
        code, _, _ = case.run(case.target, 10, "exit", status)
        check(code == status, f"exit {status} became {code}")


def every_call_is_counted(case):
    case.run(case.target, 1000)
    check(case.calls("counted_once") == 2000, "counted_once")
    check(case.calls("counted_twice") == 1000, "counted_twice")
    check(case.calls("never_called") == 0, "never_called")
    check(case.calls("main") == 1, "main")


def hotfn_dies_by_the_signal_of_the_target(case):
    for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL):
        code, _, _ = case.run(case.target, 500, "kill", int(number))
        check(code == -number, f"{number!r} became {code}")
        check(case.calls("counted_once") == 1000, f"calls lost at {number!r}")


def the_environment_is_unchanged(case):
    bare = subprocess.run([case.target, "1", "env"], capture_output=True, text=True).stdout
    _, hooked, _ = case.run(case.target, 1, "env")
    check(bare == hooked, f"bare:\n{bare}\nhooked:\n{hooked}")


def a_preload_of_the_user_is_kept(case):
    other = case.folder / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "-"],
                   input="int other_is_here;", text=True, check=True)
    env = dict(os.environ, LD_PRELOAD=str(other))
    bare = subprocess.run([case.target, "1", "env"], capture_output=True, text=True, env=env).stdout
    _, hooked, _ = case.run(case.target, 1, "env", env=env)
    check(f"LD_PRELOAD={other}\n" in bare and bare == hooked, f"bare:\n{bare}\nhooked:\n{hooked}")


def a_preload_that_a_wrapper_puts_first_is_kept(case):
    other = case.folder / "first.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "-"],
                   input="int other_is_here;", text=True, check=True)
    wrapper = f"export LD_PRELOAD={other}${{LD_PRELOAD:+:$LD_PRELOAD}}; exec {case.target} 1 env"
    bare = subprocess.run(["sh", "-c", wrapper], capture_output=True, text=True).stdout
    _, hooked, _ = case.run("sh", "-c", wrapper, options=["--target", "*/" + case.target.name])
    check(f"LD_PRELOAD={other}\n" in bare and bare == hooked, f"bare:\n{bare}\nhooked:\n{hooked}")


def a_handler_walks_the_stack_through_stubs(case):
    program = case.folder / "walk"
    subprocess.run(["gcc", *FLAGS, "-O1", "-o", program, HERE / "src" / "walk_in_handler.c"], check=True)
    for options in (["-f", "leaf"], ["--module", "*"]):
        code, out, err = case.run(program, options=options)
        check(code == 0 and out.endswith(" walks, 0 cut short\n"), out + err)
        check(case.calls("leaf") > 0, "leaf is not hooked")


def stdin_and_stdout_are_passed_through(case):
    text = "line one\nline two\n" * 1000
    _, out, _ = case.run(case.target, 1, "cat", feed=text)
    check(out == text, "stdin or stdout changed")


def the_summary_names_the_next_command_and_is_silent_when_quiet(case):
    _, _, err = case.run(case.target, 1)
    check(err.count("\n") == 2 and "functions hooked" in err and str(case.record) in err, err)
    check(err.endswith(f"hotfn: next: hotfn report {case.record}\n"), err)
    _, _, err = case.run(case.target, 1, options=["-q"])
    check(err == "", err)


def status_is_127_for_a_missing_file_and_126_for_a_text_file(case):
    code, _, err = case.run(case.folder / "missing")
    check(code == 127 and "missing" in err, f"{code} {err}")
    plain = case.folder / "plain"
    plain.write_text("text")
    code, _, err = case.run(plain)
    check(code == 126 and "plain" in err, f"{code} {err}")


def other_machines_and_byte_orders_are_refused(case):
    """x32 (a 32-bit program of the 64-bit machine), images of the other byte order, and another CPU."""
    image = bytearray(Path(case.target).read_bytes())
    for at, byte, what in ((4, 3 - image[4], "x32"), (5, 2, "neither"), (18, 0xf3, "neither")):
        odd = case.folder / "odd"
        odd.write_bytes(image[:at] + bytes([byte]) + image[at + 1:])
        odd.chmod(0o755)
        code, out, err = case.run(odd, 1)
        check(code == 125 and str(odd) in err and out == "", f"byte {at}: {code} {err}")


def allocations_are_recorded_on_request(case):
    code, _, err = case.run(case.target, 10, options=["--mode", "time", "--with", "alloc"])
    check(code == 0 and case.calls("counted_once") == 20, f"{code} {err}")


def calls_are_counted_if_no_page_may_be_writable_and_executable(case):
    """PR_SET_MDWE, inherited by the target: stubs are mapped from a file, text is written through /proc."""
    with contextlib.suppress(AttributeError):
        libc = ctypes.CDLL(None)
        code, _, err = case.run(case.target, 50, preexec_fn=lambda: libc.prctl(65, 1, 0, 0, 0))
        check(code == 0 and case.calls("counted_once") == 100, f"{code} {err}")


def text_that_cannot_be_written_is_not_hooked(case):
    """sealed.c maps its text so that neither mprotect nor /proc/self/mem can change it."""
    gcc, source = ["gcc", *FLAGS, "-O2"], SOURCE.with_name("sealed.c")
    subprocess.run([*gcc, "-DLIBRARY", "-shared", "-fPIC", source, "-o", case.folder / "libsealed.so"], check=True)
    subprocess.run([*gcc, source, "-o", case.folder / "sealed", f"-L{case.folder}", "-lsealed", "-Wl,-z,now",
                    f"-Wl,-rpath,{case.folder}"], check=True)
    code, out, err = case.run(case.folder / "sealed")
    check(code == 0 and out == "sealed 1, sum 14850\n" and "0 functions hooked" in err, f"{code} {out!r} {err}")
    check(case.calls("own") is None, "own is counted")


def setuid_programs_are_refused(case):
    rich = case.folder / "setuid"
    shutil.copy(case.target, rich)
    if os.getuid() == 0:
        os.chown(rich, 65534, 65534)
    rich.chmod(rich.stat().st_mode | stat.S_ISUID | stat.S_ISGID)
    if os.getuid() == 0:
        code, _, err = case.run(rich, 1)
        check(code == 125 and "setuid" in err, f"{code} {err}")


def a_truncated_program_is_refused(case):
    cut = case.folder / "cut"
    cut.write_bytes(case.target.read_bytes()[:100])
    cut.chmod(0o755)
    code, _, err = case.run(cut)
    check(code in (125, 126) and "cut" in err, f"{code} {err}")


def sigterm_is_forwarded(case):
    with case.start(case.target, 300, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=300)
    check(child.returncode == -signal.SIGTERM, f"{child.returncode}")
    check(case.calls("counted_twice") == 300, "calls lost")


def a_live_record_can_be_read(case):
    with case.start(case.target, 700, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        check(case.calls("counted_once") == 1400, "live report")
        child.terminate()
        child.communicate(timeout=300)
    check(case.calls("counted_once") == 1400, "finished report")


def counts_are_kept_when_the_target_is_killed(case):
    with case.start(case.target, 900, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        pids = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(pids[0]), signal.SIGKILL)
        child.communicate(timeout=300)
    check(child.returncode == -signal.SIGKILL, f"{child.returncode}")
    check(case.calls("counted_once") == 1800, "calls lost")
    info = subprocess.run([HOTFN, "info", case.record], capture_output=True, text=True).stdout
    check("kill" in info.lower(), info)


def a_durable_record_survives_the_death_of_both_processes(case):
    with case.start(case.target, 900, "hang", options=["--durable"]) as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        pids = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout.split()
        child.kill()
        os.kill(int(pids[0]), signal.SIGKILL)
        child.communicate(timeout=300)
    check(case.calls("counted_once") == 1800, "calls lost")
    clean = case.folder / "clean.hfr"
    subprocess.run([HOTFN, "repair", case.record, "-o", clean], check=True, capture_output=True)
    case.record = clean
    check(case.calls("counted_once") == 1800, "calls lost in repair")


def only_calls_in_the_time_window_are_counted(case):
    """5000 calls before the window, at most one per millisecond in it."""
    def measure():
        with case.start(case.target, 5000, "forever", options=["--after", "500ms", "--for", "1s"]) as child:
            check(child.stdout.readline() == "ready\n", "not ready")
            time.sleep(2)
            child.terminate()
            child.communicate(timeout=300)
        info = json.loads(subprocess.run([HOTFN, "info", "--json", case.record], check=True,
                                         capture_output=True, text=True).stdout)
        window_ms = (info["window_end_ns"] - info["window_start_ns"]) / 1e6
        seen = (window_ms, case.calls("counted_once"), case.calls("counted_twice"))
        right = window_ms >= 990 and 0 < seen[1] <= 1.01 * window_ms + 2 and not seen[2]
        return {} if right else {"window": seen}
    cases.check_most_runs(measure, quorum=3, runs=4)


def a_window_that_never_began_is_reported(case):
    code, _, err = case.run(case.target, 10, options=["--after", "1h"])
    check(code == 0 and "the program ended before the observation began" in err, f"{code} {err}")
    check(case.calls("counted_once") == 0, "counted before the window")


def a_record_that_cannot_be_created_is_refused(case):
    case.record = Path("/proc/r.hfr")
    code, _, err = case.run(case.target, 1)
    check(code == 125 and "/proc/r.hfr" in err and "-o" in err, f"{code} {err}")


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of the given size; None if this test is not allowed to mount one."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
                      capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def a_full_disk_does_not_disturb_the_target(case):
    with small_disk(case.folder / "disk", "16k") as disk:
        if not disk:
            print("# not allowed to mount: a full disk is not tested")
            return
        case.record = disk / "r.hfr"
        code, out, err = case.run(case.target, 300, "cat", feed="text\n", options=["--module", "*"])
        check(code == 0 and out == "text\n", f"{code} {out}")
        check("r.hfr" in err and "/tmp/" in err, err)
        elsewhere = [word for word in err.split() if word.startswith("/tmp/hotfn-")]
        case.record = Path(elsewhere[0])
        check(case.calls("counted_once") == 600, "calls lost")
        case.record.unlink()
        case.record = disk / "d.hfr"
        code, _, err = case.run(case.target, 300, options=["--durable"])
        check(code == 125 and "d.hfr" in err, f"{code} {err}")


def a_record_overwritten_by_others_does_not_disturb_the_target(case):
    with case.start(case.target, 900, "hang", options=["--durable"]) as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        with open(case.record, "r+b") as record:
            record.write(b"something else" * 400)
        child.terminate()
        _, err = child.communicate(timeout=300)
    check(child.returncode == -signal.SIGTERM, f"{child.returncode} {err}")


def a_forked_child_is_reported_separately(case):
    script = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    case.run("/usr/bin/python3", "-c", script, options=["-f", "PyOS_AfterFork*"])
    text = [HOTFN, "report", case.record, "--json", "-n", "0", "-o", "-"]
    both = json.loads(subprocess.run(text, capture_output=True, check=True).stdout)
    parent = json.loads(subprocess.run([*text, "--process", "main"], capture_output=True, check=True).stdout)
    count = lambda report, name: {f["name"]: f["calls"] for f in report["functions"]}[name]
    check(count(both, "PyOS_AfterFork_Child") == 1, "the child's call")
    check(count(parent, "PyOS_AfterFork_Child") == 0, "the parent without the child")
    check(count(parent, "PyOS_AfterFork_Parent") == 1, "the parent's call")


def processes_that_outlive_the_program_are_reported(case):
    source = case.folder / "daemon.c"
    source.write_text("#include <unistd.h>\nvolatile int x; __attribute__((noinline)) void work(void) { x++; }\n"
                      "int main(int argc, char **argv) { int ends[2]; char c; if (argc > 1 || pipe(ends)) return 0;\n"
                      " if (fork() > 0) { close(ends[1]); return read(ends[0], &c, 1) != 1; }\n"
                      " work(); close(1); close(2); if (write(ends[1], \"\", 1) != 1) return 1; for (;;) pause(); }\n")
    subprocess.run(["gcc", *FLAGS, "-O1", "-o", case.folder / "daemon", source], check=True)
    for options, words, is_reported in (([], [], True), (["--durable"], [], True), (["-q"], [], False), ([], ["none"], False)):
        status, _, err = case.run(case.folder / "daemon", *words, options=options)
        check(status == 0 and ("no longer counted, but still running: process " in err) == is_reported, err)


def processes_of_both_word_sizes_are_counted_in_one_run(case):
    """A 64-bit program starts a 32-bit one, which starts a 64-bit one; and a 32-bit program is found behind a 64-bit
    wrapper.  No process reports an agent of the wrong ELF class."""
    if not FLAGS:
        return
    wide = case.folder / "wide"
    subprocess.run(["gcc", "-O2", "-o", wide, SOURCE], check=True)
    script = f"{case.target} 7; env A=b {wide} 30; {case.target} 9"
    for mode in (), ("--mode", "time"):
        code, out, err = case.run("bash", "-c", script, options=["--follow", *mode])
        bare = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        check((code, out) == (0, bare.stdout) and "ELF class" not in err, f"{mode}: {code} {out!r} not {bare.stdout!r}; {err}")
        calls = case.calls_by_module("counted_once")
        check(calls == {"target": 32, "wide": 60}, f"{mode}: {calls}; {err}")
    code, out, err = case.run("env", case.target, 400, options=["--target", "target"])
    check(code == 0 and case.calls("counted_once") == 800 and "ELF class" not in err, f"calls behind env: {code} {err}")
    code, out, err = case.run(case.target, 5, "exec", wide, 30, options=["--follow"])
    calls = case.calls_by_module("counted_once")
    check(code == 0 and calls == {"target": 10, "wide": 60} and "ELF class" not in err, f"exec: {code} {calls} {err}")


def the_target_is_found_behind_a_wrapper(case):
    if FLAGS:
        return
    case.run("env", "A=b", case.target, 400, options=["--target", "target"])
    check(case.calls("counted_once") == 800, "calls behind env")


def children_are_followed_on_request(case):
    if FLAGS:
        return
    both = f"{case.target} 10; {case.target} 20"
    case.run("bash", "-c", both, options=["--follow"])
    check(case.calls("counted_once") == 60, "both children")
    case.run("bash", "-c", both + "; true")
    out = subprocess.run([HOTFN, "report", case.record, "--json", "-n", "0"], capture_output=True, text=True)
    check("counted_once" not in out.stdout, "children without --follow")


def a_child_that_cannot_be_counted_runs_and_reports_it(case):
    """As in a sandbox with its own /proc, which does not contain the process of hotfn."""
    far = f"export HOTFN_RUN=4194305:${{HOTFN_RUN#*:}}; exec {case.target} 5"
    code, out, err = case.run("bash", "-c", far, options=["--follow"])
    bare = subprocess.run([case.target, "5"], capture_output=True, text=True)
    check((code, out) == (bare.returncode, bare.stdout), (code, out))
    check("nothing is counted in process" in err and "/proc/4194305/" in err, err)
    _, _, err = case.run("bash", "-c", far, options=["--follow", "-q"])
    check(err == bare.stderr, err)


def the_interpreter_of_a_script_is_counted(case):
    script = case.folder / "script"
    script.write_text(f"#!{case.target} 250\n")
    script.chmod(0o755)
    case.run(script)
    check(case.calls("counted_once") == 500, "calls behind #!")


def globs_select_and_a_glob_without_a_match_is_reported(case):
    _, _, err = case.run(case.target, 100, options=["-f", "counted_*", "-f", "nothing_like_it",
                                                    "-x", "*twice"])
    check(case.calls("counted_once") == 200, "selected")
    check(case.calls("counted_twice") is None, "excluded")
    check("nothing_like_it" in err, err)


def a_choice_that_matches_nothing_ends_before_the_start(case):
    started, quiet = case.folder / "started", case.folder / "quiet"
    subprocess.run(["gcc", *FLAGS, "-O2", "-x", "c", "-o", quiet, "-"], input="int main(void) { return 0; }", text=True,
                   check=True)  # unlike the target, it calls neither exec nor dlopen
    for options in (["-f", "nothing_like_it"], ["--module", "libnothing*"], ["-f", "no", "-f", "nor"]):
        if options[0] == "--module" and FLAGS:
            continue
        code, out, err = case.run(quiet, options=options)
        check(code == 2 and out == "" and "matches no" in err and not case.record.exists(), (options, code, err))
    wrapper = case.folder / "wrapper"
    wrapper.write_text(f"#!/bin/sh\ntouch {started}\nexec {case.target} 10\n")
    wrapper.chmod(0o755)
    code, _, err = case.run(wrapper, options=["-f", "nothing_like_it"])  # the program behind it may match
    check(code == 0 and started.exists() and "matches no function" in err, f"{code} {err}")
    code, _, err = case.run(wrapper, options=["-f", "counted_once"])
    check(code == 0 and case.calls("counted_once") == 20, f"{code} {err}")


def a_module_that_may_be_loaded_later_is_waited_for(case):
    code, _, err = case.run("/usr/bin/perl", "-e", "1", options=["--module", "libnothing*"])
    check(code == 0 and "matches no module that was loaded" in err, f"{code} {err}")


def a_time_without_a_unit_is_refused(case):
    for option in ("--after", "--for"):
        code, out, err = case.run(case.target, 10, options=[option, "5"])
        check(code == 125 and out == "" and "ms" in err and "unit" in err, f"{code} {err}")


def a_report_of_addresses_says_where_names_come_from(case):
    case.run("/bin/dash", "-c", "i=0; while [ $i -lt 9 ]; do i=$((i+1)); done")
    out = subprocess.run([HOTFN, "report", case.record], capture_output=True, text=True, check=True).stdout
    check(("dash+0x" in out) == ("-dbgsym" in out), out)
    case.run(case.target, 10)
    out = subprocess.run([HOTFN, "report", case.record], capture_output=True, text=True, check=True).stdout
    check("-dbgsym" not in out, out)


def every_command_has_a_short_help(case):
    for command in "run report info diff merge repair open export top scan list symbols kit bisect doctor".split():
        done = subprocess.run([HOTFN, command, "-h"], capture_output=True, text=True)
        check(done.returncode == 0 and done.stdout.startswith("usage: hotfn"), f"{command}: {done}")


def a_missing_home_folder_is_not_created(case):
    env = {**os.environ, "HOME": str(case.folder / "nowhere")}
    env.pop("XDG_CACHE_HOME", None)
    code, _, err = case.run(case.target, 100, env=env)
    check(code == 0 and err.count("\n") == 2, err)
    check(not (case.folder / "nowhere").exists(), "the home folder was created")


def a_folder_is_reported_as_a_folder(case):
    code, _, err = case.run(case.folder)
    check(code == 126 and "is a folder" in err, f"{code} {err}")


def parameters_of_a_readable_name_may_be_omitted(case):
    source, program = case.folder / "named.cpp", case.folder / "named"
    source.write_text("namespace a { __attribute__((noinline)) int f(int n) { asm volatile(\"\"); return n; } }\n"
                      "int main(int count, char **) { return a::f(count) - 1; }\n")
    subprocess.run(["g++", "-O1", "-o", program, source], check=True)
    for glob in ("a::f", "a::f(int)", "a::?"):
        _, _, err = case.run(program, options=["-f", glob])
        check("1 function hooked" in err and "matches no" not in err, err)
        report = subprocess.run([HOTFN, "report", case.record, "-f", glob], capture_output=True, text=True)
        check(report.returncode == 0 and "a::f(int)" in report.stdout, report.stdout + report.stderr)


def an_empty_list_is_reported(case):
    empty = case.folder / "empty.txt"
    empty.write_text("")
    _, _, err = case.run(case.target, 100, options=["--list", empty])
    check("the list has no functions, so nothing will be counted" in err, err)


def comparing_a_sample_with_a_full_run_warns(case):
    def record(name, *options):
        case.run(case.target, 100, options=options)
        return shutil.move(case.record, case.folder / name)

    def errors_of(*words):
        return subprocess.run([HOTFN, *words], capture_output=True, text=True).stderr

    full, sample = record("full.hfr", "--mode", "time"), record("sample.hfr", "--mode", "time", "--sample", "4")
    counts, out = record("counts.hfr"), case.folder / "out.hfr"
    check(f"{sample} timed a sample" in errors_of("diff", full, sample), "the new record is a sample")
    check(f"{sample} timed a sample" in errors_of("diff", sample, full), "the old record is a sample")
    for same in (("diff", full, full), ("diff", sample, sample), ("diff", "--by", "calls", full, sample),
                 ("merge", "-o", out, full, full), ("merge", "-o", out, sample, sample)):
        check(errors_of(*same) == "", f"{same}: {errors_of(*same)}")
    check("1 of 2 records timed a sample" in errors_of("merge", "-o", out, full, sample), "merged")
    info = subprocess.run([HOTFN, "info", out], capture_output=True, text=True).stdout
    check("a sample in some of the runs" in info, info)
    check(f"{counts} was not timed" in errors_of("diff", "--by", "self", full, counts), "the untimed record")
    check(f"{counts} was not timed" in errors_of("diff", "--by", "self", counts, full), "the untimed record")


def libraries_are_counted_on_request(case):
    case.run(case.target, 100, options=["--module", "*"])
    check(case.calls("counted_once") == 200, "the program")
    check(case.calls("puts") is not None, "libc is missing")


def a_glob_without_a_module_is_reported(case):
    _, _, err = case.run(case.target, 100, options=["--module", "target", "--module", "libnothing*"])
    check(case.calls("counted_once") == 200, "the program")
    check("'libnothing*' matches no module" in err and "'target'" not in err, err)


def an_unusable_cache_is_reported_unless_quiet(case):
    environment = {**os.environ, "XDG_CACHE_HOME": str(case.target)}  # a file
    _, _, loud = case.run(case.target, 10, env=environment)
    _, _, quiet = case.run(case.target, 10, options=["-q"], env=environment)
    check("could not be stored" in loud, loud)
    check(quiet == "", quiet)


def signal_dispositions_are_unchanged(case):
    if FLAGS:
        return  # grep has the other word size
    words = ["grep", "^Sig[BIC]", "/proc/self/status"]
    bare = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    _, hooked, _ = case.run(*words)
    check(bare == hooked and "SigIgn" in bare, f"{bare}{hooked}")


def a_program_that_embeds_libhotfn_is_timed(case):
    if FLAGS:
        return  # hotfn has the other word size
    out = subprocess.run([HOTFN, "scan", "--timed", "--json", HOTFN], check=True, capture_output=True,
                         text=True).stdout
    summary = json.loads(out)["summary"]
    check(summary["timed"] * 2 > summary["hookable"], summary)


def a_missing_proc_is_reported(case):
    alone = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc || exit 77; exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise cases.Skipped("this test is not allowed to mount over /proc")
    for words in (["run", "--", case.target], ["bisect", "--", case.target],
                  ["kit", case.target, "-o", case.folder / "kit"]):
        done = subprocess.run([*alone, HOTFN, *words], capture_output=True, text=True, timeout=60)
        check("/proc is not mounted" in done.stderr and "install" not in done.stderr, done)
        check(done.returncode == (125 if words[0] == "run" else 1), done)


CASES = [f for f in list(globals().values())
         if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("case",)]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"], make=Case))
