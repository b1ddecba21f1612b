# SPDX-License-Identifier: MIT
"""Records are read, sorted, searched and exported; damaged records are refused with a reason."""
import copy
import ctypes
import json
import pickle

import pytest
from conftest import FIB_15_CALLS

import hotfn


@pytest.fixture
def saved(target, tmp_path):
    """A finished record on disk: fib(15), walk(1000)."""
    path = tmp_path / "run.hfr"
    with hotfn.Session(modules="libhotfn-target.so") as session:
        target.fib(15)
        target.walk(1000)
        session.save(path)
    return path


@pytest.fixture
def record(saved):
    with hotfn.open(saved) as opened:
        yield opened


def test_saved_record_holds_the_counts(record):
    assert [(f.name, f.calls) for f in record.hot(3)] == [("fib", FIB_15_CALLS), ("hop", 1000),
                                                          ("walk", 1)]
    assert record.total_calls >= FIB_15_CALLS + 1001


def test_info_describes_the_run(record, saved):
    info = record.info
    assert info.state == "finished"
    assert info.path == str(saved)
    assert info.function_count == len(record.functions)
    assert info.end_ns >= info.start_ns > 0
    assert info.window_start_ns is None


def test_modules_have_file_and_id(record, target_path):
    module = next(m for m in record.modules if m.file == target_path.name)
    assert module.path == str(target_path)
    assert module.function_count == sum(f.module == module.file for f in record.functions)
    assert module.id


def test_threads_sum_up_to_the_total(record):
    assert sum(thread.calls for thread in record.threads) == record.total_calls


def test_functions_outlive_their_record(saved):
    with hotfn.open(saved) as record:
        functions = record.functions
    assert {f.name for f in functions} >= {"fib", "hop", "walk", "never_called"}


def test_functions_are_found_by_name(record):
    fib = record.find("fib")
    assert fib.calls == FIB_15_CALLS and record.functions[fib.index] == fib
    with pytest.raises(hotfn.NotFoundError, match="no_such_function"):
        record.find("no_such_function")


def test_functions_are_found_by_rva(record, target_path):
    hop = record.find("hop")
    module = next(m for m in record.modules if m.file == target_path.name)
    for name in (module.file, module.path, module.index, module):
        assert record.find_rva(name, hop.rva + 1) == hop
    with pytest.raises(hotfn.NotFoundError, match="0x7fffffff"):
        record.find_rva(module, 0x7FFFFFFF)
    with pytest.raises(hotfn.NotFoundError, match="no module 'libnothing.so'"):
        record.find_rva("libnothing.so", 0)


def test_sort_orders_all_functions_by_a_key(record):
    assert [f.name for f in record.sort("calls")[:3]] == ["fib", "hop", "walk"]
    assert sorted(f.index for f in record.sort()) == list(range(len(record.functions)))
    called = [f.name for f in record.hot(0, by="name")]
    assert called == sorted(called)
    with pytest.raises(ValueError, match="not a sort key"):
        record.sort("luck")
    with pytest.raises(hotfn.UnsupportedError, match="--mode time"):
        record.sort("total")


def test_counted_function_has_no_callers(record):
    assert record.find("fib").callers == ()


def test_functions_can_be_copied_and_pickled(record):
    fib = record.find("fib")
    assert copy.deepcopy(fib) == pickle.loads(pickle.dumps(fib)) == fib


def test_closed_record_is_reported(record):
    record.close()
    record.close()
    with pytest.raises(ValueError, match="closed"):
        record.info
    assert "closed" in repr(record)


def test_counters_are_one_array(record):
    counters = record.counters
    assert isinstance(counters, ctypes.Array) and len(counters) == len(record.functions)
    by_rva = {(counter.module, counter.rva): counter.calls for counter in counters}
    assert len(by_rva) == len(counters)
    assert sum(by_rva.values()) == record.total_calls
    assert memoryview(counters).itemsize == ctypes.sizeof(hotfn.Counter)


def test_to_numpy_shares_the_memory(record):
    pytest.importorskip("numpy")
    view = record.to_numpy()
    assert int(view["calls"].sum()) == record.total_calls
    record.counters[0].calls = 12345
    assert view["calls"][0] == 12345


