#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks each function of src/verdicts/standard.c with the system's headers: all of its arguments are passed in
registers, and it is not variadic."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LISTED = re.findall(r'"(\w+)",', (pathlib.Path(__file__).resolve().parents[2] / "src/verdicts/standard.c")
                    .read_text().partition("names[] = {")[2].partition("};")[0])
HEADERS = """ctype dirent errno fcntl locale malloc math poll pthread setjmp signal stdio stdlib string strings
 time unistd wchar sys/mman sys/select sys/socket sys/stat sys/time sys/wait""".split()
REGISTERS = 6
# Itanium C++ ABI, 3.3.2 and 3.3.6; mangled names contain their parameters.
CXX_ABI = {"__cxa_atexit": 3, "__cxa_guard_acquire": 1, "__cxa_guard_release": 1, "__cxa_guard_abort": 1}
ALLOCATION = re.compile(r"_Z(?:n[aw]m|d[al]Pv)m?(?:St11align_val_t|RKSt9nothrow_t)*$")


def declared():
    """{name: its parameters as text, from gcc's reading of the headers}"""
    with tempfile.TemporaryDirectory() as folder:
        source, listing = pathlib.Path(folder, "all.c"), pathlib.Path(folder, "all.x")
        source.write_text("#define _GNU_SOURCE\n" + "".join(f"#include <{h}.h>\n" for h in HEADERS))
        subprocess.run(["gcc", "-fno-builtin", "-aux-info", listing, "-c", "-o", "/dev/null", source],
                       check=True)
        return dict(re.findall(r"[ *](\w+) \(([^;]*)\);", listing.read_text()))


def passes_on_stack(parameter):
    by_value = "*" not in parameter
    return by_value and ("long double" in parameter or "struct " in parameter or "union " in parameter)


def find_fault(name, prototypes):
    """Why calls of the function may pass arguments on the stack; None if they cannot."""
    if ALLOCATION.match(name) or CXX_ABI.get(name, REGISTERS + 1) <= REGISTERS:
        return None
    if name not in prototypes:
        return "not declared"
    without_callbacks = re.sub(r"\([^()]*\)", "*", prototypes[name])   # the parameters of callbacks are removed
    parameters = without_callbacks.split(",")
    if "..." in prototypes[name]:
        return "takes variable arguments"
    if len(parameters) > REGISTERS or any(map(passes_on_stack, parameters)):
        return prototypes[name]
    return None


def main():
    if not shutil.which("gcc"):
        print("no gcc on this system")
        return 77
    prototypes = declared()
    wrong = {name: why for name in LISTED if (why := find_fault(name, prototypes))}
    unsorted = [b for a, b in zip(LISTED, LISTED[1:]) if a >= b]
    print("1..2")
    print(f"{'not ' if wrong or len(LISTED) < 100 else ''}ok 1 headers declare all {len(LISTED)} with "
          f"register arguments # {wrong}")
    print(f"{'not ' if unsorted else ''}ok 2 they are sorted, as the binary search requires # {unsorted}")
    return 1 if wrong or unsorted or len(LISTED) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
