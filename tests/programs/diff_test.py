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
    other, third = build_and_record(place, "other", NEW, "renamed")  # neither the id nor the file name is the same
    rows = json.loads(diff("--json", old, third))["functions"]
    assert rows and not any(f["old"] and f["new"] for f in rows), rows


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
         functions_that_grew_too_much_set_the_exit_status]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER]))
