# SPDX-License-Identifier: MIT
"""hotfn-collector --clickhouse with two servers: the same numbers as with SQLite, each record once whatever is killed,
and queries that say what is missing.  Skipped where clickhouse-server is not installed."""
import http.server
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
import uuid

import harness
import page_test
import right_test
from clickhouse_servers import Servers, wait_until_delivered
from harness import COLLECTOR, NOW_NS, Collector, cases, encode_names, encode_run, image_of

LONG = os.environ.get("HOTFN_LONG") == "1"
DAY_NS = 86400 * 10**9
AGGREGATES = ("sum", "average", "average_called", "median", "p95", "max")
CLIENTS = [uuid.UUID(int=(i + 1) << 64) for i in range(7)]


def random_records(count, functions=60):
    """[(body, parameters)]: timed runs with callers, labels, several days, unresolved times."""
    chance, records = random.Random(2022), []
    for index in range(count):
        rvas = [16 * (i + 1) for i in range(functions) if chance.random() < 0.6] or [16]
        counts = {rva: (chance.randint(1, 10**6), chance.choice((0, 1, 1)) * chance.randint(1, 10**9),
                        chance.choice((0, 1, 1)) * chance.randint(1, 10**8), chance.randint(0, 10**6)) for rva in rvas}
        callers = [(chance.choice((None, chance.randrange(len(rvas)))), chance.randrange(len(rvas)), chance.randint(1, 99))
                   for _ in range(20)]
        run = uuid.UUID(int=chance.getrandbits(128))
        start = NOW_NS - chance.randrange(3) * DAY_NS - 10**9
        body = encode_run(run, "game" if index % 4 else "older", counts, timed=True, callers=callers, start_ns=start,
                          end_ns=start + 10**8)
        labels = [f"level={chance.randrange(3)}", f"odd=it's {chance.choice('ab')}\\"]
        records.append((run, body, {"client": chance.choice(CLIENTS).hex, "label": labels}))
    return records


def strip_rows(rows):
    """What two collectors must agree on: functions are numbered in the order of their arrival, and a tie of ranks is
    broken by that number."""
    return sorted(((r["name"], r["calls"], r["total_ns"], r["self_ns"], r["max_ns"], r["clients"], r["value"], r["unresolved"],
                    round(r["share"], 5)) for r in rows), key=str)


def numbers_are_those_of_sqlite(place):
    records = random_records(40)
    (place / "s").mkdir()
    (place / "c").mkdir()
    with Servers(place) as servers, Collector(place / "s", "--quiet") as lite, \
            Collector(place / "c", "--quiet", *servers.option) as house:
        for c in (lite, house):
            for run, body, parameters in records:
                c.put(run, body, **parameters)
            for build in ("game", "older"):
                c.put_names(encode_names(build, {16 * (i + 1): f"f{i}" for i in range(60)}))
        wait_until_delivered(house, build=image_of("game"))
        wait_until_delivered(house, build=image_of("older"))
        now = NOW_NS // 10**9
        filters = [{}, {"label": "level=1"}, {"label": records[0][2]["label"][1]}, {"client": CLIENTS[2].hex},
                   {"from": now - 86400 - 3600}, {"from": now - 2 * 86400 - 3600, "to": now - 3600}]
        for selection in filters:
            for metric in ("calls", "total", "self"):
                for agg in AGGREGATES:
                    how = dict(app="game", build=image_of("game"), metric=metric, agg=agg, limit=1000, **selection)
                    wanted, found = lite.get("hot", **how), house.get("hot", **how)
                    assert strip_rows(found["rows"]) == strip_rows(wanted["rows"]), how
                    for key in ("clients", "records", "timed_records", "called"):
                        assert found[key] == wanted[key], (how, key, found[key], wanted[key])
        for row in lite.get("hot", app="game", build=image_of("game"), limit=10)["rows"]:
            other = next(r for r in house.get("hot", app="game", build=image_of("game"), limit=1000)["rows"]
                         if r["name"] == row["name"])
            for selection in ({}, {"label": "level=1"}):
                a, b = (c.get("function", app="game", build=image_of("game"), function=number, metric="self", **selection)
                        for c, number in ((lite, row["function"]), (house, other["function"])))
                for key in ("values", "of_clients", "called_by"):
                    assert a[key] == b[key], key
                for key in ("callers", "callees"):
                    assert sorted((e["name"], e["calls"]) for e in a[key]) == sorted((e["name"], e["calls"]) for e in b[key])
        a, b = (c.get("diff", app="game", build=image_of("game"), base=image_of("older"), limit=1000) for c in (lite, house))
        assert [a[k] for k in ("new", "gone", "hotter", "cooler")] == [b[k] for k in ("new", "gone", "hotter", "cooler")]
        folds = harness.count_folds(house)
        house.get("hot", app="game", build=image_of("game"), q="f7")
        assert harness.count_folds(house) == folds, "a search asked ClickHouse again"
        # Both servers have a part, and each has it only once.
        rows = [int(server.ask("SELECT count() FROM hotfn.hotfn_counts_local")) for server in servers]
        assert all(rows) and int(servers[0].ask("SELECT count() FROM hotfn.hotfn_counts")) == sum(rows), rows


