#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read the exports of a timed record with other projects' programs: all must find the same numbers.

    check_viewers.py HOTFN PROGRAM    (export_timed)

The record "story" (tests/unit/profile/timed.h) has three functions whose times are known.  A check is
skipped with a message if its program is not installed; with --all (suite `soak`) that is an error.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
HOTFN, STORY = sys.argv[1:3]
ALL = "--all" in sys.argv  # no check may be skipped

SELF = {"alpha": 100000, "beta::run()": 34500, "gamma": 5057800}
TOTAL = {"alpha": 142300, "beta::run()": 36800, "gamma": 5057800}
CALLS = {"alpha": 1, "beta::run()": 23, "gamma": 133}
# Allocated bytes of each function; check_page computes them from the call tree.
BYTES, BYTES_WITH_CALLEES = {}, {}


def run(*command, status=0, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120, **more)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout.decode(errors="replace")


def export(record, name, form=None, *options):
    out = record.with_name(name)
    run(HOTFN, "export", *options, "-F", form or name, "-o", out, record)
    return out


def is_installed(program):
    if shutil.which(program):
        return True
    print(f"# {program} is not installed: check skipped")
    assert not ALL, program
    return False


def numbers(text):
    return [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) \(\s*[\d.]+%\)", text)]


def check_callgrind(record, counted):
    if not is_installed("callgrind_annotate"):
        return
    for inclusive, truth in (("no", SELF), ("yes", TOTAL)):
        text = run("callgrind_annotate", "--threshold=100", f"--inclusive={inclusive}",
                   export(record, "callgrind"))
        rows = {m[2]: numbers(m[1]) for m in re.finditer(r"^(.*)\?\?\?:(.*?) \[", text, re.M)}
        for name, ns in truth.items():
            assert rows[name][0] == ns, (inclusive, name, rows[name])
            allocated = (BYTES if inclusive == "no" else BYTES_WITH_CALLEES)[name]
            assert rows[name][2] == allocated, (inclusive, name, rows[name], allocated)
    text = run("callgrind_annotate", "--threshold=100", export(counted, "callgrind.2", "callgrind"))
    for name, calls in CALLS.items():
        assert re.search(rf"{calls} \(.*\?\?\?:{re.escape(name)} \[", text), text


def check_pprof(record, counted):
    if not is_installed("go"):
        return
    pprof = export(record, "pprof")
    more = {"env": {**os.environ, "HOME": str(record.parent)}}
    text = run("go", "tool", "pprof", "-raw", pprof, **more)
    samples = re.findall(r"^\s+(\d+)\s+(\d+)\s+\d+\s+(\d+)\s+\d+\s+\d+: ([\d ]+)$", text, re.M)
    names = {m[1]: m[2] for m in re.finditer(r"^\s+(\d+): 0x\w+ M=\d+ (.*?) /?\S*?:\d+", text, re.M)}
    found = collections.Counter()
    total = collections.Counter()
    memory = collections.Counter(), collections.Counter()
    for calls, ns, allocated, stack in samples:
        stack = [names[n] for n in stack.split()]
        found[stack[0]] += int(ns)
        memory[0][stack[0]] += int(allocated)
        for name in set(stack):
            total[name] += int(ns)
            memory[1][name] += int(allocated)
    assert found == SELF and total == TOTAL, (found, total, text)
    assert memory == (BYTES, BYTES_WITH_CALLEES), (memory, BYTES, BYTES_WITH_CALLEES)
    text = run("go", "tool", "pprof", "-top", "-unit=B", export(record, "pprof.3", "pprof", "--by", "alloc"),
               **more)
    assert "Type: alloc_space" in text, text
    for name, allocated in BYTES.items():
        assert re.search(rf"^\s*{allocated}B .* {BYTES_WITH_CALLEES[name]}B .*{re.escape(name)}", text, re.M), text
    text = run("go", "tool", "pprof", "-top", export(counted, "pprof.2", "pprof"), **more)
    assert "133 84.71%" in text and "without call stacks" in text, text


