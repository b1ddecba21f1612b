# SPDX-License-Identifier: MIT
"""The collector is killed at each system call that writes to a file or sends bytes, one after the other, while it stores
a record: what was acknowledged is stored, a repeated push stores it once, and nothing counts twice.  The same with
ClickHouse, up to the moment when the record is there.  The collector starts once for each such call: a test of
scripts/soak."""
import http.client
import itertools
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import uuid

import harness
from clickhouse_servers import Servers, wait_until_delivered
from harness import Collector, cases, encode_run

CLIENT, FUNCTIONS = uuid.UUID(int=1 << 64), 400
CALLS = ("pwrite64", "fdatasync", "write", "sendto", "sendmsg")


class Traced(Collector):
    """A collector that strace kills at the N-th call of a thread to a system call."""

    def tasks(self):
        return [path / "status" for path in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()]

    def arm(self, call, number):
        self.tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", self.folder.parent / "trace", "-e", f"trace={call}", "-e",
                                        f"inject={call}:signal=SIGKILL:when={number}", "-p", str(self.process.pid)])
        end = time.monotonic() + 60
        while any("TracerPid:\t0\n" in status.read_text() for status in self.tasks()):
            assert time.monotonic() < end and self.tracer.poll() is None, "strace did not attach"
            time.sleep(0.005)

    def disarm(self):
        """True if the collector was killed."""
        if self.process.poll() is None:
            self.tracer.send_signal(signal.SIGTERM)
        self.tracer.wait(60)
        return self.process.poll() is not None


def push_while_armed(c, run, body, wait):
    """The status of the push, None if there was no answer."""
    status = None
    try:
        status = c.put(run, body, status=None, client=CLIENT.hex)[0]
        wait(c)
    except (OSError, http.client.HTTPException):
        assert c.process.wait(60) == -signal.SIGKILL
    return status


def kill_at_each_call(c, wait):
    """Returns how many records were stored, and how often the collector was killed."""
    stored, kills = 0, 0
    for call in CALLS:
        for number in itertools.count(1):
            run = uuid.uuid4()
            body = encode_run(run, "game", {16 * (i + 1): 3 for i in range(FUNCTIONS)})
            c.arm(call, number)
            status = push_while_armed(c, run, body, wait)
            killed = c.disarm()
            if killed:
                kills += 1
                c.start()
            again = c.put(run, body, status=None, client=CLIENT.hex)[0]
            assert status in (None, 201) and again in ((200,) if status else (200, 201)), (call, number, status, again)
            stored += 1
            wait(c)
            answer = c.get("hot", app="game", limit=FUNCTIONS)
            assert answer["records"] == stored and {r["calls"] for r in answer["rows"]} == {3 * stored}, (call, number, answer)
            if not killed:
                break
    print(f"killed {kills} times, {stored} records")
    return stored, kills


def a_crash_at_any_call_loses_and_doubles_nothing(place):
    with Traced(place, "--quiet") as c:
        stored, kills = kill_at_each_call(c, lambda _: None)
        assert kills > 10, kills


def a_crash_while_rows_move_to_clickhouse_loses_and_doubles_nothing(place):
    with Servers(place) as servers, Traced(place, "--quiet", *servers.option) as c:
        stored, kills = kill_at_each_call(c, wait_until_delivered)
        assert kills > 15, kills
        rows = int(servers[0].ask("SELECT count() FROM hotfn.hotfn_counts"))
        sums = int(servers[0].ask("SELECT sum(row_count) FROM hotfn.hotfn_sums"))
        assert rows == sums == stored * FUNCTIONS, (rows, sums, stored)


if __name__ == "__main__":
    if not shutil.which("strace"):
        print("skipped: strace is not installed")
        sys.exit(cases.SKIPPED)
    sys.exit(harness.cases.run([a_crash_at_any_call_loses_and_doubles_nothing,
                                a_crash_while_rows_move_to_clickhouse_loses_and_doubles_nothing]))
