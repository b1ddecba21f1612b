#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second reader of records, written from docs/man/hotfn.hfr.5 alone, must find the same calls as
hotfn.

    read_by_the_page.py PROGRAM    (export_hostile)
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

MODULES, REASONS, SLOTS, STATES, FUNCTIONS, NAMES, CELLS, PACKED = 2, 3, 4, 5, 6, 7, 8, 10
NO_SLOT = 0xffffffff
STATE_NAMES = {1: "hooked", 2: "refused", 3: "fragment", 4: "excluded"}


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def sections_of(data):
    assert data[:8] == b"\x89HFN\r\n\x1a\n" and u32(data, 8) == 0x01020304
    assert u32(data, 12) == 1 and u64(data, 56) == len(data) and u32(data, 68) == 2
    table, size, count = u32(data, 20), u32(data, 24), u32(data, 28)
    assert crc32c(data[:124] + data[table:table + size * count]) == u32(data, 124)
    assert crc32c(data[128:252]) == u32(data, 252)
    sections = {}
    for at in range(table, table + size * count, size):
        begin, length = u64(data, at + 8), u64(data, at + 16)
        sections[u32(data, at)] = data[begin:begin + length]
        assert crc32c(data[begin:begin + length]) == u32(data, at + 28)
    return sections


def uleb(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def totals_of(sections, slots):
    totals, rows, begin = [0] * slots, u32(sections[CELLS], 0), 0
    packed = sections[PACKED][8 * rows:]
    for row in range(rows):
        end, slot = u64(sections[PACKED], 8 * row), 0
        while begin < end:
            zeros, begin = uleb(packed, begin)
            count, begin = uleb(packed, begin)
            totals[slot + zeros] += count
            slot += zeros + 1
    return totals


def text_at(sections, offset):
    names = sections[NAMES]
    return names[offset:names.index(b"\0", offset)]


def functions_of(data):
    """A tuple (rva, name, number of names, state, reason, calls) for each function."""
    sections = sections_of(data)
    totals = totals_of(sections, u32(data, 148))
    for i in range(u32(data, 144)):
        function, state = 32 * i, u32(sections[STATES], 8 * i)
        slot = u32(sections[SLOTS], 4 * i)
        calls = None if slot == NO_SLOT else totals[slot]
        reason = text_at(sections, u32(sections[REASONS], 8 * (state >> 8)))
        yield (u64(sections[FUNCTIONS], function),
               text_at(sections, u32(sections[FUNCTIONS], function + 16)),
               u32(sections[FUNCTIONS], function + 20), STATE_NAMES[state & 0xff], reason.decode(),
               calls)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[1], folder], check=True)
        expected = {function["rva"]: function
                for function in json.loads((folder / "hostile.json").read_text())["functions"]}
        found = list(functions_of((folder / "hostile.hfr").read_bytes()))
    assert len(found) == len(expected)
    for rva, symbol, name_count, state, reason, calls in found:
        function = expected[rva]
        assert function["calls"] == calls and function["state"] == state, (function, calls, state)
        assert len(function["names"]) == name_count and function["reason"] == reason, function
        if symbol.isascii():
            assert function["name"] == symbol.decode(), (function, symbol)
    print(f"{len(found)} functions read as the manual page describes")


if __name__ == "__main__":
    main()
