# SPDX-License-Identifier: MIT
"""`hotfn run` leaves the target's world as it was: exit status, signals, environment, stdio; refuses
what it cannot enter; loses nothing when the target is killed."""
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
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same of 32-bit targets


class Case:
    """A scratch folder with the target built in it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.target = self.folder / "target"
        self.record = self.folder / "r.hfr"
        subprocess.run(["gcc", *FLAGS, "-O2", "-o", self.target, SOURCE], check=True)
        while time.time() - self.target.stat().st_ctime < 0.05:     # a file this new is not kept in the cache
            time.sleep(0.01)

    @contextlib.contextmanager
    def start(self, *args, options=(), **more):
        child = subprocess.Popen([HOTFN, "run", "-o", self.record, *options, "--", *map(str, args)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, **more)
        try:
            yield child
        finally:  # nothing may stay behind, also when a check failed
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


def passes_the_exit_status_on(case):
    for status in (0, 7, 255):
        code, _, _ = case.run(case.target, 10, "exit", status)
        check(code == status, f"exit {status} became {code}")


def counts_every_call(case):
    case.run(case.target, 1000)
    check(case.calls("counted_once") == 2000, "counted_once")
    check(case.calls("counted_twice") == 1000, "counted_twice")
    check(case.calls("never_called") == 0, "never_called")
    check(case.calls("main") == 1, "main")


def dies_by_the_signal_of_the_child(case):
    for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL):
        code, _, _ = case.run(case.target, 500, "kill", int(number))
        check(code == -number, f"{number!r} became {code}")
        check(case.calls("counted_once") == 1000, f"calls lost at {number!r}")


def leaves_the_environment_as_it_was(case):
    bare = subprocess.run([case.target, "1", "env"], capture_output=True, text=True).stdout
    _, hooked, _ = case.run(case.target, 1, "env")
    check(bare == hooked, f"bare:\n{bare}\nhooked:\n{hooked}")


def keeps_a_preload_of_the_user(case):
    other = case.folder / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "-"],
                   input="int other_is_here;", text=True, check=True)
    env = dict(os.environ, LD_PRELOAD=str(other))
    bare = subprocess.run([case.target, "1", "env"], capture_output=True, text=True, env=env).stdout
    _, hooked, _ = case.run(case.target, 1, "env", env=env)
    check(f"LD_PRELOAD={other}\n" in bare and bare == hooked, f"bare:\n{bare}\nhooked:\n{hooked}")


def a_handler_walks_the_stack_through_stubs(case):
    program = case.folder / "walk"
    subprocess.run(["gcc", *FLAGS, "-O1", "-o", program, HERE / "src" / "walk_in_handler.c"], check=True)
    for options in (["-f", "leaf"], ["--module", "*"]):
        code, out, err = case.run(program, options=options)
        check(code == 0 and out.endswith(" walks, 0 cut short\n"), out + err)
        check(case.calls("leaf") > 0, "leaf is not hooked")


def passes_stdin_and_stdout_through(case):
    text = "line one\nline two\n" * 1000
    _, out, _ = case.run(case.target, 1, "cat", feed=text)
    check(out == text, "stdin or stdout changed")


def says_one_line_at_the_end_and_none_when_quiet(case):
    _, _, err = case.run(case.target, 1)
    check(err.count("\n") == 1 and "functions hooked" in err and str(case.record) in err, err)
    _, _, err = case.run(case.target, 1, options=["-q"])
    check(err == "", err)


def answers_127_and_126(case):
    code, _, err = case.run(case.folder / "missing")
    check(code == 127 and "missing" in err, f"{code} {err}")
    plain = case.folder / "plain"
    plain.write_text("text")
    code, _, err = case.run(plain)
    check(code == 126 and "plain" in err, f"{code} {err}")


def refuses_other_machines_and_byte_orders(case):
    """x32, a 32-bit program of the 64-bit machine, and images of the other byte order."""
    image = bytearray(Path(case.target).read_bytes())
    for at, byte, what in ((4, 3 - image[4], "x32"), (5, 2, "neither"), (18, 0xf3, "neither")):
        odd = case.folder / "odd"
        odd.write_bytes(image[:at] + bytes([byte]) + image[at + 1:])
        odd.chmod(0o755)
        code, out, err = case.run(odd, 1)
        check(code == 125 and str(odd) in err and out == "", f"byte {at}: {code} {err}")


def follows_memory_where_asked(case):
    code, _, err = case.run(case.target, 10, options=["--mode", "time", "--with", "alloc"])
    check(code == 0 and case.calls("counted_once") == 20, f"{code} {err}")


def counts_where_no_page_may_be_written_and_run(case):
    """PR_SET_MDWE, handed down to the target: stubs come from a file, text is written through /proc."""
    with contextlib.suppress(AttributeError):
        libc = ctypes.CDLL(None)
        code, _, err = case.run(case.target, 50, preexec_fn=lambda: libc.prctl(65, 1, 0, 0, 0))
        check(code == 0 and case.calls("counted_once") == 100, f"{code} {err}")


def leaves_text_as_it_is_that_nobody_may_write(case):
    """sealed.c maps its text such that neither mprotect nor /proc/self/mem changes it."""
    gcc, source = ["gcc", *FLAGS, "-O2"], SOURCE.with_name("sealed.c")
    subprocess.run([*gcc, "-DLIBRARY", "-shared", "-fPIC", source, "-o", case.folder / "libsealed.so"], check=True)
    subprocess.run([*gcc, source, "-o", case.folder / "sealed", f"-L{case.folder}", "-lsealed", "-Wl,-z,now",
                    f"-Wl,-rpath,{case.folder}"], check=True)
    code, out, err = case.run(case.folder / "sealed")
    check(code == 0 and out == "sealed 1, sum 14850\n" and "0 functions hooked" in err, f"{code} {out!r} {err}")
    check(case.calls("own") is None, "own is counted")


def refuses_static_and_setuid_programs(case):
    fixed = case.folder / "static"
    subprocess.run(["gcc", "-O2", "-static", "-o", fixed, SOURCE], check=True)
    code, _, err = case.run(fixed, 1)
    check(code == 125 and "static" in err, f"{code} {err}")
    rich = case.folder / "setuid"
    shutil.copy(case.target, rich)
    if os.getuid() == 0:
        os.chown(rich, 65534, 65534)
    rich.chmod(rich.stat().st_mode | stat.S_ISUID | stat.S_ISGID)
    if os.getuid() == 0:
        code, _, err = case.run(rich, 1)
        check(code == 125 and "setuid" in err, f"{code} {err}")


def refuses_what_is_no_program(case):
    cut = case.folder / "cut"
    cut.write_bytes(case.target.read_bytes()[:100])
    cut.chmod(0o755)
    code, _, err = case.run(cut)
    check(code in (125, 126) and "cut" in err, f"{code} {err}")


def forwards_sigterm(case):
    with case.start(case.target, 300, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=300)
    check(child.returncode == -signal.SIGTERM, f"{child.returncode}")
    check(case.calls("counted_twice") == 300, "calls lost")


def reads_a_live_record(case):
    with case.start(case.target, 700, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        check(case.calls("counted_once") == 1400, "live report")
        child.terminate()
        child.communicate(timeout=300)
    check(case.calls("counted_once") == 1400, "finished report")


def keeps_the_counts_when_the_target_is_killed(case):
    with case.start(case.target, 900, "hang") as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        pids = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(pids[0]), signal.SIGKILL)
        child.communicate(timeout=300)
    check(child.returncode == -signal.SIGKILL, f"{child.returncode}")
    check(case.calls("counted_once") == 1800, "calls lost")
    info = subprocess.run([HOTFN, "info", case.record], capture_output=True, text=True).stdout
    check("kill" in info.lower(), info)


def durable_survives_the_death_of_both(case):
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


def counts_a_window_in_time(case):
    """5000 calls before the window, at most one a millisecond in it."""
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
    cases.holds_in_most_runs(measure, right=3, of=4)


def says_that_the_window_never_began(case):
    code, _, err = case.run(case.target, 10, options=["--after", "1h"])
    check(code == 0 and "the program ended before the time to observe began" in err, f"{code} {err}")
    check(case.calls("counted_once") == 0, "counted before the window")


def needs_a_place_for_the_record(case):
    case.record = Path("/proc/r.hfr")
    code, _, err = case.run(case.target, 1)
    check(code == 125 and "/proc/r.hfr" in err and "-o" in err, f"{code} {err}")


@contextlib.contextmanager
def small_disk(folder, size):
    """A full disk in miniature; None where this system does not let us mount one."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
                      capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def a_full_disk_harms_nobody(case):
    with small_disk(case.folder / "disk", "16k") as disk:
        if not disk:
            print("# no right to mount: a full disk is not tried")
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


