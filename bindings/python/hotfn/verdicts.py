# SPDX-License-Identifier: MIT
"""Scan a file: which functions can be hooked, by which strategy, and why others cannot.  No process
is needed."""
from __future__ import annotations

import ctypes
import dataclasses
from ctypes import c_void_p
from typing import Optional, Sequence, Tuple

from . import _structs as s
from ._errors import check, decode
from ._functions import Named, read_fields
from ._native import lib
from ._text import PathLike, c_texts, env, path_bytes, path_or_none

# The states of functions in a record; in a scan a hookable function has the state "waiting" (5).
VERDICTS = {1: "hookable", 5: "hookable", 2: "refused", 3: "fragment", 4: "excluded"}


@dataclasses.dataclass(frozen=True)
class Verdict(Named):
    """A function of a file: whether it can be hooked, and how or why not."""
    rva: int                 # bytes from the image's lowest load address
    size: int
    name: str                # the linker's (mangled) name
    names: Tuple[str, ...]   # all names of this address, the best one first
    verdict: str             # hookable, refused, fragment
    strategy: Optional[str]
    reason: Optional[str]
    reason_text: Optional[str]
    offset: Optional[int]    # of the reason, in bytes from the entry


@dataclasses.dataclass(frozen=True)
class Scan:
    """The result of hotfn.scan(): a copy, which need not be closed."""
    path: str
    machine: str
    id: bytes
    functions: Tuple[Verdict, ...] = dataclasses.field(repr=False)
    hookable_count: int
    refused_count: int
    fragment_count: int
    from_cache: bool

    def refused(self) -> Tuple[Verdict, ...]:
        """The functions that cannot be hooked, each with its reason."""
        return tuple(function for function in self.functions if function.verdict == "refused")


def _read_verdict(raw: s.RecordFunction) -> Verdict:
    return Verdict(verdict=VERDICTS.get(raw.state, str(raw.state)), **read_fields(raw))


def _read_scan(handle: c_void_p) -> Scan:
    info, raw = s.ScanInfo(), s.RecordFunction()
    check(lib.hotfn_scan_get_info(handle, info))
    functions = []
    for index in range(info.function_count):
        check(lib.hotfn_scan_get_function(handle, index, raw))
        functions.append(_read_verdict(raw))
    return Scan(path=decode(info.path), machine=decode(lib.hotfn_machine_get_name(info.machine)),
                id=bytes(info.id)[:info.id_bytes], functions=tuple(functions),
                hookable_count=info.hookable_count, refused_count=info.refused_count,
                fragment_count=info.fragment_count, from_cache=bool(info.from_cache))


def scan(path: PathLike, *, symbol_dirs: Sequence[PathLike] = (), threads: int = 0,
         cache_folder: Optional[PathLike] = None, map_path: Optional[PathLike] = None) -> Scan:
    """Scan the executable or library at path.

    symbol_dirs   additional folders with separate debug files
    threads       number of threads that scan; 0: one per CPU
    cache_folder  folder that keeps the scan for the next call (default: no cache)
    map_path      linker map of the same build with the function names (default: the symbols of the
                  file)
    """
    dirs = [path_bytes(folder) for folder in symbol_dirs]
    options = s.ScanOptions(threads=threads, symbol_dir_count=len(dirs), symbol_dirs=c_texts(dirs),
                            cache_folder=path_or_none(cache_folder),
                            map_path=path_or_none(map_path))
    out, error = c_void_p(), s.Error()
    check(lib.hotfn_scan_open(ctypes.byref(out), path_bytes(path), options, env(), error), error)
    try:
        return _read_scan(out)
    finally:
        lib.hotfn_scan_close(out)
