# SPDX-License-Identifier: MIT
"""The columns of a record are equal to its objects."""
import ctypes
import math
import subprocess

import pytest
from test_times import path, record, tool  # noqa: F401  (fixtures: a record of a timed run)

import hotfn
from hotfn import columns as _columns

numpy = pytest.importorskip("numpy")


def is_equal(column, value):
    return math.isnan(column) if value is None else column == value


def test_columns_are_those_of_the_functions(record):  # noqa: F811
    columns = record.columns()
    assert {len(column) for column in columns.values()} == {len(record.functions)}
    for index, function in enumerate(record.functions):
        row = {name: column[index] for name, column in columns.items()}
        assert (row["name"], row["symbol"], row["module"], row["state"]) == (
            function.display, function.name, function.module, function.state)
        assert (row["rva"], row["size"]) == (function.rva, function.size)
        assert is_equal(row["calls"], function.calls)


def test_columns_have_the_times(record):  # noqa: F811
    columns = record.columns()
    for index, times in enumerate(record.times):
        assert columns["timing"][index] == times.timing
        for name in ("total_ns", "self_ns", "total_error_ns", "self_error_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns"):
            assert is_equal(columns[name][index], getattr(times, name)), (name, times)


MIXED_SOURCE = """
int alpha(int x) { return x * 3 + 1; }
int beta(int x) __asm__("_Z4betai");
int beta(int x) { return x * 5 + alpha(x); }
int gamma_2(int x) { return x * 7 + beta(x); }
"""


@pytest.mark.parametrize("piece", [1, 2, 4096])
def test_names_of_two_languages(compiler, tmp_path, monkeypatch, piece):
    """Readable names are read apart from those of the linker only in pieces where they differ."""
    library = tmp_path / "libhotfn-mixed.so"
    (tmp_path / "mixed.c").write_text(MIXED_SOURCE)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", tmp_path / "mixed.c", "-o", library], check=True)
    ctypes.CDLL(str(library))
    with hotfn.Session(modules=library.name) as session:
        pass
    monkeypatch.setattr(_columns, "PIECE", piece)
    columns, functions = session.record.columns(), session.record.functions
    assert {"alpha": "alpha", "_Z4betai": "beta(int)", "gamma_2": "gamma_2"}.items() <= dict(
        zip(columns["symbol"], columns["name"])).items()
    assert [(f.name, f.display) for f in functions] == list(zip(columns["symbol"], columns["name"]))


def test_counted_run_has_no_time_columns(counted):
    assert "self_ns" not in counted.record.columns()


def test_data_frames(record):  # noqa: F811
    pytest.importorskip("pandas")
    frame = record.to_pandas()
    assert frame.loc[frame.calls.idxmax(), "name"] == record.hot(1, "calls")[0].display
    assert len(record.edges_to_pandas()) == len(record.edges)


def test_notebooks_show_a_table(counted):
    text = counted.record._repr_html_()
    assert "<table>" in text and "fib" in text and "<script" not in text


def test_hot_sorts_like_the_command_line(record):  # noqa: F811
    assert record.hot(5) == [f for f in record.sort("self") if f.calls][:5]


def test_file_errors_are_os_errors(tmp_path):
    with pytest.raises(OSError, match="none.hfr"):
        hotfn.open(tmp_path / "none.hfr")


def test_open_is_not_imported_by_star():
    names = {}
    exec("from hotfn import *", names)  # pylint: disable=exec-used
    assert "open" not in names and "run" in names
