#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Assembles the machine code of a C test at build time.

    assemble.py OUTPUT.h TEST.c MACRO=BITS...

The first string literal in each call of a MACRO is x86 assembly, in Intel syntax and with `;` between
instructions, for BITS (32 or 64).  OUTPUT.h gets a table from these texts to their bytes, which assembled.h
searches.  Adjacent literals are joined, and names defined as string literals are replaced.  Needs as, nm and
objcopy of binutils.
"""
import ast
import pathlib
import re
import subprocess
import sys
import tempfile

LITERAL = r'"(?:[^"\\]|\\.)*"'
DEFINITION = re.compile(rf"^#define (\w+) +((?:{LITERAL}|\w+|\s)+?)(?:\s*/\*.*)?$", re.MULTILINE)


def join_literals(text, names):
    """The string that a sequence of literals and names makes; None if it is no such sequence."""
    joined = ""
    for part in re.findall(rf"{LITERAL}|\w+|\S", text):
        if part.startswith('"'):
            joined += ast.literal_eval(part)
        elif part in names:
            joined += names[part]
        else:
            return None
    return joined


def find_names(source):
    names = {}
    for name, value in DEFINITION.findall(source):
        joined = join_literals(value, names)
        if joined is not None:
            names[name] = joined
    return names


def find_texts(source, macro, names):
    """The first literal of each call of macro."""
    words = "|".join([LITERAL, r"\s", *(rf"\b{name}\b" for name in names)])
    for match in re.finditer(rf"(?<!define )\b{macro}\(\s*(?:[&\w]+,\s*)*?((?:{words})+)[,)]", source):
        text = join_literals(match[1], names)
        if text:
            yield text


def assemble(texts, bits, folder):
    """The bytes of each text."""
    lines = [".intel_syntax noprefix"]
    for i, text in enumerate(texts):
        lines += [f"code_{i}:", *(part.strip() for part in text.split(";"))]
    source, binary = folder / "code.s", folder / "code.bin"
    source.write_text("\n".join([*lines, f"code_{len(texts)}:", ""]), encoding="utf-8")
    subprocess.run(["as", "--no-warn", f"--{bits}", "-o", folder / "code.o", source], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", folder / "code.o", binary], check=True)
    symbols = subprocess.run(["nm", folder / "code.o"], check=True, capture_output=True, text=True).stdout
    offsets = {int(i): int(offset, 16) for offset, i in re.findall(r"(\w+) t code_(\d+)", symbols)}
    code = binary.read_bytes()
    return [code[offsets[i]:offsets[i + 1]] for i in range(len(texts))]


def rows_of(source, macros, folder):
    names = find_names(source)
    for bits in sorted({bits for _, bits in macros}):
        texts = sorted({text for macro, width in macros if width == bits for text in find_texts(source, macro, names)})
        for text, code in zip(texts, assemble(texts, bits, folder)):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            yield f'    {{ {bits}, {len(code)}, "{quoted}", {{ {", ".join(f"0x{byte:02x}" for byte in code)} }} }},'


def main():
    output, test, *words = sys.argv[1:]
    macros = [tuple(word.split("=")) for word in words]
    source = pathlib.Path(test).read_text(encoding="utf-8").replace("\\\n", "")
    with tempfile.TemporaryDirectory() as folder:
        rows = list(rows_of(source, macros, pathlib.Path(folder)))
    pathlib.Path(output).write_text("\n".join(
        [f"/* Made by assemble.py from {pathlib.Path(test).name}. */", '#include "assembled.h"', "",
         "static const assembled_code assembled_codes[] = {", *rows, "};", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