def check_stacks(record):
    """folded, speedscope, firefox: stacks with weights."""
    found = {form: (collections.Counter(), collections.Counter()) for form in
             ("folded", "speedscope", "firefox")}

    def add(form, stack, ns):
        found[form][0][stack[-1]] += ns
        for name in set(stack):
            found[form][1][name] += ns

    for line in export(record, "folded").read_text().splitlines():
        stack, ns = line.rsplit(" ", 1)
        add("folded", stack.split(";")[1:], int(ns))
    document = json.loads(export(record, "speedscope").read_text())
    frames = [f["name"] for f in document["shared"]["frames"]]
    for profile in document["profiles"]:
        assert profile["endValue"] == sum(profile["weights"])
        for stack, ns in zip(profile["samples"], profile["weights"]):
            add("speedscope", [frames[f] for f in stack], ns)
    document = json.loads(export(record, "firefox").read_text())
    assert document["meta"]["preprocessedProfileVersion"] == 48
    for thread in document["threads"]:
        for table in ("samples", "stackTable", "frameTable", "funcTable", "resourceTable"):
            for column in thread[table].values():
                assert not isinstance(column, list) or len(column) == thread[table]["length"]
        for at, ms in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            stack = []
            while at is not None:
                function = thread["frameTable"]["func"][thread["stackTable"]["frame"][at]]
                stack.append(thread["stringArray"][thread["funcTable"]["name"][function]])
                at = thread["stackTable"]["prefix"][at]
            add("firefox", stack[::-1], round(ms * 1e6))
    for form, (own, total) in found.items():
        assert own == SELF and total == TOTAL, (form, own, total)


def check_memory_stacks(record):
    """folded and speedscope by bytes."""
    found = collections.Counter()
    for line in export(record, "folded.2", "folded", "--by", "alloc").read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        found[stack.split(";")[-1]] += int(weight)
    assert found == BYTES, (found, BYTES)
    document = json.loads(export(record, "speedscope.2", "speedscope", "--by", "alloc").read_text())
    frames, found = [f["name"] for f in document["shared"]["frames"]], collections.Counter()
    for profile in document["profiles"]:
        assert profile["unit"] == "bytes" and profile["endValue"] == sum(profile["weights"])
        for stack, weight in zip(profile["samples"], profile["weights"]):
            found[frames[stack[-1]]] += weight
    assert found == BYTES, (found, BYTES)
    calls = collections.Counter()
    for line in export(record, "folded.3", "folded", "--by", "calls").read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        calls[stack.split(";")[-1]] += int(weight)
    assert calls == CALLS, calls


def check_slices(name, events, costs):
    """Events (kind, thread, time in ns, name) are nested, and their durations add up to the totals."""
    stacks, total, calls, last = {}, collections.Counter(), collections.Counter(), {}
    for kind, thread, time, function in events:
        stack = stacks.setdefault(thread, [])
        assert time >= last.get(thread, 0), (name, time)
        last[thread] = time
        if kind == "B":
            stack.append((function, time))
            calls[function] += 1
        else:
            function, start = stack.pop()
            if function not in [f for f, _ in stack]:
                total[function] += time - start
    assert calls == CALLS and not any(stacks.values()), (name, calls)
    for function, ns in TOTAL.items():  # times of events include the cost of the hooks
        assert ns <= total[function] <= ns + costs * sum(CALLS.values()), (name, total)


def check_chrome(record):
    document = json.loads(export(record, "chrome").read_text())
    events = [e for e in document["traceEvents"] if e["ph"] in "BE"]
    assert all(isinstance(e["pid"], int) and isinstance(e["tid"], int) for e in events)
    check_slices("chrome", [(e["ph"], e["tid"], round(e["ts"] * 1000), e["name"])
                            for e in events], 30)


def check_perfetto(record):
    if not is_installed("protoc"):
        return
    with open(export(record, "perfetto"), "rb") as trace:
        text = run("protoc", "--decode=subset.Trace", f"-I{HERE}", HERE / "perfetto.proto",
                   stdin=trace)
    assert not re.search(r"^\s*\d+: ", text, re.M), "the trace has fields that perfetto.proto does not have"
    names, events, threads = {}, [], 0
    for packet in text.split("packet {")[1:]:
        names.update(re.findall(r"iid: (\d+)\s+name: \"(.*)\"", packet))
        threads += "thread {" in packet
        kind = re.search(r"type: SLICE_(BEGIN|END)", packet)
        if kind:
            name = re.search(r"name_iid: (\d+)", packet)
            events.append((kind[1][0], re.search(r"track_uuid: (\d+)", packet)[1],
                           int(re.search(r"timestamp: (\d+)", packet)[1]),
                           name and names[name[1]]))
    assert threads == 2
    check_slices("perfetto", events, 30)


