# SPDX-License-Identifier: MIT
"""Who allocated how much, and what a budget did, of records that are made up: each block and each change is
known."""
import json
import os
import pathlib
import subprocess

import pytest

import hotfn


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Writes the record of the name (tests/unit/exporters/export_timed.c)."""
    library = pathlib.Path(os.environ.get("HOTFN_LIBRARY", "/none"))
    writer = next((folder / "tests/unit/exporters/export_timed" for folder in library.parents
                   if (folder / "tests/unit/exporters/export_timed").exists()), None)
    if not writer:
        pytest.skip("no export_timed beside the library")
    place = tmp_path_factory.mktemp("stories")

    def write(name):
        path = place / f"{name}.hfr"
        if not path.exists():
            subprocess.run([writer, name, path], check=True)
        return hotfn.open(path)
    return write


def test_each_block_belongs_to_one_function_and_one_node(story):
    with story("story") as record:
        by_node = {}
        for node in record.nodes:
            by_node[node.function] = by_node.get(node.function, 0) + node.self_memory.allocated_bytes
        functions = {place: times.self_memory.allocated_bytes for place, times in enumerate(record.times)
                     if times.self_memory.allocated_bytes}
        assert functions == by_node and len(functions) == 3


def test_memory_with_all_below_is_that_of_the_tree(story):
    with story("story") as record:
        nodes, total = record.nodes, {}
        for node in nodes:
            way, at = set(), node
            while True:
                way.add(at.function)
                if at.parent is None:
                    break
                at = nodes[at.parent]
            for function in way:
                total[function] = total.get(function, 0) + node.self_memory.allocated_bytes
        told = {place: times.total_memory.allocated_bytes for place, times in enumerate(record.times)
                if times.total_memory.allocated_bytes}
        assert told == total
        outside = [edge.total_memory.allocated_bytes for edge in record.edges if edge.caller is None]
        assert sum(outside) == sum(node.self_memory.allocated_bytes for node in nodes)


def test_hot_by_alloc(story):
    with story("story") as record:
        assert [f.display for f in record.hot(by="alloc")][:3] == ["gamma", "beta::run()", "alpha"]
    with story("counted") as record:
        with pytest.raises(ValueError):
            record.hot(by="alloc")


def test_stacks_weigh_bytes_where_that_is_asked_for(story):
    with story("story") as record:
        lines = record.render("folded", by="alloc").decode().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(
            node.self_memory.allocated_bytes for node in record.nodes)
        with pytest.raises(ValueError):
            record.render("folded", by="luck")
    with story("counted") as record:
        with pytest.raises(hotfn.UnsupportedError, match="--with alloc"):
            record.render("pprof", by="alloc")


def test_a_run_without_memory_has_none(story):
    with story("counted") as record:
        assert record.nodes == () and record.budget is None
        assert {times.self_memory for times in record.times} == {None}


def test_a_budget_tells_what_was_done_and_why(story):
    with story("budgeted") as record:
        budget = record.budget
        assert (budget.share, budget.note, budget.stops, budget.changes_lost) == (0.05, "a <note>", 3, 0)
        assert [(c.function, c.from_level, c.to_level, c.why) for c in budget.changes] == [
            (0, "counted", "unhooked", "too-dear"), (0, "unhooked", "counted", "try-again"),
            (0, "counted", "unhooked", "too-dear")]
        assert [c.at_ns for c in budget.changes] == [1_500_000_000, 2_500_000_000, 2_600_000_000]
        assert budget.changes[0].cost == 0.345 and budget.changes[0].calls_per_second == 123_000_000
        assert [record.is_lower_bound(place) for place in range(2)] == [True, False]
        report = json.loads(record.render("json"))["budget"]
        for key in ("share", "cpu_ns", "cost_ns", "stops", "stopped_ns", "note"):
            assert getattr(budget, key) == report[key], key
        assert abs(budget.taken - report["taken"]) < 1e-6
