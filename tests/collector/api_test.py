# SPDX-License-Identifier: MIT
"""The API of hotfn-collector: queries return what was stored; each refusal has a status and one sentence."""
import gzip
import json
import os
import pathlib
import random
import re
import socket
import statistics
import sys
import time
import uuid

import harness
from harness import Collector, count_folds, encode_names, encode_run, image_of, module_head, number

NAMES = {0x10: "alpha", 0x20: "beta<int>(char const&)", 0x30: "gamma"}
CLIENTS = [uuid.UUID(int=i + 1) for i in range(5)]
COUNTS = [{0x10: 100 * (i + 1), 0x20: 7, **({0x30: 1000} if i == 0 else {})} for i in range(5)]


def fill(c, build="one", factor=1, **how):
    for client, counts in zip(CLIENTS, COUNTS):
        c.push(build, {rva: calls * factor for rva, calls in counts.items()}, client, **how)
    c.put_names(encode_names(build, NAMES))


def rows(answer):
    return {row["name"]: row for row in answer["rows"]}


def error(answer):
    sentence = json.loads(answer[2] if isinstance(answer, tuple) else answer)["error"]
    assert 10 < len(sentence) < 400 and "\n" not in sentence, sentence
    return sentence


def aggregates_are_those_of_the_clients(place):
    with Collector(place) as c:
        fill(c)
        for agg, wanted in (("sum", sum), ("average", statistics.mean), ("median", statistics.median), ("max", max)):
            found = rows(c.get("hot", app="game", build=image_of("one"), agg=agg))
            for rva, name in NAMES.items():
                values = [counts.get(rva, 0) for counts in COUNTS]
                assert found[name]["value"] == wanted(values), (agg, name, found[name])
                assert found[name]["calls"] == sum(values)
                assert found[name]["clients"] == sum(value > 0 for value in values)
        assert rows(c.get("hot", app="game", agg="p95"))["alpha"]["value"] == 500
        assert rows(c.get("hot", app="game", agg="average_called"))["gamma"]["value"] == 1000
        answer = c.get("hot", app="game")
        assert [row["name"] for row in answer["rows"]] == ["alpha", "gamma", NAMES[0x20]]
        assert (answer["clients"], answer["called"], answer["functions"]) == (5, 3, 3)
        assert c.get("hot", app="game", q="BETA char")["found"] == 1
        assert [r["rank"] for r in c.get("hot", app="game", sort="name", limit=1, offset=1)["rows"]] == [3]


def two_runs_of_a_client_are_one_client(place):
    with Collector(place) as c:
        for calls in (10, 30):
            c.push("one", {0x10: calls}, CLIENTS[0])
        c.push("one", {0x10: 5}, CLIENTS[1])
        row = c.get("hot", app="game", agg="median")["rows"][0]
        assert (row["value"], row["clients"], row["calls"], row["name"]) == (22.5, 2, 45, "one+0x10"), row
        clients = {x["client"]: x["runs"] for x in c.get("clients", app="game")["clients"]}
        assert clients == {CLIENTS[0].hex: 2, CLIENTS[1].hex: 1}


def selections_limit_what_is_folded(place):
    with Collector(place) as c:
        hour = 3600 * 10**9
        c.push("one", {0x10: 1}, CLIENTS[0], label=["level=1", "map=a b&c"], start_ns=harness.NOW_NS - 2 * hour)
        c.push("one", {0x10: 2}, CLIENTS[1], label=["level=2"], start_ns=harness.NOW_NS - hour)
        value = lambda **how: sum(row["calls"] for row in c.get("hot", app="game", **how)["rows"])  # noqa: E731
        assert (value(), value(label="level=1"), value(label="map=a b&c"), value(label="level=3")) == (3, 1, 1, 0)
        middle = (harness.NOW_NS - hour) // 10**9 - 60
        assert (value(to=middle), value(**{"from": middle}), value(client=CLIENTS[1].hex)) == (1, 2, 2)
        empty = c.get("function", app="game", function=0, label="level=3")
        assert (empty["of_clients"], empty["called_by"], empty["values"], empty["clients"]) == (0, 0, [], []), empty
        labels = {(x["key"], x["value"]): x["clients"] for x in c.get("labels", app="game")["labels"]}
        assert labels == {("level", "1"): 1, ("level", "2"): 1, ("map", "a b&c"): 1}, labels