def a_record_cut_or_overwritten_by_others_harms_nobody(case):
    with case.start(case.target, 900, "hang", options=["--durable"]) as child:
        check(child.stdout.readline() == "ready\n", "not ready")
        with open(case.record, "r+b") as record:
            record.write(b"something else" * 400)
        child.terminate()
        _, err = child.communicate(timeout=300)
    check(child.returncode == -signal.SIGTERM, f"{child.returncode} {err}")


def a_forked_child_is_told_apart(case):
    script = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    case.run("/usr/bin/python3", "-c", script, options=["-f", "PyOS_AfterFork*"])
    text = [HOTFN, "report", case.record, "--json", "-n", "0", "-o", "-"]
    everyone = json.loads(subprocess.run(text, capture_output=True, check=True).stdout)
    parent = json.loads(subprocess.run([*text, "--process", "main"], capture_output=True, check=True).stdout)
    count = lambda report, name: {f["name"]: f["calls"] for f in report["functions"]}[name]
    check(count(everyone, "PyOS_AfterFork_Child") == 1, "the child's call")
    check(count(parent, "PyOS_AfterFork_Child") == 0, "the parent without the child")
    check(count(parent, "PyOS_AfterFork_Parent") == 1, "the parent's call")


def says_who_goes_on_when_the_program_has_ended(case):
    source = case.folder / "daemon.c"
    source.write_text("#include <unistd.h>\nvolatile int x; __attribute__((noinline)) void work(void) { x++; }\n"
                      "int main(int argc, char **argv) { int ends[2]; char c; if (argc > 1 || pipe(ends)) return 0;\n"
                      " if (fork() > 0) { close(ends[1]); return read(ends[0], &c, 1) != 1; }\n"
                      " work(); close(1); close(2); if (write(ends[1], \"\", 1) != 1) return 1; for (;;) pause(); }\n")
    subprocess.run(["gcc", *FLAGS, "-O1", "-o", case.folder / "daemon", source], check=True)
    for options, words, said in (([], [], True), (["--durable"], [], True), (["-q"], [], False), ([], ["none"], False)):
        status, _, err = case.run(case.folder / "daemon", *words, options=options)
        check(status == 0 and ("no longer counted, but still running: process " in err) == said, err)


