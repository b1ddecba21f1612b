# SPDX-License-Identifier: MIT
"""The times of a record of `hotfn run --mode time`."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import hotfn

SOURCE = """
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
volatile long sink;
OWN void leaf(long n) { for (long i = 0; i < n; i++) sink += i; }
OWN void middle(long n) { for (long i = 0; i < n; i++) sink -= i; leaf(n); leaf(n); sink++; }
OWN void naps(void) { sink = 1; usleep(300000); sink++; }
OWN long many(long a, long b, long c, long d, long e, long f, long g) { sink = 1; return a + g + sink; }
int main(void)
{
    sink = 1;
    for (int i = 0; i < 100; i++)
        middle(300000);
    naps();
    return (int)many(0, 0, 0, 0, 0, 0, -1) * 0;
}
"""


@pytest.fixture(scope="module")
def tool():
    library = pathlib.Path(os.environ.get("HOTFN_LIBRARY", "/none"))
    found = next((folder / "tools/hotfn/hotfn" for folder in library.parents
                  if (folder / "tools/hotfn/hotfn").exists()), None)
    if not found:
        pytest.skip("hotfn was not built with the library")
    return found


@pytest.fixture(scope="module", params=["tick", "cpu"])
def path(tool, compiler, tmp_path_factory, request):
    place = tmp_path_factory.mktemp("times")
    (place / "timed.c").write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", place / "timed.c", "-o",
                    place / "timed"], check=True)
    for _ in range(20):
        subprocess.run([tool, "run", "-q", "--no-cache", "--mode", "time", "--clock", request.param,
                        "--slower-than", "2ms", "-o", place / "run.hfr", "--", place / "timed"], check=True)
        with hotfn.open(place / "run.hfr") as record:
            if record.time.missing_share == 0 and record.time.coarse_share < 0.2:
                break    # else a busy system kept the ticker waiting for longer than the calls take
    return place / "run.hfr"


@pytest.fixture
def record(path):
    with hotfn.open(path) as opened:
        yield opened


def by_name(record):
    return {function.name: (index, times) for index, (function, times)
            in enumerate(zip(record.functions, record.times))}


def test_each_function_has_its_times(record):
    ticks = record.time.ticker is not None
    functions = by_name(record)
    _, leaf = functions["leaf"]
    _, middle = functions["middle"]
    assert (leaf.timing, leaf.reason, leaf.timed_calls) == ("full", None, 200)
    longer = [leaf.p50_ns, leaf.p90_ns, leaf.p99_ns, leaf.max_ns]
    known = [ns for ns in longer if ns is not None]
    # those of calls that are shorter than the interval of ticks are unknown
    assert known == longer or (ticks and known and known == longer[-len(known):])
    assert 0 < known[0] and known == sorted(known)
    assert middle.total_ns >= leaf.total_ns >= leaf.self_ns > 0
    assert 0 < middle.self_ns < middle.total_ns
    assert 0 < leaf.total_error_ns <= middle.total_error_ns
    if ticks:
        assert leaf.total_error_ns >= int(record.time.tick_error_ns)
    else:
        assert leaf.total_error_ns <= leaf.timed_calls * record.time.cost_ns < leaf.total_ns


def test_function_that_is_only_counted_has_a_reason(record):
    times = [times for times in record.times if times.timing == "count-only"]
    assert times and all(t.reason and t.total_ns is None for t in times)


def test_edges_have_exact_calls(record):
    functions = by_name(record)
    edges = {(edge.caller, edge.callee): edge.calls for edge in record.edges}
    assert edges[functions["middle"][0], functions["leaf"][0]] == 200
    assert edges[functions["main"][0], functions["middle"][0]] == 100


def test_slow_calls_have_their_stack(record):
    functions = by_name(record)
    naps = [call for call in record.slow_calls if call.function == functions["naps"][0]]
    # both ends are at ticks, which a busy system delays
    assert len(naps) == 1 and naps[0].duration_ns >= (150_000_000 if record.time.tick_error_ns else 300_000_000)
    assert naps[0].stack[-2:] == (functions["main"][0], functions["naps"][0])


def test_hot_by_time(record):
    assert record.hot(1, by="total")[0].name == "main"
    own = {f.name: times.self_ns or 0 for f, times in zip(record.functions, record.times)}
    # functions without a tick have equal times
    assert [own[f.name] for f in record.hot(by="self")] == sorted(
        (own[f.name] for f in record.functions if f.calls), reverse=True)
    with pytest.raises(ValueError):
        record.hot(by="luck")
    assert record.sort() == record.sort("self")


def test_callers_have_exact_calls(record):
    leaf, main = record.find("leaf"), record.find("main")
    assert [(caller.function.name, caller.calls) for caller in leaf.callers] == [("middle", 200)]
    assert leaf.callers[0].function.callers == (hotfn.Caller(main, 100),)
    record.close()
    with pytest.raises(ValueError, match="closed"):
        leaf.callers


def test_time_info_matches_the_times(record, path):
    time = record.time
    assert time.sample_mean == 0 and time.ticks_per_second > 1_000_000
    if time.ticker:
        assert time.cost_ns > 0 and time.ticker_cpu_ns > 0 and time.tick_error_ns > 0
        assert 0 <= time.missing_share and 0 <= time.coarse_share
        assert time.missing_share + time.coarse_share <= 1
    else:
        assert 0 <= time.count_cost_ns < time.cost_ns
        assert (time.ticker_cpu_ns, time.tick_error_ns, time.coarse_share, time.missing_share) == (0, 0, 0, 0)
    assert abs(sum(t.self_ns or 0 for t in record.times) - time.busy_ns) <= 0.01 * time.busy_ns
    assert sum(thread.busy_ns for thread in record.threads) == time.busy_ns


def test_times_match_the_report(record):
    report = json.loads(record.render("json"))
    reported = {f["rva"]: f for f in report["functions"]}
    for function, times in zip(record.functions, record.times):
        for key in ("total_ns", "self_ns", "max_ns", "p99_ns"):
            # a call that is shorter than the cost of its hook has time 0 and no percentile
            assert (getattr(times, key) or 0) == (reported[function.rva][key] or 0), (function.name, key)


def test_counted_run_has_no_times(target, tmp_path):
    with hotfn.Session(modules="libhotfn-target.so") as session:
        target.walk(10)
        session.save(tmp_path / "counted.hfr")
    with hotfn.open(tmp_path / "counted.hfr") as record:
        assert record.time is None and record.edges == () and record.slow_calls == ()
        assert {times.timing for times in record.times} == {"count-only"}


def test_times_of_an_older_version_are_not_used(tool, path, tmp_path):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/programs"))
    from other_version import with_version
    sampled, old = tmp_path / "sampled.hfr", tmp_path / "old.hfr"
    subprocess.run([tool, "run", "-q", "--no-cache", "--mode", "time", "--sample", "4", "-o",
                    sampled, "--", path.parent / "timed"], check=True)
    data, at = with_version(sampled.read_bytes(), 0)
    old.write_bytes(data)
    with hotfn.open(sampled) as record:
        assert record.times_note is None and record.time.sample_mean == 4
    with hotfn.open(old) as record:
        assert record.time is None and record.edges == ()
        assert record.times_note.startswith(
            f"offset {at}: the times have version 0 and are not read: this hotfn reads version 4")
        assert {times.reason for times in record.times} == {"not-read"}
        assert sum(function.calls or 0 for function in record.functions) > 0
