# SPDX-License-Identifier: MIT
"""Programs are run, their records are sent by hotfn push, hotfn run --push and the Python package, and the collector
shows the numbers of hotfn merge.  No folder, command line or user name is sent."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import uuid

from harness import COLLECTOR, NOW_NS, Collector, cases, encode_run, image_of

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
SOURCE = """
#include <stdlib.h>
#define CALLED __attribute__((noinline, noclone))
static volatile int sink;
CALLED int leaf(int x)
{
    for (int i = 0; i < 20; i++)
        sink += x;
    return x + sink % 7;
}
CALLED int branch(int x) { __asm__ volatile(""); return leaf(x) + leaf(x + 1); }
CALLED int rare(int x) { __asm__ volatile(""); return x + 3; }
int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, x = 0;
    for (int i = 0; i < count; i++)
        x = branch(x);
    if (count > 300)
        x = rare(x);
    if (argc > 2)
        abort();
    return x == -1;
}
"""
INPUTS = (100, 250, 400)


def build(place, flags=("-O1",)):
    (place / "secret_folder").mkdir(exist_ok=True)
    (place / "game.c").write_text(SOURCE)
    program = place / "secret_folder/game"
    subprocess.run([COMPILER, "-w", *flags, "-Wl,--build-id", "-o", program, place / "game.c"], check=True)
    return program


def environment(place, tester, token):
    return dict(os.environ, XDG_STATE_HOME=str(place / f"state_{tester}"), HOTFN_TOKEN=token)


def hotfn(*arguments, status=0, env=None):
    done = subprocess.run([HOTFN, *map(str, arguments)], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == status, (arguments, done)
    return done.stderr if arguments[0] in ("push", "run", "kit") else done.stdout


def counted(report):
    return {f["name"]: f["calls"] for f in json.loads(report)["functions"] if f["calls"]}


def three_testers(place, c, *options):
    """Each tester is a process with other input, and an installation of its own."""
    program, records, token = build(place), [], c.token("write", "game")
    for tester, count in enumerate(INPUTS):
        records.append(place / f"{tester}.hfr")
        err = hotfn("run", "-o", records[-1], "--push", f"http://127.0.0.1:{c.port}", "--app", "game", "--label",
                    f"level={tester}", *options, "--", program, count, env=environment(place, tester, token))
        assert "stored" in err and ("names" in err) == (tester == 0), err
    return records


def the_collector_shows_the_numbers_of_merge(place):
    with Collector(place) as c:
        records = three_testers(place, c)
        hotfn("merge", "-o", place / "sum.hfr", *records)
        merged = counted(hotfn("report", "--json", place / "sum.hfr"))
        answer = c.get("hot", app="game", limit=1000)
        assert {row["name"]: row["calls"] for row in answer["rows"]} == merged, (answer, merged)
        assert answer["clients"] == 3 and merged["branch"] == sum(INPUTS) and merged["leaf"] == 2 * sum(INPUTS)
        for mode, agg in (("sum", "sum"), ("mean", "average"), ("mean-called", "average_called"), ("median", "median"),
                          ("p95", "p95"), ("max", "max")):
            hotfn("merge", "--mode", mode, "-o", place / "other.hfr", *records)
            merged = counted(hotfn("report", "--json", place / "other.hfr"))
            values = {row["name"]: row["value"] for row in c.get("hot", app="game", agg=agg, limit=1000)["rows"]}
            for name, value in values.items():  # merge rounds a mean, half up
                assert int(value + 0.5) == merged.get(name, 0), (mode, name, value, merged)
        assert {x["value"] for x in c.get("labels", app="game")["labels"]} == {"0", "1", "2"}


def read_page(p, **parameters):
    """{function: (calls, value)}, as the page shows them."""
    p.show(app="game", **parameters)
    columns = p.b.run("[...document.querySelectorAll('#hottable .head span')].filter(e => !e.hidden).map(e => e.textContent)")
    at = [columns.index("calls"), next(i for i, title in enumerate(columns) if title.startswith("value"))]
    rows = p.b.run("[...document.querySelectorAll('#hottable .row')].map(r => [r.querySelector('.name').title, "
                   "...[...r.children].map(e => e.textContent)])")
    return {row[0]: tuple(float(row[1 + i].replace(",", "")) for i in at) for row in rows}


def the_page_shows_the_numbers_of_merge(place):
    import page_test
    if not page_test.browser.find():
        raise cases.Skipped("no Chromium on this system")
    with Collector(place) as c, page_test.browser.Browser() as b:
        records, p = three_testers(place, c), page_test.Page(b, c)
        hotfn("merge", "-o", place / "sum.hfr", *records)
        sums = counted(hotfn("report", "--json", place / "sum.hfr"))
        for agg, mode in (("sum", "sum"), ("median", "median"), ("max", "max")):
            hotfn("merge", "--mode", mode, "-o", place / "other.hfr", *records)
            merged = counted(hotfn("report", "--json", place / "other.hfr"))
            wanted = {name: (sums[name], merged.get(name, 0)) for name in sums}
            assert read_page(p, agg=agg) == wanted, (agg, read_page(p, agg=agg), wanted)
        assert "3 clients, 3 records" in p.texts("#facts")[0], p.texts("#facts")
        assert not b.complaints, b.complaints


def times_and_callers_arrive(place):
    with Collector(place) as c:
        records = three_testers(place, c, "--mode", "time", "--clock", "cpu")
        wanted = {}
        for record in records:
            for f in json.loads(hotfn("report", "--json", record))["functions"]:
                if f["self_ns"] is not None:
                    wanted[f["name"]] = wanted.get(f["name"], 0) + f["self_ns"]
        rows = {row["name"]: row for row in c.get("hot", app="game", metric="self", limit=1000)["rows"]}
        assert rows["leaf"]["self_ns"] == wanted["leaf"] > 0, (rows["leaf"], wanted)
        leaf = c.get("function", app="game", function=rows["leaf"]["function"])
        assert sum(e["calls"] for e in leaf["callers"]) == 2 * sum(INPUTS), leaf
        caller = c.get("function", app="game", function=leaf["callers"][0]["function"])
        assert ("leaf", 2 * sum(INPUTS)) in [(e["name"], e["calls"]) for e in caller["callees"]], caller


def nothing_personal_is_sent(place):
    with Collector(place) as c:
        three_testers(place, c)
        c.stop()
        stored = b"".join(path.read_bytes() for path in sorted(c.folder.iterdir()) if path.is_file())
        for secret in ("secret_folder", str(place), os.environ.get("HOME", "/root") + "/", "game.c"):
            assert secret.encode() not in stored + c.log.read_bytes().replace(str(c.folder).encode(), b""), secret
        ids = {(place / f"state_{tester}/hotfn/client-id").read_text() for tester in range(3)}
        assert len(ids) == 3 and all(len(i) == 32 for i in ids)
        c.start()


def a_crash_of_the_program_is_sent_too(place):
    with Collector(place) as c:
        env = environment(place, 0, c.admin)
        err = hotfn("run", "-o", place / "r.hfr", "--push", f"http://127.0.0.1:{c.port}", "--", build(place), 7, "crash",
                    status=-6, env=env)
        assert "stored" in err, err
        rows = {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}
        assert rows["branch"] == 7, rows
        assert c.get("clients", app="game")["clients"][0]["runs"] == 1


def records_wait_in_the_spool_while_the_collector_is_away(place):
    with Collector(place) as c:
        env, url = environment(place, 0, c.admin), f"http://127.0.0.1:{c.port}"
        c.stop()
        program = build(place)
        for count in INPUTS:
            hotfn("run", "-q", "-o", place / f"{count}.hfr", "--", program, count)
            err = hotfn("push", "--to", url, "--attempts", "1", place / f"{count}.hfr", env=env)
            assert "spool" in err, err
        spool = place / "state_0/hotfn/spool"
        assert len(list(spool.glob("*.run"))) == 3 and len(list(spool.glob("*.names"))) == 1
        assert c.admin not in "".join(path.read_bytes().decode("latin1") for path in spool.iterdir())
        c.start()
        err = hotfn("push", "--to", url, env=env)
        assert "3 records of the spool were sent" in err, err
        assert not list(spool.glob("*.run"))
        answer = c.get("hot", app="game")
        assert {row["name"]: row["calls"] for row in answer["rows"]}["branch"] == sum(INPUTS)
        assert (answer["records"], answer["clients"]) == (3, 1)


WORKER = """
#include <stdio.h>
#include <time.h>
#define CALLED __attribute__((noinline, noclone))
static volatile int sink;
CALLED int leaf(int x)
{
    for (int i = 0; i < 20; i++)
        sink += x;
    return x + sink % 7;
}
CALLED int branch(int x) { __asm__ volatile(""); return leaf(x) + leaf(x + 1); }
CALLED int late(int x) { __asm__ volatile(""); return branch(x) + sink; }
int main(void)
{
    int x = 0;
    for (int line; scanf("%d", &line) == 1;) {
        for (int i = 0; i < line; i++)
            x += line > 500 ? late(i) : branch(i);
        puts("done");
        fflush(stdout);
    }
    return x == 1;
}
"""


class Worker:
    """hotfn run --push-every of a program that reads how often it is to call functions."""

    def __init__(self, place, c, *options):
        (place / "worker.c").write_text(WORKER)
        subprocess.run([COMPILER, "-w", "-O1", "-Wl,--build-id", "-o", place / "worker", place / "worker.c"], check=True)
        self.record, self.calls = place / "worker.hfr", 0
        self.process = subprocess.Popen(
            [HOTFN, "run", "-o", self.record, "--push", f"http://127.0.0.1:{c.port}", "--push-every", "1s", "--app", "game",
             "--app-version", "1.2", "--label", "level=3", *options, "--", place / "worker"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(place, 0, c.admin), text=True)

    def work(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", self.process.stderr.read()
        self.calls += count

    def end(self):
        self.process.stdin.close()
        err = self.process.stderr.read()
        assert self.process.wait(60) == 0, err
        return err


def wait_for_calls(c, calls):
    """Wait until the collector shows at least so many calls of branch, and return how many it shows."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if c.request("GET", "/api/v1/hot", app="game")[0] == 200:
            rows = {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}
            if rows.get("branch", 0) >= calls:
                return rows["branch"]
        time.sleep(0.05)
    raise AssertionError((calls, c.get("hot", app="game")))