def a_search_reads_no_run_again(place):
    with Collector(place) as c:
        for client, counts in zip(CLIENTS, COUNTS):
            c.push("one", counts, client)
        assert c.get("hot", app="game")["found"] == 3 and count_folds(c) == 1
        c.put_names(encode_names("one", NAMES))  # names are not kept
        first = rows(c.get("hot", app="game"))
        assert first.keys() == set(NAMES.values())
        assert rows(c.get("hot", app="game", q="alp")) == {"alpha": first["alpha"]}
        assert rows(c.get("hot", app="game", sort="name", offset=2)) == {"gamma": first["gamma"]}
        assert b"alpha" in c.request("GET", "/api/v1/export", app="game")[2] and count_folds(c) == 1
        diff = {"app": "game", "base": image_of("one"), "agg": "sum", "kind": "same"}
        assert c.get("diff", **diff)["found"] == 3 and c.get("diff", **diff, q="alp")["found"] == 1
        assert count_folds(c) == 2  # a diff also asks for the largest client
        c.push("other", {0x10: 5}, CLIENTS[0])
        assert c.get("hot", app="game", build=image_of("one"), q="gamma")["found"] == 1 and count_folds(c) == 2
        c.put_names(encode_names("one", {0x50: "not called"}))
        assert c.get("hot", app="game", build=image_of("one"))["functions"] == 4


def a_snapshot_is_the_table_of_one_moment(place):
    with Collector(place) as c:
        fill(c)
        first = c.get("hot", app="game", limit=1)
        c.push("one", {0x30: 10**6, 0x40: 1}, CLIENTS[2])
        later = {"app": "game", "snapshot": first["snapshot"]}
        answer = c.get("hot", offset=1, **later)
        assert [r["name"] for r in first["rows"] + answer["rows"]] == ["alpha", "gamma", NAMES[0x20]], answer
        assert (answer["records"], answer["functions"], rows(answer)["gamma"]["calls"]) == (5, 3, 1000), answer
        assert c.get("hot", **later, q="alp")["rows"][0]["calls"] == 1500 and count_folds(c) == 1
        now = c.get("hot", app="game")
        assert (now["records"], rows(now)["gamma"]["calls"], count_folds(c)) == (6, 1001000, 2)
        # What is kept no more, and what never was, is answered from the runs of today.
        for snapshot in (first["snapshot"], "", "x" * 2000, now["snapshot"] + "0"):
            assert c.get("hot", app="game", snapshot=snapshot)["records"] == 6
        assert c.get("hot", **later, metric="self")["records"] == 6


