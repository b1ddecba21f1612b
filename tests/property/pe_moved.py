#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds random C as x64 DLLs with clang and lld-link at several levels, and runs pe_moved_test on each.

pe_moved.py PE_MOVED_TEST [SEED [FUNCTIONS]]; the seed is printed.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/image"))
import pe_oracle as oracle  # noqa: E402

LEVELS = ("/Od", "/O1", "/O2")


def make_expression(rng, depth, calls):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["a", "b", "c", "d", "state[a & 7]", str(rng.randrange(-900, 900))])
    left, right = (make_expression(rng, depth - 1, calls) for _ in range(2))
    kind = rng.randrange(6)
    if kind == 0 and calls:
        return f"{rng.choice(calls)}({left}, {right}, a ^ 3, d)"
    if kind == 1:
        return f"({left} < {right} ? {left} : b)"
    return f"({left} {rng.choice(['+', '-', '*', '^', '&', '|'])} {right})"


def make_body(rng, calls):
    kind = rng.randrange(5)
    if kind == 0:
        cases = "\n".join(f"    case {k}: return {make_expression(rng, 2, calls)};"
                          for k in range(rng.randrange(4, 12)))
        return f"    switch (a & 15) {{\n{cases}\n    }}\n    return b;"
    if kind == 1:
        return (f"    int sum = 0;\n    for (unsigned i = 0; i < ((unsigned)b & 7); i++)\n"
                f"        sum += {make_expression(rng, 2, [])} + (int)i;\n    return sum;")
    if kind == 2:
        return f"    if ({make_expression(rng, 1, [])} > c)\n        return {make_expression(rng, 1, calls)};\n" \
               f"    state[b & 7] += {make_expression(rng, 2, calls)};\n    return state[1];"
    if kind == 3 and calls:
        return f"    return {rng.choice(calls)}(a, b, c, d);"
    return f"    return {make_expression(rng, 3, calls)};"


def make_source(rng, count):
    parts = ["typedef unsigned long long size_t;", "int _fltused;", "static int state[8] = { 3, 1, 4 };",
             "void *memset(void *p, int v, size_t n) { char *q = p; while (n--) *q++ = (char)v; return p; }",
             "void *memcpy(void *p, const void *s, size_t n) "
             "{ char *q = p; const char *r = s; while (n--) *q++ = *r++; return p; }",
             "void __chkstk(void) {}"]
    names = []
    for i in range(count):
        # Every fourth function calls nothing, the others only the three before them: every call returns soon.
        parts.append(f"__declspec(dllexport) __declspec(noinline) int f{i}(int a, int b, int c, int d) {{\n"
                     f"{make_body(rng, names[-3:] if i % 4 else [])}\n}}")
        names.append(f"f{i}")
    return "\n".join([*parts, "int entry(void) { return 1; }", ""])


def main():
    test, words = sys.argv[1], [int(word) for word in sys.argv[2:]]
    seed, count = words[0] if words else 1, words[1] if len(words) > 1 else 150
    seed = seed or random.SystemRandom().randrange(2**32)
    missing = oracle.missing_tool()
    if missing:
        print(f"1..0 # SKIP {missing} is not installed")
        return 77
    print(f"# seed {seed}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder, "moved")
        for level in LEVELS:
            base.with_suffix(".c").write_text(make_source(random.Random(seed), count), encoding="utf-8")
            oracle.output("clang", "--driver-mode=cl", f"--target={oracle.TARGETS['x64']}", level,
                          "/clang:-fno-builtin", "/GS-", "/c", base.with_suffix(".c"), f"/Fo{base}.obj")
            oracle.output("lld-link", "/dll", "/nodefaultlib", "/entry:entry", "/Brepro",
                          f"/out:{base}.dll", f"{base}.obj")
            done = subprocess.run([test, f"{base}.dll"], capture_output=True, text=True, timeout=120)
            print(f"# {level}: {done.stdout.strip()}")
            if done.returncode == 77:
                return 77
            failed += done.returncode != 0
    print(f"1..1\n{'not ' if failed else ''}ok 1 pe_moved")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
