#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check `hotfn diff`, `merge` and `top` on records with known numbers.

    check_compare.py HOTFN PROGRAM    (export_timed)
"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

from terminal import Terminal, on_terminal

HOTFN, STORY = sys.argv[1:3]
CALLS = {"gamma": 133, "beta::run()": 23, "alpha": 1}
SELF = {"alpha": 100000, "beta::run()": 34500, "gamma": 5057800}


def run(*command, status=0, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120, **more)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout.decode()


def load_checked(name, text):
    """Parse the JSON and validate it against its schema."""
    import jsonschema
    document = json.loads(text)
    schema = json.loads((pathlib.Path(__file__).parents[3] / f"docs/{name}.schema.json").read_text())
    jsonschema.validate(document, schema)
    return document


def functions(record):
    document = json.loads(run(HOTFN, "report", "--json", record))
    return {f["display"]: f for f in document["functions"] if f["calls"]}, document


def check_clock_of_a_merge(story, folder):
    """A merged record has nanoseconds without the cost of the hooks: neither clock speed nor cost is shown."""
    out, page = folder / "merged.hfr", folder / "merged.html"
    run(HOTFN, "merge", "-o", out, story, story)
    for command in ("info", "report"):
        shown = run(HOTFN, command, out)
        assert "nanoseconds of the merged runs" in shown and "MHz" not in shown and " 0.0 ns" not in shown, shown
        assert "MHz" in run(HOTFN, command, story)
        assert load_checked(command, run(HOTFN, command, "--json", out))["time"]["clock"] == "merged"
    run(HOTFN, "open", "--print", "-o", page, out)
    assert "times of merged runs" in page.read_text() and "costs 0.0" not in page.read_text()


def check_note_of_costs(story, costly):
    """The hooks cost 157 times 50 us and the program ran 5.19 ms, so the report warns about its times."""
    assert {n: f["self_ns"] for n, f in functions(costly)[0].items()} == SELF
    shown = run(HOTFN, "report", costly)
    assert "\nthe hooks cost 0.00785 s, more than all self times: " in shown, shown
    assert "the hooks cost" not in run(HOTFN, "report", story)


def show_on_terminal(columns, *words):
    return on_terminal([HOTFN, "report", *words], columns, NO_COLOR="1").decode()


def check_narrow(story):
    """Columns are dropped for lack of room, except the sort column; a pipe gets all."""
    for options, key in (((), "self"), (("--by", "max"), "max"), (("--by", "alloc"), "allocated"), (("--edges",), "self")):
        whole = run(HOTFN, "report", *options, story)
        assert show_on_terminal(300, *options, story) == whole, options
        for columns in (40, 60, 80, 100):
            shown = show_on_terminal(columns, *options, story)
            lines = shown.splitlines()
            assert max(map(len, lines)) <= columns, (columns, max(lines, key=len))
            titles = next(line for line in lines if "  function" in line).split()
            assert key in titles and "no room for" in shown and "beta::run()" in shown, shown
    for columns, titles in ((100, ["calls/s", "calls", "self", "total", "allocated", "busy", "function"]),
                            (60, ["calls/s", "calls", "self", "function"]), (40, ["calls/s", "function"])):
        t = Terminal(HOTFN, "top", str(story), columns=columns)
        t.read(lambda text: "q quit" in text)
        assert t.screen()[3].split() == titles and max(map(len, t.screen()[:-1])) <= columns, t.screen()
        t.press("q")
        assert t.finish() == 0