def increments_arrive_while_the_program_runs(place):
    with Collector(place) as c:
        worker = Worker(place, c, "--mode", "time")
        worker.work(100)
        assert wait_for_calls(c, 100) == 100
        live = c.get("live", app="game")["live"]
        assert len(live) == 1 and live[0]["version"] == "1.2" and live[0]["labels"] == "level=3", live
        assert live[0]["hooked"] >= 4 and live[0]["lost_increments"] == 0 and not live[0]["overdue"], live
        c.kill()  # increments wait while the collector is away
        worker.work(50)
        time.sleep(1.5)
        worker.work(1000)
        c.start()
        assert wait_for_calls(c, 1150) == 1150
        worker.work(7)
        assert "stored" in worker.end()
        wanted = {f["name"]: f for f in json.loads(hotfn("report", "--json", worker.record))["functions"] if f["calls"]}
        rows = {row["name"]: row for row in c.get("hot", app="game", metric="self", limit=1000)["rows"]}
        assert {name: row["calls"] for name, row in rows.items()} == {name: f["calls"] for name, f in wanted.items()}
        assert rows["branch"]["calls"] == worker.calls == 1157 and rows["late"]["calls"] == 1000
        leaf = c.get("function", app="game", function=rows["leaf"]["function"])
        assert sum(e["calls"] for e in leaf["callers"]) == 2 * worker.calls, leaf
        client = c.get("clients", app="game")["clients"][0]
        assert (client["runs"], client["lost_increments"]) == (1, 0) and client["records"] >= 3, client
        assert c.get("live", app="game")["live"] == []
        assert "in increments" in hotfn("push", "--to", f"http://127.0.0.1:{c.port}", "--app", "game", worker.record,
                                        env=environment(place, 0, c.admin), status=1)


