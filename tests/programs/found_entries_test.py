# SPDX-License-Identifier: MIT
"""Stripped programs without unwind data: each function that is found by code is one, and with
--found its calls are exact."""
import json
import os
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
BUILDS = {"gcc": ["gcc", "-O2"], "fixed": ["gcc", "-O3", "-fno-pie", "-no-pie"],
          "sections": ["clang", "-Os", "-ffunction-sections", "-fuse-ld=lld"]}
NO_UNWIND_DATA = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]
# Tables of labels and of functions, jump tables, recursion, calls that do not return.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline, noclone))
KEEP static void fail(int code) { printf("fail %d\n", code); exit(code); }
KEEP static int leaf(int n) { return n * 3 + 1; }
KEEP static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KEEP static int add(int n) { return leaf(n) + 2; }
KEEP static int twice(int n) { return add(n) + add(n + 1); }
KEEP static int pick(int n) {
    switch (n % 7) {
    case 0: return leaf(n); case 1: return add(n); case 2: return twice(n); case 3: return n * 5;
    case 4: return n - 9; case 5: return fib(n % 5); default: if (n < 0) fail(3); return n ^ 77;
    }
}
KEEP static int interpret(const unsigned char *code, int n) {
    static void *const labels[] = { &&more, &&less, &&call, &&end };
    goto *labels[*code++];
more: n += 7; goto *labels[*code++];
less: n -= 2; goto *labels[*code++];
call: n = add(n); goto *labels[*code++];
end: return n;
}
static int (*const table[])(int) = { leaf, add, twice, pick };
int main(int argc, char **argv) {
    int sum = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < 1000; i++) {
        sum += table[i & 3](i) + pick(i) + interpret((const unsigned char[]){ 0, 1, 2, 2, 0, 3 }, i);
    }
    printf("%d %d\n", sum, fib(15));
    return 0;
}
"""


def read(*command):
    done = subprocess.run([HOTFN, *map(str, command)], capture_output=True, text=True, check=True)
    return {f["rva"]: f for f in json.loads(done.stdout)["functions"]}


def build(place, name):
    source, program, stripped = place / "found.c", place / name, place / f"{name}-stripped"
    source.write_text(SOURCE)
    command = [*BUILDS[name], *NO_UNWIND_DATA, "-o", program, source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise cases.Skipped(f"{' '.join(map(str, command))}: {done.stderr[-300:]}")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    return program, stripped


def count(program, place, *options):
    record = place / f"{program.name}.hfr"
    done = subprocess.run([HOTFN, "run", "-q", *options, "-o", record, "--", program], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{program.name}: {done.returncode} {done.stdout} {done.stderr}")
    return done.stdout, read("report", "--json", "-n", "0", record)


def check(place, name):
    program, stripped = build(place, name)
    named, scanned = read("scan", "--json", program), read("scan", "--json", stripped)
    found = {rva for rva, f in scanned.items() if f["found_by"] in ("call", "pointer")}
    wrong = [hex(rva) for rva in found if rva not in named]
    missing = {"leaf", "add", "fib", "pick", "main"} - {named[rva]["name"] for rva in found if rva in named}
    if wrong or missing:
        raise AssertionError(f"{name}: not functions: {wrong}; missing: {missing}")
    output, whole = count(program, place)
    without, few = count(stripped, place)
    if output != without or found & few.keys():
        raise AssertionError(f"{name}: counted without --found: {output} {without} {found & few.keys()}")
    for options in (["--mode", "time"], []):
        again, counted = count(stripped, place, "--found", *options)
        calls = {named[rva]["name"]: (counted[rva]["calls"], whole[rva]["calls"]) for rva in found}
        if output != again or any(of_stripped != of_named for of_stripped, of_named in calls.values()):
            raise AssertionError(f"{name}: {options} {output} {again} {calls}")
    marks = {counted[rva]["found_by"] for rva in found}
    report = subprocess.run([HOTFN, "report", place / f"{stripped.name}.hfr"], capture_output=True, text=True).stdout
    if not marks <= {"call", "pointer"} or "(found by call)" not in report:
        raise AssertionError(f"{name}: {marks} {report}")


def functions_are_found_in_code_of_gcc(place):
    check(place, "gcc")


def functions_are_found_at_a_fixed_address(place):
    check(place, "fixed")


def functions_are_found_in_sections_of_lld(place):
    check(place, "sections")


CASES = [
    functions_are_found_in_code_of_gcc,
    functions_are_found_at_a_fixed_address,
    functions_are_found_in_sections_of_lld,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc", "strip"]))
