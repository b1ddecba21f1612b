# SPDX-License-Identifier: MIT
"""`hotfn run --mode time --with alloc`: each function's blocks and bytes are those that the program knows
of, and a real program's sums are those of a counter that stands between it and the C library."""
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same of 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
KEYS = ["allocated_bytes", "allocated_blocks", "freed_bytes", "freed_blocks"]
SQL = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i+1 from n where i<5000)
insert into t select i, 'x'||(i*7919%10007) from n;
create index tb on t(b); select count(*) from t where b like 'x1%';
"""


def values(cell):
    return [cell[key] for key in KEYS]


def report_of(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def run(place, *command, env=None, mode=(), **options):
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--with", "alloc", *mode,
                           "-o", record, *command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(env or {})}, **options)
    assert done.returncode == 0, done
    return done.stdout, report_of(record)


def by_name(report):
    return {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}


def built(place):
    subprocess.run(["g++", *FLAGS, "-O2", "-pthread", "-fno-optimize-sibling-calls", "-o", place / "alloc",
                    SRC / "alloc.cc"], check=True)
    return place / "alloc"


def blocks_are_those_the_program_made(place, mode=()):
    output, report = run(place, "--", built(place), mode=mode)
    functions = by_name(report)
    sums = [0, 0, 0, 0]
    for line in output.splitlines():
        name, *told = line.split()
        told = [int(value) for value in told]
        assert values(functions[name]["self_alloc"]) == told, (name, told, functions[name])
        assert values(functions[name]["total_alloc"]) == told, (name, functions[name])
        sums = [a + b for a, b in zip(sums, told)]
    assert sums[1] > 1000 and sums[3] > 1000, sums
    top = functions["use_everything"]
    assert top["timing"] == "full", top
    assert values(top["self_alloc"]) == [0, 0, 0, 0], top
    assert values(top["total_alloc"]) == sums, (sums, top)


def without_a_tree_too(place):
    blocks_are_those_the_program_made(place, ["--flat"])


def total(report):
    """Over the whole tree: each block belongs to one function."""
    return [sum(column) for column in zip(*(values(f["self_alloc"]) for f in report["functions"]))]


def sums_and_those_of_a_counter(place, *command, further=(), **options):
    counter, counts = place / "count_blocks.so", place / "counts"
    subprocess.run(["gcc", *FLAGS, "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", counter,
                    SRC / "count_blocks.c", "-ldl"], check=True)
    counts.write_bytes(bytes(4096))
    _, report = run(place, "--", *command,
                    env={"LD_PRELOAD": " ".join([str(counter), *further]),
                          "COUNT_BLOCKS": str(counts), "PYTHONMALLOC": "malloc"}, **options)
    counted = list(struct.unpack("<4Q", counts.read_bytes()[:32]))
    assert counted[1] > 1000, counted
    return report, total(report), counted


def memory_by_function(report):
    return {f"{f['module']}+{f['rva']:#x} {f['name']}": values(f["self_alloc"]) + values(f["total_alloc"])
            for f in report["functions"] if any(values(f["total_alloc"]))}


def sums_are_those_of_a_counter(place, *command, more=(), **options):
    """With a tree and without; what one function allocated, by itself and in all, is the same in both."""
    by_function = []
    for mode in ((), ["--flat"]):
        report, got, counted = sums_and_those_of_a_counter(place, *command, mode=(*mode, *more), **options)
        assert got == counted, (command, mode, got, counted)
        print("#", got, *mode)
        by_function.append(memory_by_function(report))
    return by_function


def it_makes_as_many_blocks_as_are_counted(place):
    """When a thread ends, glibc frees what lies in its cache of freed blocks, once more."""
    report, got, counted = sums_and_those_of_a_counter(place, built(place))
    by_itself = values(by_name(report)["free"]["self_alloc"])
    assert [a - b for a, b in zip(got, by_itself)] == counted, (got, by_itself, counted)


def sqlite3_makes_as_many_blocks_as_are_counted(place):
    if not shutil.which("sqlite3"):
        raise cases.Skipped("no sqlite3 on this system")
    tree, flat = sums_are_those_of_a_counter(place, shutil.which("sqlite3"), ":memory:", input=SQL,
                                             more=["--module", "sqlite3*", "--module", "libsqlite3*"])
    differ = {name: (tree.get(name), flat.get(name)) for name in tree | flat
              if tree.get(name) != flat.get(name)}
    assert not differ and len(tree) > 20, (len(tree), list(differ.items())[:10])


def python_makes_as_many_blocks_as_are_counted(place):
    code = "import json; print(len(json.dumps([{'a': [str(i)] * 20} for i in range(3000)])))"
    sums_are_those_of_a_counter(place, "/usr/bin/python3", "-S", "-c", code)


def another_allocator_is_followed_too(place):
    code = "print(len([str(i) * 3 for i in range(20000)]))"
    jemalloc = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    if jemalloc.exists():
        sums_are_those_of_a_counter(place, "/usr/bin/python3", "-S", "-c", code, further=[str(jemalloc)])
        report = report_of(place / "run.hfr")
        assert [f for f in report["functions"] if f["name"] == "malloc" and f["calls"] and
                f["module"] == jemalloc.name], "not by jemalloc"


def it_needs_every_call(place):
    for words in (("--mode", "count"), ("--mode", "time", "--sample", "9"),
                  ("--mode", "time", "--budget", "5%")):
        done = subprocess.run([HOTFN, "run", "-o", place / "x.hfr", *words, "--with", "alloc", "--",
                               "/bin/true"], capture_output=True, text=True)
        assert done.returncode == 125 and "--with" in done.stderr, (words, done)


CASES = [
    blocks_are_those_the_program_made,
    without_a_tree_too,
    it_makes_as_many_blocks_as_are_counted,
]
OF_THE_SYSTEM = [
    sqlite3_makes_as_many_blocks_as_are_counted,
    python_makes_as_many_blocks_as_are_counted,
    another_allocator_is_followed_too,
    it_needs_every_call,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES + (OF_THE_SYSTEM if not FLAGS else []), needs=["g++"]) if platform.machine() == "x86_64" else cases.SKIPPED)
