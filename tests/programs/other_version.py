# SPDX-License-Identifier: MIT
"""Changes a record so that another version of hotfn seems to have written its times."""
import struct

TIME_HEADER, TYPE, OFFSET, BYTES, CRC = 11, 0, 8, 16, 28    # of a table entry: src/records/layout.h
STATIC_CRC_AT, VERSION_AT = 124, 104                       # of a record; of hfn_time_header


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def with_version(whole, version):
    """(the record with the times of another version, the offset of the times)"""
    data = bytearray(whole)
    table, step, count = struct.unpack_from("<III", data, 20)
    for entry in range(table, table + step * count, step):
        if struct.unpack_from("<I", data, entry + TYPE)[0] == TIME_HEADER:
            at, size = struct.unpack_from("<QQ", data, entry + OFFSET)
            assert struct.unpack_from("<I", data, at + VERSION_AT)[0] == 4
            struct.pack_into("<I", data, at + VERSION_AT, version)
            struct.pack_into("<I", data, entry + CRC, crc32c(data[at:at + size]))
            struct.pack_into("<I", data, STATIC_CRC_AT,
                             crc32c(data[:STATIC_CRC_AT] + data[table:table + step * count]))
            return bytes(data), at
    raise AssertionError("no times")
