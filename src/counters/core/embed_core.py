#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the linked core as a C array with the offsets that a launcher needs.

    embed_core.py CORE OUTPUT

The core must work at any address without changes, so relocations, thread-local variables and
references to other files are errors.
"""
import pathlib
import struct
import sys

PAGE = 4096
LOAD, TLS, FRAMES, DYNAMIC_RELOCATIONS = 1, 7, 0x6474e550, (4, 9)  # PT_LOAD, PT_TLS, PT_GNU_EH_FRAME; SHT_RELA, SHT_REL
NAMES = ("hfn_thread_row_entry", "hfn_thread_row_count_shared", "hfn_tick_enter_entry", "hfn_tick_exit_entry",
         "hfn_time_enter_sampled_entry", "hfn_time_exit_sampled_entry", "hfn_time_personality", "hfn_core_find_object",
         "hfn_core_iterate_phdr", "hfn_core_prctl", "hfn_core_syscall", "hfn_next_prctl", "hfn_next_syscall", "hfn_rows", "hfn_time", "hfn_core_word_at", "hfn_core_gs_rows", "hfn_core_frames", "hfn_core_tables")

data = pathlib.Path(sys.argv[1]).read_bytes()
assert data[:5] == b"\x7fELF\x02", "the core is not a 64-bit ELF file"
(program_at, section_at) = struct.unpack_from("<QQ", data, 32)
(program_bytes, program_count, section_bytes, section_count) = struct.unpack_from("<HHHH", data, 54)

image, data_at, frames_at = bytearray(), None, None
for i in range(program_count):
    kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
        "<IIQQQQQQ", data, program_at + i * program_bytes)
    assert kind != TLS, "the core has thread-local variables"
    if kind == FRAMES:
        frames_at = address
    if kind != LOAD or in_memory == 0:
        continue
    image.extend(bytes(max(0, address + in_memory - len(image))))
    image[address:address + in_file] = data[offset:offset + in_file]
    if flags & 2:
        assert data_at is None, "the core has two writable segments"
        data_at = address & ~(PAGE - 1)
    else:
        assert data_at is None, "the writable segment is not the last one"

sections = [struct.unpack_from("<IIQQQQIIQQ", data, section_at + i * section_bytes)
            for i in range(section_count)]
symbols = {}
for _, kind, _, _, offset, byte_count, link, _, _, entry in sections:
    assert kind not in DYNAMIC_RELOCATIONS or byte_count == 0, "the core has relocations"
    if kind == 2:  # SHT_SYMTAB
        names = sections[link][4]
        for at in range(offset, offset + byte_count, entry):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            text = data[names + name:data.index(b"\0", names + name)].decode()
            assert section != 0 or not text, f"the core refers to {text}"
            symbols[text] = value

while len(image) % PAGE:
    image.append(0)
lines = [", ".join(str(b) for b in image[i:i + 24]) for i in range(0, len(image), 24)]
body = ",\n    ".join(lines)
pathlib.Path(sys.argv[2]).write_text(
    "/* Made by src/counters/core/embed_core.py. */\n#include \"counters/core/core.h\"\n\n"
    f"static const uint8_t bytes[] = {{\n    {body}\n}};\n\n"
    f"const hfn_core_image hfn_core = {{\n    bytes, sizeof bytes, {data_at}, {frames_at},\n    " +
    ",\n    ".join(str(symbols[name]) for name in NAMES) + "\n};\n",
    encoding="ascii")