def the_last_increments_wait_in_the_spool(place):
    with Collector(place) as c:
        worker = Worker(place, c)
        worker.work(10)
        assert wait_for_calls(c, 10) == 10
        c.kill()
        worker.work(20)
        time.sleep(2.5)  # one increment is on its way, and the next one has the rest
        worker.work(30)
        assert "spool" in worker.end()
        assert len(list((place / "state_0/hotfn/spool").glob("*.run"))) == 2
        c.start()
        hotfn("push", "--to", f"http://127.0.0.1:{c.port}", env=environment(place, 0, c.admin))
        assert wait_for_calls(c, 60) == 60
        client = c.get("clients", app="game")["clients"][0]
        assert (client["runs"], client["lost_increments"]) == (1, 0), client


def the_spool_is_bounded_and_private(place):
    program = build(place)
    env = environment(place, 0, "secret-token")
    hotfn("run", "-q", "-o", place / "r.hfr", "--", program, 5)
    hotfn("push", "--to", "http://127.0.0.1:9", "--attempts", "1", place / "r.hfr", env=env)
    spool = place / "state_0/hotfn/spool"
    assert spool.stat().st_mode & 0o77 == 0
    with open(spool / "other.names", "wb") as fill:
        fill.truncate(64 << 20)
    hotfn("run", "-q", "-o", place / "s.hfr", "--", program, 5)
    err = hotfn("push", "--to", "http://127.0.0.1:9", "--attempts", "1", place / "s.hfr", env=env, status=1)
    assert "spool is full" in err, err


