#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which functions does this hotfn refuse that an older one hooked, and how often are they called?

refused.py OLD [PROGRAM ...]

OLD is the `hotfn` of an older build, HOTFN the new one.  Each program does real work under OLD, which counts the
calls; then both scan its module.  The status is 1 if one of the 100 most called functions is refused newly.
"""
import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import tools

MOST_CALLED = 100
SQL = "create table t(a, b); insert into t with recursive n(i) as (select 1 union all select i + 1 from n limit 20000) " \
      "select i, hex(i * 7919) from n; create index u on t(b); select count(*), max(b) from t where b like '%A%' " \
      "group by a % 100; delete from t where a % 3 = 0; select sum(length(b)) from t order by b;"
PYTHON = "import json, re\nfor i in range(200):\n    text = json.dumps({str(k): [k, {'x': k * 1.5}] for k in range(100)})\n" \
         "    assert len(re.findall(r'[0-9]+', str(sorted(json.loads(text).items(), key=lambda kv: kv[1][0])))) > 100"
SCRIPT = "const z = require('zlib'); let s = ''; for (let i = 0; i < 20000; i++) s += i.toString(36) + JSON.stringify({i});" \
         "for (let i = 0; i < 5; i++) console.log(z.gunzipSync(z.gzipSync(s)).length, s.match(/[a-f]+/g).sort().length)"
SOURCE = "#include <stdio.h>\n" + "".join(
    f"int f{i}(int x) {{ int s = 0; for (int k = 0; k < x; k++) {{ s += (k * {i + 3}) ^ (s >> 2); "
    f"if (s % 7 == {i % 7}) s -= printf(\"%d\", s); }} return s; }}\n" for i in range(60))


class Program:
    """A command, and the file and the pattern of the module that is compared."""

    def __init__(self, command, module, run=None):
        self.command, self.module, self.run = command, module, run or Program.run_to_end

    def run_to_end(self, prefix, folder):
        subprocess.run([*prefix, *self.command], cwd=folder, stdout=subprocess.DEVNULL, check=True, timeout=900)

    def run_server(self, prefix, folder):
        """redis: a server under load until a client ends it."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        with subprocess.Popen([*prefix, *self.command, "--port", port], cwd=folder, stdout=subprocess.DEVNULL) as server:
            client = ["redis-cli", "-p", port]
            while server.poll() is None and subprocess.run([*client, "ping"], capture_output=True).stdout != b"PONG\n":
                time.sleep(0.1)
            subprocess.run(["redis-benchmark", "-p", port, "-n", "5000", "-q"], stdout=subprocess.DEVNULL, check=True)
            subprocess.run([*client, "shutdown", "nosave"], stdout=subprocess.DEVNULL)


def find_library(program, name):
    """The file of a library that the program needs."""
    for line in tools.output_of(["ldd", program]).splitlines():
        if name in line and "=>" in line:
            return os.path.realpath(line.split()[2])
    raise tools.Missing(f"{program} does not use {name}")


def make_programs(folder):
    source, project = folder / "work.c", folder / "project"
    source.write_text(SOURCE)
    project.mkdir()
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.10)\nproject(work C CXX)\n"
                                            "find_package(Threads)\nadd_executable(work ../work.c)\n")
    python = next((p for p in ("/usr/bin/python3.11", shutil.which("python3.11")) if p and "libpython3.11" in
                   subprocess.run(["ldd", os.path.realpath(p)], capture_output=True, text=True).stdout), None)
    if not python and shutil.which("python3.11"):
        python = subprocess.run(["python3.11", "-c", "import sys; print(sys.executable)"], capture_output=True,
                                text=True).stdout.strip()
    yield "sqlite3", lambda: Program([tools.need("sqlite3"), ":memory:", SQL],
                                     find_library(tools.need("sqlite3"), "libsqlite3"))
    yield "redis", lambda: Program([tools.need("redis-server"), "--save", ""], os.path.realpath(tools.need("redis-server")),
                                   Program.run_server)
    yield "libpython3.11", lambda: Program([python, "-I", "-c", PYTHON], find_library(python, "libpython3.11"))
    yield "cmake", lambda: Program([tools.need("cmake"), "-S", str(project), "-B", str(folder / "b")],
                                   os.path.realpath(tools.need("cmake")))
    yield "node", lambda: Program([tools.need("node"), "-e", SCRIPT], os.path.realpath(tools.need("node")))
    clang = shutil.which("clang-14") or "clang"
    yield "libLLVM", lambda: Program([tools.need(clang), "-O2", "-c", str(source), "-o", str(folder / "work.o")],
                                     find_library(clang, "libLLVM"))


def read_json(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise tools.failure(command, done)
    return json.loads(done.stdout)


def count_calls(old, program, folder):
    """rva -> (calls, name) of each hooked function."""
    record = str(folder / "old.hfr")
    prefix = [old, "run", "-q", "-o", record, "--module", f"*{os.path.basename(program.module)}", "--"]
    program.run(program, prefix, folder)
    report = read_json(old, "report", "--json", "-n", "0", record)
    return {f["rva"]: (f["calls"], f["name"]) for f in report["functions"] if f["state"] == "hooked"}


def scan(hotfn, path):
    return {f["rva"]: f for f in read_json(hotfn, "scan", "--json", path)["functions"]}


def compare(old, program, folder):
    calls = count_calls(old, program, folder)
    before, now = scan(old, program.module), scan(tools.HOTFN, program.module)
    refused = [rva for rva, f in before.items() if f["verdict"] == "hookable" and rva in now and
               now[rva]["verdict"] == "refused"]
    order = sorted(calls, key=lambda rva: -calls[rva][0])
    rank = {rva: i + 1 for i, rva in enumerate(order)}
    called = [rva for rva in refused if calls.get(rva, (0,))[0] > 0]
    return {"functions": len(before), "called": sum(1 for count, _ in calls.values() if count > 0),
            "calls": sum(count for count, _ in calls.values()), "refused": len(refused),
            "rules": collections.Counter(now[rva]["reason"] for rva in refused),
            "refused_called": sorted((rank[rva], *calls[rva], now[rva]["reason"]) for rva in called)}


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    old, wanted, worst = arguments[0], arguments[1:], 0
    print("program         functions   called        calls  newly refused  first rank  rules")
    with tempfile.TemporaryDirectory() as place:
        for name, make in make_programs(pathlib.Path(place)):
            if wanted and name not in wanted:
                continue
            try:
                r = compare(old, make(), pathlib.Path(place))
            except tools.Missing as missing:
                print(f"{name:15} missing: {missing}")
                continue
            first = r["refused_called"][0][0] if r["refused_called"] else None
            worst |= first is not None and first <= MOST_CALLED
            rules = ", ".join(f"{rule} {count}" for rule, count in r["rules"].most_common())
            print(f"{name:15} {r['functions']:9} {r['called']:8} {r['calls']:12} {r['refused']:14} {first or '-':>11}  {rules}")
            for place_in_order, count, function, reason in r["refused_called"][:5]:
                print(f"    rank {place_in_order}, {count} calls: {function}: {reason}")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
