# SPDX-License-Identifier: MIT
"""`hotfn run --send` and `hotfn listen`: the listener sees each call of a program, by UDP and by a Unix socket; it
may be absent, stopped, killed and started again, and strangers may send it anything: the program runs on."""
import itertools
import json
import os
import pathlib
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import cases

HOTFN, COMPILER = os.environ["HOTFN"], os.environ.get("CC", "gcc")
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32
SOURCE = pathlib.Path(__file__).resolve().parent / "src/events_sent.c"
MAIN_DEPTH = 0 if FLAGS else 1  # main of a 32-bit program aligns its stack, so it is not timed
CALLS_PER_ROUND = {"outer": 1, "inner": 3}


def build(folder):
    program = folder / "events_sent"
    subprocess.run([COMPILER, "-O1", "-fno-optimize-sibling-calls", "-pthread", *FLAGS, "-o", program, SOURCE],
                   check=True)
    return program


class Listener:
    """A running `hotfn listen`, with the address that it printed."""

    def __init__(self, address, *options):
        self.out = tempfile.TemporaryFile("w+")  # a pipe that is not read would make it slow
        self.process = subprocess.Popen([HOTFN, "listen", *map(str, options), address], text=True,
                                        stdout=self.out, stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        assert line.startswith("hotfn listen: listening on "), line
        self.address = line.split()[-1]

    def finish(self, status=0):
        """Its whole output, when it has ended."""
        _, errors = self.process.communicate(timeout=60)
        out = self.text()
        assert self.process.returncode == status, (self.process.returncode, out[-1000:], errors)
        return out, errors

    def text(self):
        self.out.seek(0)
        return self.out.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def events(self):
        return [json.loads(line) for line in self.finish()[0].splitlines()]


def send(address, folder, *words, status=7, options=()):
    done = subprocess.run([HOTFN, "run", "-q", "--no-cache", "--send", address, *options, "-o", folder / "r.hfr", "--",
                           *map(str, words)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (status, "done\n", ""), done
    return folder / "r.hfr"


def count_calls(events, kind="entry"):
    counts = {}
    for event in events:
        if event["event"] == kind:
            counts[event["function"]] = counts.get(event["function"], 0) + 1
    return counts


def check_nesting(events):
    """The depth of each call follows from the entries and exits of its thread, and times never go back."""
    open_calls, last = {}, {}
    for event in events:
        if event["event"] not in ("entry", "exit"):
            continue
        calls, thread = open_calls.setdefault(event["thread"], []), event["thread"]
        assert event["time_ns"] >= last.get(thread, 0), event
        last[thread] = event["time_ns"]
        if event["event"] == "entry":
            assert event["depth"] == len(calls), (event, calls)
            calls.append((event["function"], event["time_ns"]))
        else:
            name, begin = calls.pop()
            assert (name, len(calls)) == (event["function"], event["depth"]), event
            assert event["duration_ns"] == event["time_ns"] - begin, event
    assert not any(open_calls.values()), open_calls


def check_all_calls(address, folder):
    program, record = build(folder), folder / "listened.hfr"
    listener = Listener(address, "--json", "--slow", "15ms", "-o", record)
    own = send(listener.address, folder, program, 500, 100)
    events = listener.events()
    summary = events[-1]
    assert (summary["lost_datagrams"], summary["skipped_events"], summary["malformed_datagrams"]) == (0, 0, 0), summary
    check_nesting(events)
    for kind in ("entry", "exit"):
        counts = count_calls(events, kind)
        assert {name: counts[name] for name in CALLS_PER_ROUND} == {"outer": 1000, "inner": 3000}, counts
    slow = [event for event in events if event["event"] == "exit" and event["slow"]]
    assert {event["function"] for event in slow} >= {"slow_one", "work_in_rounds"}, slow
    assert not {"inner", "outer"} & {event["function"] for event in slow if event["duration_ns"] < 15e6}, slow
    check_record(record, own, summary)


def check_record(listened, own, summary):
    """The listener's record has the calls of the launcher's, for all functions that are timed."""
    reports = [json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", path], capture_output=True, text=True,
                                         check=True).stdout) for path in (listened, own)]
    by_name = [{f["name"]: f for f in report["functions"] if f["calls"]} for report in reports]
    timed = {name for name, f in by_name[1].items() if f["timed_calls"]}
    assert set(by_name[0]) == timed >= set(CALLS_PER_ROUND), (set(by_name[0]), timed)
    for name in timed:
        left, right = by_name[0][name], by_name[1][name]
        assert (left["calls"], left["rva"], left["module"]) == (right["calls"], right["rva"], right["module"]), name
    assert sum(f["calls"] for f in by_name[0].values()) == summary["calls"]
    shown = subprocess.run([HOTFN, "export", "-F", "chrome", listened], capture_output=True, text=True, check=True)
    assert shown.stdout.count('"ph":"B"') == summary["calls"]


def count_record(path):
    report = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", path], capture_output=True, text=True,
                                       check=True).stdout)
    return {f["name"]: f["calls"] for f in report["functions"]}


