# SPDX-License-Identifier: MIT
"""200 records of 5,000 functions with known sums, pushed by 20 clients at once, with repeats, in another order,
over connections that are cut, while the collector is killed twice: nothing is lost and nothing counts twice."""
import gzip
import os
import random
import socket
import statistics
import sys
import threading
import time
import uuid

import harness
from harness import Collector, encode_names, encode_run

RECORDS, FUNCTIONS, CLIENTS = 200, 5000, 20
SEED = int(os.environ.get("HOTFN_SEED", "22"))


def generate():
    """([(client, run, body)], {rva: {client: calls}})"""
    chance = random.Random(SEED)
    clients = [uuid.UUID(int=chance.getrandbits(128)) for _ in range(CLIENTS)]
    records, wanted = [], {16 * (i + 1): {} for i in range(FUNCTIONS)}
    for index in range(RECORDS):
        client, counts = clients[index % CLIENTS], {}
        for rva, sums in wanted.items():
            if chance.random() < 0.8:
                calls = int(10 ** chance.uniform(0, 12))
                counts[rva] = calls
                sums[client] = sums.get(client, 0) + calls
        run = uuid.UUID(int=chance.getrandbits(128))
        records.append((client, run, gzip.compress(encode_run(run, "game", counts), 1)))
    return records, wanted


def cut_connection(c, run, body, client):
    """Send a part of a push and break the connection."""
    with socket.create_connection(("127.0.0.1", c.port), 10) as s:
        head = (f"PUT /api/v1/records/{run}?app=game&client={client.hex} HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
                f"Authorization: Bearer {c.admin}\r\nContent-Length: {len(body)}\r\n\r\n")
        s.sendall(head.encode() + body[:len(body) // 2])


def push_until_stored(c, client, run, body, answers):
    end = time.monotonic() + 120
    while True:
        try:
            status = c.request("PUT", f"/api/v1/records/{run}", body, app="game", client=client.hex,
                               headers={"Content-Encoding": "gzip"}, timeout=30)[0]
        except OSError:  # the collector was killed
            status = None
        except Exception as problem:  # http.client: the reply was cut off
            status = type(problem).__name__
        answers.append(status)
        if status in (200, 201):
            return
        assert status is None or isinstance(status, str) or status >= 500 or status == 429, status
        assert time.monotonic() < end, "the record was not stored within two minutes"
        time.sleep(0.05)


def run_client(c, number, records, answers, problems):
    chance = random.Random(SEED * 1000 + number)
    try:
        own = records[number::CLIENTS]
        repeats = chance.sample(records, 5)  # of any client: two connections may push one record at once
        work = own + repeats
        chance.shuffle(work)
        for client, run, body in work:
            if chance.random() < 0.2:
                try:
                    cut_connection(c, run, body, client)
                except OSError:
                    pass
            push_until_stored(c, client, run, body, answers)
    except BaseException as problem:
        problems.append(problem)


def check_numbers(c, wanted):
    for agg in ("sum", "average", "median", "max"):
        answer = c.get("hot", app="game", agg=agg, limit=FUNCTIONS, timeout=120)
        assert (answer["clients"], answer["records"], answer["found"]) == (CLIENTS, RECORDS, FUNCTIONS), answer["found"]
        for row in answer["rows"]:
            sums = wanted[row["rva"]]
            values = list(sums.values()) + [0] * (CLIENTS - len(sums))
            value = {"sum": sum(values), "average": round(sum(values) / CLIENTS, 3), "max": max(values),
                     "median": statistics.median(values)}[agg]
            assert row["calls"] == sum(values) and row["clients"] == len(sums), (row, sum(values))
            assert abs(row["value"] - value) <= 1e-9 * value + 0.001, (agg, row, value)


def nothing_is_lost_or_doubled(place):
    records, wanted = generate()
    with Collector(place, "--rate", "0", "--quiet") as c:
        answers, problems = [], []
        threads = [threading.Thread(target=run_client, args=(c, i, records, answers, problems)) for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for done in (60, 140):  # kill it when so many pushes were answered
            while len(answers) < done and any(thread.is_alive() for thread in threads):
                time.sleep(0.002)
            c.kill()
            c.start()
        for thread in threads:
            thread.join()
        assert not problems, problems
        assert answers.count(201) <= RECORDS < len(answers)
        c.put_names(encode_names("game", {rva: f"function_{rva}" for rva in wanted}))
        check_numbers(c, wanted)
        c.stop()
        c.start()
        check_numbers(c, wanted)
        print(f"{len(answers)} pushes: " + ", ".join(f"{answers.count(a)} x {a}" for a in sorted(set(answers), key=str)))


if __name__ == "__main__":
    sys.exit(harness.cases.run([nothing_is_lost_or_doubled]))