def check_merge(story, counted, folder):
    out = folder / "merged.hfr"
    run(HOTFN, "merge", "-o", out, story, story, story)
    found, document = functions(out)
    for name, calls in CALLS.items():
        assert (found[name]["calls"], found[name]["self_ns"]) == (3 * calls, 3 * SELF[name])
        assert found[name]["max_ns"] == functions(story)[0][name]["max_ns"]
    p50 = functions(story)[0]["gamma"]["p50_ns"]
    assert abs(found["gamma"]["p50_ns"] - p50) <= 0.03 * p50
    assert [t["calls"] for t in document["threads"]] == [157] * 3  # one row for each run
    shown = load_checked("info", run(HOTFN, "info", "--json", out))
    assert (shown["state"], shown["pid"], shown["exit_code"]) == ("merged", 0, 0), shown
    assert shown["command"].endswith("(3 runs merged: story.hfr, story.hfr, story.hfr)"), shown
    for command in (("info",), ("report",), ("top", "--once", "--json")):
        text = run(HOTFN, *command, out)
        assert "merged" in text and "finished" not in text and "exit status" not in text, text
    run(HOTFN, "repair", "-o", folder / "again.hfr", out)
    assert "merged" in run(HOTFN, "info", folder / "again.hfr")
    assert document["time"]["busy_ns"] == 3 * sum(SELF.values())
    assert len(document["slow_calls"]) == 36 and document["time"]["nodes"] == 33
    for mode, calls in (("mean", 133), ("min", 133), ("max", 133)):
        run(HOTFN, "merge", "--mode", mode, "-o", out, story, story)
        found, _ = functions(out)
        assert {n: f["calls"] for n, f in found.items()} == CALLS, mode
        assert {n: f["self_ns"] for n, f in found.items()} == SELF, mode
    done = subprocess.run([HOTFN, "merge", "-o", out, story, counted], capture_output=True)
    assert done.returncode == 0 and b"only calls" in done.stderr
    found, document = functions(out)
    assert {n: f["calls"] for n, f in found.items()} == {n: 2 * c for n, c in CALLS.items()}
    assert "time" not in document
    run(HOTFN, "merge", "--mode", "mean", "-o", out, counted, out)
    assert functions(out)[0]["gamma"]["calls"] == 200  # (133 + 266) / 2, rounded
    run(HOTFN, "merge", "-o", out, status=2)
    run(HOTFN, "merge", "--mode", "most", "-o", out, story, status=2)
    run(HOTFN, "merge", "-o", out, "/none.hfr", status=1)
    run(HOTFN, "merge", "-o", "/none/out.hfr", story, status=1)


