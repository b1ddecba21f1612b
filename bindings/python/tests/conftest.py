# SPDX-License-Identifier: MIT
"""Fixtures of the tests: the folder of the project, and a small library whose calls are counted.

HOTFN_LIBRARY is the path of the library under test; scripts/test sets it.
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", pathlib.Path(__file__).parents[3]))
sys.path[:0] = [str(ROOT / "bindings/python"), str(ROOT / "tests/abi")]

TARGET_SOURCE = r"""
/* fib(n) makes 2*F(n+1)-1 calls of fib; walk(n) calls hop n times. */
#include <stdint.h>
#define KEPT __attribute__((noinline, noclone, used))
static volatile uint64_t sink;
KEPT uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KEPT void hop(uint64_t i) { sink += i * i; sink ^= i; }
KEPT void walk(uint64_t n) { for (uint64_t i = 0; i < n; i++) hop(i); }
void never_called(void) { sink = 7; sink++; }
"""


@pytest.fixture(scope="session")
def compiler():
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if not found:
        pytest.skip("no C compiler")
    return found


@pytest.fixture(scope="session")
def target_path(compiler, tmp_path_factory):
    """A shared library with fib, hop, walk and never_called."""
    folder = tmp_path_factory.mktemp("target")
    source, library = folder / "target.c", folder / "libhotfn-target.so"
    source.write_text(TARGET_SOURCE)
    subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", "-shared", "-fPIC", source,
                    "-o", library], check=True)
    return library


@pytest.fixture(scope="session")
def target(target_path):
    """The target library, loaded into this process."""
    library = ctypes.CDLL(str(target_path))
    library.fib.restype, library.fib.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
    library.walk.restype, library.walk.argtypes = None, [ctypes.c_uint64]
    return library


@pytest.fixture
def counted(target):
    """A closed session over the target library: fib(15) and walk(1000) were called."""
    import hotfn
    with hotfn.Session(modules="libhotfn-target.so") as session:
        assert target.fib(15) == 610
        target.walk(1000)
    return session


FIB_15_CALLS = 1973  # 2 * F(16) - 1
