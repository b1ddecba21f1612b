# SPDX-License-Identifier: MIT
"""Sessions count the calls of this process exactly, and restore all bytes."""
import ctypes
import gc
import threading
import time
import warnings

import pytest
from conftest import FIB_15_CALLS

import hotfn


def calls_of(functions):
    return {function.name: function.calls for function in functions}


def times_by_name(record):
    return {function.name: times for function, times in zip(record.functions, record.times)}


def entry_bytes(target, name, count=32):
    return ctypes.string_at(ctypes.cast(getattr(target, name), ctypes.c_void_p).value, count)


def test_counts_are_exact(counted):
    calls = calls_of(counted.record.functions)
    assert calls["fib"] == FIB_15_CALLS
    assert calls["walk"] == 1
    assert calls["hop"] == 1000
    assert calls["never_called"] == 0


def test_hot_lists_the_most_called_first(counted):
    assert [function.name for function in counted.hot(2)] == ["fib", "hop"]
    assert "never_called" not in calls_of(counted.hot(0))


def test_bytes_are_restored(target):
    names = ("fib", "hop", "walk", "never_called")
    before = {name: entry_bytes(target, name) for name in names}
    with hotfn.Session(modules="libhotfn-target.so") as session:
        changed = [name for name in names if entry_bytes(target, name) != before[name]]
        hooked = [f.name for f in session.record.functions if f.state == "hooked"]
        assert sorted(changed) == sorted(set(names) & set(hooked)) and changed
        assert session.stats.hooked >= len(names)
    assert {name: entry_bytes(target, name) for name in names} == before
    target.walk(10)
    assert "hop" not in calls_of(session.hot(0))


def test_scans_are_kept_in_the_cache_folder(target, target_path, tmp_path):
    while time.time() - target_path.stat().st_ctime < 0.05:     # newer files are not cached
        time.sleep(0.01)

    def count():
        with hotfn.Session(modules="libhotfn-target.so", cache_folder=tmp_path) as session:
            target.walk(10)
        return calls_of(session.hot(0)), sorted((file.name, file.stat().st_ino) for file in tmp_path.rglob("*.scan"))

    calls, kept = count()
    assert kept and calls["hop"] == 10
    assert count() == (calls, kept)     # a new scan would be another file


def test_snapshot_does_not_change_while_counting_continues(target):
    with hotfn.Session(modules="libhotfn-target.so", functions="hop") as session:
        target.walk(5)
        first = session.snapshot()
        target.walk(7)
        assert calls_of(first.hot())["hop"] == 5
        assert calls_of(session.hot())["hop"] == 12


def test_frame_has_the_calls_since_the_previous_one(target):
    with hotfn.Session(modules="libhotfn-target.so") as session:
        target.walk(5)
        frame = session.frame(1)
        target.walk(7)
        hot, = frame.next()
        assert (hot.name, hot.calls, hot.module, hot.state) == ("hop", 7, "libhotfn-target.so", "hooked")
        assert (frame.calls, frame.called_count) == (8, 2)    # walk is the second function
        assert frame.next() == [] and frame.calls == 0
        with pytest.raises(ValueError, match="-1"):
            session.frame(-1)
        longer = session.frame()
        target.walk(2)
        assert calls_of(longer.next()) == {"hop": 2, "walk": 1}
        assert calls_of(frame.next()) == {"hop": 2}
    assert calls_of(session.hot())["hop"] == 14
    with pytest.raises(ValueError, match="closed"):
        frame.next()


