#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a header with the constants of a C file (offsets.c): gen_offsets.py INPUT OUTPUT COMPILER..."""
import re
import subprocess
import sys

source, header, *compiler = sys.argv[1:]
assembly = subprocess.run([*compiler, "-S", "-o", "-", source], stdout=subprocess.PIPE, text=True, check=True).stdout
constants = re.findall(r'"->(\w+) (-?\d+)"', assembly)
if not constants:
    sys.exit(f"{source}: no constants")
with open(header, "w", encoding="utf-8") as out:
    out.write("/* Made by gen_offsets.py. */\n")
    out.writelines(f"#define {name} {value}\n" for name, value in constants)
