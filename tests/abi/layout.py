#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the size of every public struct, and the offset and size of each of its fields.

    layout.py check CC LIBRARY   the compiler's layout equals layout.list, and the library's
                                 hotfn_get_struct_bytes returns the size of every struct
    layout.py write CC           replace layout.list; a line that changes breaks the ABI

layout.list has lines `struct bytes` and `struct.field offset bytes`, for 64-bit hosts (LP64 and LLP64
give the same layout, because no public struct has a long).  The only compatible change is a new field
at the end.
"""
import ctypes
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import tree

LIST = tree.ROOT / "tests/abi/layout.list"
STRUCT = re.compile(r"typedef struct (hotfn_\w+) \{(.*?)\} \1;", re.DOTALL)
FUNCTION_POINTER = re.compile(r"\(\*(\w+)\)\s*\(")


def field_names(body):
    """The names that a struct's body declares; `int a, *b, c[3]; void (*d)(void);` -> a b c d."""
    for declaration in body.split(";"):
        pointer = FUNCTION_POINTER.search(declaration)
        if pointer:
            yield pointer[1]
            continue
        for declarator in declaration.split(","):
            name = re.search(r"(\w+)\s*(?:\[\w+\]\s*)*$", declarator.strip())
            if name:
                yield name[1]


def read_structs():
    """{struct: [field, ...]} of all public headers, in the order of their declaration."""
    text = "".join((tree.ROOT / "include" / name).read_text(encoding="utf-8")
                   for name in ("hotfn.h", "hotfn/lowlevel.h"))
    found = {}
    for header in re.findall(r"#include <(hotfn/[\w/]+\.h)>", text):
        code = (tree.ROOT / "include" / header).read_text(encoding="utf-8")
        for name, body in STRUCT.findall(tree.without_comments(code)):
            found[name] = list(field_names(body))
    return found


def make_program():
    """A C program that prints the layout: one line for each struct and for each field."""
    lines = ["#include <hotfn.h>", "#include <hotfn/lowlevel.h>", "#include <stdio.h>", "int main(void)", "{"]
    for struct, fields in read_structs().items():
        lines.append(f'    printf("{struct} %zu\\n", sizeof({struct}));')
        for field in fields:
            lines.append(f'    printf("{struct}.{field} %zu %zu\\n", offsetof({struct}, {field}),'
                         f" sizeof((({struct} *)0)->{field}));")
    return "\n".join([*lines, "    return 0;", "}", ""])


def compiled_layout(compiler):
    """The compiler's layout of the public structs, as lines of layout.list."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(make_program(), encoding="utf-8")
        subprocess.run([*shlex.split(compiler), "-std=c11", "-I", tree.ROOT / "include",
                        source, "-o", binary], check=True)
        done = subprocess.run([binary], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def listed_layout():
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sizeof_problems(library):
    """Structs whose size hotfn_get_struct_bytes of the library does not return."""
    sizeof = ctypes.CDLL(library).hotfn_get_struct_bytes
    sizeof.restype, sizeof.argtypes = ctypes.c_uint32, [ctypes.c_char_p]
    for line in listed_layout():
        name, size = line.split()[0], line.split()[-1]
        if "." not in name and sizeof(name.encode()) != int(size):
            yield f"hotfn_get_struct_bytes({name}) is {sizeof(name.encode())}, but {size} in layout.list"


def check(compiler, library):
    compiled, listed = compiled_layout(compiler), listed_layout()
    problems = [f"{line}: the compiler's layout, not in layout.list"
                for line in compiled if line not in set(listed)]
    problems += [f"{line}: in layout.list, not the compiler's layout"
                 for line in listed if line not in set(compiled)]
    problems += sizeof_problems(library)
    tree.finish(problems, f"layout of {len(read_structs())} structs")


def write(compiler):
    head = ["# SPDX-License" + "-Identifier: MIT", "# Made by tests/abi/layout.py; `struct bytes` and "
            "`struct.field offset bytes`, 64-bit hosts."]
    LIST.write_text("\n".join([*head, *compiled_layout(compiler), ""]), encoding="utf-8")


if __name__ == "__main__":
    {"check": check, "write": write}[sys.argv[1]](*sys.argv[2:])