def test_frame_times_and_spikes(target, tmp_path):
    with hotfn.Session(modules="libhotfn-target.so", mode="time") as session:
        frame = session.frame(times=True, by="self", spike_factor=20)
        for number in range(17):
            target.walk(10)
            functions = frame.next()
            assert frame.number == number and frame.duration_ns > 0 and frame.cpu_ns > 0
        timed = [function.name for function in functions]
        assert "walk" in timed and frame.median_ns > 0
        time.sleep(25 * frame.median_ns / 1e9 + 0.01)
        target.walk(1000)
        functions = frame.next()
        assert frame.is_spike and frame.duration_ns > 20 * frame.median_ns
        index = [function.name for function in functions].index("walk")
        whole, (own,) = frame.times(index)
        assert own.tid == threading.get_native_id() and whole.tid is None
        assert whole.total_ns == own.total_ns >= own.self_ns and own.timed_calls == 1
        frame.save(tmp_path / "spike.hfr")
        with pytest.raises(ValueError):
            session.frame(by="name")
        with pytest.raises(hotfn.HotfnError, match="not kept"):
            session.frame().save(tmp_path / "other.hfr")
    with hotfn.open(tmp_path / "spike.hfr") as spike:
        assert calls_of(spike.functions)["walk"] == 1


def test_functions_and_exclude_select(target):
    with hotfn.Session(modules="libhotfn-target.so", functions=["h*", "f*"], exclude="fi*") as session:
        target.fib(3)
        target.walk(3)
    by_name = {function.name: function for function in session.record.functions}
    assert by_name["hop"].calls == 3
    assert by_name["fib"].state == "excluded" and by_name["fib"].calls is None
    assert by_name["walk"].state == "excluded"