def check_traceview(record):
    if not is_installed("dmtracedump"):
        return
    text = run("dmtracedump", export(record, "traceview"))
    text = text[text.index("Exclusive elapsed times for each method"):]
    for name, ns in SELF.items():
        measured_us = int(re.search(rf"^\s+(\d+)\s.*\.{re.escape(name)} \(\)V", text, re.M)[1])
        assert abs(measured_us - ns / 1000) <= 10, (name, measured_us, ns)  # includes the cost of the hooks


def unpack(text):
    """The JSON of a part of the page, by the rules of html_pack.h."""
    if text.startswith("{"):
        return text
    size, packed = text.split("\n", 1)
    packed, out, at = packed.encode(), bytearray(), 0

    def digit():
        nonlocal at
        at += 1
        return packed[at - 1] - 33 - (packed[at - 1] > 60)
    while len(out) < int(size):
        byte, at = packed[at], at + 1
        if byte == 0x7f and packed[at] != 32:
            code = digit()
            length, more = 5 + code // 3, 92
            while code // 3 == 30 and more == 92:
                more = digit()
                length += more
            distance = 0
            for _ in range(2 + code % 3):
                distance = distance * 93 + digit()
            for _ in range(length):
                out.append(out[-distance])
        else:
            at += byte == 0x7f
            out.append(byte)
    assert at == len(packed)
    return out.decode()


def page_data(page):
    """The JSON of all parts of a page, after a check that none can end its script element and it has no links.
    RVAs are differences; columns of times end at the last timed function."""
    text, data = page.read_text(), {}
    parts = re.findall(r'<script type="application/json" id="(\w+)">(.*?)</script>', text, re.DOTALL)
    assert [name for name, _ in parts] == ["data", "rest", "links", "nodes", "events"]
    assert not any("<" in block for _, block in parts)
    assert set(re.findall(r"https?://[^\s\"'`]*", text)) <= {"http://www.w3.org/2000/svg"}
    bare = text
    for _, block in parts:
        bare = bare.replace(block, "") if block else bare
    assert not re.search(r"<(link|img|iframe)|src=|innerHTML|document\.write|eval\(", bare)
    for name, block in parts:
        part = json.loads(unpack(block))
        if name == "rest":
            for key, column in part["functions"].items():
                data["functions"][key] += column
        else:
            data.update(part)
    assert len(data["functions"]["name"]) == data["function_count"]
    return data


def check_page(record, counted, large):
    data = page_data(export(record, "html"))
    functions = data["functions"]
    for i, name in enumerate(functions["name"]):
        if name in SELF:
            assert (functions["self"][i], functions["total"][i]) == (SELF[name], TOTAL[name])
            assert sum(data["histograms"][str(i)][1::2]) == CALLS[name] == functions["calls"][i]
    nodes = data["nodes"]
    assert all(parent < i for i, parent in enumerate(nodes["parent"]))
    assert sum(nodes["self"]) == sum(SELF.values()) == data["busy_ns"]
    assert {len(column) for column in nodes.values()} == {len(nodes["parent"])}
    for i, function in enumerate(nodes["function"]):
        name, path, at = functions["name"][function], set(), i
        BYTES[name] = BYTES.get(name, 0) + nodes["bytes"][i]
        while at >= 0:
            path.add(functions["name"][nodes["function"][at]])
            at = nodes["parent"][at]
        for ancestor in path:
            BYTES_WITH_CALLEES[ancestor] = BYTES_WITH_CALLEES.get(ancestor, 0) + nodes["bytes"][i]
    assert set(BYTES) == set(SELF) and "budget" not in data, BYTES
    for i, name in enumerate(functions["name"]):
        if name in BYTES:
            assert (functions["alloc"][i][4], functions["alloc"][i][0]) == (BYTES[name], BYTES_WITH_CALLEES[name]), name
    assert len(data["slow"]) == 12 and all(s[3] >= 90000 for s in data["slow"])
    data = page_data(export(counted, "html.2", "html"))
    assert not data["timed"] and sum(c or 0 for c in data["functions"]["calls"]) == 157
    data = page_data(export(large, "html.3", "html"))
    assert len(data["functions"]["name"]) == 50000
    assert "</script><img src=x onerror=alert(7)>" in data["functions"]["name"]