def all_calls_arrive_by_udp(folder):
    check_all_calls("udp:127.0.0.1:0", folder)


def all_calls_arrive_by_a_unix_socket(folder):
    check_all_calls(f"unix:{folder}/events", folder)
    assert not (folder / "events").exists(), "the socket's file was not removed"


def the_tree_shows_filtered_and_slow_calls(folder):
    program = build(folder)
    listener = Listener("udp:127.0.0.1:0", "-f", "slow_*", "-f", "outer", "--slow", "15ms")
    send(listener.address, folder, program, 2, 0)
    out, errors = listener.finish()
    assert "\033" not in out, "colours in a pipe"
    calls = [line for line in out.splitlines() if " ms " in line]
    assert re.fullmatch(r" *[\d.]+ ms +\d+ +(} )?slow_one  [\d.]+ ms slow", calls[-1]), calls
    assert sum(" outer  " in line for line in calls) == 4, calls  # their entry and exit are one line
    assert {line.split()[-1] for line in calls if "slow_one" not in line} <= {"ns", "us", "ms"}, calls
    assert re.search(r"^-- stream 1: .*events_sent 2 0 \(process \d+\)$", out, re.M), out
    assert out.endswith("-- stream 1 has ended\n"), out
    assert re.search(r"\d+ events, \d+ calls; 0 datagrams lost, 0 events not sent, 0 datagrams malformed", errors), errors


def read_terminal(folder, program, **env):
    """The output of a listener on a terminal of its own."""
    leader, terminal = pty.openpty()
    listener = subprocess.Popen([HOTFN, "listen", f"unix:{folder}/events", "--slow", "15ms"], stdout=terminal,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, "TERM": "xterm", **env})
    os.close(terminal)
    listener.stderr.readline()
    send(f"unix:{folder}/events", folder, program, 1, 0)
    out = b""
    try:
        while True:
            out += os.read(leader, 65536)
    except OSError:  # its other end is closed
        pass
    os.close(leader)
    _, errors = listener.communicate(timeout=60)
    assert listener.returncode == 0, errors
    return out.decode()


def colours_appear_on_a_terminal_only(folder):
    program = build(folder)
    colored = read_terminal(folder, program)
    assert re.search("\033\\[1;31mslow_one\033\\[0m.*\033\\[1;31m[\\d.]+ ms slow", colored), colored
    plain = read_terminal(folder, program, NO_COLOR="1")
    assert "slow_one" in plain and "\033" not in plain, plain
    assert "\033" not in read_terminal(folder, program, TERM="dumb")


def forward_with_losses(source, target, dropped):
    """Forward datagrams from a socket to an address; drop every fifth one after the first ten, and count it."""
    for number in itertools.count():
        data = source.recv(1 << 16)
        is_last = data[6] & 1
        if number >= 10 and number % 5 == 0 and not is_last:
            dropped.append(struct.unpack_from("<Q", data, 16)[0])
        else:
            source.sendto(data, target)
        if is_last:
            return