def check_repair_of_truncated_records(records, folder):
    """A repair of a record that was truncated anywhere fails or writes a readable record."""
    cut, new = folder / "cut.hfr", folder / "new.hfr"
    for record in records:
        whole = record.read_bytes()
        saved = 0
        for size in range(0, len(whole), max(len(whole) // 60, 1)):
            cut.write_bytes(whole[:size])
            if subprocess.run([HOTFN, "repair", cut, "-o", new], capture_output=True).returncode == 0:
                run(HOTFN, "report", "--json", new)
                saved += 1
        assert saved > 20, (record, saved)


def check_merge_into_an_input(story, folder):
    """A merge that replaces an input succeeds or, if the disk is full, keeps it and leaves no other file."""
    place = folder / "grows"
    place.mkdir()
    sum_of = place / "sum.hfr"
    run(HOTFN, "merge", "-o", sum_of, story)
    whole = sum_of.read_bytes()
    for parts in range(8):
        limit = len(whole) * parts // 8

        def limit_file_size():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        assert b"sum.hfr" in subprocess.run([HOTFN, "merge", "-o", sum_of, sum_of, story], preexec_fn=limit_file_size,
                                            restore_signals=False, stderr=subprocess.PIPE).stderr, limit
        assert sum_of.read_bytes() == whole and os.listdir(place) == ["sum.hfr"], (limit, os.listdir(place))
    run(HOTFN, "merge", "-o", sum_of, sum_of, story)
    assert {n: f["calls"] for n, f in functions(sum_of)[0].items()} == {n: 2 * c for n, c in CALLS.items()}


def check_diff(story, counted, folder):
    more = folder / "more.hfr"
    run(HOTFN, "merge", "-o", more, story, story, story)
    assert "+200.0%" in run(HOTFN, "diff", story, more)
    titles = run(HOTFN, "top", "--once", more).splitlines()[0].split()
    assert titles == ["calls/s", "calls", "self", "total", "allocated", "function"], titles
    assert "... and 2 more that differ" in run(HOTFN, "diff", "-n", "1", story, more)
    assert "no function differs" in run(HOTFN, "diff", "--fail-above", "10%", story, story)
    run(HOTFN, "diff", "--fail-above", "199", story, more, status=3)
    run(HOTFN, "diff", "--fail-above", "201%", story, more)
    run(HOTFN, "diff", "--fail-above", "0", more, story)  # a decrease is never above the limit
    table = run(HOTFN, "diff", "--fail-above", "10%", "--markdown", story, more, status=3)
    rows = [row for row in table.splitlines() if row.startswith("|")]
    assert len(rows) == 5 and all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows), table
    document = load_checked("diff", run(HOTFN, "diff", "--json", "--by", "calls", counted, more))
    assert document["by"] == "calls" and (document["old"], document["new"]) == (157, 471)
    for f in document["functions"]:
        assert f["new"]["calls"] == 3 * f["old"]["calls"] == 3 * CALLS[f["display"]]
    run(HOTFN, "diff", "--by", "self", counted, more, status=1)
    assert run(HOTFN, "diff", "--json", "--markdown", story, more) == run(HOTFN, "diff", "--markdown", story, more)
    run(HOTFN, "diff", story, status=2)
    run(HOTFN, "diff", "--fail-above", "much", story, more, status=2)
    run(HOTFN, "diff", story, "/none.hfr", status=1)
    large = folder / "large.hfr"
    run(STORY, "large", large, 2000)
    document = load_checked("diff", run(HOTFN, "diff", "--json", counted, large))
    gone = [f for f in document["functions"] if f["new"] is None]
    new = [f for f in document["functions"] if f["old"] is None]
    assert (len(gone), len(new)) == (3, 2000)  # the records have no function in common
    assert all(f["module"] == "large" for f in new) and all(f["module"] != "large" for f in gone)
    # two modules without an id, with functions at the same addresses: functions match if their names are equal
    few, fewer, other = folder / "few.hfr", folder / "fewer.hfr", folder / "other.hfr"
    run(STORY, "large", few, 3)
    run(STORY, "large", fewer, 2)
    run(STORY, "budgeted", other)
    for old, sides in ((other, [(False, True)] * 3 + [(True, False)] * 2),
                       (fewer, [(False, True)] + [(True, True)] * 2)):
        found = load_checked("diff", run(HOTFN, "diff", "--json", old, few))["functions"]
        assert sorted((f["old"] is not None, f["new"] is not None) for f in found) == sides, (old, found)
    assert load_checked("diff", run(HOTFN, "diff", "--json", large, large))["old"] == 2000 * 2001 // 2


def names(terminal):
    return [line.split("  ")[-1] for line in terminal.screen()[4:] if "/s " in line]


def check_top(story):
    document = load_checked("top", run(HOTFN, "top", "--once", "--json", story))
    assert {f["name"]: f["calls"] for f in document["functions"]} == CALLS
    assert {f["name"]: f["self_ns"] for f in document["functions"]} == SELF
    assert [t["calls"] for t in document["threads"]] == [100, 57]
    assert run(HOTFN, "top", "--once", "--filter", "RUN", story).count("\n") == 2  # the titles and one row
    t = Terminal(HOTFN, "top", "-d", "0.2", str(story))
    t.read(lambda text: "q quit" in text)
    assert names(t) == ["gamma", "beta::run()", "alpha"], t.screen()
    for keys, wanted in (("t", ["gamma", "alpha", "beta::run()"]), ("/run\r", ["beta::run()"]),
                         ("/\r", ["gamma", "alpha", "beta::run()"]),
                         ("T", ["worker (tid 71)", "worker (tid 70)"])):
        t.press(keys)
        t.read(lambda text: names(t) == wanted and "q quit" in text.split("\033[H")[-1])
    t.press("q")
    assert t.finish() == 0
    run(HOTFN, "top", story, status=1)  # the output is not a terminal
    run(HOTFN, "top", "--json", story, status=2)
    run(HOTFN, "top", "999999999", status=1)


with tempfile.TemporaryDirectory() as name:
    base = pathlib.Path(name)
    timed, counts = base / "story.hfr", base / "counted.hfr"
    run(STORY, "story", timed)
    run(STORY, "counted", counts)
    check_merge(timed, counts, base)
    check_merge_into_an_input(timed, base)
    check_clock_of_a_merge(timed, base)
    run(STORY, "costly", base / "costly.hfr")
    check_note_of_costs(timed, base / "costly.hfr")
    run(STORY, "large", base / "large.hfr", 3000)
    check_repair_of_truncated_records((timed, counts, base / "large.hfr"), base)
    check_diff(timed, counts, base)
    check_top(timed)
    check_narrow(timed)
print("diff, merge and top work as documented")