def refusals_are_repeated_in_one_sentence(place):
    with Collector(place) as c:
        url, program = f"http://127.0.0.1:{c.port}", build(place)
        record = place / "r.hfr"
        hotfn("run", "-q", "-o", record, "--", program, 5)
        env = environment(place, 0, c.token("write", "other"))
        assert "another app" in hotfn("push", "--to", url, "--app", "game", record, env=env, status=1)
        assert "token is unknown" in hotfn("push", "--to", url, record, env=environment(place, 0, "no"), status=1)
        assert "token is needed" in hotfn("push", "--to", url, record, env=environment(place, 0, ""), status=1)
        env = environment(place, 0, c.admin)
        hotfn("merge", "-o", place / "m.hfr", record, record)
        assert "merge of several runs" in hotfn("push", "--to", url, place / "m.hfr", env=env, status=1)
        (place / "cut.hfr").write_bytes(record.read_bytes()[:5000])
        assert "hotfn push" in hotfn("push", "--to", url, place / "cut.hfr", env=env, status=1)
        assert "KEY=VALUE" in hotfn("push", "--to", url, "--label", "level", record, env=env, status=2)
        assert "label" in hotfn("push", "--to", url, "--label", "k=" + "v" * 100000, record, env=env, status=1)
        assert "shorten it" in hotfn("push", "--to", url, "--app-version", "v" * 100000, record, env=env, status=1)
        (place / "other.hfr").write_bytes(record.read_bytes()[:12] + b"\2" + record.read_bytes()[13:])
        err = hotfn("push", "--to", url, place / "other.hfr", env=env, status=1)
        assert "has format version 2" in err and "use the hotfn that wrote it" in err, err
        found = c.request("POST", "/api/v1/records", (place / "other.hfr").read_bytes(), app="game")
        assert found[0] == 422 and b"use the hotfn that wrote it" in found[2], found
        token = place / "token"
        token.write_text(c.admin + "\n")
        assert "stored" in hotfn("push", "--to", url + "/", "--token-file", token, record, env=environment(place, 0, ""))