def lost_datagrams_are_counted_and_the_depth_stays_right(folder):
    program, dropped = build(folder), []
    listener = Listener("udp:127.0.0.1:0", "--json")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as between:
        between.bind(("127.0.0.1", 0))
        between.settimeout(60)
        target = ("127.0.0.1", int(listener.address.rpartition(":")[2]))
        forwarding = threading.Thread(target=forward_with_losses, args=(between, target, dropped))
        forwarding.start()
        send(f"udp:127.0.0.1:{between.getsockname()[1]}", folder, program, 1000, 200)
        forwarding.join()
    events = listener.events()
    assert len(dropped) > 10 and events[-1]["lost_datagrams"] == len(dropped), (len(dropped), events[-1])
    assert sum(e["count"] for e in events if e["event"] == "lost") == len(dropped)
    main_thread = events[0]["pid"]
    for e in events:
        if e.get("function") in ("outer", "inner"):
            above = MAIN_DEPTH if e["thread"] == main_thread else 0
            assert e["depth"] == above + ("work_in_rounds", "outer", "inner").index(e["function"]), e
    counts = count_calls(events)
    assert 500 < counts["outer"] < 2000 and 1500 < counts["inner"] < 6000, counts


def an_absent_listener_is_no_obstacle(folder):
    program = build(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for address in (f"udp:127.0.0.1:{port}", f"unix:{folder}/nothing"):
        send(address, folder, program, 10, 0)


def a_listener_that_stands_still_blocks_neither_program_nor_launcher(folder):
    program = build(folder)
    listener = Listener(f"unix:{folder}/events", "--json")
    listener.process.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    record = send(listener.address, folder, program, 100000, 0)
    assert time.monotonic() - begin < 60
    listener.process.send_signal(signal.SIGCONT)
    out, _ = listener.stop()
    counts = count_record(record)
    assert counts["inner"] == 600000, counts
    assert len(out.splitlines()) < 600000, "the queue of a socket cannot have held them all"


def a_listener_may_be_killed_and_started_again(folder):
    program, address = build(folder), f"unix:{folder}/events"
    first = Listener(address, "--json")
    running = subprocess.Popen([HOTFN, "run", "-q", "--send", address, "-o", folder / "r.hfr", "--", program, "2000",
                                "1000"], stdout=subprocess.PIPE)
    try:
        while first.text().count("\n") < 100:
            time.sleep(0.02)
        first.process.kill()
        first.process.communicate()
        time.sleep(0.3)
        events = Listener(address, "--json").events()
        assert running.wait(60) == 7
    finally:
        running.kill()
        running.communicate()
    seen = [json.loads(line) for line in first.text().splitlines() if line.endswith("}")]
    assert count_calls(seen)["inner"] > 0 and seen[0]["event"] == "stream", seen[:3]
    assert events[0]["event"] == "stream" and events[-2]["event"] == "ended", (events[0], events[-2:])
    counts = count_calls(events)
    assert 0 < counts["outer"] < 4000 and abs(counts["inner"] - 3 * counts["outer"]) <= 6, counts
    assert not [name for name in counts if name.startswith("function ")], counts
    assert events[-1]["lost_datagrams"] == 0, events[-1]
    # the outer entries were sent to the first listener only, and the depth is known nevertheless
    assert {e["depth"] for e in events if e.get("function") == "outer" and e["thread"] == e["pid"]} == {
        MAIN_DEPTH + 1}, events[:5]
    ends = [e["duration_ns"] for e in events if e["event"] == "exit" and e["function"] == "work_in_rounds"]
    assert ends == [None, None], ends


def strange_datagrams_are_counted_and_dropped(folder):
    program = build(folder)
    listener = Listener("udp:127.0.0.1:0", "--json")
    port = int(listener.address.rpartition(":")[2])
    header = b"HFNE" + struct.pack("<HHQQQ", 1, 0, 77, 0, 0)
    strange = [b"", b"x", b"HFNE", header[:-1], header + b"\xff", header + struct.pack("<IQ", 1, 5),
               b"HFNF" + header[4:], header + os.urandom(1000), os.urandom(32000),
               header + struct.pack("<IIQIHH", 4, 0, 0, 0, 1024, 0) + b"x" * 1023]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in strange:
            stranger.sendto(data, ("127.0.0.1", port))
    send(listener.address, folder, program, 100, 100)
    events = listener.events()
    # an empty datagram is not seen at all
    assert events[-1]["malformed_datagrams"] == len(strange) - 1, events[-1]
    assert count_calls(events)["inner"] == 600 and events[-1]["streams"] == 1, events[-1]


def a_program_that_executes_another_one_has_a_second_stream(folder):
    program = build(folder)
    listener = Listener(f"unix:{folder}/events", "--json", "-o", folder / "l.hfr")
    send(listener.address, folder, program, "execute")
    events = listener.events()
    kinds = [e["event"] for e in events if e["event"] not in ("entry", "exit")]
    assert kinds == ["stream", "executed", "stream", "ended", "summary"], kinds
    counts = [count_calls(e for e in events if e.get("stream") == number) for number in (1, 2)]
    assert counts[0]["outer"] == 1 and counts[1]["outer"] == 2, counts
    # the record is that of the last program, as the launcher's is
    assert [path.name for path in folder.glob("l.hfr*")] == ["l.hfr"]
    assert count_record(folder / "l.hfr")["outer"] == count_record(folder / "r.hfr")["outer"] == 2


def several_programs_at_one_time_are_several_streams(folder):
    program = build(folder)
    listener = Listener("udp:127.0.0.1:0", "--json", "--keep", "--for", "20s", "-o", folder / "l.hfr")
    running = [subprocess.Popen([HOTFN, "run", "-q", "--send", listener.address, "-o", folder / f"{i}.hfr", "--",
                                 program, "200", "500"], stdout=subprocess.DEVNULL) for i in range(3)]
    assert [process.wait(60) for process in running] == [7, 7, 7]
    assert listener.process.poll() is None, "--keep was ignored"
    out, _ = listener.stop()
    events = [json.loads(line) for line in out.splitlines()]
    for stream in (1, 2, 3):
        own = [e for e in events if e.get("stream") == stream]
        assert count_calls(own)["inner"] == 1200, stream
        check_nesting(own)
    assert events[-1]["streams"] == 3, events[-1]
    pids = {str(e["pid"]) for e in events if e["event"] == "stream" and e["stream"] > 1}
    assert {path.name for path in folder.glob("l.hfr*")} == {"l.hfr", *(f"l.hfr.{pid}" for pid in pids)}


def wrong_arguments_are_refused_in_one_sentence(folder):
    def refused(*words, status):
        done = subprocess.run([HOTFN, *map(str, words)], capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done
        return done.stderr
    for address in ("9000", "udp:x", "udp:127.0.0.1:70000", "unix:", "tcp:a:1"):
        assert f"'{address}' is not an address" in refused("listen", address, status=2)
        assert f"'{address}' is not an address" in refused("run", "--send", address, "--", "/bin/true", status=2)
    assert "above 0" in refused("run", "--send", "udp:0", "--", "/bin/true", status=2)
    assert "no address is named" in refused("listen", status=2)
    assert "'['" in refused("listen", "-f", "[", "udp:0", status=2)
    assert "'no-such-host.invalid' is not known" in refused(
        "run", "--send", "udp:no-such-host.invalid:9", "--", "/bin/true", status=125)
    assert "tick clock" in refused("run", "--send", "udp:9", "--clock", "tick", "--", "/bin/true", status=2)
    (folder / "file").write_text("")
    assert f"{folder}/file: another process listens there" in refused("listen", f"unix:{folder}/file", status=1)
    listener = Listener("udp:127.0.0.1:0", "--for", "200ms")
    assert "cannot be listened on" in refused("listen", listener.address, status=1)
    out, errors = listener.finish()
    assert out == "" and "0 events" in errors, (out, errors)
    done = subprocess.run([HOTFN, "attach", "--send", "udp:9", "1"], capture_output=True, text=True)
    assert done.returncode == 2 and "send" in done.stderr, done


CASES = [
    all_calls_arrive_by_udp,
    all_calls_arrive_by_a_unix_socket,
    the_tree_shows_filtered_and_slow_calls,
    colours_appear_on_a_terminal_only,
    lost_datagrams_are_counted_and_the_depth_stays_right,
    an_absent_listener_is_no_obstacle,
    a_listener_that_stands_still_blocks_neither_program_nor_launcher,
    a_listener_may_be_killed_and_started_again,
    strange_datagrams_are_counted_and_dropped,
    a_program_that_executes_another_one_has_a_second_stream,
    several_programs_at_one_time_are_several_streams,
    wrong_arguments_are_refused_in_one_sentence,
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=[COMPILER]))
