# SPDX-License-Identifier: MIT
"""The declarations of _native.py match the headers, and a failed import reports each path that was
tried."""
import ctypes
import os
import re
import shutil
import subprocess
import sys

import pytest
import tree  # tests/abi/tree.py
from conftest import ROOT

from hotfn import _native
from hotfn import _structs as s

NUMBERS = {"hotfn_status": ctypes.c_int32, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
           "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double}
CALLBACKS = {"hotfn_refused_fn": s.RefusedFn, "hotfn_stub_fn": s.StubFn, "hotfn_write_fn": s.WriteFn,
             "hotfn_hook_filter_fn": s.FilterFn, "hotfn_attach_check_fn": s.AttachCheckFn, "hotfn_listener_fn": s.ListenerFn,
             "hotfn_code": ctypes.c_void_p}
POINTERS = {"char": (ctypes.c_char_p, ctypes.POINTER(ctypes.c_char)), "void": (ctypes.c_void_p,),
            "uint8_t": (ctypes.POINTER(ctypes.c_uint8), ctypes.c_void_p),
            "uint32_t": (ctypes.POINTER(ctypes.c_uint32),),
            "uint64_t": (ctypes.POINTER(ctypes.c_uint64),), "hotfn_code": (ctypes.POINTER(ctypes.c_void_p),)}
TEXTS = ctypes.POINTER(ctypes.c_char_p)


def listed_names():
    lines = (ROOT / "src/api.list").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def declared():
    """All calls of the public headers as C text: {name: (result, [parameter, ...])}."""
    found = {}
    for header in sorted((ROOT / "include/hotfn").rglob("*.h")):
        code = tree.without_comments(header.read_text())
        for result, name, parameters in re.findall(
                r"HOTFN_API\s+([^;{]*?)(hotfn_\w+)\s*\(([^;]*)\)\s*;", code):
            parts = [part.strip() for part in parameters.split(",")]
            found[name] = (result.strip(), [] if parts == ["void"] else parts)
    return found


def matching_types(text, named):
    """The ctypes that match a C type; a parameter is `named`: its text ends with its name."""
    words = re.sub(r"\b(const|struct)\b", " ", text).replace("*", " * ").split()
    stars = words.count("*")
    words = [word for word in words if word != "*"]
    base = words[0] if not named or len(words) > 1 else words[-1]
    structs = s.all_structs()
    if stars == 0:
        return (None,) if base == "void" else (CALLBACKS.get(base, NUMBERS.get(base)),)
    if stars == 2:
        return (TEXTS,) if base == "char" else (ctypes.POINTER(ctypes.c_void_p),)
    if base in structs:
        return (ctypes.POINTER(structs[base]),)
    return POINTERS.get(base, (ctypes.c_void_p,))


def test_every_exported_function_is_declared():
    assert sorted(_native.PROTOTYPES) == sorted(listed_names())
    for name in listed_names():
        function = getattr(_native.lib, name)
        assert function.argtypes is not None
        assert (function.restype, list(function.argtypes)) == _native.PROTOTYPES[name]


@pytest.mark.parametrize("name", listed_names())
def test_declaration_matches_the_header(name):
    result, parameters = declared()[name]
    restype, argtypes = _native.PROTOTYPES[name]
    assert restype in matching_types(result, named=False), result
    assert len(argtypes) == len(parameters), parameters
    for argtype, parameter in zip(argtypes, parameters):
        assert argtype in matching_types(parameter, named=True), parameter


def import_with(library, **more):
    env = {**os.environ, "HOTFN_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "bindings/python"),
           "PYTHONDONTWRITEBYTECODE": "1", **more}
    return subprocess.run([sys.executable, "-c", "import hotfn; print(hotfn.__version__)"],
                          capture_output=True, text=True, env=env)


def test_import_error_names_the_missing_file(tmp_path):
    done = import_with(tmp_path / "nowhere.so")
    assert done.returncode == 1
    assert "ImportError" in done.stderr and str(tmp_path / "nowhere.so") in done.stderr


def test_import_error_names_a_library_that_is_not_libhotfn(target_path):
    done = import_with(target_path)
    assert done.returncode == 1
    assert "not libhotfn" in done.stderr and str(target_path) in done.stderr


def test_import_error_lists_every_path_that_was_tried(tmp_path):
    done = import_with("", LD_LIBRARY_PATH=str(tmp_path))
    if done.returncode == 0:
        pytest.skip("libhotfn is installed, so the import succeeds")
    for name in _native.library_names():
        assert os.path.join(os.path.dirname(_native.__file__), name) in done.stderr


def other_library(compiler, folder, body):
    source, library = folder / "other.c", folder / "libother.so"
    source.write_text(body)
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def test_import_error_names_the_abi_of_another_version(compiler, tmp_path):
    done = import_with(other_library(compiler, tmp_path, "int hotfn_get_abi_version(void) { return 99; }"))
    assert "ABI version is 99, this package needs 1" in done.stderr


def test_import_error_names_a_missing_function(compiler, tmp_path):
    done = import_with(other_library(compiler, tmp_path, "int hotfn_get_abi_version(void) { return 1; }"))
    assert "lacks hotfn_status_get_name" in done.stderr


def test_import_error_names_a_struct_of_another_size(compiler, tmp_path):
    body = "".join(f"int {name}(void) {{ return {int(name == 'hotfn_get_abi_version')}; }}\n"
                   for name in listed_names() if name != "hotfn_get_struct_bytes")
    body += "int hotfn_get_struct_bytes(const char *name) { return name[6] == 'e' && name[7] == 'r' ? 16 : 0; }\n"
    done = import_with(other_library(compiler, tmp_path, body))
    assert "its hotfn_error has 16 bytes, this package expects 784" in done.stderr


SCAN = """
import ctypes, sys
from hotfn import _native, _structs as s
out, info = ctypes.c_void_p(), s.ScanInfo()
options = s.ScanOptions(cache_folder=sys.argv[1].encode())
assert _native.lib.hotfn_scan_open(ctypes.byref(out), sys.argv[2].encode(), options, None, None) == 0
assert _native.lib.hotfn_scan_get_info(out, info) == 0
print(info.from_cache)
"""


def test_another_build_of_the_library_does_not_use_the_cache(target_path, tmp_path):
    copy = tmp_path / "libhotfn.so"
    shutil.copy(_native.lib._name, copy)
    environment = {**os.environ, "HOTFN_LIBRARY": str(copy), "PYTHONPATH": str(ROOT / "bindings/python")}

    def from_cache():
        return subprocess.run([sys.executable, "-c", SCAN, tmp_path / "cache", target_path], check=True,
                              env=environment, stdout=subprocess.PIPE, text=True).stdout.strip()

    assert [from_cache(), from_cache()] == ["0", "1"]
    os.utime(copy, (0, 0))
    assert [from_cache(), from_cache()] == ["0", "1"]


CALL_ALL_WITH_NULL = """
import ctypes, sys
from hotfn import _native
number, with_status = int(sys.argv[1]), sys.argv[2].split()
integers = (ctypes.c_int32, ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64)
for name, (_, arguments) in _native.PROTOTYPES.items():
    print(name, flush=True)
    call = getattr(_native.lib, name)
    call.argtypes = None
    result = call(*[ctypes.c_uint64(number) if a in integers else None for a in arguments])
    if name in with_status and result == 0:
        sys.exit(f"{name} accepts NULL")
"""


@pytest.mark.parametrize("number", [0, 1])
def test_null_returns_an_error_status(number):
    with_status = " ".join(name for name, (result, _) in declared().items() if result == "hotfn_status")
    done = subprocess.run([sys.executable, "-c", CALL_ALL_WITH_NULL, str(number), with_status], text=True,
                          capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")})
    last = done.stdout.split()[-1] if done.stdout else "import"
    assert done.returncode == 0, f"{last}: {done.returncode} {done.stderr}"
    assert last == list(_native.PROTOTYPES)[-1]
