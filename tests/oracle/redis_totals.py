#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares hotfn's counts of a redis server with the server's own: no command may be lost.

    redis_totals.py --hotfn BUILD/tools/hotfn/hotfn -- ./redis-server

The server counts the executions of each command (INFO commandstats); hotfn must count as many calls of the
command's C function.  Parallel clients load the server, with I/O threads enabled and a save in between.
"""
import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import hotfn_report
from callgrind_counts import ENVIRONMENT

SKIPPED = 77
FUNCTIONS = {"set": "setCommand", "get": "getCommand", "incr": "incrCommand",
             "lpush": "lpushCommand", "rpush": "rpushCommand", "lpop": "lpopCommand",
             "rpop": "rpopCommand", "sadd": "saddCommand", "hset": "hsetCommand",
             "spop": "spopCommand", "zadd": "zaddCommand", "zpopmin": "zpopminCommand",
             "lrange": "lrangeCommand", "mset": "msetCommand", "ping": "pingCommand",
             "bgsave": "bgsaveCommand"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Server:
    """A redis-server under hotfn that listens on loopback and keeps its files in `folder`."""

    def __init__(self, hotfn, program, folder, io_threads):
        self.port, self.record = free_port(), folder / "run.hfr"
        self.hotfn = hotfn
        self.process = subprocess.Popen(
            [hotfn, "run", "-q", "-o", self.record, "--", program, "--port", self.port, "--bind",
             "127.0.0.1", "--dir", folder, "--save", "", "--io-threads", io_threads,
             "--io-threads-do-reads", "yes"],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.process.kill()           # no effect if the process has ended
        self.process.wait()

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-p", self.port, *words], capture_output=True,
                              text=True, timeout=60).stdout

    def wait_for(self, reply, *words, seconds=60):
        end = time.monotonic() + seconds
        while reply not in self.ask(*words):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"redis_totals: the server does not report '{reply}'")
            time.sleep(0.05)

    def report(self):
        """Stop the server and load the report."""
        self.ask("SHUTDOWN", "NOSAVE")
        status = self.process.wait(60)
        if status:
            raise SystemExit(f"redis_totals: the server ended with {status}")
        text = subprocess.run([self.hotfn, "report", self.record, "-n", "0", "--json", "--no-lines"], check=True,
                              capture_output=True, text=True).stdout
        return hotfn_report.load(text)


def work(server):
    """Load the server; returns {command: executions} by its own count."""
    server.wait_for("PONG", "PING")
    subprocess.run(["redis-benchmark", "-q", "-p", server.port, "-n", "5000", "-c", "10",
                    "-P", "8"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=300)
    server.ask("BGSAVE")
    server.wait_for("rdb_bgsave_in_progress:0", "INFO", "persistence")
    statistics = server.ask("INFO", "commandstats")
    return {name: int(calls) for name, calls in
            re.findall(r"^cmdstat_(\w+):calls=(\d+)", statistics, re.M)}


def compare(counted_by_server, report, module):
    """Print each command; returns the number of wrong counts."""
    calls = {function["name"]: function["calls"] for function in report["functions"]
             if function["module"] == module}
    wrong = 0
    for command, times in sorted(counted_by_server.items()):
        if command in FUNCTIONS:
            function = FUNCTIONS[command]
            seen = calls.get(function)
            wrong += seen != times
            print("ok    " if seen == times else "WRONG ", function, seen, "server:", times)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hotfn", required=True)
    parser.add_argument("--io-threads", default="2", help="the server's threads [2]")
    parser.add_argument("program")
    arguments = parser.parse_args()
    for tool in ("redis-cli", "redis-benchmark"):
        if not shutil.which(tool):
            print(f"redis_totals: skipped, no {tool}")
            return SKIPPED
    with tempfile.TemporaryDirectory(prefix="hotfn_redis_") as folder:
        with Server(arguments.hotfn, arguments.program, pathlib.Path(folder),
                    arguments.io_threads) as server:
            counted = work(server)
            report = server.report()
    wrong = compare(counted, report, os.path.basename(os.path.realpath(arguments.program)))
    print(f"{sum(map(counted.get, counted))} commands, {wrong} functions wrong")
    return 1 if wrong or len(counted.keys() & FUNCTIONS.keys()) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
