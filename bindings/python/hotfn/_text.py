# SPDX-License-Identifier: MIT
"""Text between Python and C: paths, lists of globs, several strings behind each other, and
readable names for mangled ones (by the C++ library's own demangler, where the system has one)."""
from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_void_p
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._errors import decode

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Globs = Union[None, str, Sequence[str]]

LONGEST_NAME_BYTES = 64 * 1024


def path_bytes(path: PathLike) -> bytes:
    return os.fsencode(path)


def glob_list(globs: Globs) -> List[bytes]:
    """None, one glob or several, as bytes."""
    if globs is None:
        return []
    texts = [globs] if isinstance(globs, str) else list(globs)
    return [text.encode("utf-8", "surrogateescape") for text in texts]


def c_texts(texts: Sequence[bytes]) -> Any:
    """A C array of strings, or None for an empty list.  The caller keeps it while C reads it."""
    return (c_char_p * len(texts))(*texts) if texts else None


def split_names(address: Optional[int], count: int) -> Tuple[str, ...]:
    """`count` strings that lie behind each other at address, each ended by NUL."""
    names: List[str] = []
    while address and len(names) < count:
        text = ctypes.string_at(address)
        if not text:
            break
        names.append(decode(text))
        address += len(text) + 1
    return tuple(names)


@functools.lru_cache(maxsize=None)
def _cxa_demangle() -> Any:
    """__cxa_demangle and free, or None."""
    try:
        cxx, c = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
        call = cxx["__cxa_demangle"]
    except (OSError, AttributeError):
        return None
    call.restype = c_void_p
    call.argtypes = [c_char_p, c_void_p, c_void_p, POINTER(c_int)]
    free = c["free"]
    free.restype, free.argtypes = None, [c_void_p]
    return call, free


def demangle_bytes(mangled: bytes) -> Optional[bytes]:
    """The readable form, or None if it is no mangled C++ name."""
    if not mangled.startswith(b"_Z") or len(mangled) > LONGEST_NAME_BYTES:
        return None
    calls = _cxa_demangle()
    if calls is None:
        return None
    status = c_int(0)
    address = calls[0](mangled, None, None, ctypes.byref(status))
    if not address:
        return None
    text = ctypes.string_at(address)
    calls[1](address)
    return text


def demangle(mangled: str) -> str:
    """The readable form of a C++ name, any other name as it is."""
    text = demangle_bytes(mangled.encode("utf-8", "surrogateescape"))
    return mangled if text is None else decode(text)


def _demangle_for_c(_user: Any, mangled: bytes, out: Any, out_bytes: int) -> int:
    text = demangle_bytes(mangled)
    if text is None or len(text) >= out_bytes:
        return 0
    ctypes.memmove(out, text + b"\0", len(text) + 1)
    return len(text)


_demangle_fn = s.DemangleFn(_demangle_for_c)  # lives as long as the module: C may keep it


def env() -> s.Env:
    """What every create call takes: defaults, and our demangler."""
    return s.Env(demangle_fn=_demangle_fn)