def check_open(record):
    page = record.with_name("opened.html")
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    assert run(HOTFN, "open", "-o", page, record, env=bare) == f"{page}\n"
    assert page_data(page)["timed"]
    made = run(HOTFN, "open", record, env={**bare, "TMPDIR": str(record.parent)}).strip()
    assert pathlib.Path(made).parent == record.parent and page_data(pathlib.Path(made))
    run(HOTFN, "open", "/none.hfr", status=1)


def check_refusals(record, counted):
    for form, words in (("speedscope", b"--mode time"), ("folded", b"--mode time"),
                        ("chrome", b"--mode time"), ("traceview", b"--mode time")):
        done = subprocess.run([HOTFN, "export", "-F", form, counted], capture_output=True)
        assert done.returncode == 1 and words in done.stderr and not done.stdout, done
    for command in (["export", "-F", "pprof"], ["report"]):
        done = subprocess.run([HOTFN, *command, "--by", "alloc", counted], capture_output=True)
        assert done.returncode == 1 and b"--with alloc" in done.stderr, done
    done = subprocess.run([HOTFN, "export", "-F", "svg", record], capture_output=True)
    assert done.returncode == 2 and b"speedscope" in done.stderr, done
    run(HOTFN, "export", record, status=2)
    run(HOTFN, "export", "-F", "folded", "-o", "/none/x", record, status=1)
    full = subprocess.run([HOTFN, "export", "-F", "folded", "-o", "/dev/full", record],
                          capture_output=True)
    assert full.returncode == 1 and b"/dev/full" in full.stderr, full
    out = record.with_name("by-ending.speedscope.json")
    run(HOTFN, "export", "-o", out, record)
    assert "speedscope.app" in out.read_text()


def check_report(record):
    document = json.loads(run(HOTFN, "report", "--json", "--edges", record))
    schema = json.loads((HERE.parents[2] / "docs/report.schema.json").read_text())
    import jsonschema
    jsonschema.validate(document, schema)
    functions = document["functions"]
    for f in functions:
        if f["display"] in SELF:
            assert (f["total_ns"], f["self_ns"]) == (TOTAL[f["display"]], SELF[f["display"]])
            assert f["p50_ns"] <= f["p90_ns"] <= f["p99_ns"] <= f["max_ns"]
            assert f["timing"] == "full"
    edges = {(e["caller"] is not None and functions[e["caller"]]["display"],
              functions[e["callee"]]["display"]): (e["calls"], e["total_ns"])
             for e in document["edges"]}
    assert edges[("alpha", "beta::run()")] == (10, 36800)
    whole = sum(f["self_alloc"]["allocated_bytes"] for f in functions if f["display"] in SELF)
    assert whole == sum(e["total_alloc"]["allocated_bytes"] for e in document["edges"]
                        if e["caller"] is None), document["edges"]
    assert edges[("alpha", "gamma")] == (10, 5500) and edges[(False, "gamma")][0] == 100
    assert [t["busy_ns"] for t in document["threads"]] == [142300, 5050000]
    assert [f["display"] for f in functions[:3]] == ["gamma", "alpha", "beta::run()"]
    by_calls = json.loads(run(HOTFN, "report", "--json", "--by", "calls", record))["functions"]
    assert [f["display"] for f in by_calls[:3]] == ["gamma", "beta::run()", "alpha"]
    table = run(HOTFN, "report", "--edges", record)
    assert "142.3 us" in table and "the slowest" in table

    def edge_names(*options):
        return [line.split("  ")[-1] for line in run(HOTFN, "report", "--edges", *options,
                                                     record).splitlines() if " -> " in line][1:]
    costliest_first = ["(outside) -> gamma", "(outside) -> alpha", "alpha -> beta::run()",
                       "beta::run() -> beta::run()", "alpha -> gamma", "beta::run() -> gamma"]
    assert edge_names() == costliest_first, edge_names()
    assert edge_names("-f", "alpha") == [edge for edge in costliest_first if "alpha" in edge]
    assert run(HOTFN, "report", "--csv", record).splitlines()[0].endswith("timing_reason,open_calls,total_error_ns,self_error_ns,waited_ns,total_waited_ns")


