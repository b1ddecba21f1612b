# SPDX-License-Identifier: MIT
"""Start a hotfn-collector on a loopback port, talk to it, and make records in the compact format."""
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
import cases  # noqa: E402,F401  (the tests of this folder use it)

COLLECTOR = os.environ["HOTFN_COLLECTOR"]
NOW_NS = time.time_ns()
# A program that sanitizers check is slow, above all on a busy machine.
ANSWER_SECONDS = 300 if os.environ.get("HOTFN_SANITIZED") else 60


def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return number(len(data)) + data


def build_id(name):
    return hashlib.sha1(name.encode()).digest()


def image_of(name):
    return f"1-{build_id(name).hex()}"


def module_head(name, rows, main=True, file=None):
    return number(main) + number(1) + text(build_id(name)) + text(file or name) + number(rows)


def encode_run(run, build, counts, timed=False, start_ns=None, end_ns=None, file=None, callers=(), state=2):
    """counts: {rva: calls} or, if timed, {rva: (calls, total, self, max)}.  callers: (row or None, row, calls)."""
    start_ns = NOW_NS - 10**9 if start_ns is None else start_ns
    out = [b"HFC1", number(int(timed)), run.bytes, number(start_ns), number(end_ns or start_ns + 10**8), number(state),
           number(len(counts)), number(3), number(1), module_head(build, len(counts), file=file)]
    before = 0
    for rva in sorted(counts):
        values = counts[rva] if timed else (counts[rva],)
        out += [number(rva - before), *map(number, values)]
        before = rva
    out.append(number(len(callers)))
    for caller, callee, calls in callers:
        out += [number(0 if caller is None else caller + 1), number(callee), number(calls)]
    return b"".join(out)


def encode_names(build, names, file=None):
    """names: {rva: name}"""
    out, before = [b"HFN1", number(1), module_head(build, len(names), file=file)], 0
    for rva in sorted(names):
        out += [number(rva - before), number(16), text(names[rva])]
        before = rva
    return b"".join(out)


class Collector:
    """One collector; it is started again with the same folder and port after kill()."""

    def __init__(self, place, *options, command=(COLLECTOR,)):
        self.folder, self.options, self.port = place / "data", options, 0
        self.log, self.command = place / "collector.log", command
        self.process = self.trusted = None  # trusted: a PEM file, if the collector serves TLS
        self.start()
        self.admin = (self.folder / "admin.token").read_text().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        assert "Sanitizer" not in self.log.read_text(), self.log.read_text()[-8000:]

    def start(self):
        with open(self.log, "ab") as log:
            begin = log.seek(0, 2)
            self.process = subprocess.Popen([*self.command, "--data", self.folder, "--listen", f"127.0.0.1:{self.port}",
                                             *self.options], stderr=log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.search(r"listening\W.{1,40}?https?:\\?/\\?/127\.0\.0\.1:(\d+)", self.log.read_bytes()[begin:].decode())
            if found:
                self.port = int(found[1])
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"the collector did not start: {self.log.read_text()[-2000:]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log.read_text()[-3000:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def command_output(self, *words):
        return subprocess.run([*self.command, "--data", self.folder, *words], check=True, capture_output=True,
                              text=True).stdout

    def token(self, role, app):
        return self.command_output("token", "add", "--role", role, "--app", app).strip()

    def request(self, method, path, body=None, token="", headers=(), timeout=ANSWER_SECONDS, **parameters):
        """(status, headers, body); token "" is the admin's, None is none."""
        if self.trusted:
            context = ssl.create_default_context(cafile=self.trusted)
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        query = urllib.parse.urlencode(parameters, doseq=True)
        sent = dict(headers)
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.admin}"
        try:
            connection.request(method, path + ("?" + query if query else ""), body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, name, status=200, **parameters):
        found, _, body = self.request("GET", f"/api/v1/{name}", **parameters)
        assert found == status, (name, found, body[:500])
        return json.loads(body)

    def put(self, run, body, status=201, compress=True, app="game", **parameters):
        headers = {"Content-Encoding": "gzip"} if compress else {}
        found, _, answer = self.request("PUT", f"/api/v1/records/{run}", gzip.compress(body, 1) if compress else body,
                                        headers=headers, app=app, **parameters)
        assert status is None or found == status, (found, answer[:500])
        return json.loads(answer) if status is not None else (found, answer)

    def put_names(self, body, app="game", status=201, **parameters):
        found, _, answer = self.request("PUT", "/api/v1/names", body, app=app, **parameters)
        assert found == status, (found, answer[:500])

    def push(self, build, counts, client, run=None, app="game", label=(), version="", **how):
        run = run or uuid.uuid4()
        return self.put(run, encode_run(run, build, counts, **how), app=app, client=client.hex, label=list(label),
                        **({"version": version} if version else {}))


def count_folds(c):
    """How often the runs of a selection were read."""
    return int(re.search(r"\nhotfn_folds_total (\d+)\n", c.request("GET", "/metrics")[2].decode())[1])
