#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read the exported JSON and CSV with Python's own modules, and validate the JSON against its schema.

    check_formats.py PROGRAM    (export_hostile)
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", pathlib.Path(__file__).parents[3]))
TOP = 2**64 - 1
NAMES = [b"plain", b'quote"back\\slash', b"comma,semicolon;", b"line\nfeed\r\ntab\t",
         b"escape\033[31mred", b"c1\xc2\x9b31m", b"latin1 \xe9\xe8",
         "utf8 \u00e9 \u20ac \U0001f600".encode(), b"overlong \xc0\x80 \xe0\x80\x80",
         b"surrogate \xed\xa0\x80", b"too high \xf4\x90\x80\x80", b"cut \xe2\x82",
         b"_ZN4beta3runEv", b"", b"<script>alert(1)</script>", b"=1+1"]


def in_json(name):
    """The name as it must be in JSON: each byte that is not valid UTF-8 is replaced by U+FFFD."""
    text, at = "", 0
    while at < len(name):
        for length in (1, 2, 3, 4):
            try:
                text += name[at:at + length].decode()
                break
            except UnicodeDecodeError:
                continue
        else:
            text, length = text + "\ufffd", 1
        at += length
    return text


def check_json(text):
    report = json.loads(text)
    functions = {function["rva"]: function for function in report["functions"]}
    assert len(functions) == len(NAMES) + 1, len(functions)
    for i, name in enumerate(NAMES):
        function = functions[0x1000 + 16 * i]
        assert function["name"] == in_json(name), (function["name"], name)
        assert function["calls"] == (TOP if i + 1 == len(NAMES) else i), function
    assert functions[0x1000]["names"] == ["plain", "alias one", 'alias "two"']
    assert functions[0x10d0]["display"].endswith("+0x10d0")
    refused = functions[0x9000]
    assert refused["calls"] is None and refused["state"] == "refused", refused
    assert refused["reason"] == "too-short"
    calls = [function["calls"] for function in report["functions"]]
    assert calls[:-1] == sorted(calls[:-1], reverse=True) and calls[-1] is None, calls
    assert report["modules"][0]["note"] == 'a "note"\n'
    check_schema(report)


def check_schema(report):
    try:
        import jsonschema
    except ImportError:
        print("no jsonschema: the schema was not checked")
        return
    schema = json.loads((ROOT / "docs/report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema)


def check_csv(data):
    assert data.count(b"\r\n") >= len(NAMES) + 2
    text = data.decode("latin-1")  # names are not always UTF-8; this keeps their bytes
    rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    assert len(rows) == len(NAMES) + 1, len(rows)
    by_rva = {int(row["rva"]): row for row in rows}
    for i, name in enumerate(NAMES):
        row = by_rva[0x1000 + 16 * i]
        assert row["name"].encode("latin-1") == name, (row["name"], name)
        assert row["calls"] == str(TOP if i + 1 == len(NAMES) else i), row
    assert by_rva[0x9000]["calls"] == "" and by_rva[0x9000]["reason"] == "too-short"
    assert None not in rows[0] and None not in rows[0].values()


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        check_json((pathlib.Path(folder) / "hostile.json").read_bytes())
        check_csv((pathlib.Path(folder) / "hostile.csv").read_bytes())
    print("the JSON and the CSV have the contents of the record")


if __name__ == "__main__":
    main()
