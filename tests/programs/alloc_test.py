# SPDX-License-Identifier: MIT
"""`hotfn run --mode time --with alloc`: the blocks and bytes of each function equal those that the program
counted, and the sums of a real program equal those of a counter between it and the C library."""
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
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets
SRC = pathlib.Path(__file__).resolve().parent / "src"
KEYS = ["allocated_bytes", "allocated_blocks", "freed_bytes", "freed_blocks"]
SQL = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i+1 from n where i<5000)
insert into t select i, 'x'||(i*7919%10007) from n;
create index tb on t(b); select count(*) from t where b like 'x1%';
"""


def values(cell):
    return [cell[key] for key in KEYS]


def read_report(record):
    done = subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def run(place, *command, env=None, mode=(), **options):
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--with", "alloc", *mode,
                           "-o", record, *command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(env or {})}, **options)
    assert done.returncode == 0, done
    return done.stdout, read_report(record)


def by_name(report):
    return {f["name"]: f for f in report["functions"] if f["state"] == "hooked"}


def build(place):
    subprocess.run(["g++", *FLAGS, "-O2", "-pthread", "-fno-optimize-sibling-calls", "-o", place / "alloc",
                    SRC / "alloc.cc"], check=True)
    return place / "alloc"


def blocks_are_those_that_the_program_counted(place, mode=()):
    output, report = run(place, "--", build(place), mode=mode)
    functions = by_name(report)
    sums = [0, 0, 0, 0]
    for line in output.splitlines():
        name, *numbers = line.split()
        expected = [int(number) for number in numbers]
        assert values(functions[name]["self_alloc"]) == expected, (name, expected, functions[name])
        assert values(functions[name]["total_alloc"]) == expected, (name, functions[name])
        sums = [a + b for a, b in zip(sums, expected)]
    assert sums[1] > 1000 and sums[3] > 1000, sums
    top = functions["use_everything"]
    assert top["timing"] == "full", top
    assert values(top["self_alloc"]) == [0, 0, 0, 0], top
    assert values(top["total_alloc"]) == sums, (sums, top)


def flat_runs_have_the_same_blocks(place):
    blocks_are_those_that_the_program_counted(place, ["--flat"])


def total(report):
    """The sums over all functions: each block belongs to one function."""
    return [sum(column) for column in zip(*(values(f["self_alloc"]) for f in report["functions"]))]


def measure_with_counter(place, *command, further=(), **options):
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


def check_sums_equal_the_counters(place, *command, more=(), **options):
    """With and without a tree; own and total allocations of each function, for comparison of both."""
    by_function = []
    for mode in ((), ["--flat"]):
        report, got, counted = measure_with_counter(place, *command, mode=(*mode, *more), **options)
        assert got == counted, (command, mode, got, counted)
        print("#", got, *mode)
        by_function.append(memory_by_function(report))
    return by_function


def the_test_programs_blocks_equal_the_counters(place):
    """When a thread ends, glibc frees the blocks in its cache of freed blocks a second time."""
    report, got, counted = measure_with_counter(place, build(place))
    by_itself = values(by_name(report)["free"]["self_alloc"])
    assert [a - b for a, b in zip(got, by_itself)] == counted, (got, by_itself, counted)


def sqlite3s_blocks_equal_the_counters(place):
    if not shutil.which("sqlite3"):
        raise cases.Skipped("no sqlite3 on this system")
    tree, flat = check_sums_equal_the_counters(place, shutil.which("sqlite3"), ":memory:", input=SQL,
                                             more=["--module", "sqlite3*", "--module", "libsqlite3*"])
    differ = {name: (tree.get(name), flat.get(name)) for name in tree | flat
              if tree.get(name) != flat.get(name)}
    assert not differ and len(tree) > 20, (len(tree), list(differ.items())[:10])


def pythons_blocks_equal_the_counters(place):
    code = "import json; print(len(json.dumps([{'a': [str(i)] * 20} for i in range(3000)])))"
    check_sums_equal_the_counters(place, "/usr/bin/python3", "-S", "-c", code)


def another_allocator_is_counted_too(place):
    code = "print(len([str(i) * 3 for i in range(20000)]))"
    jemalloc = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    if jemalloc.exists():
        check_sums_equal_the_counters(place, "/usr/bin/python3", "-S", "-c", code, further=[str(jemalloc)])
        report = read_report(place / "run.hfr")
        assert [f for f in report["functions"] if f["name"] == "malloc" and f["calls"] and
                f["module"] == jemalloc.name], "jemalloc was not used"


def modes_that_skip_calls_are_refused(place):
    for words in (("--mode", "count"), ("--mode", "time", "--sample", "9"),
                  ("--mode", "time", "--budget", "5%")):
        done = subprocess.run([HOTFN, "run", "-o", place / "x.hfr", *words, "--with", "alloc", "--",
                               "/bin/true"], capture_output=True, text=True)
        assert done.returncode == 125 and "--with" in done.stderr, (words, done)


CASES = [
    blocks_are_those_that_the_program_counted,
    flat_runs_have_the_same_blocks,
    the_test_programs_blocks_equal_the_counters,
]
SYSTEM_PROGRAM_CASES = [
    sqlite3s_blocks_equal_the_counters,
    pythons_blocks_equal_the_counters,
    another_allocator_is_counted_too,
    modes_that_skip_calls_are_refused,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES + (SYSTEM_PROGRAM_CASES if not FLAGS else []), needs=["g++"]) if platform.machine() == "x86_64" else cases.SKIPPED)
