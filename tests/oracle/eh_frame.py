# SPDX-License-Identifier: MIT
"""A small reader of .eh_frame and .gcc_except_table for the oracles.

Returns the ranges that unwind information covers, whether a range begins like a function (CFA =
rsp+8), and the landing pads of exceptions.  Supports the encodings that gcc, clang and rustc write
for x86-64, i386 and AArch64, and raises on others.  Sources: LSB 5.0, .eh_frame; DWARF 5, 6.4; Itanium C++ ABI.
"""
import dataclasses
import struct

import elf_tables

OMIT = 0xff
FORMS = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0a: "<h", 0x0b: "<i", 0x0c: "<q"}


@dataclasses.dataclass
class Range:
    """One FDE."""
    start: int
    size: int
    lsda: int = 0                     # address of its exception table, 0 if none
    begins_in_frame: bool = False     # its first CFA is not rsp+8: no function begins here


class Cursor:
    """Reads forward through the bytes at an address."""

    def __init__(self, data, address, position=0):
        self.data, self.address, self.position = data, address, position

    def fixed(self, form):
        value, = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return value

    def uleb(self):
        value = shift = 0
        while True:
            byte = self.fixed("<B")
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def sleb(self):
        start = self.position
        value = self.uleb()
        bits = 7 * (self.position - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def string(self):
        end = self.data.index(0, self.position)
        text = self.data[self.position:end].decode("ascii")
        self.position = end + 1
        return text

    def encoded(self, encoding):
        """A DW_EH_PE_* value; indirect values are not dereferenced."""
        if encoding == OMIT:
            return 0
        here = self.address + self.position
        form = encoding & 0x0f
        if form == 0x01:
            value = self.uleb()
        elif form == 0x09:
            value = self.sleb()
        else:
            value = self.fixed(FORMS[form])
        if encoding & 0x70 == 0x10 and value:
            value += here
        return value & (1 << 64) - 1


def section(path, name):
    """(address, bytes) of a section, or None."""
    for line in elf_tables.output_of("readelf", "-SW", path).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 6 and fields[1] == name and fields[2] != "NOBITS":
            address, offset, size = (int(field, 16) for field in fields[3:6])
            with open(path, "rb") as image:
                image.seek(offset)
                return address, image.read(size)
    return None


def read_cie(cursor, end):
    """(pointer encoding, LSDA encoding, has augmentation data, first CFA)."""
    version = cursor.fixed("<B")
    augmentation = cursor.string()
    cursor.uleb()
    cursor.sleb()
    cursor.fixed("<B") if version == 1 else cursor.uleb()
    pointer, lsda = 0x00, OMIT
    data_end = cursor.uleb() + cursor.position if augmentation.startswith("z") else 0
    for letter in augmentation:
        if letter == "R":
            pointer = cursor.fixed("<B")
        elif letter == "L":
            lsda = cursor.fixed("<B")
        elif letter == "P":
            cursor.encoded(cursor.fixed("<B"))
    cursor.position = data_end or cursor.position
    return pointer, lsda, augmentation.startswith("z"), first_cfa(cursor, end, (None, 0))


def first_cfa(cursor, end, before):
    """(register, offset) of the CFA at the first location: after the call frame instructions before
    the first advance.  register is None if the CFA is an expression.  DWARF 5, 6.4.2."""
    register, offset = before
    while cursor.position < end:
        code = cursor.fixed("<B")
        if code >> 6 == 1 or 0x01 <= code <= 0x04:      # an advance
            break
        if code == 0x0c:                                # DW_CFA_def_cfa
            register, offset = cursor.uleb(), cursor.uleb()
        elif code == 0x0d:                              # DW_CFA_def_cfa_register
            register = cursor.uleb()
        elif code == 0x0e:                              # DW_CFA_def_cfa_offset
            offset = cursor.uleb()
        elif code == 0x0f:                              # DW_CFA_def_cfa_expression
            register = None
            cursor.position += cursor.uleb()
        elif code in (0x10, 0x16):                      # an expression for a register
            cursor.uleb()
            cursor.position += cursor.uleb()
        else:
            for _ in range(2 if code in (0x05, 0x09) else code >> 6 == 2 or code in ONE_OPERAND):
                cursor.uleb()
    return register, offset


ONE_OPERAND = (0x06, 0x07, 0x08, 0x2e)   # restore_extended, undefined, same_value, args_size
AT_ENTRY = ((7, 8), (4, 4), (31, 0))     # rsp+8; i386: esp+4; AArch64: sp


def read_fde(cursor, end, cie):
    pointer, lsda_encoding, augmented, cfa = cie
    start = cursor.encoded(pointer)
    size = cursor.encoded(pointer & 0x0f)
    lsda = 0
    if augmented:
        length = cursor.uleb()
        after = cursor.position + length
        if length and lsda_encoding != OMIT:
            lsda = cursor.encoded(lsda_encoding)
        cursor.position = after
    return Range(start, size, lsda, first_cfa(cursor, end, cfa) not in AT_ENTRY)


def ranges(path):
    """All FDEs of an image."""
    found = section(path, ".eh_frame")
    if not found:
        return
    address, data = found
    cies = {}
    position = 0
    while position + 4 <= len(data):
        cursor = Cursor(data, address, position)
        length = cursor.fixed("<I")
        if length == 0xffffffff:
            length = cursor.fixed("<Q")
        body = cursor.position
        if length == 0:
            position = body
            continue
        distance = cursor.fixed("<I")
        if distance == 0:
            cies[position] = read_cie(cursor, body + length)
        else:
            yield read_fde(cursor, body + length, cies[body - distance])
        position = body + length


def landing_pads_of(table_address, data, lsda, start):
    """The landing pads of one LSDA, whose function begins at start."""
    cursor = Cursor(data, table_address, lsda - table_address)
    base_encoding = cursor.fixed("<B")
    base = start if base_encoding == OMIT else cursor.encoded(base_encoding)
    if cursor.fixed("<B") != OMIT:
        cursor.uleb()
    encoding = cursor.fixed("<B")
    end = cursor.uleb() + cursor.position
    while cursor.position < end:
        cursor.encoded(encoding)
        cursor.encoded(encoding)
        pad = cursor.encoded(encoding)
        cursor.uleb()
        if pad:
            yield base + pad


def landing_pads(path, fdes=None):
    """The addresses at which the unwinder enters code of this image."""
    found = section(path, ".gcc_except_table")
    if not found:
        return set()
    address, data = found
    pads = set()
    for fde in fdes or ranges(path):
        if address <= fde.lsda < address + len(data):
            pads.update(landing_pads_of(address, data, fde.lsda, fde.start))
    return pads