def kill_things(c, servers, answers, threads, turns):
    for turn in range(turns):
        while len(answers) < 40 * (turn + 1) and any(thread.is_alive() for thread in threads):
            time.sleep(0.002)
        c.kill()
        servers[turn % 2].kill()
        c.start()
        time.sleep(0.3)
        servers[turn % 2].start()


def nothing_is_lost_or_doubled(place):
    """right_test with ClickHouse: the collector and a server are killed twice, together."""
    if not LONG:
        right_test.RECORDS, right_test.FUNCTIONS = 60, 1000
    records, wanted = right_test.generate()
    with Servers(place) as servers, Collector(place, "--rate", "0", "--quiet", *servers.option) as c:
        answers, problems = [], []
        threads = [threading.Thread(target=right_test.run_client, args=(c, i, records, answers, problems))
                   for i in range(right_test.CLIENTS)]
        for thread in threads:
            thread.start()
        kill_things(c, servers, answers, threads, 2)
        for thread in threads:
            thread.join()
        assert not problems, problems
        c.put_names(encode_names("game", {rva: f"function_{rva}" for rva in wanted}))
        wait_until_delivered(c)
        right_test.check_numbers(c, wanted)
        rows = int(servers[0].ask("SELECT count() FROM hotfn.hotfn_counts"))
        assert rows == int(servers[1].ask("SELECT sum(row_count) FROM hotfn.hotfn_sums")), rows
        c.stop()
        c.start()
        right_test.check_numbers(c, wanted)
        print(f"{len(answers)} pushes, {rows} rows: " + ", ".join(f"{answers.count(a)} x {a}" for a in sorted(set(answers),
                                                                                                          key=str)))


def check_page(c, text):
    """The page shows what is missing, too."""
    if page_test.browser.find():
        with page_test.browser.Browser() as b:
            p = page_test.Page(b, c)
            p.show(app="game")
            assert text in p.texts("#facts")[0], p.texts("#facts")


def a_dead_server_delays_and_is_reported(place):
    with Servers(place) as servers, Collector(place, "--quiet", *servers.option) as c:
        def push(client, calls):
            c.push("game", {0x10: calls, 0x20: 1}, client)
        for client in CLIENTS[:4]:
            push(client, 100)
        assert wait_until_delivered(c)["rows"][0]["calls"] == 400
        servers[1].kill()
        for client in CLIENTS[:6]:
            push(client, 1000)  # acknowledged
        end = time.monotonic() + 60
        while True:
            answer = c.get("hot", app="game")
            if answer["missing"]["waiting_records"] == 3:
                break
            assert time.monotonic() < end, answer
            time.sleep(0.1)
        # The clients of the server that still runs: two with 1,100 calls and one with 1,000.
        assert answer["rows"][0]["calls"] == 3200 and answer["clients"] == 3, answer
        assert answer["missing"] == {"rows": 4, "waiting_records": 3, "servers": f"http://127.0.0.1:{servers[1].http}"}, answer
        check_page(c, f"missing: 4 rows, 3 records waiting to be moved (no answer from http://127.0.0.1:{servers[1].http})")
        assert "\nhotfn_waiting_records 3\n" in c.request("GET", "/metrics")[2].decode()
        servers[0].kill()
        status, _, body = c.request("GET", "/api/v1/hot", app="game")
        assert status == 503 and b"ClickHouse does not answer" in body, body
        push(CLIENTS[6], 5)
        for server in servers:
            server.start()
        answer = wait_until_delivered(c)
        assert answer["rows"][0]["calls"] == 400 + 6000 + 5 and answer["clients"] == 7, answer


