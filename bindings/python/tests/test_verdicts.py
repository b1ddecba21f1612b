# SPDX-License-Identifier: MIT
"""Scans list every function with its verdict, and report files that are not images."""
import ctypes
import json
import subprocess

import pytest

import hotfn


def test_scan_lists_every_function(target_path):
    scan = hotfn.scan(target_path)
    by_name = {function.name: function for function in scan.functions}
    assert {"fib", "hop", "walk", "never_called"} <= set(by_name)
    assert by_name["fib"].verdict == "hookable" and by_name["fib"].strategy
    assert by_name["fib"].reason is None and by_name["fib"].size > 0
    assert scan.path == str(target_path) and scan.machine == "x86-64"


def test_counts_of_verdicts_match_the_functions(target_path):
    scan = hotfn.scan(target_path)
    found = [function.verdict for function in scan.functions]
    assert found.count("hookable") == scan.hookable_count
    assert found.count("refused") == scan.refused_count == len(scan.refused())
    assert found.count("fragment") == scan.fragment_count
    assert len(found) == scan.hookable_count + scan.refused_count + scan.fragment_count


def test_refused_functions_have_a_reason(target_path):
    for function in hotfn.scan(target_path).refused():
        assert function.reason and function.reason_text and function.strategy is None


def test_scan_addresses_match_nm(target_path):
    lines = subprocess.run(["nm", target_path], capture_output=True, text=True, check=True).stdout
    expected = {name: int(address, 16) for address, kind, name in
                (line.split() for line in lines.splitlines() if len(line.split()) == 3) if kind in "tT"}
    found = {name: f.rva for f in hotfn.scan(target_path).functions for name in f.names}
    for name in ("fib", "hop", "walk", "never_called"):
        assert found[name] == expected[name]


def test_scan_is_kept_in_a_cache(target_path, tmp_path):
    first = hotfn.scan(target_path, cache_folder=tmp_path / "cache")
    second = hotfn.scan(target_path, cache_folder=tmp_path / "cache")
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.functions == second.functions


def test_scan_as_dicts_is_json(target_path):
    rows = json.loads(json.dumps([f.to_dict() for f in hotfn.scan(target_path).functions]))
    assert all(row["names"][0] == row["name"] for row in rows)


def test_text_file_is_a_format_error(tmp_path):
    path = tmp_path / "text"
    path.write_text("this is no program\n" * 10)
    with pytest.raises(hotfn.FormatError) as caught:
        hotfn.scan(path)
    assert caught.value.file == str(path)


def test_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(hotfn.FileError):
        hotfn.scan(tmp_path / "nowhere")


def test_cxx_names_are_demangled():
    try:
        ctypes.CDLL("libstdc++.so.6")
    except OSError:
        pytest.skip("no C++ library")
    assert hotfn.demangle("_ZN4game4stepEi") == "game::step(int)"
    long = "a" * 100
    assert hotfn.demangle("_Z1f100" + long + "S_" * 20) == f"f({', '.join([long] * 21)})"


def test_other_names_are_not_changed():
    for name in ("main", "", "_Zx", "\udcff"):
        assert hotfn.demangle(name) == name