def answers_are_current_whatever_was_asked_before(place):
    """Random questions, many of them repeated while runs come: each answer is that of a model of the runs."""
    seed = int(os.environ.get("HOTFN_SEED", time.time_ns() % 10**6))
    print(f"seed {seed}")
    chance, runs = random.Random(seed), []
    aggregates = {"sum": sum, "average": statistics.mean, "median": statistics.median, "max": max}
    with Collector(place, "--rate", "0", "--quiet") as c:
        for turn in range(400):
            if turn < 4 or chance.random() < 0.04:
                client, level = CLIENTS[0] if turn == 0 else chance.choice(CLIENTS), chance.choice("12")
                runs.append((client, level, {rva: chance.randint(1, 10**6) for rva in chance.sample(list(NAMES), 2)}))
                c.push("one", runs[-1][2], client, label=[f"level={level}"])
            client, level, agg = chance.choice([None, CLIENTS[0]]), chance.choice([None, "1", "2"]), chance.choice(list(aggregates))
            found = [run for run in runs if client in (None, run[0]) and level in (None, run[1])]
            answer = c.get("hot", app="game", agg=agg, **({"client": client.hex} if client else {}),
                           **({"label": f"level={level}"} if level else {}), **({"q": "one"} if chance.random() < 0.5 else {}))
            assert answer["records"] == len(found), (turn, answer)
            of_client = {x: [run[2] for run in found if run[0] == x] for x in {run[0] for run in found}}
            wanted = {rva: aggregates[agg]([sum(counts.get(rva, 0) for counts in of_client[x]) for x in of_client])
                      for rva in {rva for run in found for rva in run[2]}}
            values = {row["rva"]: row["value"] for row in answer["rows"]}
            assert values.keys() == wanted.keys(), (turn, values, wanted)
            assert all(abs(values[rva] - wanted[rva]) <= 1e-6 * wanted[rva] for rva in wanted), (turn, agg, values, wanted)
        print(f"{count_folds(c)} folds")


def builds_are_compared_by_name(place):
    with Collector(place) as c:
        fill(c, "one", version="1.0", file="game")
        c.put_names(encode_names("two", {0x40: "alpha", 0x50: "gamma", 0x60: "delta"}, file="game"))
        for client in CLIENTS:
            c.push("two", {0x40: 600, 0x50: 200, 0x60: 9}, client, version="2.0", file="game")
        c.put_names(encode_names("one", NAMES, file="game"), status=201)
        diff = c.get("diff", app="game", build="2.0", base="1.0")
        kinds = {row["name"]: (row["kind"], row["head_value"], row["base_value"]) for row in diff["rows"]}
        assert kinds == {"alpha": ("hotter", 600, 300), "delta": ("new", 9, 0), NAMES[0x20]: ("gone", 0, 7)}, kinds
        assert [row["kind"] for row in c.get("diff", app="game", build="2.0", base="1.0", kind="same")["rows"]] == ["same"]
        c.push("two", {0x60: 91}, CLIENTS[3], version="2.0", file="game")
        delta = next(row for row in c.get("diff", app="game", build="2.0", base="1.0")["rows"] if row["name"] == "delta")
        assert (delta["top_client"], delta["top_share"]) == (CLIENTS[3].hex, round(100 / 136, 4)), delta
        hot = rows(c.get("hot", app="game", build="2.0", base="1.0", agg="average"))
        assert hot["alpha"]["base_value"] == 300 and hot["delta"]["base_value"] == 0
        builds = c.get("builds", app="game")["builds"]
        assert [(b["version"], b["runs"], b["clients"]) for b in builds] == [("2.0", 6, 5), ("1.0", 5, 5)], builds
        number = hot["alpha"]["function"]
        function = c.get("function", app="game", build="2.0", function=number)
        assert [(t["version"], t["average"]) for t in function["trend"]] == [("1.0", 300), ("2.0", 600)], function


def a_function_has_callers_callees_and_a_value_for_each_client(place):
    with Collector(place) as c:
        timed = {0x10: (5, 500, 100, 60), 0x20: (7, 400, 400, 50)}
        for client in CLIENTS[:2]:
            c.push("one", timed, client, timed=True, callers=[(None, 0, 5), (0, 1, 7)])
        c.put_names(encode_names("one", NAMES))
        hot = rows(c.get("hot", app="game", metric="self"))
        assert (hot["alpha"]["self_ns"], hot["alpha"]["total_ns"], hot["alpha"]["max_ns"]) == (200, 1000, 60)
        alpha = c.get("function", app="game", function=hot["alpha"]["function"], metric="total")
        assert [(e["name"], e["calls"]) for e in alpha["callers"]] == [("(code that is not timed)", 10)]
        assert [(e["name"], e["calls"]) for e in alpha["callees"]] == [(NAMES[0x20], 14)]
        assert alpha["values"] == [500, 500] and alpha["of_clients"] == 2
        assert {x["client"] for x in alpha["clients"]} == {x.hex for x in CLIENTS[:2]}


