# SPDX-License-Identifier: MIT
"""hotfn-collector under attack and with faults: slow clients, idle connections, a full disk, a folder that cannot be
written, a database of a newer version, SIGTERM while records arrive.  It reports each problem clearly, loses no
acknowledged record and keeps running."""
import os
import pathlib
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid

import harness
from harness import COLLECTOR, Collector, encode_run
from harness import cases

CLIENT = uuid.UUID(int=1)
IDLE = int(os.environ.get("HOTFN_IDLE_CONNECTIONS", "10000"))


def push_one(c, status=201):
    run = uuid.uuid4()
    return c.put(run, encode_run(run, "one", {0x10: 5}), status=status, client=CLIENT.hex)


def connect(c):
    return socket.create_connection(("127.0.0.1", c.port), 30)


def idle_connections_do_not_stop_pushes(place):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(IDLE, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    with Collector(place, "--timeout", "60") as c:
        idle = [connect(c) for _ in range(count)]
        begin = time.monotonic()
        for _ in range(20):
            push_one(c)
        print(f"{count} idle connections: 20 pushes in {time.monotonic() - begin:.2f} s")
        for connection in idle:
            connection.close()


def connections_past_the_limit_wait_or_are_closed(place):
    with Collector(place, "--max-connections", "64", "--timeout", "20") as c:
        idle = [connect(c) for _ in range(100)]
        push_one(c)  # as soon as idle connections were closed
        for connection in idle:
            connection.close()
        push_one(c)


def slow_clients_do_not_stop_pushes(place):
    with Collector(place, "--timeout", "3") as c:
        slow, closed = [], 0
        for i in range(100):
            connection = connect(c)
            head = f"PUT /api/v1/records/{uuid.uuid4()}?app=game HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            connection.sendall((head + (f"Authorization: Bearer {c.admin}\r\n\r\nHFC1" if i % 2 else "")).encode())
            slow.append(connection)
        for _ in range(10):
            push_one(c)
        for connection in slow:  # each is closed by the collector, since it sends nothing more
            connection.settimeout(30)
            try:
                closed += b"HTTP/1.1 20" not in connection.recv(4096)
            except ConnectionResetError:
                closed += 1
            connection.close()
        assert closed == len(slow)
        assert c.get("hot", app="game")["records"] == 10


def a_newer_database_is_refused(place):
    with Collector(place) as c:
        push_one(c)
    database = sqlite3.connect(place / "data/hotfn.db")
    database.execute("PRAGMA user_version=99")
    database.close()
    done = subprocess.run([COLLECTOR, "--data", place / "data", "--listen", "127.0.0.1:0"], capture_output=True, text=True)
    assert done.returncode == 1 and "schema 99" in done.stderr, done


def two_collectors_do_not_share_a_folder(place):
    with Collector(place):
        done = subprocess.run([COLLECTOR, "--data", place / "data", "--listen", "127.0.0.1:0"], capture_output=True,
                              text=True)
        assert done.returncode == 1 and "another hotfn-collector" in done.stderr, done


def wrong_options_are_refused(place):
    for options in ([], ["--data"], ["--data", "x", "--listen", "here"], ["--data", "x", "--rate", "-1"],
                    ["--data", "x", "--key", "k"], ["--data", "x", "serve"], ["--data", "x", "--config", "absent"]):
        done = subprocess.run([COLLECTOR, *options], capture_output=True, text=True, cwd=place)
        assert done.returncode == 2 and done.stderr, (options, done)
    (place / "config").write_text("# a comment\nlisten = 127.0.0.1:0\nanonymous-read = yes\n\nrate=7\n")
    with Collector(place, "--config", place / "config") as c:
        assert c.request("GET", "/api/v1/apps", token=None)[0] == 200
    (place / "config").write_text("colour = red\n")
    done = subprocess.run([COLLECTOR, "--data", "x", "--config", "config"], capture_output=True, text=True, cwd=place)
    assert done.returncode == 2 and "line 1" in done.stderr and "colour" in done.stderr, done


def own_disk(options):
    """A command that starts the collector in a mount namespace, with its data folder on a separate tmpfs."""
    script = f'mkdir -p "$2" && mount -t tmpfs -o {options} none "$2" && exec "$0" "$@"'
    command = ("unshare", "-rm", "sh", "-c", script, COLLECTOR)
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise cases.Skipped("this system allows no mount namespaces")
    return command


class OnOwnDisk(Collector):
    """A collector whose data folder is only visible in its own mount namespace."""

    def __enter__(self):
        return self

    @property
    def inside(self):
        return pathlib.Path(f"/proc/{self.process.pid}/root{self.folder}")

    def start(self):
        self.data, self.folder = self.folder, self.folder
        super().start()
        self.folder = self.inside


def remount(c, place, options):
    mount = ["nsenter", "-U", "-m", "-t", str(c.process.pid), "--preserve-credentials", "mount", "-o", f"remount,{options}",
             str(place / "data")]
    return subprocess.run(mount, capture_output=True).returncode == 0


def a_folder_that_becomes_read_only_refuses_pushes_and_recovers(place):
    # Root may write everywhere, unless it lacks these capabilities.
    command = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", COLLECTOR) if os.geteuid() == 0 else (COLLECTOR,)
    with Collector(place, "--quiet", command=command) as c:
        push_one(c)
        c.folder.chmod(0o500)
        status, answer = push_one(c, None)
        assert status == 507 and b"permissions" in answer, (status, answer)
        assert c.request("GET", "/healthz", token=None)[0] == 200
        assert c.get("hot", app="game")["records"] == 1
        c.folder.chmod(0o700)
        push_one(c)
        assert c.get("hot", app="game")["records"] == 2


def a_full_disk_refuses_pushes_and_recovers(place):
    with OnOwnDisk(place, "--quiet", command=own_disk("size=4m")) as c:
        stored, full = [], None
        counts = {16 * i: i * i + 1 for i in range(1, 20000)}
        for _ in range(400):
            run = uuid.uuid4()
            status, answer = c.put(run, encode_run(run, "one", counts), status=None, client=CLIENT.hex)
            if status != 201:
                full = status, answer
                break
            stored.append(run)
        assert full and full[0] == 507 and b"disk" in full[1], full
        assert c.request("GET", "/healthz", token=None)[0] == 200
        assert c.get("hot", app="game")["records"] == len(stored)
        if remount(c, place, "size=64m"):
            push_one(c)
            assert c.get("hot", app="game")["records"] == len(stored) + 1


def a_folder_that_cannot_be_written_is_reported(place):
    script = 'mkdir -p "$2" && mount -t tmpfs -o ro none "$2" && exec "$0" "$@"'
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        raise cases.Skipped("this system allows no mount namespaces")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, COLLECTOR, "--data", place / "data", "--listen",
                           "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "writable" in done.stderr, done


def sigterm_loses_nothing_that_was_acknowledged(place):
    with Collector(place, "--rate", "0", "--quiet") as c:
        acknowledged, stopping = [], threading.Event()

        def push():
            while not stopping.is_set():
                run = uuid.uuid4()
                try:
                    if c.put(run, encode_run(run, "one", {0x10: 1}), status=None, client=CLIENT.hex)[0] == 201:
                        acknowledged.append(run)
                except Exception:
                    return  # the collector has stopped

        threads = [threading.Thread(target=push) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 100:
            time.sleep(0.01)
        c.process.send_signal(signal.SIGTERM)
        assert c.process.wait(60) == 0
        stopping.set()
        for thread in threads:
            thread.join()
        c.start()
        found = c.get("hot", app="game")["rows"][0]["calls"]
        assert len(acknowledged) <= found <= len(acknowledged) + len(threads), (found, len(acknowledged))


def memory_stays_bounded(place):
    with Collector(place, "--rate", "0", "--quiet") as c:
        counts = {16 * i: i * i + 1 for i in range(1, 5001)}
        for i in range(1000):
            run = uuid.uuid4()
            c.put(run, encode_run(run, "one", counts), compress=False, client=uuid.UUID(int=i % 50).hex)
        c.get("hot", app="game", agg="median")
        peak = int(next(line for line in open(f"/proc/{c.process.pid}/status") if line.startswith("VmHWM")).split()[1])
        print(f"peak after 1,000 pushes of 5,000 rows: {peak / 1024:.0f} MiB")
        assert peak < 256 * 1024 or os.environ.get("HOTFN_SANITIZED"), peak


CASES = [idle_connections_do_not_stop_pushes, connections_past_the_limit_wait_or_are_closed,
         slow_clients_do_not_stop_pushes, a_newer_database_is_refused, two_collectors_do_not_share_a_folder,
         wrong_options_are_refused, a_full_disk_refuses_pushes_and_recovers,
         a_folder_that_becomes_read_only_refuses_pushes_and_recovers, a_folder_that_cannot_be_written_is_reported,
         sigterm_loses_nothing_that_was_acknowledged, memory_stays_bounded]

if __name__ == "__main__":
    sys.exit(cases.run(CASES))
