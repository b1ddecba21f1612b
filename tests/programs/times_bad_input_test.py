# SPDX-License-Identifier: MIT
"""Failures around a timed run are reported, do not disturb the program, and give the documented exit
status: a thread that never returns, stacks that the program switches, a truncated record, a flat record
exported to a format of stacks, an output that cannot be written, and a processor clock that the system does
not trust because it differs between CPUs.  (counter_mode_test.c tests a non-monotonic clock.)"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import cases
from other_version import with_version

HOTFN = os.environ["HOTFN"]
NEVER = """#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile long sink, spinning;
__attribute__((noinline)) void spins(void) { spinning = 1; for (;;) sink++; }
__attribute__((noinline)) void works(void) { sink = 1; usleep(2000); sink++; }
static void *thread(void *x) { sink = 1; spins(); return x; }
int main(void)
{
    pthread_t t;
    sink = 1;
    pthread_create(&t, NULL, thread, NULL);
    while (!spinning)
        usleep(100);
    for (int i = 0; i < 10; i++)
        works();
    puts("done");
    return 7;
}
"""
SWITCHES = """#include <stdio.h>
#include <ucontext.h>
volatile long sink;
static ucontext_t back, there;
__attribute__((noinline)) void leaves(void) { sink++; setcontext(&back); sink--; }
static void begin(void) { sink = 1; leaves(); }
__attribute__((noinline)) void goes(void)
{
    static char stacks[2][16384];
    static volatile int left, which;
    sink = 0;
    left = 0;
    getcontext(&back);
    if (!left++) {
        getcontext(&there);
        there.uc_stack.ss_sp = stacks[which++ % 2];
        there.uc_stack.ss_size = sizeof stacks[0];
        makecontext(&there, begin, 0);
        setcontext(&there);
    }
    sink++;
}
int main(void) { sink = 1; for (int i = 0; i < 2000; i++) goes(); puts("done"); return 3; }
"""


def build(place, name, source):
    (place / (name + ".c")).write_text(source)
    subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-pthread", "-o", place / name,
                    place / (name + ".c")], check=True)
    return place / name


def hotfn(*words, status=0):
    done = subprocess.run([HOTFN, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


def times_of(record, *options):
    report = json.loads(hotfn("report", "--json", "-n", "0", *options, record).stdout)
    return {f["name"]: f for f in report["functions"]}, report


CLOCKSOURCE = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def a_clock_that_the_system_rejected_is_not_used(place):
    """Linux rejects the CPUs' counters if they differ; here a mounted file reports that it did."""
    binary, record, rejected = build(place, "never", NEVER), place / "r.hfr", place / "clocksource"
    rejected.write_text("hpet\n")
    script = 'mount --bind "$1" "$2" || exit 77; shift 2; exec "$@"'
    alone = ["unshare", "-m", "sh", "-c", script, "sh", rejected, CLOCKSOURCE]
    if not CLOCKSOURCE.exists() or not shutil.which("unshare") or subprocess.run(
            [*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise cases.Skipped("this test is not allowed to mount a file over the clock source")
    for options in ([], ["--flat"], ["--sample", "1"]):
        done = subprocess.run([*alone, HOTFN, "run", "-q", "--no-cache",
                               "--mode", "time", "--clock", "cpu", *options, "-o",
                               record, "--", binary], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (7, "done\n"), done
        time = json.loads(hotfn("info", "--json", record).stdout)["time"]
        assert (time["clock"], time["ticks_per_second"], time["clock_went_back"]) == (
            "monotonic", 1_000_000_000, 0), time
        works = times_of(record)[0]["works"]
        assert (works["calls"], works["timed_calls"]) == (10, 10) and works["total_ns"] >= 20e6, works


def a_thread_that_never_returns_is_timed_until_the_end(place):
    binary, record = build(place, "never", NEVER), place / "r.hfr"
    done = hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "-o", record, "--", binary, status=7)
    assert done.stdout == "done\n"
    functions, _ = times_of(record)
    spins, works = functions["spins"], functions["works"]
    assert spins["calls"] == spins["timed_calls"] == spins["open_calls"] == 1 and spins["total_ns"] > 0, spins
    assert (works["calls"], works["timed_calls"]) == (10, 10) and works["total_ns"] >= 20e6, works


def stacks_that_the_program_switches_keep_the_times_consistent(place):
    binary, record = build(place, "switches", SWITCHES), place / "r.hfr"
    for options in ([], ["--flat"], ["--sample", "4"]):
        done = hotfn("run", "-q", "--mode", "time", "--clock", "cpu", *options, "-o", record, "--", binary, status=3)
        assert done.stdout == "done\n"
        functions, report = times_of(record)
        assert functions["leaves"]["calls"] == 2000, functions["leaves"]
        if "--sample" not in options:
            cases.check_own_times_sum_to_busy(report)


def a_truncated_record_is_refused_and_can_be_repaired(place):
    binary, record = build(place, "never", NEVER), place / "r.hfr"
    hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "--events", "--slower-than", "1us", "-o", record, "--",
          binary, status=7)
    whole = record.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, len(whole) // 4, 600, 100, 1):
        truncated, repaired = place / "truncated.hfr", place / "repaired.hfr"
        truncated.write_bytes(whole[:size])
        repaired.unlink(missing_ok=True)
        problem = hotfn("report", truncated, status=1).stderr
        assert str(truncated) in problem and len(problem.splitlines()) <= 2, problem
        done = subprocess.run([HOTFN, "repair", truncated, "-o", repaired], capture_output=True, text=True)
        assert done.returncode in (0, 1) and (done.stderr or done.stdout), (size, done)
        if done.returncode == 0:
            hotfn("report", repaired)
            hotfn("export", "-F", "html", repaired, "-o", place / "page.html")


def every_command_reports_times_of_an_older_hotfn(place):
    binary, now, old = build(place, "never", NEVER), place / "now.hfr", place / "old.hfr"
    hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "--sample", "4", "-o", now, "--", binary, status=7)
    data, at = with_version(now.read_bytes(), 0)
    old.write_bytes(data)
    message = f"{old}: offset {at}: the times have version 0 and are not read: this hotfn reads version 4\n"
    for words in (("report",), ("report", "--json"), ("info",), ("info", "--json"), ("top", "--once"),
                  ("top", "--once", "--json"), ("export", "-F", "json"), ("export", "-F", "html")):
        done = hotfn(*words, old, *(("-o", place / "out.html") if "html" in words else ()))
        assert done.stderr == f"hotfn {words[0]}: {message}", (words, done.stderr)
    functions, report = times_of(old)
    assert functions["works"]["calls"] == 10 and "total_ns" not in functions["works"], functions["works"]
    assert "version 0" in report["record"]["times_note"] and "time" not in report, report["record"]
    for words in (("export", "-F", "folded", old), ("export", "-F", "chrome", old),
                  ("report", "--by", "self", old)):
        assert hotfn(*words, status=1).stderr.count(message) == 2, words
    done = hotfn("diff", "--json", now, old)
    assert done.stderr == f"hotfn diff: {message}" and "works" in done.stdout, done
    done = hotfn("merge", "-o", place / "sum.hfr", now, old)
    assert done.stderr.startswith(f"hotfn merge: {message}") and "only calls are merged" in done.stderr, done
    assert times_of(place / "sum.hfr")[0]["works"]["calls"] == 20
    old.write_bytes(with_version(now.read_bytes(), 5)[0])
    assert "reads version 4" in hotfn("report", old).stderr