def an_insertion_of_unknown_outcome_is_not_repeated(place):
    """The server has stored a batch, and the collector died before it knew.  Once the sums were made too, once not."""
    with Servers(place, 1) as servers:
        with Collector(place, "--quiet", *servers.option) as c:
            c.push("game", {0x10: 7, 0x20: 8}, CLIENTS[0])
            assert wait_until_delivered(c)["rows"][0]["calls"] == 8
        for lost_sums in (False, True):
            with Collector(place, "--quiet", *servers.option) as c:
                c.push("game", {0x10: 100}, CLIENTS[1])
                answer = wait_until_delivered(c)
                calls = {r["rva"]: r["calls"] for r in answer["rows"]}
                # Back to "sent": the batch is in ClickHouse, the database does not know it.
                c.kill()
                batch = forget_delivery(place)
                if lost_sums:
                    servers[0].ask(f"ALTER TABLE hotfn.hotfn_sums_local DROP PARTITION toDate({batch[1]})")
                c.start()
                again = wait_until_delivered(c)
                assert {r["rva"]: r["calls"] for r in again["rows"]} == calls, (again, calls)


def forget_delivery(place):
    database = sqlite3.connect(place / "data/hotfn.db")
    batch = database.execute("SELECT id, day FROM batch ORDER BY id DESC LIMIT 1").fetchone()
    database.execute("UPDATE batch SET delivered = 0 WHERE id = ?", batch[:1])
    for run, rows in database.execute("SELECT id, row_count FROM run WHERE batch = ?", batch[:1]).fetchall():
        database.execute("INSERT INTO counts VALUES(?, ?, ?)", (run, bytes((1, 100)), b""))
    database.commit()
    database.close()
    return batch


def sums_that_do_not_fit_are_not_wrapped(place):
    with Servers(place) as servers, Collector(place, "--quiet", *servers.option) as c:
        for client in CLIENTS[:2]:
            c.push("game", {0x10: 2**63 + 5, 0x20: 3}, client)
        rows = wait_until_delivered(c)["rows"]
        assert rows[0]["overflow"] and rows[0]["calls"] is None and rows[0]["value"] is None, rows
        assert rows[1]["calls"] == 6, rows
        median = c.get("hot", app="game", client=CLIENTS[0].hex)["rows"][0]
        assert median["calls"] == 2**63 + 5, median
        c.push("game", {0x10: 2**63}, CLIENTS[0])
        wait_until_delivered(c)
        status, _, body = c.request("GET", "/api/v1/function", app="game", function=0)
        assert status == 422 and b"64 bits" in body, body


