# SPDX-License-Identifier: MIT
"""`hotfn diff` of two builds of a program, as in continuous integration: the call counts are known from the source,
and so are each row, the sum and the exit status."""
import json
import os
import shutil
import subprocess
import sys

import cases

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
SOURCE = """
#define CALLED __attribute__((noinline, noclone))
CALLED int steady(int x) { __asm__ volatile(""); return x + 1; }
CALLED int grows(int x) { __asm__ volatile(""); return x + 2; }
CALLED int copied(int x) COPY;
CALLED int copied(int x) { __asm__ volatile(""); return x + 3; }
CALLED int part(int x) PART;
CALLED int part(int x) { __asm__ volatile(""); return x + 4; }
#ifdef ADDED
CALLED int added(int x) { __asm__ volatile(""); return x + 5; }
#else
CALLED int dropped(int x) { __asm__ volatile(""); return x + 6; }
#define added dropped
#endif
int main(void)
{
    int x = 0;
    for (int i = 0; i < 1000; i++)
        x = part(copied(steady(x)));
    for (int i = 0; i < GROWS; i++)
        x = grows(x);
    for (int i = 0; i < 50; i++)
        x = added(x);
    return x == 1;
}
"""
OLD = ("-O1", "-DCOPY=", "-DPART=", "-DGROWS=1000")
NEW = ("-O2", "-DADDED", "-DGROWS=1500", '-DCOPY=__asm__("copied.constprop.0")', '-DPART=__asm__("part.part.0")')
WANTED = {"steady": (1000, 1000), "grows": (1000, 1500), "copied.constprop.0": (1000, 1000), "part": (1000, None),
          "part.part.0": (None, 1000), "dropped": (50, None), "added": (None, 50), "main": (1, 1)}


def build_and_record(place, folder, flags, name="game"):
    (place / folder).mkdir(exist_ok=True)
    (place / "game.c").write_text(SOURCE)
    program, record = place / folder / name, place / f"{folder}.hfr"
    subprocess.run([COMPILER, "-w", *flags, "-Wl,--build-id", "-o", program, place / "game.c"], check=True)
    return program, record_run(program, record)


def record_run(program, record):
    subprocess.run([HOTFN, "run", "-q", "-f", "[!_]*", "-x", "*_tm_clones", "-x", "frame_dummy", "-o", record, "--",
                    program], check=True)
    return record


