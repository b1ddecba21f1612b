# SPDX-License-Identifier: MIT
"""The filter of Android's method trace (`hotfn run --runtime art`), on the real libart.so of Debian and on a stand-in for
libdvm.so: only methods of the app reach the trace, dmtracedump accepts it, and its numbers equal those of the record.

HOTFN names the program."""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import cases
from cases import Skipped

HOTFN = os.environ["HOTFN"]
DRIVER = pathlib.Path(__file__).parent / "src" / "art_driver.cc"
LIBART = pathlib.Path("/usr/lib/x86_64-linux-gnu/android/libart.so.0")
CLASSES = {
    "Landroid/view/Choreographer;": ["doFrame", "postFrame"],
    "Landroid/widget/TextView;": [f"draw{i}" for i in range(12)],
    "Lapp/Main;": ["onCreate", "onResume", "load", "show"],
    "Lapp/data/Store;": [f"read{i}" for i in range(10)],
    "Ljava/lang/String;": [f"concat{i}" for i in range(20)],
}
DROPPED_SYSTEM = "(dropped: events of system methods)"
DROPPED_FAST = "(dropped: events outside of slow calls)"
DROPPED_UNSELECTED = "(dropped: events of methods that are not selected)"


# ---- Building.

built = tempfile.TemporaryDirectory(prefix="hotfn_art_")


def make_dex(path):
    """A DEX file (Dalvik executable format 035) with names only: methods of two types, without code."""
    names = sorted({name for group in CLASSES.values() for name in group})
    strings = sorted([*CLASSES, *names, "I", "II", "V"])
    types = [name for name in strings if name in CLASSES or name in "IV"]
    number = strings.index
    protos = [("II", "I", True), ("V", "V", False)]
    methods = [(types.index(owner), i % 2, number(name)) for owner in CLASSES for i, name in enumerate(sorted(CLASSES[owner]))]
    at = {"strings": 0x70}
    at["types"] = at["strings"] + 4 * len(strings)
    at["protos"] = at["types"] + 4 * len(types)
    at["methods"] = at["protos"] + 12 * len(protos)
    at["data"] = at["methods"] + 8 * len(methods)
    data, offsets = b"", []
    parameters = at["data"]
    data += struct.pack("<IHH", 1, types.index("I"), 0)
    for text in strings:
        offsets.append(at["data"] + len(data))
        data += bytes([len(text)]) + text.encode() + b"\0"
    tables = struct.pack(f"<{len(strings)}I", *offsets)
    tables += struct.pack(f"<{len(types)}I", *map(number, types))
    for shorty, result, has_parameters in protos:
        tables += struct.pack("<3I", number(shorty), types.index(result), parameters if has_parameters else 0)
    for owner, proto, name in methods:
        tables += struct.pack("<HHI", owner, proto, name)
    size = at["data"] + len(data)
    head = b"dex\n035\0" + struct.pack("<I20x", 0) + struct.pack(
        "<20I", size, 0x70, 0x12345678, 0, 0, 0, len(strings), at["strings"], len(types), at["types"], len(protos),
        at["protos"], 0, 0, len(methods), at["methods"], 0, 0, len(data), at["data"])
    path.write_bytes(head + tables + data)


def build_driver(folder):
    """The driver, built once for all cases, in `built`."""
    if not LIBART.exists():
        raise Skipped("no libart.so (package android-libart)")
    program = pathlib.Path(built.name, "driver")
    if not program.exists():
        subprocess.run(["g++", "-std=c++17", "-O1", "-w", "-pthread", "-o", program, DRIVER, "-ldl"], check=True)
    make_dex(folder / "names.dex")
    return program


# ---- Running.

Trace = collections.namedtuple("Trace", "path expected functions stderr")


def reorder_name(name):
    """libart's "type package.Class.method(types)" as hotfn has it: "package.Class.method (types): type"."""
    result, rest = name.split(" ", 1)
    return f"{rest.split('(')[0]} ({rest.split('(')[1]}: {result}"