def increments_of_a_run_are_one_run(place):
    with Collector(place) as c:
        run, client = uuid.uuid4(), uuid.UUID(int=5)

        def increment(sequence, counts, state=1, status=201, **how):
            return c.put(run, encode_run(run, "one", counts, state=state), status=status, client=client.hex,
                         sequence=sequence, every=60, **how)
        increment(1, {16: 10})
        increment(1, {16: 10}, status=200)
        assert "other contents" in increment(1, {16: 11}, status=409)["error"]
        increment(3, {16: 5, 32: 1})
        live = c.get("live", app="game")["live"]
        assert len(live) == 1 and (live[0]["increments"], live[0]["lost_increments"]) == (2, 1), live
        increment(2, {32: 4})
        increment(4, {16: 1}, state=2)
        assert c.get("live", app="game")["live"] == []
        answer = c.get("hot", app="game")
        assert [(r["calls"], r["clients"]) for r in answer["rows"]] == [(16, 1), (5, 1)] and answer["clients"] == 1, answer
        found = c.get("clients", app="game")["clients"]
        assert len(found) == 1 and (found[0]["runs"], found[0]["records"], found[0]["lost_increments"]) == (1, 4, 0), found
        assert "in increments" in c.put(run, encode_run(run, "one", {16: 16}), status=409)["error"]
        whole = uuid.uuid4()
        c.put(whole, encode_run(whole, "one", {16: 1}))
        assert "no increments" in c.put(whole, encode_run(whole, "one", {16: 2}), status=409, sequence=1)["error"]
        assert "every" in c.put(whole, encode_run(whole, "one", {16: 2}), status=400, sequence=1, every=301)["error"]
        # A run whose increments stopped is not shown as running.
        lost = uuid.uuid4()
        c.put(lost, encode_run(lost, "one", {16: 1}, state=1), sequence=1, every=1)
        assert len(c.get("live", app="game")["live"]) == 1
        time.sleep(3.1)
        assert c.get("live", app="game")["live"] == []


def a_record_is_stored_once(place):
    with Collector(place) as c:
        run = uuid.uuid4()
        body, other = encode_run(run, "one", {0x10: 5}), encode_run(run, "one", {0x10: 6})
        assert c.put(run, body)["stored"] is True
        assert c.put(run, body, status=200)["stored"] is False
        assert c.put(run, body, status=200, compress=False)["stored"] is False
        assert "UUID" in c.put(run, other, status=409)["error"]
        c.kill()
        c.start()
        c.put(run, body, status=200)
        c.put(run, other, status=409)
        assert c.get("hot", app="game")["rows"][0]["calls"] == 5


def sums_that_do_not_fit_are_not_wrapped(place):
    with Collector(place) as c:
        for client in CLIENTS[:2]:
            c.push("one", {0x10: 2**63, 0x20: 2**64 - 1 if client == CLIENTS[0] else 0x0}, client)
        found = {row["rva"]: row for row in c.get("hot", app="game")["rows"]}
        assert found[0x10]["calls"] is None and found[0x10]["overflow"] is True and found[0x10]["value"] is None
        assert found[0x20]["calls"] == 2**64 - 1 and found[0x20]["overflow"] is False
        run = uuid.uuid4()
        too_large = encode_run(run, "one", {0x10: 2**64})
        assert c.put(run, too_large, status=None)[0] == 400
        assert c.request("GET", "/api/v1/export", app="game", format="pprof")[0] == 422