def check_unknown_errors(record):
    """Each format, also of a merged record, marks the error of beta's total as unknown."""
    import csv
    import jsonschema
    schema = json.loads((HERE.parents[2] / "docs/report.schema.json").read_text())
    merged = record.with_name("merged_recursive.hfr")
    for mode in ([], ["--mode", "mean"]):
        run(HOTFN, "merge", *mode, "-o", merged, record, record)
        for one in (record, merged):
            document = json.loads(run(HOTFN, "report", "--json", "-n", "0", one))
            jsonschema.validate(document, schema)
            errors = {f["display"]: f["total_error_ns"] for f in document["functions"] if f["timed_calls"]}
            assert errors["beta::run()"] is None and 700 <= errors["alpha"] <= 1500, errors
            rows = {row["display"]: row for row in csv.DictReader(run(HOTFN, "report", "--csv", one).splitlines())}
            assert rows["beta::run()"]["total_error_ns"] == "" != rows["alpha"]["total_error_ns"], rows
            lines = [re.sub(r" \(shared by \d+ more names?\)$", "", line)
                     for line in run(HOTFN, "report", one).splitlines()]
            marked = {line.split()[-1]: " ? " in line for line in lines
                      if "%" in line and line.endswith(("beta::run()", "alpha"))}
            assert marked == {"alpha": False, "beta::run()": True}, marked
    merged.unlink()


def check_info_and_top(record, budgeted):
    def read_json(command, of, *options):
        document = json.loads(run(HOTFN, command, "--json", *options, of))
        schema = json.loads((HERE.parents[2] / f"docs/{command}.schema.json").read_text())
        import jsonschema
        jsonschema.validate(document, schema)
        return document

    info = read_json("info", record)
    assert info["budget"] is None and info["memory"] == {
        "allocated_bytes": sum(BYTES.values()), "allocated_blocks": 110, "freed_bytes": 5500,
        "freed_blocks": 55}, info
    info = read_json("info", budgeted)
    assert info["memory"] is None, info
    assert {k: info["budget"][k] for k in ("share", "stops", "changes", "unhooked_ever", "unhooked_at_end",
                                           "note")} == {
        "share": 0.05, "stops": 3, "changes": 3, "unhooked_ever": 1, "unhooked_at_end": 1,
        "note": "a <note>"}, info
    assert "THE BUDGET WAS NOT KEPT: a <note>" in run(HOTFN, "info", budgeted)
    top = read_json("top", record, "--once", "--by", "alloc")
    assert [(f["name"], f["allocated_bytes"]) for f in top["functions"]] == sorted(
        BYTES.items(), key=lambda item: -item[1]), top
    top = read_json("top", budgeted, "--once")
    assert top["budget"]["note"] == "a <note>" and top["functions"][0]["calls_at_least"], top
    assert ">5,000" in run(HOTFN, "top", "--once", budgeted)


with tempfile.TemporaryDirectory() as folder:
    story, counts = pathlib.Path(folder, "story.hfr"), pathlib.Path(folder, "counted.hfr")
    run(STORY, "story", story)
    run(STORY, "counted", counts)
    large = pathlib.Path(folder, "large.hfr")
    run(STORY, "large", large, 50000)
    check_report(story)
    check_page(story, counts, large)
    check_open(story)
    recursive = pathlib.Path(folder, "recursive.hfr")
    run(STORY, "recursive", recursive)
    check_unknown_errors(recursive)
    budgeted = pathlib.Path(folder, "budgeted.hfr")
    run(STORY, "budgeted", budgeted)
    check_info_and_top(story, budgeted)
    check_callgrind(story, counts)
    check_pprof(story, counts)
    check_stacks(story)
    check_memory_stacks(story)
    check_chrome(story)
    check_perfetto(story)
    check_traceview(story)
    check_refusals(story, counts)
print("the exports have the numbers of the record")
