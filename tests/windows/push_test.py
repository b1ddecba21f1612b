#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotfn.exe sends records to a hotfn-collector by WinHTTP, under wine.

    push_test.py BUILD HOTFN COLLECTOR [CASE ...]     BUILD: folder of the build for Windows; the others: native programs
"""
import getpass
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, HOTFN, COLLECTOR = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
del sys.argv[1:4]
os.environ.update(HOTFN=str(HOTFN), HOTFN_COLLECTOR=str(COLLECTOR), WINEDEBUG="-all")
sys.path.insert(0, str(ROOT / "tests/collector"))
import push_test  # noqa: E402
from harness import Collector, cases  # noqa: E402

TOOL = BUILD / "tools/hotfn/hotfn.exe"
# wine takes LOCALAPPDATA from its registry.
STATE = pathlib.Path(os.environ.get("WINEPREFIX", "~/.wine")).expanduser() / f"drive_c/users/{getpass.getuser()}/AppData/Local/hotfn"
LIMIT_S = 300  # only ends programs that hang
SOURCE = push_test.WORKER.replace("return x == 1;", "if (x == -1) return 3;\n    *(volatile int *)0 = x;\n    return 0;")


def build(place, source=SOURCE):
    shutil.rmtree(STATE, ignore_errors=True)  # each case is an installation of its own
    folder = place / "secret_folder"
    folder.mkdir(exist_ok=True)
    (place / "worker.c").write_text(source)
    subprocess.run(["x86_64-w64-mingw32-gcc", "-w", "-O1", "-g", "-fno-ipa-icf", "-static", "-o", folder / "worker.exe",
                    place / "worker.c"], check=True)
    return folder / "worker.exe"


def hotfn(place, *arguments, token="", text=None):
    """(exit status, stderr)"""
    environment = dict(os.environ, HOTFN_TOKEN=token)
    done = subprocess.run(["wine", TOOL, *map(str, arguments)], cwd=place, env=environment, capture_output=True, text=True,
                          input=text, timeout=LIMIT_S, check=False)
    return done.returncode, done.stderr


def run(place, c, *options, text="7\n", token=""):
    return hotfn(place, "run", "--no-cache", "-o", place / "r.hfr", "--push", f"http://127.0.0.1:{c.port}", "--app", "game",
                 *options, "--", place / "secret_folder/worker.exe", token=token or c.admin, text=text)


def calls_of(c):
    return {row["name"]: row["calls"] for row in c.get("hot", app="game")["rows"]}


def a_record_is_sent_when_the_program_ends(place):
    build(place, push_test.WORKER)
    with Collector(place) as c:
        err = run(place, c, "--app-version", "1.2", "--label", "level=\u00e4", token=c.token("write", "game"))[1]
        assert "stored, with the names" in err, err
        calls = calls_of(c)
        report = json.loads(subprocess.run([HOTFN, "report", "--json", place / "r.hfr"], capture_output=True, check=True).stdout)
        assert calls == {f["name"]: f["calls"] for f in report["functions"] if f["calls"]}, calls
        status, err = hotfn(place, "push", "--to", f"http://127.0.0.1:{c.port}", "--app", "game", place / "r.hfr", token=c.admin)
        assert status == 0 and "was stored before" in err, err
        assert c.get("labels", app="game")["labels"][0]["value"] == "\u00e4"
        assert c.get("clients", app="game")["clients"][0]["client"] == (STATE / "client-id").read_text()
        c.stop()
        stored = b"".join(path.read_bytes() for path in sorted(c.folder.iterdir()) if path.is_file())
        for secret in (b"secret_folder", str(place).encode(), b"AppData"):
            assert secret not in stored, secret
        c.start()


def a_crash_is_sent_too(place):
    build(place)
    with Collector(place) as c:
        status, err = run(place, c)
        assert status != 0 and "stored" in err, (status, err)
        assert c.get("clients", app="game")["clients"][0]["runs"] == 1


def increments_arrive_while_the_program_runs(place):
    program = build(place, push_test.WORKER)
    with Collector(place) as c:
        environment = dict(os.environ, HOTFN_TOKEN=c.admin)
        with subprocess.Popen(["wine", TOOL, "run", "--no-cache", "-o", place / "r.hfr", "--push",
                               f"http://127.0.0.1:{c.port}", "--push-every", "1s", "--app", "game", "--", program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as worker:
            worker.stdin.write(b"7\n")
            worker.stdin.flush()
            assert worker.stdout.readline().strip() == b"done"
            end = time.monotonic() + 60
            while c.get("apps")["apps"] == [] or not c.get("live", app="game")["live"]:
                assert time.monotonic() < end, c.log.read_text()[-1000:]
                time.sleep(0.05)
            worker.stdin.write(b"5\n")
            worker.stdin.close()
            assert worker.wait(LIMIT_S) == 0
        client = c.get("clients", app="game")["clients"][0]
        assert (client["runs"], client["lost_increments"]) == (1, 0) and client["records"] >= 2, client
        report = json.loads(subprocess.run([HOTFN, "report", "--json", place / "r.hfr"], capture_output=True, check=True).stdout)
        wanted = {f["name"]: f["calls"] for f in report["functions"] if f["calls"]}
        assert calls_of(c) == wanted, (calls_of(c), wanted)


def records_wait_in_the_spool(place):
    build(place, push_test.WORKER)
    with Collector(place) as c:
        c.stop()
        for text in ("7\n", "8\n"):
            hotfn(place, "run", "--no-cache", "-q", "-o", place / "r.hfr", "--", place / "secret_folder/worker.exe", text=text)
            status, err = hotfn(place, "push", "--to", f"http://127.0.0.1:{c.port}", "--attempts", "1", "--app", "game",
                                place / "r.hfr", token=c.admin)
            assert status == 0 and "waits in the spool" in err, err
        spool = STATE / "spool"
        assert len(list(spool.glob("*.run"))) == 2 and len(list(spool.glob("*.names"))) == 1, list(spool.iterdir())
        c.start()
        status, err = hotfn(place, "push", "--to", f"http://127.0.0.1:{c.port}", token=c.admin)
        assert "2 records of the spool were sent" in err and not list(spool.glob("*.run")), err
        answer = c.get("hot", app="game")
        assert (answer["records"], answer["clients"]) == (2, 1), answer


def refusals_are_repeated(place):
    program = build(place, push_test.WORKER)
    hotfn(place, "run", "--no-cache", "-q", "-o", place / "r.hfr", "--", program, text="7\n")
    with Collector(place) as c:
        common = ("push", "--to", f"http://127.0.0.1:{c.port}", "--app", "game")
        for token, text in (("no", "token is unknown"), (c.token("write", "other"), "another app"), ("", "token is needed")):
            status, err = hotfn(place, *common, place / "r.hfr", token=token)
            assert status == 1 and text in err, err
        status, err = hotfn(place, *common, "--certificates", "x.pem", place / "r.hfr", token=c.admin)
        assert status == 1 and "certutil" in err, err
        # A build is registered under the name of its file.
        status, err = hotfn(place, *common, "--app-version", "1.2", "--build", r"secret_folder\worker.exe", token=c.admin)
        assert status == 0 and "registered with" in err, err
        assert c.get("builds", app="game")["builds"][0]["file"] == "worker.exe"


def an_untrusted_server_gets_nothing(place):
    program = build(place, push_test.WORKER)
    hotfn(place, "run", "--no-cache", "-q", "-o", place / "r.hfr", "--", program, text="7\n")
    certificate, key = push_test.make_certificate(place, "own")
    with Collector(place, "--certificate", certificate, "--key", key) as c:
        c.trusted = certificate
        status, err = hotfn(place, "push", "--to", f"https://127.0.0.1:{c.port}", "--attempts", "1", "--app", "game",
                            place / "r.hfr", token=c.admin)
        assert status == 0 and "waits in the spool" in err and "now (" in err and "now ()" not in err, err
        assert c.get("apps")["apps"] == [] and '"PUT"' not in c.log.read_text()


def a_kit_sends(place):
    """The start script has neither the address nor the app's name; what the command line says comes first."""
    program = build(place, push_test.WORKER)
    parts = place / "parts"
    parts.mkdir()
    for path in (TOOL, BUILD / "src/agent/hotfn-agent.dll", BUILD / "src/agent/hotfn-methods.dll", ROOT / "LICENSE",
                 ROOT / "THIRD-PARTY.md"):
        (parts / path.name).symlink_to(path)
    app = "100% gr\u00fcn & \"blau\""
    with Collector(place) as c:
        (place / "token.txt").write_text(c.token("write", app))
        subprocess.run([HOTFN, "kit", "--windows", parts, "-o", program.parent / "kit", "--push", f"http://127.0.0.1:{c.port}",
                        "--app", app, "--app-version", "1 beta", "--token-file", place / "token.txt", program], check=True,
                       capture_output=True)
        done = subprocess.run(["wine", "cmd", "/c", "count.cmd"], cwd=program.parent / "kit", capture_output=True, input=b"7\n",
                              timeout=LIMIT_S, check=False)
        assert done.returncode == 0 and b"stored, with the names" in done.stderr, done
        answer = c.get("builds", app=app)["builds"][0]
        assert answer["version"] == "1 beta", answer
        other = subprocess.run(["wine", "cmd", "/c", "count.cmd", "--app", "another", "-o", "r.hfr"], cwd=program.parent / "kit",
                               capture_output=True, input=b"7\n", timeout=LIMIT_S, check=False)
        assert other.returncode == 0 and b"another app" in other.stderr, other


CASES = [a_record_is_sent_when_the_program_ends, a_crash_is_sent_too, increments_arrive_while_the_program_runs,
         records_wait_in_the_spool, refusals_are_repeated, an_untrusted_server_gets_nothing, a_kit_sends]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["wine", "x86_64-w64-mingw32-gcc", "openssl"]))
