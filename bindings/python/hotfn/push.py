# SPDX-License-Identifier: MIT
"""Send records to a hotfn-collector.  Only the standard library is used.

Sent are counts and times of functions, image ids, file names of modules without their folders, the times at which the
run began and ended, the labels, and the id of the client.  tools/collector/wire.h describes the format."""
import dataclasses
import json
import os
import pathlib
import secrets
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _structs as s
from . import records
from ._errors import check
from ._native import lib

MAIN = 1
STATES = {"finished": 2, "killed": 3}


class PushError(Exception):
    """The collector refused a record, or did not answer (then status is None)."""

    def __init__(self, status: Optional[int], text: str) -> None:
        super().__init__(f"the collector refuses it ({status}): {text}" if status else text)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Pushed:
    """What the collector did with a record."""
    stored: bool         # False: it was stored before
    build: str           # the image id of the program
    sent_names: bool     # whether the collector asked for the names of the build


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: bytes) -> bytes:
    return _number(len(value)) + value


def _raw_modules(record: "records.Record") -> List[s.RecordModule]:
    modules = []
    for index in range(record.info.module_count):
        raw = s.RecordModule()
        check(lib.hotfn_record_get_module(record._open_handle, index, raw))
        if raw.function_count or raw.flags & MAIN:
            modules.append(raw)
    return modules


def _module_head(raw: s.RecordModule, rows: int) -> bytes:
    return (_number(raw.flags & MAIN) + _number(raw.id_kind) + _text(bytes(raw.id)[:raw.id_bytes])
            + _text(raw.file[:127]) + _number(rows))


def _counted(record: "records.Record", raw: s.RecordModule, called: bool) -> List[Tuple[int, List[int]]]:
    """(rva, indices of the counted functions at that rva) of a module, by rva; `called`: only called functions."""
    found: Dict[int, List[int]] = {}
    for index in range(raw.first_function, raw.first_function + raw.function_count):
        function = record.functions[index]
        if function.calls is not None and (function.calls or not called):
            found.setdefault(function.rva, []).append(index)
    return sorted(found.items())


def encode_run(record: "records.Record") -> bytes:
    """The compact form of a run that has ended."""
    info = record.info
    if info.state not in STATES:
        raise ValueError(f"this record is {info.state}: send the record of a run that has ended")
    times = record.times if record.time else None
    hooked = sum(function.state == "hooked" for function in record.functions)
    out = [b"HFC1", _number(int(times is not None)), info.uuid, _number(info.start_ns), _number(info.end_ns or 0),
           _number(STATES[info.state]), _number(hooked), _number(info.function_count - hooked)]
    modules, row_count = _raw_modules(record), 0
    rows: Dict[int, int] = {}  # by index of a function
    out.append(_number(len(modules)))
    for raw in modules:
        counted, before = _counted(record, raw, True), 0
        out.append(_module_head(raw, len(counted)))
        for rva, indices in counted:
            out += [_number(rva - before), _number(sum(record.functions[i].calls or 0 for i in indices))]
            if times is not None:
                out += [_number(sum(times[i].total_ns or 0 for i in indices)),
                        _number(sum(times[i].self_ns or 0 for i in indices)),
                        _number(max(times[i].max_ns or 0 for i in indices))]
            rows.update(dict.fromkeys(indices, row_count))
            row_count += 1
            before = rva
    edges = [(rows.get(caller.function.index, -1) if caller.function else -1, row, caller.calls)
             for index, row in rows.items() for caller in record.functions[index].callers if caller.calls]
    out.append(_number(len(edges)))
    for caller_row, row, calls in edges:
        out += [_number(caller_row + 1), _number(row), _number(calls)]
    return b"".join(out)


def encode_names(record: "records.Record") -> bytes:
    """The names of all counted functions."""
    modules = _raw_modules(record)
    out = [b"HFN1", _number(len(modules))]
    for raw in modules:
        counted, before = _counted(record, raw, False), 0
        out.append(_module_head(raw, len(counted)))
        for rva, indices in counted:
            function = record.functions[indices[0]]
            out += [_number(rva - before), _number(function.size), _text(function.display.encode()[:16383])]
            before = rva
    return b"".join(out)


def client_id(state_dir: Optional[str] = None) -> str:
    """The random id of this installation, made on first use; hotfn push uses the same one."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    path = pathlib.Path(state_dir or os.path.join(state, "hotfn")) / "client-id"
    try:
        known = path.read_text()[:32]
        if len(known) == 32:
            return known
    except OSError:
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = secrets.token_hex(16)
    path.write_text(known)
    return known


def _put(url: str, path: str, query: str, token: Optional[str], body: bytes, timeout: float) -> Tuple[int, Any]:
    request = urllib.request.Request(f"{url.rstrip('/')}{path}?{query}", data=body, method="PUT")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        try:
            text = json.load(refused)["error"]
        except (ValueError, KeyError):
            text = "is this the address of a hotfn-collector?"
        raise PushError(refused.code, text) from None
    except OSError as problem:
        raise PushError(None, f"the collector does not answer: {problem}") from None


def _check_texts(app: Optional[str], version: Optional[str], labels: Mapping[str, str]) -> None:
    """The collector's limits, checked here because an address that is too long gets no answer of the collector."""
    for name, text in (("app", app), ("version", version)):
        if text and len(text.encode()) > 256:
            raise ValueError(f"{name} has more than 256 bytes: shorten it")
    for key, value in labels.items():
        if not 0 < len(key.encode()) <= 64 or len(str(value).encode()) > 256 or len(labels) > 16:
            raise ValueError(f"{key[:80]!r}: give at most 16 labels, with keys of at most 64 and values of at most 256 bytes")


def push(record: Union[str, "os.PathLike[str]", "records.Record"], url: str, *, token: Optional[str] = None,
         app: Optional[str] = None, version: Optional[str] = None, labels: Union[Mapping[str, str], None] = None,
         client: Optional[str] = None, timeout: float = 20.0) -> Pushed:
    """Send the record of a run that has ended; PushError if it is refused or the collector does not answer.
    Sending a record again is harmless."""
    if not isinstance(record, records.Record):
        with records.open(record) as opened:
            return push(opened, url, token=token, app=app, version=version, labels=labels, client=client,
                        timeout=timeout)
    _check_texts(app, version, labels or {})
    program = next((raw for raw in _raw_modules(record) if raw.flags & MAIN), None)
    parameters: List[Tuple[str, str]] = [("app", app or (program.file.decode(errors="replace") if program else "")),
                                         ("client", client or client_id())]
    parameters += [("version", version)] if version else []
    parameters += [("label", f"{key}={value}") for key, value in (labels or {}).items()]
    query = urllib.parse.urlencode(parameters)
    path = f"/api/v1/records/{uuid.UUID(bytes=record.info.uuid)}"
    status, answer = _put(url, path, query, token, encode_run(record), timeout)
    if answer["need_names"]:
        _put(url, "/api/v1/names", query, token, encode_names(record), timeout)
    return Pushed(stored=status == 201, build=answer["build"], sent_names=answer["need_names"])
