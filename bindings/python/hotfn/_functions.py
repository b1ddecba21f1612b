# SPDX-License-Identifier: MIT
"""The fields that functions of a record and of a scan have in common."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional, Tuple

from . import _structs as s
from ._errors import decode
from ._text import demangle, split_names


FRAGMENT = 3  # HOTFN_STATE_FRAGMENT: reason_offset then identifies the function that it is part of


class Named:
    """Base of dataclasses that have the linker's `name` and all `names` of a function."""
    name: str
    names: Tuple[str, ...]

    @property
    def display(self) -> str:
        """The readable name."""
        return demangle(self.name)

    def to_dict(self) -> Dict[str, Any]:
        """The fields and `display`, with the JSON keys of `hotfn report` and `hotfn scan`."""
        fields = {field.name: getattr(self, field.name)
                  for field in dataclasses.fields(self)  # type: ignore[arg-type]
                  if not field.name.startswith("_")}
        return {**fields, "names": list(self.names), "display": self.display}


def text_or_none(text: Optional[bytes]) -> Optional[str]:
    return decode(text) or None


def read_fields(raw: s.RecordFunction) -> Dict[str, Any]:
    """The address, names, strategy and reason of a function, as arguments of its dataclass."""
    others = max(int(raw.name_count), 1) - 1
    reason = text_or_none(raw.reason)
    return {"rva": raw.rva, "size": raw.byte_count, "name": decode(raw.name),
            "names": (decode(raw.name), *split_names(raw.names, others)),
            "strategy": text_or_none(raw.strategy), "reason": reason,
            "reason_text": text_or_none(raw.reason_text),
            "offset": raw.reason_offset if reason and raw.state != FRAGMENT else None}
