# SPDX-License-Identifier: MIT
"""Functions are replaced and filtered from Python."""
import ctypes
import threading

import pytest

import hotfn


@pytest.fixture
def libc():
    library = ctypes.CDLL(None)
    library.toupper.argtypes = [ctypes.c_int]
    library.toupper.restype = ctypes.c_int
    library.labs.argtypes = [ctypes.c_long]
    library.labs.restype = ctypes.c_long
    return library


def test_a_replacement_calls_the_original(libc):
    with hotfn.Hooks() as hooks:
        original = hooks.replace(libc.toupper, lambda original, c: original(c) + 1000)
        assert libc.toupper(ord("a")) == ord("A") + 1000
        assert original(ord("b")) == ord("B")
    assert libc.toupper(ord("a")) == ord("A")
    assert original(ord("b")) == ord("B")


def test_an_address_needs_a_prototype(libc):
    address = ctypes.cast(libc.labs, ctypes.c_void_p).value
    with hotfn.Hooks() as hooks:
        with pytest.raises(ValueError, match="give its prototype"):
            hooks.replace(address, lambda original, c: c)
        hooks.replace(address, lambda original, c: 5 - original(c), ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long))
        assert libc.labs(-3) == 2
    assert libc.labs(-3) == 3


def test_a_filter_answers_or_lets_pass(libc):
    seen = []

    def decide(call):
        value = ctypes.c_long(call.argument(0)).value
        seen.append(value)
        return True if value < 0 else call.answer(-1)

    with hotfn.Hooks() as hooks:
        hooks.filter(libc.labs, decide)
        assert (libc.labs(-3), libc.labs(4)) == (3, -1)
    assert seen == [-3, 4] and libc.labs(4) == 4


def test_other_threads_reach_the_replacement(libc):
    results = []
    with hotfn.Hooks() as hooks:
        hooks.replace(libc.toupper, lambda original, c: original(c) + 1)
        thread = threading.Thread(target=lambda: results.append(libc.toupper(ord("q"))))
        thread.start()
        thread.join()
    assert results == [ord("Q") + 1]


def test_errors_say_what_to_do(libc):
    with hotfn.Hooks() as hooks:
        with pytest.raises(hotfn.NotFoundError, match="no loaded module"):
            hooks.replace(4096, lambda original: 0, ctypes.CFUNCTYPE(ctypes.c_int))
        with pytest.raises(hotfn.NotFoundError, match="no function begins at"):
            address = ctypes.cast(libc.toupper, ctypes.c_void_p).value + 1
            hooks.replace(address, lambda original: 0, ctypes.CFUNCTYPE(ctypes.c_int))