def tokens_limit_what_may_be_done(place):
    with Collector(place) as c:
        write, read, other = c.token("write", "game"), c.token("read", "game"), c.token("write", "other")
        run = uuid.uuid4()
        body = encode_run(run, "one", {0x10: 5})
        path = f"/api/v1/records/{run}"
        for token, app, status in ((None, "game", 401), ("hfc_wrong", "game", 401), (read, "game", 403),
                                   (other, "game", 403), (write, "game", 201)):
            answer = c.request("PUT", path, body, token=token, app=app)
            assert answer[0] == status, (token, answer)
            assert status == 201 or error(answer)
        for name in ("apps", "builds", "hot", "clients", "labels", "export", "function", "diff"):
            for token, status in ((None, 401), (write, 403)):
                assert c.request("GET", f"/api/v1/{name}", token=token, app="game")[0] == status, name
        assert c.request("GET", "/metrics", token=None)[0] == 401
        assert c.request("GET", "/healthz", token=None)[::2] == (200, b"ok\n")
        assert c.get("hot", app="game", token=read)["clients"] == 1
        assert c.request("GET", "/api/v1/hot", token=read, app="other")[0] == 403
        stored = (place / "data/hotfn.db").read_bytes() + (place / "data/hotfn.db-wal").read_bytes()
        assert not any(token.encode() in stored for token in (write, read, other)), "a token is stored in clear"
        listed = [line for line in c.command_output("token", "list").splitlines() if " read " in line]
        c.command_output("token", "remove", listed[0].split()[0])
        assert c.request("GET", "/api/v1/hot", token=read, app="game")[0] == 401


def anonymous_readers_are_allowed_on_request(place):
    with Collector(place, "--anonymous-read") as c:
        fill(c)
        assert c.get("hot", app="game", token=None)["clients"] == 5
        assert c.request("PUT", f"/api/v1/records/{uuid.uuid4()}", b"x", token=None, app="game")[0] == 401
        assert c.request("GET", "/api/v1/hot", token="hfc_wrong", app="game")[0] == 401