def test_calls_of_all_threads_are_counted(target):
    with hotfn.Session(modules="libhotfn-target.so") as session:
        threads = [threading.Thread(target=target.walk, args=(100_000,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls_of(session.hot(0))["hop"] == 400_000
    assert sum(thread.thread_count for thread in session.record.threads) >= 1


def test_stopped_session_starts_again_and_adds_to_its_counts(target):
    session = hotfn.Session(modules="libhotfn-target.so", functions="hop")
    session.start()
    target.walk(2)
    session.stop()
    target.walk(100)
    session.start()
    target.walk(3)
    session.close()
    assert calls_of(session.hot())["hop"] == 5


def test_times_of_this_process(target):
    with hotfn.Session(modules="libhotfn-target.so", mode="time", slower_than_ns=1) as session:
        target.fib(15)
        target.walk(1000)
    record = session.record
    times = times_by_name(record)
    assert record.time is not None and record.time.sample_mean == 0
    assert times["hop"].timed_calls == 1000 and times["hop"].total_ns == times["hop"].self_ns
    assert times["hop"].max_ns > 0      # most calls are shorter than the cost of their hook
    assert times["fib"].timed_calls == FIB_15_CALLS and times["fib"].p50_ns is not None
    assert record.edges and record.nodes and record.slow_calls
    assert {function.name for function in session.hot(0, by="self")} >= {"fib", "hop"}
    target.walk(3)      # not counted: all hooks are removed
    assert calls_of(session.hot(0))["hop"] == 1000


def test_sampled_session_counts_every_call(target):
    with hotfn.Session(modules="libhotfn-target.so", mode="time", sample=100) as session:
        target.walk(20_000)
    record = session.record
    assert calls_of(session.hot())["hop"] == 20_000
    assert 0 < times_by_name(record)["hop"].timed_calls < 10_000


@pytest.mark.parametrize("options", [{"mode": "times"}, {"sample": 8}, {"flat": True}, {"mode": "time", "sample": 0},
                                     {"mode": "time", "sample": 2_000_000}, {"mode": "time", "slower_than_ns": 0}])
def test_invalid_time_options_are_refused(options):
    with pytest.raises(ValueError, match="mode|sample|slower_than_ns"):
        hotfn.Session(modules="libhotfn-target.so", **options)


def test_repr_names_modules_and_state(target):
    with hotfn.Session(modules=["libhotfn-target.so", "libhotfn-*"]) as session:
        assert repr(session) == ("<hotfn.Session of libhotfn-target.so, libhotfn-*, running, "
                                 f"{session.stats.hooked} functions hooked>")
    assert "closed" in repr(session)


def test_second_session_is_refused(target):
    with hotfn.Session(modules="libhotfn-target.so"):
        with pytest.raises(hotfn.StateError):
            hotfn.Session(modules="libhotfn-target.so")


def test_session_without_references_unhooks(target):
    before = entry_bytes(target, "hop")
    session = hotfn.Session(modules="libhotfn-target.so")
    session.start()
    assert entry_bytes(target, "hop") != before
    del session
    gc.collect()
    assert entry_bytes(target, "hop") == before


def test_closed_session_is_reported(counted):
    with pytest.raises(ValueError, match="closed"):
        counted.start()


def test_broken_glob_is_an_option_error(target):
    with pytest.raises(hotfn.OptionError, match=r"\[a"):
        with hotfn.Session(modules="libhotfn-target.so", functions="[a"):
            pass


def test_sqlite_in_this_process_is_counted():
    sqlite3 = pytest.importorskip("sqlite3")
    with open("/proc/self/maps") as maps:
        if "libsqlite3" not in maps.read():
            pytest.skip("this Python has sqlite3 built in")
    with hotfn.Session(modules="libsqlite3*") as session:
        connection = sqlite3.connect(":memory:")
        for i in range(50):
            assert connection.execute("select ?+1", (i,)).fetchone() == (i + 1,)
        connection.close()
    calls = calls_of(session.hot(0))
    assert calls.get("sqlite3_step", 0) >= 50


def test_globs_that_match_nothing_cause_warnings(target):
    with pytest.warns(UserWarning) as caught:
        with hotfn.Session(modules=["libhotfn-target.so", "libnothing*"], functions=["fib", "nothing*"]):
            target.fib(3)
    assert sorted(str(warning.message) for warning in caught) == [
        "functions: 'nothing*' matches no function", "modules: 'libnothing*' matches no module that was loaded"]
    assert {warning.filename for warning in caught} == {__file__}


def test_globs_that_match_cause_no_warning(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hotfn.Session(modules="libhotfn-target*", functions=["fib", "h?p"]) as session:
            target.fib(3)
    assert calls_of(session.record.functions)["fib"] == 5


def test_groups_are_switched_while_the_session_runs(target):
    before = entry_bytes(target, "hop")
    with hotfn.Session(modules="libhotfn-target.so", groups={"walking": ["walk", "hop"], "numbers": "fib"},
                       off_groups=["numbers"]) as session:
        target.fib(15)
        target.walk(10)
        session.switch("walking", False)
        assert entry_bytes(target, "hop") == before
        target.walk(10)
        session.switch("numbers", True)
        target.fib(15)
        with pytest.raises(hotfn.NotFoundError, match="'other'"):
            session.switch("other", True)
    calls = calls_of(session.record.functions)
    assert (calls["hop"], calls["walk"], calls["fib"]) == (10, 1, FIB_15_CALLS)


def test_an_unknown_group_cannot_be_off():
    with pytest.raises(ValueError, match="off_groups: other"):
        hotfn.Session(groups={"one": "f"}, off_groups=["other"])


def test_zones_and_messages_join_the_tree(target):
    with hotfn.Session(modules="libhotfn-target.so", mode="time", zones=True) as session:
        with session.zone("level"):
            session.message("loaded")
            with session.zone("walking"):
                target.walk(10)
        target.walk(1)
    root = session.record.tree()
    paths = {}

    def visit(node, path):
        paths[path] = node.calls
        for child in node.children:
            visit(child, f"{path}/{child.name}")

    for node in root.children:
        visit(node, node.name)
    assert paths["level/walking/walk"] == 1 and paths["level/message: loaded"] == 1, paths
    assert paths["walk"] == 1, paths


def test_a_message_needs_room(target):
    with hotfn.Session(modules="libhotfn-target.so") as session:
        with session.zone("nothing happens"):
            pass
        with pytest.raises(hotfn.UnsupportedError, match="HOTFN_SESSION_ZONES"):
            session.message("lost")


def test_threads_are_named(target):
    def work():
        hotfn.set_thread_name("walker")
        target.walk(1)

    with hotfn.Session(modules="libhotfn-target.so") as session:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "walker" in [thread.name for thread in session.record.threads]
    with pytest.raises(hotfn.OptionError, match="at most 15 bytes"):
        hotfn.set_thread_name("a name of more than 15 bytes")