def counts_both_word_sizes_of_one_run(case):
    """A 64-bit program starts a 32-bit one, which starts a 64-bit one; and a 32-bit program is found behind a 64-bit
    wrapper.  Nobody is told of an agent of the wrong class."""
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


def finds_the_target_behind_a_wrapper(case):
    if FLAGS:
        return
    case.run("env", "A=b", case.target, 400, options=["--target", "target"])
    check(case.calls("counted_once") == 800, "calls behind env")


def follows_children_on_request(case):
    if FLAGS:
        return
    both = f"{case.target} 10; {case.target} 20"
    case.run("bash", "-c", both, options=["--follow"])
    check(case.calls("counted_once") == 60, "both children")
    case.run("bash", "-c", both)
    out = subprocess.run([HOTFN, "report", case.record, "--json", "-n", "0"], capture_output=True, text=True)
    check("counted_once" not in out.stdout, "children without --follow")


def a_child_that_cannot_be_counted_runs_and_says_so(case):
    """As in a sandbox with a /proc of its own: there is no such process as ours."""
    far = f"export HOTFN_RUN=4194305:${{HOTFN_RUN#*:}}; exec {case.target} 5"
    code, out, err = case.run("bash", "-c", far, options=["--follow"])
    bare = subprocess.run([case.target, "5"], capture_output=True, text=True)
    check((code, out) == (bare.returncode, bare.stdout), (code, out))
    check("nothing is counted in process" in err and "/proc/4194305/" in err, err)
    _, _, err = case.run("bash", "-c", far, options=["--follow", "-q"])
    check(err == bare.stderr, err)


def counts_the_interpreter_of_a_script(case):
    script = case.folder / "script"
    script.write_text(f"#!{case.target} 250\n")
    script.chmod(0o755)
    case.run(script)
    check(case.calls("counted_once") == 500, "calls behind #!")


def selects_by_glob_and_warns_of_one_that_matches_nothing(case):
    _, _, err = case.run(case.target, 100, options=["-f", "counted_*", "-f", "nothing_like_it",
                                                    "-x", "*twice"])
    check(case.calls("counted_once") == 200, "selected")
    check(case.calls("counted_twice") is None, "excluded")
    check("nothing_like_it" in err, err)


def a_home_that_is_not_there_is_not_made(case):
    env = {**os.environ, "HOME": str(case.folder / "nowhere")}
    env.pop("XDG_CACHE_HOME", None)
    code, _, err = case.run(case.target, 100, env=env)
    check(code == 0 and err.count("\n") == 1, err)
    check(not (case.folder / "nowhere").exists(), "the home was made")


