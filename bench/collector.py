# SPDX-License-Identifier: MIT
"""hotfn-collector compared with the sqlite3 shell on the same rows: storing them, and the 50 hottest functions."""
import http.client
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"])
FUNCTIONS, CLIENTS = 5000, 20
# One row for each function and run, as a database without packed rows would have it.
TABLE = "CREATE TABLE count(run INTEGER, function INTEGER, calls INTEGER, PRIMARY KEY(run, function)) WITHOUT ROWID;"
DURABLE = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
HOT = "SELECT function, sum(calls) s, count(*) FROM count GROUP BY function ORDER BY s DESC LIMIT 50;"


def make_runs(count, clients=CLIENTS):
    """[(client, run, {rva: calls})]"""
    chance = random.Random(22)
    return [(uuid.UUID(int=i % clients + 1), uuid.UUID(int=chance.getrandbits(128)),
             {16 * (k + 1): int(10 ** chance.uniform(0, 9)) for k in range(FUNCTIONS)}) for i in range(count)]


def push_all(c, bodies):
    """Push over one connection; returns the seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    begin = time.perf_counter()
    for client, run, body in bodies:
        connection.request("PUT", f"/api/v1/records/{run}?app=game&client={client.hex}", body,
                           {"Authorization": f"Bearer {c.admin}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status
    connection.close()
    return time.perf_counter() - begin


def push_side_by_side(c, bodies, count):
    threads = [threading.Thread(target=push_all, args=(c, bodies[i::count])) for i in range(count)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def import_by_shell(place, runs):
    """`.import` of the same rows, one transaction a run; returns the seconds."""
    script = [DURABLE, TABLE, ".mode csv"]
    for number, (_, _, counts) in enumerate(runs):
        path = place / f"{number}.csv"
        path.write_text("".join(f"{number},{i},{calls}\n" for i, calls in enumerate(counts.values())))
        script += ["BEGIN;", f".import {path} count", "COMMIT;"]
    begin = time.perf_counter()
    subprocess.run(["sqlite3", place / "rows.db"], input="\n".join(script), text=True, check=True, capture_output=True)
    return time.perf_counter() - begin


def median_of(action, rounds):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def interleave(actions, prepare, rounds=5):
    """{name: seconds of each round}.  Other load of the machine meets all actions alike."""
    times = {name: [] for name in actions}
    for _ in range(rounds):
        prepare()
        for name, action in actions.items():
            begin = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - begin)
    return times


def describe(times, base):
    """Minimum and median in milliseconds, and as ratios to another list of times."""
    ratios = min(times) / min(base), statistics.median(a / b for a, b in zip(times, base))
    return (f"{1000 * min(times):.1f} and {1000 * statistics.median(times):.1f} ms ({ratios[0]:.2f}, {ratios[1]:.2f})")


def push_row(c, harness):
    """A record of one row, so that the next question of each kind reads all runs again instead of using kept sums."""
    push_all(c, [(uuid.UUID(int=1), run, harness.encode_run(run, "game", {16: 1})) for run in [uuid.uuid4()]])


def resident_mib(c, key):
    return int(next(line for line in open(f"/proc/{c.process.pid}/status") if line.startswith(key)).split()[1]) / 1024


def measure_fsync(place, byte_count):
    """The seconds of writing and fsyncing so many bytes: what each record that is alone in its batch waits for."""
    with open(place / "bytes", "wb", buffering=0) as out:
        def write():
            out.write(bytes(byte_count))
            os.fsync(out.fileno())
        return median_of(write, 20)


def measure_storing(report, harness, options):
    count = 20 if options.quick else 200
    runs = make_runs(count)
    bodies = [(client, run, harness.encode_run(run, "game", counts)) for client, run, counts in runs]
    rows, ratios, together = count * FUNCTIONS, [], []
    for _ in range(1 if options.quick else 5):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            shell = import_by_shell(place, runs)
            with harness.Collector(place, "--rate", "0", "--quiet") as c:
                one = push_all(c, bodies)
            shutil.rmtree(place / "data")
            with harness.Collector(place, "--rate", "0", "--quiet") as c:
                many = push_side_by_side(c, bodies, CLIENTS)
                packed = sum(path.stat().st_size for path in (place / "data").iterdir()) // count
            fsync = measure_fsync(place, packed)
            ratios.append(shell / one)
            together.append(shell / many)
    print(f"storing {rows:,} rows, speed of the sqlite3 shell's .import = 1: one client {statistics.median(ratios):.2f} "
          f"(minimum {min(ratios):.2f}), {CLIENTS} clients {statistics.median(together):.2f} (minimum {min(together):.2f})")
    print(f"  last round: .import {shell:.2f} s, one client {one:.2f} s ({rows / one:,.0f} rows/s, "
          f"{1000 * one / count:.1f} ms a push; to write and fsync its {packed:,} bytes alone: {1000 * fsync:.1f} ms), "
          f"{CLIENTS} clients {many:.2f} s")
    report.add("collector.store", "ratio", ratios, clients=1)
    report.add("collector.store", "ratio", together, clients=CLIENTS)


def insert_by_client(server, runs):
    """clickhouse-client inserts the same rows into tables like those of the collector; returns the seconds."""
    rows = "".join(f"2026-11-26\t1\t9\t4294967295\t{i}\t{client.int % CLIENTS}\t{number}\t0\t[]\t{calls}\t0\t0\t0\n"
                   for number, (client, _, counts) in enumerate(runs) for i, calls in enumerate(counts.values()))
    begin = time.perf_counter()
    subprocess.run(["clickhouse-client", "--port", str(server.native), "--query",
                    "INSERT INTO hotfn.hotfn_counts_local FORMAT TabSeparated"], input=rows.encode(), check=True)
    return time.perf_counter() - begin


def wait_for_delivery(c):
    """A query would compete with the insertions."""
    while b"\nhotfn_waiting_records 0\n" not in c.request("GET", "/metrics")[2]:
        time.sleep(0.02)


def time_delivery(harness, place, servers, bodies, clients):
    """The seconds from the first push to the last row in ClickHouse."""
    place.mkdir()
    with harness.Collector(place, "--rate", "0", "--quiet", *servers.option, "--clickhouse-database", place.name) as c:
        begin = time.perf_counter()
        push_side_by_side(c, bodies, clients)
        wait_for_delivery(c)
        seconds = time.perf_counter() - begin
    rows = int(servers[0].ask(f"SELECT count() FROM {place.name}.hotfn_counts_local"))
    assert rows == len(bodies) * FUNCTIONS, rows
    return seconds


def measure_clickhouse(report, harness, options):
    if not shutil.which("clickhouse-server") or not shutil.which("clickhouse-client"):
        print("collector: ClickHouse is not installed")
        return
    import clickhouse_servers
    count, ratios = 20 if options.quick else 200, {1: [], CLIENTS: []}
    runs = make_runs(count)
    bodies = [(client, run, harness.encode_run(run, "game", counts)) for client, run, counts in runs]
    for _ in range(1 if options.quick else 5):
        with tempfile.TemporaryDirectory() as folder:
            place, last = pathlib.Path(folder), {}
            with clickhouse_servers.Servers(place, 1) as servers:
                for clients in ratios:
                    last[clients] = time_delivery(harness, place / ("hotfn" if clients == 1 else "many"), servers, bodies, clients)
                client = insert_by_client(servers[0], runs)
            for clients, seconds in last.items():
                ratios[clients].append(client / seconds)
    for clients, values in ratios.items():
        print(f"ClickHouse, {count * FUNCTIONS:,} rows from the first push to the last row, {clients} client{'s'[:clients - 1]}, "
              f"speed of clickhouse-client = 1: {statistics.median(values):.2f} (minimum {min(values):.2f}, maximum "
              f"{max(values):.2f}); last round {last[clients]:.2f} s and {client:.2f} s")
        report.add("collector.clickhouse", "ratio", values, clients=clients)


# The same questions to the rows that the collector inserted.
CLICKHOUSE_MEDIAN = ("SELECT function, quantileExact(0.5)(v) AS s, count() FROM (SELECT function, client, sum(calls) AS v FROM "
                     "hotfn.hotfn_counts_local WHERE build = 1 AND caller = 4294967295 GROUP BY function, client) "
                     "GROUP BY function ORDER BY s DESC LIMIT 50")
CLICKHOUSE_HOT = ("SELECT function, sum(calls) AS s, uniqExact(client) FROM hotfn.hotfn_counts_local WHERE build = 1 AND "
                  "caller = 4294967295 GROUP BY function ORDER BY s DESC LIMIT 50")


def measure_clickhouse_queries(report, harness, options):
    """Queries of the collector with ClickHouse, compared with the bare SQL over HTTP.  Each run is of another client, so
    that the table of sums has as many rows as that of counts: the worst case."""
    if not shutil.which("clickhouse-server"):
        return
    import clickhouse_servers
    steps = [20, 200] if options.quick else [20, 200, 2000]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        runs, done = make_runs(steps[-1], steps[-1]), 0
        with clickhouse_servers.Servers(place, 1) as servers, \
                harness.Collector(place, "--rate", "0", "--quiet", *servers.option) as c:
            for step in steps:
                push_all(c, [(client, run, harness.encode_run(run, "game", counts)) for client, run, counts in
                             runs[done:step]])
                wait_for_delivery(c)
                done = step
                base = c.get("hot", app="game", limit=1)
                assert base["clients"] == step and base["found"] == FUNCTIONS and base["missing"] is None, base

                def prepare():
                    push_row(c, harness)
                    wait_for_delivery(c)
                for agg, question in (("sum", CLICKHOUSE_HOT), ("median", CLICKHOUSE_MEDIAN)):
                    times = interleave({"sql": lambda: servers[0].ask(question),
                                        "own": lambda: c.get("hot", app="game", agg=agg, limit=50, timeout=600)}, prepare)
                    sql, own = times["sql"], times["own"]
                    print(f"ClickHouse, top 50 of {step * FUNCTIONS:>11,} rows of {step:,} clients, {agg}, minimum and median: "
                          f"bare SQL {describe(sql, sql)}, collector {describe(own, sql)}")
                    report.add("collector.clickhouse_hot", "ratio", [a / b for a, b in zip(own, sql)], agg=agg,
                               rows=step * FUNCTIONS)
            bytes_on_disk = int(servers[0].ask("SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'hotfn' AND active"))
            print(f"  {bytes_on_disk / (steps[-1] * FUNCTIONS):.2f} bytes a row in ClickHouse; the collector is resident at most "
                  f"{resident_mib(c, 'VmHWM'):.0f} MiB")


def measure_queries(report, harness, options):
    steps = [2, 20, 200] if options.quick else [2, 20, 200, 2000]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        runs = make_runs(steps[-1], steps[-1])
        with harness.Collector(place, "--rate", "0", "--quiet") as c:
            done, first = 0, True
            subprocess.run(["sqlite3", place / "rows.db"], input=TABLE, text=True, check=True)
            for step in steps:
                push_all(c, [(client, run, harness.encode_run(run, "game", counts)) for client, run, counts in
                             runs[done:step]])
                with open(place / "rows.csv", "w") as out:
                    for number in range(done, step):
                        out.writelines(f"{number},{i},{calls}\n" for i, calls in enumerate(runs[number][2].values()))
                subprocess.run(["sqlite3", place / "rows.db"], text=True, check=True, capture_output=True,
                               input=f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;\n.mode csv\n.import {place}/rows.csv count\n")
                if first:
                    c.put_names(harness.encode_names("game", {rva: f"function_{rva}" for rva in runs[0][2]}))
                    first = False
                done = step
                times = interleave({
                    "sql": lambda: subprocess.run(["sqlite3", place / "rows.db", HOT], check=True, capture_output=True),
                    **{agg: lambda agg=agg: c.get("hot", app="game", agg=agg, limit=50) for agg in ("sum", "median", "p95")},
                    "search": lambda: c.get("hot", app="game", q="function_12", limit=50)}, lambda: push_row(c, harness))
                sql = times.pop("sql")
                base = c.get("hot", app="game", limit=1)
                assert base["clients"] == step and base["found"] == FUNCTIONS, base
                print(f"top 50 of {step * FUNCTIONS:>11,} rows of {step:,} clients, minimum and median: bare SQL "
                      f"{describe(sql, sql)}; collector " + ", ".join(f"{agg} {describe(t, sql)}" for agg, t in times.items()))
                for agg, t in times.items():
                    report.add("collector.hot", "ratio", [a / b for a, b in zip(t, sql)], agg=agg, rows=step * FUNCTIONS)
            size = sum(path.stat().st_size for path in (place / "data").iterdir())
            print(f"  database {size / (step * FUNCTIONS):.2f} bytes a row (rows of SQL: "
                  f"{(place / 'rows.db').stat().st_size / (step * FUNCTIONS):.1f}), resident at most "
                  f"{resident_mib(c, 'VmHWM'):.0f} MiB, now {resident_mib(c, 'VmRSS'):.0f} MiB")


def run(report, options):
    collector = pathlib.Path(os.environ["HOTFN_BUILD_ROOT"]) / "tools/collector/hotfn-collector"
    if not collector.exists() or not shutil.which("sqlite3"):
        print("collector: not built, or no sqlite3")
        return
    os.environ["HOTFN_COLLECTOR"] = str(collector)
    sys.path.insert(0, str(ROOT / "tests/collector"))
    import harness
    report.heading("hotfn-collector", "ratios to the sqlite3 shell with a row for each run and function")
    measure_storing(report, harness, options)
    measure_clickhouse(report, harness, options)
    measure_clickhouse_queries(report, harness, options)
    measure_queries(report, harness, options)