def diff(*arguments, status=0):
    done = subprocess.run([HOTFN, "diff", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done)
    return done.stdout


def two_builds_are_paired_by_name(place):
    (_, old), (_, new) = build_and_record(place, "old", OLD), build_and_record(place, "new", NEW)
    document = json.loads(diff("--json", old, new))
    found = {f["name"]: tuple(f[side] and f[side]["calls"] for side in ("old", "new")) for f in document["functions"]}
    assert found == WANTED, found
    sums = [sum(calls[side] or 0 for calls in WANTED.values()) for side in (0, 1)]
    assert [document["old"], document["new"]] == sums, (document["old"], document["new"], sums)


def a_build_is_paired_by_its_id_even_if_its_file_is_renamed(place):
    program, old = build_and_record(place, "old", OLD)
    shutil.copy(program, place / "renamed")
    new = record_run(place / "renamed", place / "renamed.hfr")
    assert "no function differs" in diff("--fail-above", "0", old, new)


def the_main_programs_are_paired_whatever_their_file_names(place):
    (_, old), (_, new) = build_and_record(place, "old", OLD), build_and_record(place, "new", NEW, "game-2.1_beta")
    found = {f["name"]: tuple(f[side] and f[side]["calls"] for side in ("old", "new"))
             for f in json.loads(diff("--json", old, new))["functions"]}
    assert found == WANTED, found


LIBRARY = "__attribute__((noinline)) int in_library(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
HOST = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int (*in_library)(int) = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "in_library");
    for (int i = 0; i < atoi(argv[2]); i++)
        in_library(i);
    return argc != 3;
}
"""


def record_library(place, file, calls, flags=("-O1",)):
    """A record of a program that calls a function of the library `file` so many times."""
    (place / "library.c").write_text(LIBRARY)
    (place / "host.c").write_text(HOST)
    subprocess.run([COMPILER, "-w", "-o", place / "host", place / "host.c", "-ldl"], check=True)
    subprocess.run([COMPILER, *flags, "-shared", "-fPIC", "-Wl,--build-id", "-o", place / file, place / "library.c"],
                   check=True)
    record = place / f"{file}.{calls}.hfr"
    subprocess.run([HOTFN, "run", "-q", "--module", file, "-f", "in_library", "-o", record, "--", place / "host",
                    place / file, str(calls)], check=True)
    return record


def halves(*words, status=0):
    rows = json.loads(diff("--json", *words, status=status))["functions"]
    return [tuple(f[side] and f[side]["calls"] for side in ("old", "new")) for f in rows]


def libraries_are_paired_without_their_version(place):
    first = record_library(place, "libstep.so.1.2.3", 10)
    for file in ("libstep.so.2", "libstep-3.0.so"):
        assert halves(first, record_library(place, file, 15, ("-O1", "-g"))) == [(10, 15)], file
    other = record_library(place, "libwalk.so", 20, ("-O2", "-g"))
    assert sorted(halves(first, other), key=str) == [(10, None), (None, 20)]
    assert halves("--as", "libstep.so.1.2.3=libwalk.so", first, other) == [(10, 20)]
    refused = subprocess.run([HOTFN, "diff", "--as", "libstep", first, other], capture_output=True, text=True)
    assert refused.returncode == 2 and "OLD=NEW" in refused.stderr, refused


def groups_of_runs_are_compared_by_means_and_spread(place):
    """Means of 100, 110, 120 and of 104, 112, 120 differ by less than their spread; 150 to 170 do not."""
    old = [record_library(place, "libstep.so", calls) for calls in (100, 110, 120)]
    same = [record_library(place, "libstep.so", calls) for calls in (104, 112, 120)]
    more = [record_library(place, "libstep.so", calls) for calls in (150, 160, 170)]
    document = json.loads(diff("--json", "--fail-above", "0", *old, "--", *same))
    assert (document["old_runs"], document["new_runs"], document["old"], document["new"]) == (3, 3, 110, 112), document
    assert document["within_noise"] and [f["within_noise"] for f in document["functions"]] == [True], document
    table = diff("--fail-above", "10%", *old, "--", *more, status=3)
    assert "(means of 3 and 3 runs)" in table and table.count("too much") == 2, table
    assert halves("--fail-above", "10%", old[0], "--", more[0], status=3) == [(100, 150)]
    wrong = subprocess.run([HOTFN, "diff", *old], capture_output=True, text=True)
    assert wrong.returncode == 2 and "3 records without a `--`" in wrong.stderr, wrong


MANY = """
#include <string>
namespace engine { namespace render { namespace detail {
template <int N> struct Material { [[gnu::noinline]] std::string shade(std::string const &a, std::string const &b); };
template <int N> std::string Material<N>::shade(std::string const &a, std::string const &b)
{
    asm volatile("");
    return a < b ? a : b;
}
template <int N> struct Each { static void run(int calls) {
    for (int i = 0; i < calls * N; i++) Material<N>().shade("a", "b");
    Each<N - 1>::run(calls);
} };
template <> struct Each<0> { static void run(int) {} };
}}}
int main(int argc, char **) { engine::render::detail::Each<100>::run(CALLS + argc); }
"""


def markdown_fits_a_comment_and_names_are_folded(place):
    """GitHub refuses comments of more than 65,536 characters."""
    if not shutil.which("g++"):
        raise cases.Skipped("no g++ on this system")
    records = []
    (place / "many.cpp").write_text(MANY)
    for calls in (1, 3):
        program, record = place / f"many{calls}", place / f"many{calls}.hfr"
        subprocess.run(["g++", "-w", "-O1", f"-DCALLS={calls}", "-o", program, place / "many.cpp"], check=True)
        subprocess.run([HOTFN, "run", "-q", "-f", "*shade*", "-o", record, "--", program], check=True)
        records.append(record)
    document = diff("--markdown", "--fail-above", "50%", *records, status=3)
    rows = [line for line in document.splitlines() if line.startswith("| ")]
    assert len(rows) == 21 and len(document) < 65536 and "... and 80 more that differ" in document, document
    assert document.startswith("**calls: 10,100 \u2192 20,200 (+100.0%)** :x:, 100 functions differ"), document
    assert "| Material\\<100\\>::shade(\u2026) | 200 | 400 | +100.0% :x: |" in rows, rows
    table = diff("--width", "72", *records)
    assert max(map(len, table.splitlines()[1:])) <= 72 and " Material<100>::shade(\u2026)" in table, table
    assert "std::string const&" in diff("--full-names", *records) or "basic_string" in diff("--full-names", *records)


def functions_that_grew_too_much_set_the_exit_status(place):
    (_, old), (_, new) = build_and_record(place, "old", OLD), build_and_record(place, "new", NEW)
    table = diff("--fail-above", "60%", "--min-share", "30%", old, new)  # `grows` has 33 % of the calls and grew by half
    assert "too much" not in table, table
    table = diff("--fail-above", "49%", "--min-share", "30%", old, new, status=3)
    assert [line.split()[3] for line in table.splitlines() if "too much" in line] == ["grows"], table
    table = diff("--fail-above", "60%", "--min-share", "20%", old, new, status=3)  # a new function grew without bound
    assert [line.split()[3] for line in table.splitlines() if "too much" in line] == ["part.part.0"], table
    table = diff("--fail-above", "12%", "--min-share", "100%", old, new, status=3)  # the sum: 4051 to 4551, 12.3 %
    assert [line.split()[3:5] for line in table.splitlines() if "too much" in line] == [["all", "functions"]], table
    diff("--fail-above", "13%", "--min-share", "100%", old, new)
    markdown = diff("--fail-above", "49%", "--min-share", "30%", "--markdown", old, new, status=3)
    assert "| grows | 1,000 | 1,500 | +50.0% :x: |" in markdown.splitlines(), markdown
    assert "| part.part.0 | 0 | 1,000 | new |" in markdown.splitlines(), markdown


CASES = [two_builds_are_paired_by_name, a_build_is_paired_by_its_id_even_if_its_file_is_renamed,
         the_main_programs_are_paired_whatever_their_file_names, libraries_are_paired_without_their_version,
         groups_of_runs_are_compared_by_means_and_spread, markdown_fits_a_comment_and_names_are_folded,
         functions_that_grew_too_much_set_the_exit_status]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER]))
