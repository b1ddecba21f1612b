# SPDX-License-Identifier: MIT
"""What an operator does with the database of hotfn-collector: import, retention, compact, backup."""
import os
import sqlite3
import subprocess
import sys
import time
import uuid

import harness
from harness import COLLECTOR, Collector, cases, encode_names, encode_run, image_of

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
DAY = 86400 * 10**9
CLIENTS = [uuid.UUID(int=i + 1) for i in range(4)]


def command(c, *words, status=0):
    done = subprocess.run([COLLECTOR, "--data", c.folder, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == status, (words, done)
    return done.stdout + done.stderr


def folders_of_records_are_imported_once(place):
    (place / "game.c").write_text("int main(int c, char **v) { volatile int x = c; return x == 7; }\n")
    subprocess.run([COMPILER, "-O1", "-Wl,--build-id", "-o", place / "game", place / "game.c"], check=True)
    (place / "records").mkdir()
    for number in range(3):
        subprocess.run([HOTFN, "run", "-q", "-o", place / f"records/{number}.hfr", "--", place / "game"], check=True)
    (place / "records/broken.hfr").write_bytes(b"x")
    with Collector(place) as c:
        found = command(c, "import", "--app", "game", place / "records", status=1)
        assert "3 stored, 0 known, 1 refused" in found and "broken.hfr" in found, found
        (place / "records/broken.hfr").unlink()
        assert "0 stored, 3 known, 0 refused" in command(c, "import", "--app", "game", place / "records")
        assert {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}["main"] == 3
        command(c, "import", place / "records", status=2)


def old_records_are_deleted_and_stay_known(place):
    with Collector(place) as c:
        old = uuid.uuid4()
        body = encode_run(old, "one", {0x10: 1}, start_ns=harness.NOW_NS - 40 * DAY)
        c.put(old, body)
        c.push("one", {0x10: 2}, CLIENTS[0], start_ns=harness.NOW_NS - 5 * DAY)
        assert c.get("hot", app="game")["rows"][0]["calls"] == 3
        assert "1 records deleted" in command(c, "prune", "--days", 30)
        c.push("one", {0x10: 7}, CLIENTS[0])  # two runs again
        assert c.get("hot", app="game")["rows"][0]["calls"] == 9
        assert "1 records deleted" in command(c, "prune", "--days", 1)
        assert c.get("hot", app="game")["rows"][0]["calls"] == 7
        c.put(old, body, status=200)  # it was deleted on purpose
        assert c.get("hot", app="game")["rows"][0]["calls"] == 7
        c.push("one", {0x10: 4}, CLIENTS[1], start_ns=harness.NOW_NS - 50 * DAY)
        c.options = ("--keep-days", "30")
        c.stop()
        c.start()
        end = time.monotonic() + 60
        while '"1 records deleted"' not in c.log.read_text():
            assert time.monotonic() < end, c.log.read_text()
            time.sleep(0.05)
        assert c.get("hot", app="game")["rows"][0]["calls"] == 7
        for wrong in (("--days", "x"), ("--days",), (), ("--days", "1", "--build", "x"), ("--build", "x")):
            command(c, "prune", *wrong, status=2)


def a_deleted_build_leaves_nothing_behind(place):
    with Collector(place) as c:
        for build in ("one", "two"):
            for client in CLIENTS:
                c.push(build, {0x10: 3, 0x20: 4}, client)
            c.put_names(encode_names(build, {0x10: "alpha", 0x20: f"beta_{build}"}))
        assert "4 records deleted" in command(c, "prune", "--app", "game", "--build", image_of("two"))
        assert [b["build"] for b in c.get("builds", app="game")["builds"]] == [image_of("one")]
        command(c, "compact")
        # The next build takes the number of the deleted one; the writer must not use its functions.
        c.push("three", {0x40: 9}, CLIENTS[0])
        c.put_names(encode_names("three", {0x40: "delta"}))
        assert [(r["name"], r["calls"]) for r in c.get("hot", app="game", build=image_of("three"))["rows"]] == [("delta", 9)]
        assert {r["name"] for r in c.get("hot", app="game", build=image_of("one"))["rows"]} == {"alpha", "beta_one"}
        command(c, "prune", "--app", "game", "--build", image_of("two"), status=1)
        database = sqlite3.connect(c.folder / "hotfn.db")
        assert database.execute("SELECT count(*) FROM name WHERE text = 'beta_two'").fetchone() == (0,)
        database.close()


def a_backup_is_a_whole_database(place):
    with Collector(place) as c:
        for client in CLIENTS:
            c.push("one", {0x10: 3}, client)
        (place / "copy").mkdir()
        command(c, "backup", place / "copy/hotfn.db")
        c.push("one", {0x10: 100}, CLIENTS[0])
        command(c, "backup", place / "copy/hotfn.db", status=1)  # it is not overwritten
        token = c.admin
        c.stop()
        (c.folder / "hotfn.db").unlink()
        for rest in c.folder.glob("hotfn.db-*"):
            rest.unlink()
        (place / "copy/hotfn.db").rename(c.folder / "hotfn.db")
        c.start()
        assert c.get("hot", app="game", token=token)["rows"][0]["calls"] == 12


CASES = [folders_of_records_are_imported_once, old_records_are_deleted_and_stay_known,
         a_deleted_build_leaves_nothing_behind, a_backup_is_a_whole_database]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER]))
