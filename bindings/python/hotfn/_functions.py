# SPDX-License-Identifier: MIT
"""What a function of a record and one of a scan have in common, as the library gives both."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional, Tuple

from . import _structs as s
from ._errors import decode
from ._text import demangle, split_names


FRAGMENT = 3  # HOTFN_STATE_FRAGMENT: its reason_offset tells whose part it is


class Named:
    """Of a dataclass with the linker's `name` and all `names`."""
    name: str
    names: Tuple[str, ...]

    @property
    def display(self) -> str:
        """The readable name."""
        return demangle(self.name)

    def to_dict(self) -> Dict[str, Any]:
        """The fields and `display`, as the JSON of `hotfn report` and `hotfn scan` names them."""
        fields: Dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {**fields, "names": list(self.names), "display": self.display}


def text_or_none(text: Optional[bytes]) -> Optional[str]:
    return decode(text) or None


def fields_of(raw: s.RecordFunction) -> Dict[str, Any]:
    """Where it is, how it is called, by what it is hooked or why not."""
    others = max(int(raw.name_count), 1) - 1
    reason = text_or_none(raw.reason)
    return {"rva": raw.rva, "size": raw.byte_count, "name": decode(raw.name),
            "names": (decode(raw.name), *split_names(raw.names, others)),
            "strategy": text_or_none(raw.strategy), "reason": reason,
            "reason_text": text_or_none(raw.reason_text),
            "offset": raw.reason_offset if reason and raw.state != FRAGMENT else None}