def what_the_collector_says_is_repeated(place):
    """Also of a failure that passes, and of a record that waited in the spool."""
    command = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", COLLECTOR) if os.geteuid() == 0 else (COLLECTOR,)
    record = place / "r.hfr"
    hotfn("run", "-q", "-o", record, "--", build(place), 5)
    with Collector(place, command=command) as c:
        url, env = f"http://127.0.0.1:{c.port}", environment(place, 0, c.admin)
        c.folder.chmod(0o500)
        err = hotfn("push", "--to", url, "--attempts", "1", record, env=env)
        assert "507: the collector cannot write to its disk" in err and "waits in the spool" in err, err
        c.folder.chmod(0o700)
        run, years = uuid.uuid4(), 3 * 365 * 86400 * 10**9
        body = encode_run(run, "one", {0x10: 5}, start_ns=NOW_NS + years)
        spooled = place / f"state_0/hotfn/spool/{run}-0.run"
        spooled.write_bytes(f"{url}\n{image_of('one')}\napp=game&client={'1' * 32}\n".encode() + body)
        err = hotfn("push", "--to", url, env=env, status=1)
        day = time.strftime("%Y-%m-%d", time.gmtime((NOW_NS + years) / 1e9 - 1))
        assert f"run {run} was removed from the spool" in err and f"began at {day} " in err and "set the clock" in err, err
        assert "1 record of the spool was sent" in err and not spooled.exists(), err


def labels_may_have_their_full_length(place):
    """Each byte of these labels is sent as three."""
    with Collector(place) as c:
        record, labels = place / "r.hfr", [chr(97 + i) + "\u00e4" * 31 + "x=" + "\u00f6" * 128 for i in range(16)]
        hotfn("run", "-q", "-o", record, "--", build(place), 5)
        options = [word for label in labels for word in ("--label", label)]
        err = hotfn("push", "--to", f"http://127.0.0.1:{c.port}", "--app", "\u00e9" * 128, "--app-version", "\u00e9" * 128,
                    *options, record, env=environment(place, 0, c.admin))
        assert "stored" in err and "spool" not in err, err
        found = c.get("labels", app="\u00e9" * 128)["labels"]
        assert sorted(f"{x['key']}={x['value']}" for x in found) == labels, found


def make_certificate(place, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", place / f"{name}.key", "-out",
                    place / f"{name}.pem"], check=True, capture_output=True)
    return place / f"{name}.pem", place / f"{name}.key"