def cut_off_by_server(c, path):
    """The status of a request whose head is longer than the collector reads; the collector closes the connection."""
    with socket.create_connection(("127.0.0.1", c.port), 30) as s:
        try:
            s.sendall(f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        except OSError:
            pass  # closed before all was sent
        return int(s.recv(4096).split()[1])


def bad_input_is_refused_with_one_sentence(place):
    with Collector(place, "--max-inflated", "4000000") as c:
        run = uuid.uuid4()
        good = encode_run(run, "one", {0x10: 5})
        year = 365 * 86400 * 10**9
        cases = [
            (good[:-2], {}, 400), (good + b"x", {}, 400), (b"", {}, 400), (b"HFC2" + good[4:], {}, 400),
            (b"\x7fELF" + bytes(100), {}, 422), (encode_run(uuid.uuid4(), "one", {0x10: 5}), {}, 422),
            (encode_run(run, "one", {0x10: 5}, start_ns=harness.NOW_NS + 3 * year), {}, 422),
            (encode_run(run, "one", {0x10: 5}, start_ns=5), {}, 422),
            (good, {"label": "x" * 300}, 400), (good, {"label": [f"k{i}=v" for i in range(17)]}, 400),
            (good, {"label": "k=" + "v" * 300}, 400), (good, {"client": "nine"}, 400), (good, {"app": ""}, 400),
            (good, {"app": "x" * 300}, 400),
        ]
        for body, how, status in cases:
            found = c.put(run, body, status=None, compress=False, **how)
            assert found[0] == status, (found, how, body[:40])
            error(found[1])
        assert c.request("PUT", "/api/v1/records/17", good, app="game")[0] == 400
        assert c.request("PUT", f"/api/v1/records/{run}", good, app="game", headers={"Content-Encoding": "br"})[0] == 415
        assert c.request("PUT", f"/api/v1/records/{run}", good, app="game", headers={"Content-Encoding": "gzip"})[0] == 400
        assert cut_off_by_server(c, f"/api/v1/records/{run}?app=game&label=k%3D{'v' * (1 << 20)}") == 414
        cut = gzip.compress(good)[:-9]
        assert c.request("PUT", f"/api/v1/records/{run}", cut, app="game", headers={"Content-Encoding": "gzip"})[0] == 400
        assert c.request("GET", "/api/v1/hot", app="game", label="x" * 40000)[0] in (414, 431)
        bomb = c.put(run, bytes(3900000), status=None)
        assert bomb[0] == 413 and "inflates" in error(bomb[1]), bomb
        assert c.put(run, bytes(range(256)) * 20000, status=None, compress=False)[0] == 413
        assert c.request("HEAD", "/healthz", token=None)[::2] == (200, b"")
        assert c.request("PUT", "/api/v1/names", encode_names("one", {0x10: "a\0b"}), app="game")[0] == 400
        nothing = c.request("GET", "/nothing")
        assert nothing[0] == 404 and "the address /nothing" in error(nothing), nothing
        assert c.request("POST", "/api/v1/hot", b"")[0] == 405
        for name, how in (("hot", {"app": "none"}), ("hot", {"app": "game", "limit": "x"})):
            c.get(name, status=404, **how)  # nothing was stored, so the app is unknown
        c.put(run, good)
        for how, status in (({"build": "nine"}, 404), ({"limit": "x"}, 400),
                            ({"client": CLIENTS[0].hex}, 404), ({"label": "level"}, 400), ({"base": "nine"}, 404)):
            c.get("hot", status=status, app="game", **how)
        assert "none of: sum, average, " in c.get("hot", status=400, app="game", agg="mode")["error"]
        c.get("function", status=404, app="game", function=1)
        c.get("diff", status=400, app="game")
        fill(c, "two", version="1")
        fill(c, "three", version="1")
        c.get("hot", status=409, app="game", build="1")
        assert c.get("hot", app="game", build=image_of("two"))["clients"] == 5


def encode_modules(run, first, count):
    """A run of the build "one" with so many modules of one function each, in addition to the program."""
    out = [b"HFC1", number(0), run.bytes, number(harness.NOW_NS - 10**9), number(harness.NOW_NS), number(2), number(count),
           number(0), number(count), module_head("one", 1) + number(16) + number(1)]
    out += [module_head(f"module{i}", 1, main=False) + number(16) + number(1) for i in range(first, first + count - 1)]
    return b"".join([*out, number(0)])


def a_build_has_a_limited_number_of_modules(place):
    """Otherwise one client could fill the memory of the collector and slow down its writer."""
    with Collector(place) as c:
        run = uuid.uuid4()
        refused = c.put(run, encode_modules(run, 0, 4097), status=None)
        assert refused[0] == 413 and "4,096 modules" in error(refused[1]), refused
        for turn in range(4):
            c.put(run := uuid.uuid4(), encode_modules(run, 4000 * turn, 4001))
        run = uuid.uuid4()
        refused = c.put(run, encode_modules(run, 16000, 4001), status=None)
        assert refused[0] == 413 and "as many modules" in error(refused[1]), refused
        # Other records are stored, also those of the same build whose modules are known.
        c.push("two", {0x10: 1}, CLIENTS[0])
        c.put(run := uuid.uuid4(), encode_modules(run, 0, 4001))
        assert c.get("hot", app="game", build=image_of("one"), limit=1)["records"] == 5


def a_record_has_a_limited_number_of_rows(place):
    with Collector(place) as c:
        run, rows = uuid.uuid4(), 4_000_001
        head = b"".join([b"HFC1", number(0), run.bytes, number(harness.NOW_NS - 10**9), number(harness.NOW_NS), number(2),
                         number(0), number(0), number(1), module_head("one", rows)])
        refused = c.put(run, head + b"\1\1" * rows, status=None, compress=False)
        assert refused[0] == 413 and "4,000,000 functions" in error(refused[1]), refused


def too_many_requests_of_a_token_are_delayed(place):
    with Collector(place, "--rate", "2") as c:
        answers = [c.request("GET", "/api/v1/apps") for _ in range(30)]
        late = [answer for answer in answers if answer[0] == 429]
        assert late and all(int(answer[1]["Retry-After"]) >= 1 for answer in late) and error(late[0])
        assert {answer[0] for answer in answers} == {200, 429}


def exports_have_the_numbers_of_the_table(place):
    with Collector(place) as c:
        fill(c)
        status, headers, body = c.request("GET", "/api/v1/export", app="game", format="csv")
        assert status == 200 and "attachment" in headers["Content-Disposition"], headers
        assert body.decode().splitlines()[1].startswith('1,"alpha","one",0x10,1500,'), body
        callgrind = c.request("GET", "/api/v1/export", app="game", format="callgrind")[2].decode()
        assert f"fn={NAMES[0x20]}\n0 35\n" in callgrind and "fn=alpha\n0 1500\n" in callgrind, callgrind
        pprof = c.request("GET", "/api/v1/export", app="game", format="pprof")[2]
        assert b"alpha" in pprof and NAMES[0x20].encode() in pprof


def metrics_and_log_report_what_happened(place):
    with Collector(place) as c:
        fill(c)
        metrics = c.request("GET", "/metrics")[2].decode()
        assert "\nhotfn_records_stored_total 6\n" in metrics and "hotfn_rows_stored_total 11\n" in metrics, metrics
        lines = [json.loads(line) for line in c.log.read_text().splitlines()]
        assert sum(line.get("status") == 201 for line in lines) == 6 and c.admin not in c.log.read_text()
        assert json.loads(c.request("GET", "/api/v1/openapi.json", token=None)[2])["openapi"]


def code_of_the_collector():
    folder = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"]) / "tools/collector"
    return {path.name: path.read_text() for path in folder.glob("*.c")}


def the_openapi_file_has_all_routes_and_parameters(place):
    code = code_of_the_collector()
    routes = {(method.lower(), path) for method, path in re.findall(r'\{ "(GET|PUT|POST)", "([^"]+)"', code["request.c"])}
    read = {key for text in code.values() for key in
            re.findall(r'request_get(?:_number|_word)?\(\s*r,\s*"([a-z]+)"|choose_build\(r, s, "([a-z]+)"|'
                       r'copy_parameter\(r, "([a-z]+)"|parameters\[i\]\.key, "([a-z]+)"', text) for key in key if key}
    with Collector(place) as c:
        described = c.get("openapi.json", token=None)
        documented = {(method, path) for path, methods in described["paths"].items() for method in methods}
        assert documented == routes, documented ^ routes
        parameters = {p["name"] for methods in described["paths"].values() for operation in methods.values()
                      for p in operation["parameters"] if p["in"] == "query"}
        assert parameters == read, parameters ^ read
        for method, path in sorted(routes):  # each is really there
            status = c.request(method.upper(), path.replace("{item}", str(uuid.uuid4())), b"" if method != "get" else None)[0]
            assert status in (200, 400), (method, path, status)
            allowed = described["paths"][path][method]["responses"]
            assert str(status) in allowed, (method, path, status)


CASES = [increments_of_a_run_are_one_run, the_openapi_file_has_all_routes_and_parameters, aggregates_are_those_of_the_clients, two_runs_of_a_client_are_one_client, selections_limit_what_is_folded,
         a_search_reads_no_run_again, a_snapshot_is_the_table_of_one_moment, answers_are_current_whatever_was_asked_before,
         builds_are_compared_by_name, a_function_has_callers_callees_and_a_value_for_each_client, a_record_is_stored_once,
         sums_that_do_not_fit_are_not_wrapped, tokens_limit_what_may_be_done, anonymous_readers_are_allowed_on_request,
         bad_input_is_refused_with_one_sentence, a_build_has_a_limited_number_of_modules,
         a_record_has_a_limited_number_of_rows, too_many_requests_of_a_token_are_delayed,
         exports_have_the_numbers_of_the_table, metrics_and_log_report_what_happened]

if __name__ == "__main__":
    sys.exit(harness.cases.run(CASES))
