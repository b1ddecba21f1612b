#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run one example and check its output: check_examples.py NAME PROGRAM [ARGUMENT...]."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile


def run(*command, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def expect(condition, output):
    if not condition:
        sys.exit("unexpected output:\n" + output)


def count_self(program):
    """1000 frames of 16 steps; the second work() is not counted."""
    output = run(program)
    rows = [line.split() for line in output.splitlines()]
    expect(rows == [["16000", "step"], ["1000", "frame"]], output)


def count_self_cpp(program):
    """1000 frames; frame i takes i % 5 + 1 steps, each ended by an exception."""
    output = run(program)
    first, _, table = output.partition("\n")
    expect(first == "1000 exceptions caught", output)
    rows = {row["name"]: row["calls"] for row in csv.DictReader(io.StringIO(table))}
    expect(rows == {"_ZN4game4stepEi": "3000", "_ZN4game5frameEi": "1000"}, output)


def time_self(program):
    """Frame n of 1000 sorts n % 4 times; the time of a frame includes its sorting."""
    output = run(program)
    times = {name: [int(number) for number in numbers] for name, *numbers in
             re.findall(r"^(\w+): (\d+) calls, (\d+) ns, (\d+) of them its own, the longest (\d+)$", output, re.MULTILINE)}
    expect(set(times) == {"frame", "sort_things"}, output)
    (frames, total, own, longest), (sorts, below, _, _) = times["frame"], times["sort_things"]
    expect((frames, sorts) == (1000, 1500) and 0 < own <= total and 0 < longest <= total, output)
    expect(abs(own + below - total) <= 2, output)
    expect("frame -> sort_things: 1500 calls\n" in output, output)


def frames(program):
    """Frame n moves 100 objects in a separate thread and has n collisions.  The program lists the two functions with
    the most calls, so `frame` with its single call is not in the list."""
    output = run(program)
    rows = [line.split() for line in output.splitlines()]
    move, collide = "_ZN4game4moveEm", "_ZN4game7collideEm"
    expect(rows == [["frame", "50"], ["100", move], ["50", collide],
                    ["frame", "125"], ["125", collide], ["100", move],
                    ["frame", "200"], ["200", collide], ["100", move]], output)


def check_engine_tree(record):
    """The group of rendering functions is on in frame 90; the zone is above them in the tree."""
    if "HOTFN" not in os.environ:
        return
    functions = json.loads(run(os.environ["HOTFN"], "report", "--json", record))["functions"]
    calls = {function["display"].partition("(")[0]: function["calls"] for function in functions}
    expect(calls.get("frame") == 1 and calls.get("engine::draw") == 100, str(calls))
    threads = json.loads(run(os.environ["HOTFN"], "info", "--json", record))["threads"]
    expect(any(thread["name"] == "engine main" for thread in threads), str(threads))


def engine(program, plugin):
    """Frame 90 calls rebuild_navigation, which takes many times as long as a frame.  Any other frame may be slow too
    on a machine with other work."""
    with tempfile.TemporaryDirectory() as folder:
        output = run(os.path.abspath(program), os.path.abspath(plugin), folder=folder)
        check_engine_tree(os.path.join(folder, "spike-90.hfr"))
        spikes = {int(number): text for number, text in
                  re.findall(r"^frame (\d+) took [0-9.]+ ms, .*\n((?:  .*\n)*)", output, re.MULTILINE)}
        expect(90 in spikes and re.match(r" *[0-9.]+ ms in 1 calls of engine::rebuild_navigation", spikes[90]), output)
        done = subprocess.run([os.path.abspath(program), os.path.abspath(plugin)], capture_output=True, text=True,
                              env={**os.environ, "HOTFN_LIBRARY": "/nonexistent/libhotfn.so"}, timeout=300)
        expect(done.returncode == 0 and done.stdout == "" and "libhotfn is not installed" in done.stderr, str(done))
        needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        expect("hotfn" not in needed, needed)
        expect(sorted(os.listdir(folder)) == sorted(f"spike-{number}.hfr" for number in spikes), output)


def overlay(program=None):
    """Two sounds are mixed per frame, until their group is switched off; the table then has a row less."""
    if not program:
        print("skipped: libimgui-dev is not installed")
        sys.exit(77)
    lines = run(program).splitlines()
    second = [i for i, line in enumerate(lines) if line.endswith(" vertices")][1]
    whole, less = lines[:second], lines[second:]
    calls = {name.partition("(")[0]: int(count) for count, _, name in (line.partition(" ") for line in whole[1:])}
    expect(calls == {"game::compute": 3, "game::move_objects": 1, "game::mix_sound": 2, "game::update": 1}, str(lines))
    expect([line for line in whole[1:] if "mix_sound" not in line and "compute" not in line] != [] and
           not any("mix_sound" in line for line in less), str(lines))
    expect(int(whole[0].split()[0]) > int(less[0].split()[0]) > 100, str(lines))


def count_self_py(program):
    """Inserting 1000 rows takes 1000 steps of the statement, and one database is opened while calls are counted."""
    try:
        import sqlite3  # noqa: F401
    except ImportError:
        print("skipped: this Python has no sqlite3")
        sys.exit(77)
    output = run(sys.executable, program)
    calls = {name: int(count) for count, name in (line.split() for line in output.splitlines())}
    expect(calls.get("sqlite3_open_v2") == 1 and 1000 < calls.get("sqlite3_step", 0) < 1100, output)


def launch(*command):
    """The game fills 20,000 items five times, and prints a line of its own."""
    output = run(*command)
    calls = {name: int(count) for count, name in (line.split() for line in output.splitlines()[1:])}
    expect(calls.get("next_random") == 100_000 and calls.get("fill") == 5 and calls.get("main") == 1, output)
    counts = list(calls.values())
    expect(counts == sorted(counts, reverse=True) and len(counts) <= 10, output)


def launch_py(script, program):
    launch(sys.executable, script, program)


def data_py(script, program, picture):
    """main fills 20,000 items five times; the tree and the flame graph are made of the same record."""
    try:
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    output = run(sys.executable, script, picture, program)
    expect(re.search(r"^\s*compare\s+\d{6,}\.0\s+\d{4,}\.0\s+\d{4,}\.0$", output, re.MULTILINE), output)
    expect(re.search(r"^\s*fill\s+5$", output, re.MULTILINE), output)
    expect(re.search(r"%  .* 1  main$", output, re.MULTILINE), output)
    expect(re.search(r"^ .* 100,000      next_random$", output, re.MULTILINE), output)
    with open(picture, "rb") as flame:
        expect(flame.read(4) == b"\x89PNG", "the flame graph is not a PNG")


def scan_file(program):
    """The program scans itself: its own functions are listed and can be hooked."""
    output = run(program, program)
    sums = re.search(r"^(\d+) functions: (\d+) hookable, (\d+) refused, (\d+) fragments$", output,
                     re.MULTILINE)
    expect(sums, output)
    total, hookable, refused, fragments = map(int, sums.groups())
    expect(total == hookable + refused + fragments and hookable >= 4, output)
    done = subprocess.run([program, __file__], capture_output=True, text=True)
    expect(done.returncode == 1 and __file__ in done.stderr, done.stderr)


if __name__ == "__main__":
    {"count_self": count_self, "count_self_cpp": count_self_cpp, "count_self_py": count_self_py,
     "data_py": data_py, "engine": engine, "frames": frames, "launch": launch, "launch_py": launch_py, "overlay": overlay,
     "scan_file": scan_file, "time_self": time_self}[sys.argv[1]](*sys.argv[2:])
