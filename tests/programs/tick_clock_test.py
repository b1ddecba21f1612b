# SPDX-License-Identifier: MIT
"""`hotfn run --mode time --clock tick`: the calls and the callers are those of the other clock, shares of short
functions are right, and times of callers contain those of their callees."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()
SOURCE = pathlib.Path(__file__).resolve().parent / "src" / "tick_shares.c"
# The hooks of 32-bit code take longer, and how much of that a function sees is less certain.
LONGER = ["-DLONGER"] if "-m32" in FLAGS else []
ROUNDS = 2000000 if LONGER else 8000000


def build(place):
    program = place / "shares"
    subprocess.run(["gcc", "-O2", *LONGER, *FLAGS, "-o", program, SOURCE], check=True)
    return program


def run(place, program, clock, rounds):
    record = place / f"{clock}.hfr"
    subprocess.run([HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--clock", clock, "-o", record, "--", program,
                    str(rounds)], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", "--edges", record], check=True, capture_output=True)
    report = json.loads(done.stdout)
    return report, {f["name"]: f for f in report["functions"]}


def edges(report):
    names = [f["name"] for f in report["functions"]]
    return {(e["caller"] is not None and names[e["caller"]], names[e["callee"]], e["calls"]) for e in report["edges"]}


def calls_and_callers_are_those_of_the_other_clock(place):
    program = build(place)
    tick, functions = run(place, program, "tick", 1000)
    cpu, others = run(place, program, "cpu", 1000)
    assert tick["time"]["clock"] == "tick" and cpu["time"]["clock"] != "tick", (tick["time"], cpu["time"])
    assert {n: f["calls"] for n, f in functions.items()} == {n: f["calls"] for n, f in others.items()}
    assert {n: f.get("timed_calls") for n, f in functions.items()} == {n: f.get("timed_calls") for n, f in others.items()}
    assert edges(tick) == edges(cpu) and len(edges(tick)) >= 3, (edges(tick), edges(cpu))


def shares_of_short_functions_are_right(place):
    program = build(place)

    def measure():
        _, f = run(place, program, "tick", ROUNDS)
        ratio = f["large"]["self_ns"] / f["small"]["self_ns"]
        inside = f["small"]["total_ns"] + f["large"]["total_ns"]
        own = f["large"]["self_ns"] + f["large"]["waited_ns"]
        assert abs(own - f["large"]["total_ns"]) <= 2, f["large"]    # each is rounded
        claims = {"ratio": (2.2 < ratio < 4.0, ratio),
                  "total": (inside <= 1.05 * f["both"]["total_ns"], (inside, f["both"]))}
        return {claim: values for claim, (holds, values) in claims.items() if not holds}
    cases.check_most_runs(measure)


def the_default_clock_ticks_where_it_can(place):
    program = build(place)
    for options, ticks in (([], True), (["--flat"], True), (["--sample", "8"], True), (["--events"], False),
                           (["--with", "alloc"], False), (["--budget", "5%"], True)):
        record = place / "auto.hfr"
        subprocess.run([HOTFN, "run", "-q", "--mode", "time", *options, "-o", record, "--", program, "10"], check=True,
                       stdout=subprocess.DEVNULL)
        done = subprocess.run([HOTFN, "info", "--json", record], check=True, capture_output=True)
        time = json.loads(done.stdout)["time"]
        assert (time["clock"] == "tick") == ticks and (time["ticker"] is not None) == ticks, (options, time)


def times_have_errors_and_none_is_0(place):
    program = build(place)
    report, functions = run(place, program, "tick", ROUNDS // 4)
    error_ns, cost_ns = report["time"]["tick_error_ns"], report["time"]["cost_outside_ns"]
    assert report["time"]["tick_ns"] <= error_ns * 1.5, report["time"]
    for index, f in enumerate(report["functions"]):
        if f["timing"] != "full" or not f["calls"]:
            continue
        for which in ("total", "self"):
            ns, error = f[f"{which}_ns"], f[f"{which}_error_ns"]
            random = max(error_ns, ((ns or 0) * error_ns) ** 0.5)
            callees = sum(e["calls"] for e in report["edges"] if e["caller"] == index)
            if which == "self" or not callees:
                hooks = cost_ns * (f["calls"] / 2 + callees / 4)
                expected = (random ** 2 + hooks ** 2) ** 0.5
                assert ns != 0 and abs(error - expected) <= 1 + expected / 100, (f, expected)
            assert ns != 0 and error >= random - 1, (f, random)
    small = functions["small"]
    assert small["self_error_ns"] > 0.4 * cost_ns * small["calls"] > 0, (small, cost_ns)
    assert functions["small"]["p50_ns"] is None, functions["small"]
    table = subprocess.run([HOTFN, "report", place / "tick.hfr"], check=True, capture_output=True, text=True).stdout
    assert "<4 us" in table and "too short to be known" in table, table
    page = subprocess.run([HOTFN, "export", "-F", "html", place / "tick.hfr"], check=True, capture_output=True,
                          text=True).stdout
    shown = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    names, medians = shown["functions"]["name"], shown["functions"]["p50"]
    assert medians[names.index("small")] < 0, medians  # shown as "<4 us"
    same = subprocess.run([HOTFN, "diff", "--json", "--fail-above", "0%", "--min-share", "0%", place / "tick.hfr",
                           place / "tick.hfr"], capture_output=True, check=False)
    assert same.returncode == 0 and not any(f["within_noise"] for f in json.loads(same.stdout)["functions"]), same


def noise_is_no_growth(place):
    """Two short runs of the same program: the times differ, and the errors explain it in most pairs."""
    program = build(place)

    def measure():
        for name in ("first", "second"):
            run(place, program, "tick", 20000)
            (place / "tick.hfr").rename(place / f"{name}.hfr")
        done = subprocess.run([HOTFN, "diff", "--json", "--by", "self", place / "first.hfr", place / "second.hfr"],
                              check=True, capture_output=True)
        rows = [f for f in json.loads(done.stdout)["functions"] if f["old"] and f["new"]]
        changed = [f for f in rows if f["old"]["self_ns"] != f["new"]["self_ns"]]
        noise = [f for f in changed if f["within_noise"]]
        return {} if 2 * len(noise) >= len(changed) else {"noise": changed}
    cases.check_most_runs(measure)


def a_thread_that_sleeps_ticks_on_one_processor(place):
    program = build(place)
    record = place / "one.hfr"
    processor = str(min(os.sched_getaffinity(0)))
    subprocess.run(["taskset", "-c", processor, HOTFN, "run", "-q", "--mode", "time", "-o", record, "--", program,
                    str(ROUNDS // 4)], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True, capture_output=True)
    report = json.loads(done.stdout)
    time = report["time"]
    assert time["clock"] == "tick" and time["ticker"] == "one-processor" and time["ticker_cpu_ns"] > 0, time
    assert time["coarse_share"] + time["missing_share"] > 0.5 and time["busy_ns"] > 0, time
    doctor = subprocess.run(["taskset", "-c", processor, HOTFN, "doctor", "--json"], capture_output=True, check=False)
    found = {check["name"]: check for check in json.loads(doctor.stdout)["checks"]}
    assert "only one processor" in found["clock"]["text"], found["clock"]


STOPS = """#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { for (long i = 0; i < 10000; i++) sink += i; }
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
    int number = atoi(argv[1]), calls = 0;
    work();
    kill(getppid(), number);
    for (double begin = now(); now() - begin < 0.4; calls++) work();
    if (number == SIGSTOP) kill(getppid(), SIGCONT);
    work();
    printf("%d\\n", calls + 2);
    return argc > 2;
}
"""


def a_ticker_that_does_not_run_is_reported(place):
    """The program stops the launcher, whose threads tick, for 0.4 s; or it kills it."""
    (place / "stops.c").write_text(STOPS)
    subprocess.run(["gcc", "-O2", *FLAGS, "-o", place / "stops", place / "stops.c"], check=True)
    for number, options in (signal.SIGSTOP, []), (signal.SIGKILL, ["--durable"]):
        record = place / f"stops{int(number)}.hfr"
        done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--clock", "tick", *options, "-o",
                               record, "--", place / "stops", str(int(number))], stdout=subprocess.PIPE, text=True)
        assert done.returncode == (-9 if options else 0), done    # stdout ends with the program
        report = json.loads(subprocess.run([HOTFN, "report", "--json", record], check=True, capture_output=True).stdout)
        text = subprocess.run([HOTFN, "report", record], check=True, capture_output=True, text=True).stdout
        assert next(f["calls"] for f in report["functions"] if f["name"] == "work") == int(done.stdout), report
        note = "no ticks came after that" if options else "ticks were missing in"
        assert note in text and (options or report["time"]["missing_share"] > 0.2), (text, report["time"])


def other_ways_to_time_are_refused(place):
    program = build(place)
    for option in (["--events"], ["--with", "alloc"]):
        done = subprocess.run([HOTFN, "run", "--mode", "time", "--clock", "tick", *option, "--", program],
                              capture_output=True, text=True)
        assert done.returncode == 2 and "clock cpu" in done.stderr, (option, done)


CASES = [calls_and_callers_are_those_of_the_other_clock, shares_of_short_functions_are_right,
         the_default_clock_ticks_where_it_can, times_have_errors_and_none_is_0,
         noise_is_no_growth, a_thread_that_sleeps_ticks_on_one_processor,
         a_ticker_that_does_not_run_is_reported, other_ways_to_time_are_refused]

if __name__ == "__main__":
    sys.exit(cases.run(CASES))
