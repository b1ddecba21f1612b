# SPDX-License-Identifier: MIT
"""Convert text between Python and C: paths, lists of globs, consecutive strings, readable names."""
from __future__ import annotations

import ctypes
import logging
import os
from ctypes import c_char_p
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._errors import decode
from ._native import lib

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Globs = Union[None, str, Sequence[str]]

MAX_NAME_BYTES = 1 << 19


def encode(text: str) -> bytes:
    """The inverse of decode()."""
    return text.encode("utf-8", "surrogateescape")


def path_bytes(path: PathLike) -> bytes:
    return os.fsencode(path)


def path_or_none(path: Optional[PathLike]) -> Optional[bytes]:
    return None if path is None else os.fsencode(path)


def glob_list(globs: Globs) -> List[bytes]:
    """None, one glob or several globs, as a list of bytes."""
    if globs is None:
        return []
    texts = [globs] if isinstance(globs, str) else list(globs)
    return [encode(text) for text in texts]


def c_texts(texts: Sequence[bytes]) -> Any:
    """A C array of strings, or None for an empty list.  The caller keeps it while C reads it."""
    return (c_char_p * len(texts))(*texts) if texts else None


def split_names(address: Optional[int], count: int) -> Tuple[str, ...]:
    """Read at most `count` strings that follow each other at address, each terminated by NUL."""
    names: List[str] = []
    while address and len(names) < count:
        text = ctypes.string_at(address)
        if not text:
            break
        names.append(decode(text))
        address += len(text) + 1
    return tuple(names)


def demangle(mangled: str) -> str:
    """The readable form of a C++ name; any other name is returned unchanged."""
    name, out_bytes = encode(mangled), 1024
    while name and out_bytes <= MAX_NAME_BYTES:
        out = ctypes.create_string_buffer(out_bytes)
        if lib.hotfn_demangle(name, out, out_bytes):
            return decode(out.value)
        out_bytes *= 8
    return mangled


LOG_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}  # HOTFN_LOG_*
logger = logging.getLogger("hotfn")
logger.addHandler(logging.NullHandler())


def log_message(level: int, text: bytes) -> None:
    logger.log(LOG_LEVELS.get(level, logging.DEBUG), "%s", decode(text))


@s.LogFn
def log_callback(_user: Any, level: int, text: bytes) -> None:
    log_message(level, text)


def env() -> s.Env:
    """The environment of calls that create an object: messages are passed to the logger "hotfn"."""
    return s.Env(log_fn=log_callback)


def silent_env() -> s.Env:
    """The same without messages, for objects that hook this process: they report some while the loader's lock is
    held, and a callback would wait for a thread that has Python's lock and waits for the loader's."""
    return s.Env()
