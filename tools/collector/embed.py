#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the files of the web page as C arrays.

    embed.py OUTPUT PATH=FILE[,FILE...] ...     several files are joined; openapi=FILE is the OpenAPI file
"""
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".json": "application/json"}


def array(name, data):
    lines = [", ".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f"static const unsigned char {name}[] = {{\n    " + ",\n    ".join(lines) + "\n};\n"


def main():
    arrays, rows, openapi = [], [], None
    for number, argument in enumerate(sys.argv[2:]):
        path, _, names = argument.partition("=")
        files = [pathlib.Path(name) for name in names.split(",")]
        data = b"".join(file.read_bytes() for file in files)
        arrays.append(array(f"file_{number}", data))
        row = f'{{ "{path}", "{TYPES[files[-1].suffix]}", file_{number}, sizeof file_{number} }}'
        if path == "openapi":
            openapi = row
        else:
            rows.append(row)
    text = ('/* Made by tools/collector/embed.py. */\n#include "web.h"\n\n' + "".join(arrays)
            + "const web_file web_files[] = {\n    " + ",\n    ".join(rows)
            + "\n};\nconst size_t web_file_count = sizeof web_files / sizeof web_files[0];\n"
            + f"const web_file web_openapi = {openapi};\n")
    pathlib.Path(sys.argv[1]).write_text(text, encoding="ascii")


main()
