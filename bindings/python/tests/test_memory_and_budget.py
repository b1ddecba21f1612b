# SPDX-License-Identifier: MIT
"""Allocated memory and budgets of records with known contents
(tests/unit/exporters/export_timed.c)."""
import json
import os
import pathlib
import subprocess

import pytest

import hotfn


@pytest.fixture(scope="module")
def open_record(tmp_path_factory):
    """A function that writes one of the records of export_timed, by its name, and opens it."""
    library = pathlib.Path(os.environ.get("HOTFN_LIBRARY", "/none"))
    writer = next((parent / "tests/unit/exporters/export_timed" for parent in library.parents
                   if (parent / "tests/unit/exporters/export_timed").exists()), None)
    if not writer:
        pytest.skip("export_timed was not built with the library")
    folder = tmp_path_factory.mktemp("records")

    def write(name):
        path = folder / f"{name}.hfr"
        if not path.exists():
            subprocess.run([writer, name, path], check=True)
        return hotfn.open(path)
    return write


def test_each_block_belongs_to_one_function_and_one_node(open_record):
    with open_record("story") as record:
        by_node = {}
        for node in record.nodes:
            by_node[node.function] = by_node.get(node.function, 0) + node.self_memory.allocated_bytes
        functions = {index: times.self_memory.allocated_bytes for index, times in enumerate(record.times)
                     if times.self_memory.allocated_bytes}
        assert functions == by_node and len(functions) == 3


def test_memory_with_callees_matches_the_tree(open_record):
    with open_record("story") as record:
        nodes, total = record.nodes, {}
        for node in nodes:
            path, ancestor = set(), node
            while True:
                path.add(ancestor.function)
                if ancestor.parent is None:
                    break
                ancestor = nodes[ancestor.parent]
            for function in path:
                total[function] = total.get(function, 0) + node.self_memory.allocated_bytes
        reported = {index: times.total_memory.allocated_bytes for index, times in enumerate(record.times)
                if times.total_memory.allocated_bytes}
        assert reported == total
        outside = [edge.total_memory.allocated_bytes for edge in record.edges if edge.caller is None]
        assert sum(outside) == sum(node.self_memory.allocated_bytes for node in nodes)


def test_hot_by_alloc(open_record):
    with open_record("story") as record:
        assert [f.display for f in record.hot(by="alloc")][:3] == ["gamma", "beta::run()", "alpha"]
    with open_record("counted") as record:
        with pytest.raises(hotfn.UnsupportedError, match="--with alloc"):
            record.hot(by="alloc")


def test_stacks_can_be_weighted_by_bytes(open_record):
    with open_record("story") as record:
        lines = record.render("folded", by="alloc").decode().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(
            node.self_memory.allocated_bytes for node in record.nodes)
        with pytest.raises(ValueError):
            record.render("folded", by="luck")
    with open_record("counted") as record:
        with pytest.raises(hotfn.UnsupportedError, match="--with alloc"):
            record.render("pprof", by="alloc")


def test_record_without_memory_has_none_in_its_times(open_record):
    with open_record("counted") as record:
        assert record.nodes == () and record.budget is None
        assert {times.self_memory for times in record.times} == {None}


def test_budget_has_its_changes_and_their_reasons(open_record):
    with open_record("budgeted") as record:
        budget = record.budget
        assert (budget.share, budget.note, budget.stops, budget.changes_lost) == (0.05, "a <note>", 3, 0)
        assert [(c.function, c.from_level, c.to_level, c.why) for c in budget.changes] == [
            (0, "counted", "unhooked", "over-budget"), (0, "unhooked", "counted", "try-again"),
            (0, "counted", "unhooked", "over-budget")]
        assert [c.at_ns for c in budget.changes] == [1_500_000_000, 2_500_000_000, 2_600_000_000]
        assert budget.changes[0].cost == 0.345 and budget.changes[0].calls_per_second == 123_000_000
        assert [record.is_lower_bound(index) for index in range(2)] == [True, False]
        report = json.loads(record.render("json"))["budget"]
        for key in ("share", "cpu_ns", "cost_ns", "stops", "stopped_ns", "note"):
            assert getattr(budget, key) == report[key], key
        assert abs(budget.taken - report["taken"]) < 1e-6