def read_lines(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return {reorder_name(name): int(calls) for _, calls, name in rows}


def run_driver(folder, program, *words, hooked=True, options=()):
    path = folder / ("hooked.trace" if hooked else "bare.trace")
    record = folder / "art.hfr"
    command = [HOTFN, "run", "--runtime", "art", *options, "-o", record, "--"] if hooked else []
    done = subprocess.run([*command, program, folder / "names.dex", path, *map(str, words)], capture_output=True, text=True,
                          timeout=300)
    if done.returncode == 77:
        raise Skipped(done.stdout)
    assert done.returncode == 0, done
    return Trace(path, read_lines(done.stdout), read_counts(record) if hooked else None, done.stderr)


def read_counts(record):
    shown = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], capture_output=True, text=True, check=True)
    return {f["name"]: f["calls"] for f in json.loads(shown.stdout)["functions"] if f["calls"]}


def read_trace(path):
    """The entries in the trace by method, as dmtracedump reads it.  It must accept the trace, in each of its forms, and
    each entry must have an exit."""
    for form in ("-o", "-h"):
        done = subprocess.run(["dmtracedump", form, path], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, (form, done.stderr)
        text = done.stdout if form == "-o" else text
    entries, exits = collections.Counter(), collections.Counter()
    for action, method in re.findall(r"^ *\d+ (ent|xit|unr) +[-\d]+ \.*(.*?)\t", text, re.MULTILINE):
        (entries if action == "ent" else exits)[method.replace("(I)I", "(int): int").replace("()V", "(): void")] += 1
    assert entries == exits, entries - exits
    return entries


def only(counts, *prefixes):
    return {name: calls for name, calls in counts.items() if name.startswith(prefixes) and calls}


# ---- The real libart.so.

def only_methods_of_the_app_reach_the_trace(folder):
    program = build_driver(folder)
    for seed in range(3):
        trace = run_driver(folder, program, "events", 20000, 70, seed)
        app = only(trace.expected, "app.")
        assert len(app) == 14 and only(trace.functions, "app.", "java.", "android.") == app, trace
        assert read_trace(trace.path) == app, trace.path
        system = sum(trace.expected.values()) - sum(app.values())
        assert trace.functions[DROPPED_SYSTEM] == 2 * system, (trace.functions, system)


def a_trace_of_a_million_events_shrinks(folder):
    program = build_driver(folder)
    bare = run_driver(folder, program, "events", 1000000, 90, 5, hooked=False)
    hooked = run_driver(folder, program, "events", 1000000, 90, 5)
    sizes = [t.path.stat().st_size for t in (bare, hooked)]
    assert sizes[0] > 13900000 and sizes[1] < 0.15 * sizes[0], sizes
    assert read_trace(hooked.path) == only(hooked.expected, "app.") == only(hooked.functions, "app."), sizes
    print("#", sizes[0], "bytes without the filter,", sizes[1], "with it;", bare.stderr.strip(), hooked.stderr.splitlines()[0])


def methods_are_selected_by_name(folder):
    program = build_driver(folder)
    trace = run_driver(folder, program, "events", 5000, 50, 1, options=["-f", "app.data.*", "-f", "java.*concat1?", "-x", "*.read0"])
    chosen = {name: calls for name, calls in trace.expected.items()
              if re.match(r"app\.data\.Store\.read[1-9]|java\.lang\.String\.concat1\d", name) and calls}
    assert read_trace(trace.path) == chosen == only(trace.functions, "app.", "java.", "android."), trace
    dropped = 2 * (sum(trace.expected.values()) - sum(chosen.values()))
    assert sum(trace.functions.get(name, 0) for name in (DROPPED_SYSTEM, DROPPED_UNSELECTED)) == dropped, trace.functions


def one_slow_frame_yields_one_trace_that_contains_it(folder):
    program = build_driver(folder)
    watch = ["--watch", "android.view.Choreographer.doFrame", "--slower-than", "400ms"]
    trace = run_driver(folder, program, "frames", 60, 37, 600, options=watch)
    # Frame 37 calls 8 methods of the app, which follow each other, and as many of the system.
    app = [name for name in trace.expected if name.startswith("app.")]
    frame = {app[(37 + call) % len(app)]: 1 for call in range(8)}
    frame["android.view.Choreographer.doFrame (int): int"] = 1
    assert read_trace(trace.path) == frame == only(trace.functions, "app.", "java.", "android."), trace
    passed = sum(only(trace.expected, "app.").values()) + trace.expected["android.view.Choreographer.doFrame (int): int"]
    assert trace.functions[DROPPED_FAST] == 2 * (passed - len(frame)), (trace.functions, passed)
    trace = run_driver(folder, program, "frames", 20, 30, 0, options=watch)
    assert not read_trace(trace.path) and trace.functions[DROPPED_FAST], trace


def read_times(folder):
    """Of the record: its functions that were called, the names of all, and the edges."""
    shown = subprocess.run([HOTFN, "report", "--json", "--edges", "-n", "0", folder / "art.hfr"], capture_output=True, text=True, check=True)
    report = json.loads(shown.stdout)
    return ({f["name"]: f for f in report["functions"] if f["calls"]}, [f["name"] for f in report["functions"]],
            report["edges"])


def calls_of_methods_are_timed(folder):
    """A method of the app, which a frame calls, takes 600 ms; its caller's own time does not include them."""
    program = build_driver(folder)
    trace = run_driver(folder, program, "frames", 60, 37, 600, options=["--mode", "time", "-f", "app.*", "-f", "*.doFrame"])
    functions, names, edges = read_times(folder)
    chosen = {name: calls for name, calls in trace.expected.items() if re.match(r"app\.|.*\.doFrame ", name) and calls}
    assert read_trace(trace.path) == chosen == {name: f["timed_calls"] for name, f in functions.items() if name[0] != "("}
    slow = [name for name in trace.expected if name.startswith("app.")][(37 + 4) % 14]
    frame = next(f for name, f in functions.items() if ".doFrame " in name)
    assert functions[slow]["total_ns"] > 500e6 and frame["total_ns"] > 500e6, (functions[slow], frame)
    own = {f["name"]: (f["self_ns"] or 0) + (f["waited_ns"] or 0) for f in (functions[slow], frame)}
    assert own[frame["name"]] < 300e6 and own[slow] > 500e6, own
    inner = sum(e["calls"] for e in edges if e["caller"] is not None and names[e["caller"]] == frame["name"])
    assert inner == 60 * 8, inner


def watched_calls_are_timed(folder):
    """The trace has the slow frame; the record has the times of all frames, and of the calls in them."""
    program = build_driver(folder)
    trace = run_driver(folder, program, "frames", 60, 37, 600, options=[
        "--mode", "time", "--watch", "android.view.Choreographer.doFrame", "--slower-than", "400ms"])
    frame = "android.view.Choreographer.doFrame (int): int"
    functions, names, edges = read_times(folder)
    assert read_trace(trace.path)[frame] == 1 and len(read_trace(trace.path)) == 9, read_trace(trace.path)
    assert functions[frame]["timed_calls"] == trace.expected[frame] == 60, functions[frame]
    inner = {name: functions[name]["timed_calls"] for name in trace.expected if name.startswith("app.")}
    assert sum(inner.values()) == 60 * 8 and all(calls <= trace.expected[name] for name, calls in inner.items()), inner
    slow = [name for name in trace.expected if name.startswith("app.")][(37 + 4) % 14]
    own = {name: (functions[name]["self_ns"] or 0) + (functions[name]["waited_ns"] or 0) for name in (frame, slow)}
    assert functions[frame]["total_ns"] > 500e6 and own[slow] > 500e6 and own[frame] < 300e6, own
    called = {names[e["callee"]]: e["calls"] for e in edges if e["caller"] is not None and names[e["caller"]] == frame}
    assert only(called, "app.") == inner, called


# ---- A stand-in for libdvm.so.

DALVIK = r"""
#include <stdio.h>
#include <string.h>
typedef unsigned u4;
typedef unsigned short u2;
struct Thread { int id; };
struct Class { Class *clazz; u4 lock, data[4]; const char *descriptor; char *allocated; u4 flags, serial; void *dex;
    int status; Class *error; u4 thread; size_t bytes; Class *element; int dimension, type; Class *super; void *loader; };
struct Method { Class *clazz; u4 flags; u2 sizes[4]; const char *name; void *dex; u4 proto; const char *shorty; };
static long stored[2][4];
extern "C" int JNI_CreateJavaVM(void) { return 0; }
FUNCTION
{
    stored[action != 0][method->name[1] - '0'] += thread->id == 7;
}
extern "C" void run(void)
{
    static int loader;
    static Class system, app;
    static Thread thread = { 7 };
    static Method methods[4] = {
        { &system, 0, { 0 }, "m0", 0, 0, "V" }, { &app, 0, { 0 }, "m1", 0, 0, "VI" },
        { &app, 0, { 0 }, "m2", 0, 0, "IL" }, { &system, 0, { 0 }, "m3", 0, 0, "V" } };
    system.descriptor = "Ljava/lang/Object;";
    app.descriptor = "Lapp/Main;";
    app.loader = &loader;
    for (int i = 0; i < 1000; i++) {
        Method *method = &methods[i % 4];
        dvmMethodTraceAdd(&thread, method, 0 TIMES);
        dvmMethodTraceAdd(&thread, method, i % 8 < 4 ? 1 : 2 TIMES);
    }
    for (int i = 0; i < 4; i++) printf("%ld %ld\n", stored[0][i], stored[1][i]);
}
"""
RELEASES = {  # of each, the function that stores an event
    "4.4": ("void dvmMethodTraceAdd(Thread *thread, const Method *method, int action, u4, u4)", ", 5, 6"),
    "4.1": ("void dvmMethodTraceAdd(Thread *thread, const Method *method, int action)", ""),
    "2.3": ('extern "C" void dvmMethodTraceAdd(Thread *thread, const Method *method, int action)', ""),
}


def build_dalvik(folder, function, times):
    text = DALVIK.replace("FUNCTION", function).replace("TIMES", times)
    (folder / "dvm.cc").write_text(text)
    (folder / "main.c").write_text("void run(void);\nint main(void) { run(); return 0; }\n")
    subprocess.run(["g++", "-shared", "-fPIC", "-fno-inline", "-O1", "-w", "-o", folder / "libdvm.so", folder / "dvm.cc"], check=True)
    subprocess.run(["gcc", "-o", folder / "program", folder / "main.c", folder / "libdvm.so"], check=True)
    return folder / "program"


def run_dalvik(folder, program):
    done = subprocess.run([HOTFN, "run", "--runtime", "art", "-o", folder / "dvm.hfr", "--", program], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done
    return done


def dalvik_of_each_release_is_filtered(folder):
    for release, (function, times) in RELEASES.items():
        done = run_dalvik(folder, build_dalvik(folder, function, times))
        assert done.stdout == "0 0\n250 250\n250 250\n0 0\n", (release, done)
        counts = read_counts(folder / "dvm.hfr")
        assert only(counts, "app.", "java.") == {"app.Main.m1 (VI)": 250, "app.Main.m2 (IL)": 250}, (release, counts)
        assert counts[DROPPED_SYSTEM] == 1000, (release, counts)


# ---- Bad input.

def an_unknown_release_runs_and_is_reported(folder):
    done = run_dalvik(folder, build_dalvik(folder, "void dvmMethodTraceAdd(Thread *thread, const Method *method, long action)", ""))
    assert done.stdout == "250 250\n" * 4 and "no event function" in done.stderr, done


def a_program_without_a_virtual_machine_is_reported(folder):
    done = run_dalvik(folder, "/bin/true")
    assert "virtual machine of Android" in done.stderr, done


def options_that_lack_another_are_refused(folder):
    for words in (["--watch", "*"], ["--watch", "*", "--slower-than", "1ms"], ["--runtime", "art", "--watch", "*"]):
        done = subprocess.run([HOTFN, "run", *words, "--", "/bin/true"], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 125 and "--watch needs" in done.stderr, done


CASES = [
    only_methods_of_the_app_reach_the_trace,
    a_trace_of_a_million_events_shrinks,
    methods_are_selected_by_name,
    one_slow_frame_yields_one_trace_that_contains_it,
    calls_of_methods_are_timed,
    watched_calls_are_timed,
    dalvik_of_each_release_is_filtered,
    an_unknown_release_runs_and_is_reported,
    a_program_without_a_virtual_machine_is_reported,
    options_that_lack_another_are_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc", "g++", "dmtracedump"]))