def records_are_sent_over_tls(place):
    if not shutil.which("openssl"):
        raise cases.Skipped("openssl is not installed")
    (certificate, key), other = make_certificate(place, "own"), make_certificate(place, "other")[0]
    record, program = place / "r.hfr", build(place)
    hotfn("run", "-q", "-o", record, "--", program, 5)
    with Collector(place, "--certificate", certificate, "--key", key) as c:
        c.trusted = certificate
        url, env = f"https://127.0.0.1:{c.port}", environment(place, 0, c.admin)
        common = ("push", "--to", url, "--attempts", "1")
        # A server that is not trusted gets neither the token nor the record.
        for trusted in ((), ("--certificates", other)):
            assert "spool" in hotfn(*common, *trusted, record, env=env)
        assert c.get("apps")["apps"] == []
        assert "stored" in hotfn(*common, "--certificates", certificate, record, env=env)
        assert {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}["branch"] == 5
    for wrong, text in (((place / "absent", key), "absent cannot be read"), ((certificate, place / "absent"), "absent cannot"),
                        ((key, certificate), "own.key does not contain"), ((other, key), "--key does not belong")):
        done = subprocess.run([COLLECTOR, "--data", place / "data", "--listen", "127.0.0.1:0", "--certificate", wrong[0],
                               "--key", wrong[1]], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and text in done.stderr, done


def a_registered_build_gives_names_and_refuses_another_image(place):
    program = build(place, ("-O1", f"-Wl,-Map={place}/game.map"))
    stripped, other = place / "stripped", place / "other"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    (place / "game.c").write_text(SOURCE.replace("x + 3", "x + 4"))
    subprocess.run([COMPILER, "-w", "-O1", "-Wl,--build-id", "-o", other, place / "game.c"], check=True)
    with Collector(place) as c:
        url, env = f"http://127.0.0.1:{c.port}", environment(place, 0, c.admin)
        common = ("push", "--to", url, "--app", "game", "--app-version", "1.2")
        hotfn("run", "-q", "-o", place / "early.hfr", "--", stripped, 1)  # its names come too early
        assert "with the names" in hotfn("push", "--to", url, "--app", "game", place / "early.hfr", env=env)
        assert "registered" in hotfn(*common, "--build", stripped, "--map", place / "game.map", env=env)
        writer = environment(place, 1, c.token("write", "game"))
        assert "may not register" in hotfn(*common, "--build", other, env=writer, status=1)
        # A tester has no names; those of the map are shown.
        hotfn("run", "-q", "-o", place / "r.hfr", "--", stripped, 21)
        err = hotfn(*common, place / "r.hfr", env=writer)
        assert "stored" in err and "names" not in err, err
        rows = {row["name"]: row["calls"] for row in c.get("hot", app="game", build="1.2")["rows"]}
        assert (rows["branch"], rows["leaf"]) == (22, 44), rows
        hotfn("run", "-q", "-o", place / "o.hfr", "--", other, 21)
        err = hotfn(*common, place / "o.hfr", env=writer, status=1)
        registered = c.get("builds", app="game")["builds"][0]
        assert registered["registered"] and err.count(registered["build"]) == 1 and err.count("1-") >= 2, err
        assert len(c.get("builds", app="game")["builds"]) == 1
        c.options = ("--known-builds",)
        c.stop()
        c.start()
        err = hotfn("push", "--to", url, "--app", "game", place / "o.hfr", env=writer, status=1)
        assert "not a known build" in err, err


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A server that is no collector: it redirects to a file, or answers with a page."""

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        redirect = "/redirect" in self.path
        self.send_response(302 if redirect else 404)
        if redirect:
            self.send_header("Location", "file:///etc/passwd")
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_):
        pass


class Busy(http.server.BaseHTTPRequestHandler):
    """Two refusals that pass, the first with a delay, and then the record is stored."""

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.times.append(time.monotonic())
        status = {1: 429, 2: 503}.get(len(self.server.times), 201)
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "2")
        self.end_headers()
        self.wfile.write(b'{"error":"later"}' if status > 201 else b'{"stored":true}')

    def log_message(self, *_):
        pass


def a_busy_collector_is_asked_again_later(place):
    server = http.server.HTTPServer(("127.0.0.1", 0), Busy)
    server.times = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hotfn("run", "-q", "-o", place / "r.hfr", "--", build(place), 5)
    err = hotfn("push", "--to", f"http://127.0.0.1:{server.server_port}", place / "r.hfr", env=environment(place, 0, "t"))
    first, second, third = server.times
    assert "stored" in err and second - first >= 2 and third - second >= 0.25, (err, server.times)
    server.shutdown()


def another_server_is_recognised(place):
    server = http.server.HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hotfn("run", "-q", "-o", place / "r.hfr", "--", build(place), 5)
    for path in ("", "/redirect"):
        err = hotfn("push", "--to", f"http://127.0.0.1:{server.server_port}{path}", place / "r.hfr",
                    env=environment(place, 0, "t"), status=1)
        assert "address of a hotfn-collector" in err, err
    server.shutdown()


def python_sends_the_same_bytes(place):
    sys.path.insert(0, str(pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"]) / "bindings/python"))
    if os.environ.get("HOTFN_SANITIZED"):
        raise cases.Skipped("python is built without sanitizers")
    os.environ["XDG_STATE_HOME"] = str(place / "state_0")
    import hotfn as package
    with Collector(place) as c:
        url, record = f"http://127.0.0.1:{c.port}", place / "r.hfr"
        hotfn("run", "-q", "--mode", "time", "-o", record, "--", build(place), 42)
        pushed = package.push(record, url, token=c.admin, labels={"level": "7"})
        assert pushed.stored and pushed.sent_names
        rows = {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}
        assert rows["branch"] == 42 and rows["leaf"] == 84, rows
        # The tool's bytes have the same checksum, so the collector knows the record.
        assert "was stored before" in hotfn("push", "--to", url, record, env=environment(place, 0, c.admin))
        try:
            package.push(record, url, token="no")
            raise AssertionError("a wrong token was accepted")
        except package.PushError as refused:
            assert refused.status == 401
        for how in ({"labels": {"k": "v" * (1 << 20)}}, {"labels": {"k" * 65: "v"}}, {"version": "v" * 257},
                    {"labels": {f"k{i}": "v" for i in range(17)}}):
            try:
                package.push(record, url, token=c.admin, **how)
                raise AssertionError(f"{how} was accepted")
            except ValueError:
                pass


C_PROGRAM = """
#include <hotfn/push.h>
#include <stdio.h>
int main(int count, char **words)
{
    hotfn_push_options options = HOTFN_PUSH_OPTIONS_INIT;
    hotfn_push_result result = HOTFN_PUSH_RESULT_INIT;
    hotfn_error error = HOTFN_ERROR_INIT;
    options.url = words[1];
    options.token = words[2];
    options.state_dir = words[3];
    hotfn_status status = hotfn_push_record(words[4], &options, NULL, &result, &error);
    printf("%d %u %s", status == HOTFN_OK && count == 5, result.http_status, error.text);
    return 0;
}
"""


def a_c_program_sends_a_record(place):
    """With the library hotfn-push, which opens libcurl itself."""
    root, source = pathlib.Path(os.environ["HOTFN_BUILD_ROOT"]), pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"])
    if os.environ.get("HOTFN_SANITIZED"):
        raise cases.Skipped("this program is built without sanitizers")
    push, library = root / "tools/collector/push", root / "src"
    (place / "send.c").write_text(C_PROGRAM)
    subprocess.run([COMPILER, "-Wall", "-Werror", f"-I{source}/include", "-o", place / "send", place / "send.c", f"-L{push}",
                    f"-L{library}", "-lhotfn-push", "-lhotfn", f"-Wl,-rpath,{push}:{library}"], check=True)
    hotfn("run", "-q", "-o", place / "r.hfr", "--", build(place), 5)
    with Collector(place) as c:
        def send(token):
            return subprocess.run([place / "send", f"http://127.0.0.1:{c.port}", token, place / "state", place / "r.hfr"],
                                  capture_output=True, text=True, check=True).stdout
        assert [send(c.admin), send(c.admin)] == ["1 201 ", "1 200 "]
        assert send("no") == "0 401 the collector refuses it (401): the token is unknown or was removed: ask for a new one"
        assert {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}["branch"] == 5


def record_files_are_accepted_as_they_are(place):
    with Collector(place) as c:
        record = place / "r.hfr"
        hotfn("run", "-q", "-o", record, "--", build(place), 42)
        for status in (201, 200):
            found = c.request("POST", "/api/v1/records", record.read_bytes(), app="game")
            assert found[0] == status, found
        rows = {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}
        assert rows["branch"] == 42, rows
        assert "was stored before" in hotfn("push", "--to", f"http://127.0.0.1:{c.port}", record,
                                            env=environment(place, 0, c.admin))


CASES = [increments_arrive_while_the_program_runs, the_last_increments_wait_in_the_spool, the_collector_shows_the_numbers_of_merge, the_page_shows_the_numbers_of_merge, times_and_callers_arrive, nothing_personal_is_sent,
         a_crash_of_the_program_is_sent_too, records_wait_in_the_spool_while_the_collector_is_away,
         what_the_collector_says_is_repeated, labels_may_have_their_full_length, records_are_sent_over_tls, the_spool_is_bounded_and_private, refusals_are_repeated_in_one_sentence,
         a_busy_collector_is_asked_again_later, another_server_is_recognised,
         a_registered_build_gives_names_and_refuses_another_image,
         python_sends_the_same_bytes, a_c_program_sends_a_record, record_files_are_accepted_as_they_are]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER]))
