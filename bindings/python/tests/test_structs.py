# SPDX-License-Identifier: MIT
"""The structs of _structs.py have the same fields, offsets and sizes as in C."""
import ctypes
import keyword

import layout  # tests/abi/layout.py
import pytest

from hotfn import _native
from hotfn import _structs as s


@pytest.fixture(scope="module")
def c_lines(compiler):
    return layout.compiled_layout(compiler)


def python_lines():
    for name, struct in s.all_structs().items():
        yield f"{name} {ctypes.sizeof(struct)}"
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            if keyword.iskeyword(field.rstrip("_")):   # from_, because `from` is a keyword
                field = field.rstrip("_")
            yield f"{name}.{field} {place.offset} {place.size}"


def test_structs_have_the_layout_of_c(c_lines):
    assert sorted(python_lines()) == sorted(c_lines)


def test_library_has_the_same_sizes():
    for name, struct in s.all_structs().items():
        assert _native.lib.hotfn_get_struct_bytes(name.encode()) == ctypes.sizeof(struct), name


def test_library_has_no_size_of_an_unknown_struct():
    assert _native.lib.hotfn_get_struct_bytes(b"hotfn_nothing") == 0


def test_sized_structs_begin_with_their_size():
    for struct in s.all_structs().values():
        if issubclass(struct, s.Sized):
            assert struct().size == ctypes.sizeof(struct)