def a_flat_record_is_not_exported_as_stacks(place):
    binary, record = build(place, "never", NEVER), place / "r.hfr"
    hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "--flat", "-o", record, "--", binary, status=7)
    for name, need in (("folded", "--flat"), ("speedscope", "--flat"), ("firefox", "--flat"),
                       ("chrome", "--events"), ("perfetto", "--events"), ("traceview", "--events")):
        out = place / ("out." + name)
        problem = hotfn("export", "-F", name, record, "-o", out, status=1).stderr
        assert need in problem and str(record) in problem, problem
        assert not out.exists(), name
    for name in ("callgrind", "pprof", "gmon", "html", "json"):
        hotfn("export", "-F", name, record, "-o", place / "out")
    assert not json.loads(hotfn("report", "--json", "--edges", record).stdout).get("edges")


def an_output_that_cannot_be_written_is_reported(place):
    binary, record = build(place, "never", NEVER), place / "r.hfr"
    hotfn("run", "-q", "--mode", "time", "--clock", "cpu", "-o", record, "--", binary, status=7)
    assert "none" in hotfn("export", "-F", "html", record, "-o", place / "none/x", status=1).stderr
    assert hotfn("run", "--mode", "time", "--clock", "cpu", "-o", place / "none/x.hfr", "--", binary, status=125).stderr
    full = place / "full"
    try:
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        with open(full, "wb"):
            pass
    except OSError:
        return      # only root can create devices, and not on every file system
    assert "written" in hotfn("export", "-F", "html", record, "-o", full, status=1).stderr
    assert stat.S_ISCHR(full.lstat().st_mode), "the device that is the output was removed"


CASES = [
    a_clock_that_the_system_rejected_is_not_used,
    a_thread_that_never_returns_is_timed_until_the_end,
    stacks_that_the_program_switches_keep_the_times_consistent,
    a_truncated_record_is_refused_and_can_be_repaired,
    every_command_reports_times_of_an_older_hotfn,
    a_flat_record_is_not_exported_as_stacks,
    an_output_that_cannot_be_written_is_reported,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc"]))