def test_to_dicts_is_json(record):
    rows = json.loads(json.dumps(record.to_dicts()))
    assert {row["name"]: row["calls"] for row in rows}["hop"] == 1000


def test_export_writes_json(record, tmp_path):
    record.export(tmp_path / "run.json")
    report = json.loads((tmp_path / "run.json").read_text())
    assert report["schema"] == "hotfn.report/1"
    assert {f["name"]: f["calls"] for f in report["functions"]}["fib"] == FIB_15_CALLS


def test_export_writes_every_format(record, tmp_path):
    assert {"table", "json", "csv"} <= {format.name for format in hotfn.formats()}
    written = set()
    for format in hotfn.formats():
        try:
            record.export(tmp_path / "out", format=format.name)
        except hotfn.UnsupportedError as refusal:
            assert "--mode time" in str(refusal)  # this record has no times
            continue
        text = (tmp_path / "out").read_bytes()
        assert b"fib" in text or text.startswith(b"gmon\x01")  # gmon has no names
        written.add(format.name)
    assert {"table", "json", "csv"} <= written


def test_export_refuses_an_unknown_format(record, tmp_path):
    with pytest.raises(hotfn.NotFoundError):
        record.export(tmp_path / "out", format="no-such-format")
    with pytest.raises(ValueError, match="no format has the extension"):
        record.export(tmp_path / "out.nothing")


def test_registered_exporter_writes(record, tmp_path):
    def write_names(opened, write):
        for function in opened.functions:
            write(f"{function.name} {function.calls}\n".encode())

    hotfn.register_exporter("py-names", write_names, about="names and calls")
    record.export(tmp_path / "run.py-names")
    assert f"fib {FIB_15_CALLS}" in (tmp_path / "run.py-names").read_text().splitlines()
    with pytest.raises(hotfn.StateError, match="already an exporter named 'py-names'"):
        hotfn.register_exporter("py-names", write_names)
    with pytest.raises(hotfn.OptionError, match="its name is not"):
        hotfn.register_exporter("Py Names", write_names)


def test_exception_of_an_exporter_is_an_error(record, tmp_path):
    def fail(opened, write):
        write(b"half")
        raise KeyError("no such unit")

    hotfn.register_exporter("py-fails", fail)
    with pytest.raises(hotfn.StateError, match="exporter py-fails failed: KeyError: 'no such unit'"):
        record.export(tmp_path / "out", format="py-fails")
    assert not (tmp_path / "out").exists()


def test_exporter_that_needs_a_tree_refuses_counts(record):
    hotfn.register_exporter("py-tree", lambda opened, write: None, needs="tree")
    with pytest.raises(hotfn.UnsupportedError, match="--mode time"):
        record.render("py-tree")


def test_missing_record_is_a_file_error(tmp_path):
    with pytest.raises(hotfn.FileError) as caught:
        hotfn.open(tmp_path / "nowhere.hfr")
    assert caught.value.file == str(tmp_path / "nowhere.hfr")
    assert caught.value.status_name == "HOTFN_E_IO"


def test_overwritten_record_is_a_format_error(saved):
    saved.write_bytes(b"not a record at all" * 1000)
    with pytest.raises(hotfn.FormatError) as caught:
        hotfn.open(saved)
    assert caught.value.file == str(saved) and caught.value.text


def test_truncated_record_is_refused_or_repaired(saved, tmp_path):
    with hotfn.open(saved) as record:
        function_count = record.info.function_count
    whole = saved.read_bytes()
    saved.write_bytes(whole[:len(whole) // 2])
    with pytest.raises(hotfn.HotfnError):
        hotfn.open(saved)
    try:
        lost = hotfn.repair(saved, tmp_path / "mended.hfr")
    except hotfn.FormatError:
        return  # nothing in the first half can be saved
    assert lost
    with hotfn.open(tmp_path / "mended.hfr") as mended:
        assert mended.info.function_count <= function_count
        assert mended.info.repaired.startswith(lost)
