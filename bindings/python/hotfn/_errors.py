# SPDX-License-Identifier: MIT
"""An exception class for each status, with the file, the offset and the text of the error."""
from __future__ import annotations

from typing import Dict, Optional, Type

from . import _structs as s
from ._native import lib


class HotfnError(Exception):
    """A call of libhotfn failed.

    status       the number of the status, negative
    status_name  its name, for example "HOTFN_E_IO"
    file         the file that caused the error, or None
    offset       the offset of the cause in the file in bytes, or None
    text         one line: what is wrong and what to do
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
    """HOTFN_E_NO_MEMORY: there was not enough memory."""


class OptionError(HotfnError, ValueError):
    """HOTFN_E_OPTION: an unknown option or an invalid value."""


class FileError(HotfnError, OSError):
    """HOTFN_E_IO: a file could not be opened, read, written or mapped."""


class FormatError(HotfnError, ValueError):
    """HOTFN_E_FORMAT: the bytes are malformed."""


class UnsupportedError(HotfnError):
    """HOTFN_E_UNSUPPORTED: well-formed, but not supported by this version."""


class NotFoundError(HotfnError, LookupError):
    """HOTFN_E_NOT_FOUND: no such function, module, section or file."""


class MismatchError(HotfnError):
    """HOTFN_E_MISMATCH: ids, versions or bytes of another build."""


class StateError(HotfnError, RuntimeError):
    """HOTFN_E_STATE: the call is not allowed in the object's current state."""


class DeniedError(HotfnError):
    """HOTFN_E_DENIED: the system denied the operation."""


class LimitError(HotfnError):
    """HOTFN_E_LIMIT: a limit of the library was exceeded."""


BY_STATUS: Dict[int, Type[HotfnError]] = {
    -1: NoMemoryError, -2: OptionError, -3: FileError, -4: FormatError, -5: UnsupportedError,
    -6: NotFoundError, -7: MismatchError, -8: StateError, -9: DeniedError, -10: LimitError,
}


def decode(text: Optional[bytes]) -> str:
    """Text of the library; bytes that are not UTF-8 are kept as surrogates, which
    encode() restores."""
    return (text or b"").decode("utf-8", "surrogateescape")


def check(status: int, error: Optional[s.Error] = None) -> None:
    """Raise the exception of a status; HOTFN_OK (0) raises nothing."""
    if status == 0:
        return
    kind = BY_STATUS.get(status, HotfnError)
    if error is None:
        raise kind(status)
    raise kind(status, decode(error.text), decode(error.file) or None,
               None if error.offset == s.NO_OFFSET else error.offset)
