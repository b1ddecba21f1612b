# SPDX-License-Identifier: MIT
"""One exception a status, with the file, the offset and the text that the library gave."""
from __future__ import annotations

from typing import Dict, Optional, Type

from . import _structs as s
from ._native import lib


class HotfnError(Exception):
    """A call of libhotfn failed.

    status  the number (negative); status_name its name
    file    the file it is about, or None
    offset  the file offset in bytes, or None
    text    what is wrong and what to do, one line
    """

    def __init__(self, status: int, text: str = "", file: Optional[str] = None,
                 offset: Optional[int] = None) -> None:
        self.status = status
        self.status_name: str = lib.hotfn_status_get_name(status).decode()
        self.text = text or self.status_name
        self.file = file
        self.offset = offset
        place = [part for part in (file, f"offset {offset}" if offset is not None else None) if part]
        super().__init__(": ".join([*place, self.text]))


class NoMemoryError(HotfnError, MemoryError):
    """HOTFN_E_NO_MEMORY"""


class OptionError(HotfnError, ValueError):
    """HOTFN_E_OPTION: an option this version does not know, or a bad value."""


class FileError(HotfnError):
    """HOTFN_E_IO: open, read, write or map of a file failed."""


class FormatError(HotfnError, ValueError):
    """HOTFN_E_FORMAT: the bytes are not what they should be."""


class UnsupportedError(HotfnError):
    """HOTFN_E_UNSUPPORTED: well-formed, but not served by this version."""


class NotFoundError(HotfnError, LookupError):
    """HOTFN_E_NOT_FOUND: no such function, module, section or file."""


class MismatchError(HotfnError):
    """HOTFN_E_MISMATCH: another build: ids, versions or bytes differ."""


class StateError(HotfnError, RuntimeError):
    """HOTFN_E_STATE: the call does not fit the object's state."""


class DeniedError(HotfnError):
    """HOTFN_E_DENIED: the system does not allow it."""


class LimitError(HotfnError):
    """HOTFN_E_LIMIT: a bound of the library is exceeded."""


BY_STATUS: Dict[int, Type[HotfnError]] = {
    -1: NoMemoryError, -2: OptionError, -3: FileError, -4: FormatError, -5: UnsupportedError,
    -6: NotFoundError, -7: MismatchError, -8: StateError, -9: DeniedError, -10: LimitError,
}


def decode(text: Optional[bytes]) -> str:
    """Names and paths are bytes to the library; odd ones survive the way back."""
    return (text or b"").decode("utf-8", "surrogateescape")


def check(status: int, error: Optional[s.Error] = None) -> None:
    """Raise what status means; 0 passes."""
    if status == 0:
        return
    kind = BY_STATUS.get(status, HotfnError)
    if error is None:
        raise kind(status)
    raise kind(status, decode(error.text), decode(error.file) or None,
               None if error.offset == s.NO_OFFSET else error.offset)