def a_folder_is_called_one(case):
    code, _, err = case.run(case.folder)
    check(code == 126 and "is a folder" in err, f"{code} {err}")


def parameters_of_a_readable_name_may_be_left_out(case):
    source, program = case.folder / "named.cpp", case.folder / "named"
    source.write_text("namespace a { __attribute__((noinline)) int f(int n) { asm volatile(\"\"); return n; } }\n"
                      "int main(int count, char **) { return a::f(count) - 1; }\n")
    subprocess.run(["g++", "-O1", "-o", program, source], check=True)
    for glob in ("a::f", "a::f(int)", "a::?"):
        _, _, err = case.run(program, options=["-f", glob])
        check("1 function hooked" in err and "matches no" not in err, err)
        told = subprocess.run([HOTFN, "report", case.record, "-f", glob], capture_output=True, text=True)
        check(told.returncode == 0 and "a::f(int)" in told.stdout, told.stdout + told.stderr)


def warns_of_a_list_that_names_nothing(case):
    empty = case.folder / "empty.txt"
    empty.write_text("")
    _, _, err = case.run(case.target, 100, options=["--list", empty])
    check("names no function: nothing will be counted" in err, err)


def a_sample_beside_a_full_run_is_said(case):
    def record(name, *options):
        case.run(case.target, 100, options=options)
        return shutil.move(case.record, case.folder / name)

    def said(*words):
        return subprocess.run([HOTFN, *words], capture_output=True, text=True).stderr

    full, sample = record("full.hfr", "--mode", "time"), record("sample.hfr", "--mode", "time", "--sample", "4")
    counts, out = record("counts.hfr"), case.folder / "out.hfr"
    check(f"{sample} timed a sample" in said("diff", full, sample), "one is a sample")
    check(f"{sample} timed a sample" in said("diff", sample, full), "the other is")
    for same in (("diff", full, full), ("diff", sample, sample), ("diff", "--by", "calls", full, sample),
                 ("merge", "-o", out, full, full), ("merge", "-o", out, sample, sample)):
        check(said(*same) == "", f"{same}: {said(*same)}")
    check("1 of 2 records timed a sample" in said("merge", "-o", out, full, sample), "merged")
    told = subprocess.run([HOTFN, "info", out], capture_output=True, text=True).stdout
    check("a sample in some of the runs" in told, told)
    check(f"{counts} is not timed" in said("diff", "--by", "self", full, counts), "which is not")
    check(f"{counts} is not timed" in said("diff", "--by", "self", counts, full), "which is not")


def counts_libraries_on_request(case):
    case.run(case.target, 100, options=["--module", "*"])
    check(case.calls("counted_once") == 200, "the program")
    check(case.calls("puts") is not None, "libc is not there")


def warns_of_a_module_that_is_not_there(case):
    _, _, err = case.run(case.target, 100, options=["--module", "target", "--module", "libnothing*"])
    check(case.calls("counted_once") == 200, "the program")
    check("'libnothing*' matches no module" in err and "'target'" not in err, err)


def warns_of_a_cache_that_cannot_be_unless_quiet(case):
    world = {**os.environ, "XDG_CACHE_HOME": str(case.target)}  # a file
    _, _, loud = case.run(case.target, 10, env=world)
    _, _, quiet = case.run(case.target, 10, options=["-q"], env=world)
    check("could not be kept" in loud, loud)
    check(quiet == "", quiet)


def leaves_signals_as_they_were(case):
    if FLAGS:
        return  # grep is of the other word size
    words = ["grep", "^Sig[BIC]", "/proc/self/status"]
    bare = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    _, hooked, _ = case.run(*words)
    check(bare == hooked and "SigIgn" in bare, f"{bare}{hooked}")


def says_that_proc_is_not_mounted(case):
    alone = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc || exit 77; exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise cases.Skipped("nobody here may mount over /proc")
    for words in (["run", "--", case.target], ["bisect", "--", case.target],
                  ["kit", case.target, "-o", case.folder / "kit"]):
        done = subprocess.run([*alone, HOTFN, *words], capture_output=True, text=True, timeout=60)
        check("/proc is not mounted" in done.stderr and "install" not in done.stderr, done)
        check(done.returncode == (125 if words[0] == "run" else 1), done)


CASES = [f for f in list(globals().values())
         if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("case",)]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"], make=Case))
