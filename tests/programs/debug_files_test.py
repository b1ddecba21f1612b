# SPDX-License-Identifier: MIT
"""Debug files of stripped programs: from the servers of $DEBUGINFOD_URLS, and installed after a scan was cached."""
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import cases

HOTFN = os.environ["HOTFN"]
PROGRAM = """
__attribute__((noinline)) static int hidden_worker(int x) { __asm__ volatile(""); return x + 1; }
int main(void) { int x = 0; for (int i = 0; i < 1000; i++) x = hidden_worker(x); return x == 0; }
"""


class Case:
    """A stripped program, its debug file, and environments without any earlier cache."""

    def __init__(self, folder):
        folder = self.folder = Path(folder)
        self.program, self.debug = folder / "prog", folder / "prog.debug"
        (folder / "prog.c").write_text(PROGRAM)
        self.build("prog", "-g")
        self.environment = {**os.environ, "XDG_CACHE_HOME": f"{folder}/cache", "HOME": str(folder),
                            "DEBUGINFOD_CACHE_PATH": f"{folder}/downloads"}
        self.environment.pop("DEBUGINFOD_URLS", None)

    def build(self, name, *flags):
        path = self.folder / name
        subprocess.run(["gcc", "-O1", *flags, "-Wl,--build-id", "-o", path, "prog.c"], cwd=self.folder, check=True)
        subprocess.run(["objcopy", "--only-keep-debug", path, f"{path}.debug"], check=True)
        subprocess.run(["strip", path], check=True)

    def run(self, *options, **variables):
        """The report's functions, and what was written to stderr."""
        done = subprocess.run([HOTFN, "run", "-o", "r.hfr", *options, "--", self.program], cwd=self.folder,
                              env={**self.environment, **variables}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        report = subprocess.run([HOTFN, "report", "r.hfr", "--json", "-n", "0"], cwd=self.folder, check=True,
                                env={**self.environment, **variables}, capture_output=True, text=True)
        functions = {f["name"]: f for f in json.loads(report.stdout)["functions"]}
        return functions, done.stderr + report.stderr


def read_build_id(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


class Server:
    """A debuginfod server with these files by build-id; `asked` has the paths of the requests."""

    def __init__(self, files):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                match = re.fullmatch(r"/buildid/([0-9a-f]+)/debuginfo", self.path)
                file = files.get(match.group(1)) if match else None
                self.send_response(200 if file else 404)
                body = file.read_bytes() if file else b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def names_and_lines_come_from_a_server(case):
    functions, _ = case.run()
    assert "hidden_worker" not in functions, functions
    with Server({read_build_id(case.program): case.debug}) as server:
        functions, messages = case.run(DEBUGINFOD_URLS=server.url)
        assert functions["hidden_worker"]["calls"] == 1000, functions
        found = functions["hidden_worker"]
        assert (found["source_file"], found["source_line"]) == (f"{case.folder}/prog.c", 2), found
        assert "DEBUGINFOD" not in messages, messages
        assert len([path for path in server.asked if read_build_id(case.program) in path]) == 1, server.asked
    functions, messages = case.run("--no-cache", DEBUGINFOD_URLS=server.url)  # the download is kept
    assert functions["hidden_worker"]["calls"] == 1000, functions


def a_file_of_another_build_is_skipped(case):
    case.build("other", "-DOTHER", "-O0")
    with Server({read_build_id(case.program): case.folder / "other.debug"}) as server:
        functions, messages = case.run(DEBUGINFOD_URLS=server.url)
    assert "hidden_worker" not in functions and "of another build" in messages, messages


def a_server_that_does_not_answer_is_asked_once(case):
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{refusing.getsockname()[1]}"
        functions, messages = case.run(DEBUGINFOD_URLS=url)
    assert messages.count("$DEBUGINFOD_URLS") == 2 and "unset the variable" in messages, messages  # run and report
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        functions, messages = case.run("--no-cache", DEBUGINFOD_URLS=url, DEBUGINFOD_TIMEOUT="1")
    assert "no server answered in time" in messages and len(functions) > 1, (messages, functions)


def a_debug_file_installed_later_is_found(case):
    folder = case.folder / "symbols"
    folder.mkdir()
    for _ in range(2):  # the second run reads the cached scan
        functions, _ = case.run("--symbol-dir", folder)
        assert "hidden_worker" not in functions, functions
    build_id = read_build_id(case.program)
    place = folder / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(case.debug, place)
    functions, _ = case.run("--symbol-dir", folder)
    assert functions["hidden_worker"]["calls"] == 1000, functions


CASES = [names_and_lines_come_from_a_server, a_file_of_another_build_is_skipped,
         a_server_that_does_not_answer_is_asked_once, a_debug_file_installed_later_is_found]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gcc", "objcopy", "readelf"], make=Case))