def old_days_and_builds_are_deleted(place):
    with Servers(place) as servers:
        with Collector(place, "--quiet", *servers.option) as c:
            for day in (0, 5):
                for i, client in enumerate(CLIENTS[:4]):
                    start = NOW_NS - day * DAY_NS - 10**9
                    c.push("game", {0x10: 10 if day else 1}, client, start_ns=start)
            c.push("older", {0x10: 3}, CLIENTS[0])
            assert wait_until_delivered(c, build=image_of("game"))["rows"][0]["calls"] == 44
            wait_until_delivered(c, build=image_of("older"))
            done = subprocess.run([COLLECTOR, "--data", place / "data", *servers.option, "prune", "--app", "game", "--build",
                                   image_of("older")], capture_output=True, text=True)
            assert done.returncode == 1 and "stop the collector" in done.stderr, done
        c.options += ("--keep-days", "3")
        c.start()
        end = time.monotonic() + 30
        while c.get("hot", app="game", build=image_of("game"))["records"] != 4 and time.monotonic() < end:
            time.sleep(0.1)
        assert wait_until_delivered(c, build=image_of("game"))["rows"][0]["calls"] == 4
        c.stop()
        out = subprocess.run([COLLECTOR, "--data", place / "data", *servers.option, "prune", "--app", "game", "--build",
                              image_of("older")], capture_output=True, text=True, check=True).stdout
        assert out == "1 records deleted\n", out
        assert sum(int(s.ask("SELECT count() FROM hotfn.hotfn_sums_local")) for s in servers) == 4
        c.start()
        c.stop()


def memory_stays_bounded(place):
    if not LONG:
        raise cases.Skipped("this is a test of scripts/soak")
    with Servers(place, 1) as servers, Collector(place, "--rate", "0", "--quiet", *servers.option) as c:
        counts = {16 * i: i * i + 1 for i in range(1, 5001)}
        for i in range(1000):
            c.push("game", counts, CLIENTS[i % len(CLIENTS)])
        wait_until_delivered(c)
        c.get("hot", app="game", agg="median")
        peak = int(next(line for line in open(f"/proc/{c.process.pid}/status") if line.startswith("VmHWM")).split()[1])
        print(f"peak after 1,000 pushes of 5,000 rows: {peak / 1024:.0f} MiB")
        assert peak < 256 * 1024, peak


class TooOld(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1.1.54388\n")

    def log_message(self, *_):
        pass


def refusal(place, *options):
    done = subprocess.run([COLLECTOR, "--data", place / "data", "--listen", "127.0.0.1:0", *options], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode in (1, 2) and done.stderr, done
    return done.stderr


def what_does_not_fit_is_refused_in_one_sentence(place):
    old = http.server.HTTPServer(("127.0.0.1", 0), TooOld)
    threading.Thread(target=old.serve_forever, daemon=True).start()
    assert "has version 1.1, and 18.16 is needed" in refusal(place, "--clickhouse", f"http://127.0.0.1:{old.server_port}")
    old.shutdown()
    assert "not valid" in refusal(place, "--clickhouse", "127.0.0.1:8123")
    assert "not valid" in refusal(place, "--clickhouse", "http://127.0.0.1:1", "--clickhouse-database", "a;b")
    with Servers(place) as servers:
        assert "cluster 'other'" in refusal(place, *servers.option, "--clickhouse-cluster", "other")
        with Collector(place, "--quiet", *servers.option) as c:
            c.push("game", {0x10: 1}, CLIENTS[0])
            c.push("game", {0x10: 1}, CLIENTS[1])
            wait_until_delivered(c)
        assert "counts of this folder are in ClickHouse" in refusal(place)
        one = servers.option[1].split(",")[0]
        assert "are on 2 servers" in refusal(place, "--clickhouse", one)
        (place / "second").mkdir()
        assert "belongs to another folder" in refusal(place / "second", *servers.option)
    # While the servers do not run, records are acknowledged and wait.
    with Collector(place, "--quiet", *servers.option) as c:
        c.push("game", {0x10: 1}, CLIENTS[2])
        assert b"does not answer" in c.request("GET", "/api/v1/hot", app="game")[2]


CASES = [numbers_are_those_of_sqlite, nothing_is_lost_or_doubled, a_dead_server_delays_and_is_reported,
         an_insertion_of_unknown_outcome_is_not_repeated, sums_that_do_not_fit_are_not_wrapped,
         old_days_and_builds_are_deleted, what_does_not_fit_is_refused_in_one_sentence, memory_stays_bounded]

if __name__ == "__main__":
    sys.exit(harness.cases.run(CASES))
