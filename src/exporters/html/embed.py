#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the page as three C arrays: the text before the first part of the data of a report, the text
between it and the other parts, and the text after them.

    embed.py page.html style.css SCRIPT ... OUTPUT
"""
import pathlib
import sys


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    body = ",\n    ".join(lines)
    return (f"const char {name}[] = {{\n    {body}, 0\n}};\n"
            f"const size_t {name}_bytes = sizeof {name} - 1;\n")


page, style, *scripts = (pathlib.Path(p).read_text(encoding="utf-8") for p in sys.argv[1:-1])
script = "".join(scripts)
assert "</script" not in script and "</style" not in style
page = page.replace("@STYLE@", style.rstrip()).replace("@SCRIPT@", script.rstrip())
head, rest = page.split("@DATA@\n")
script, tail = rest.split("@PARTS@\n")
assert all(ord(c) < 128 for c in page), "ASCII only: a C char may be signed"
pathlib.Path(sys.argv[-1]).write_text(
    "/* Made by src/exporters/html/embed.py. */\n#include \"exporters/html/page.h\"\n\n"
    + array("hfn_html_head", head) + array("hfn_html_script", script) + array("hfn_html_tail", tail), encoding="ascii")
