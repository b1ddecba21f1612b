# SPDX-License-Identifier: MIT
"""What sending events costs the program: its processor time with `--send` over that with `--events`, at 10^6 events
for each second of its processor time; and how many of them arrive."""
import json
import os
import signal
import subprocess

import figures
import tools

EVENTS_PER_SECOND = 1_000_000
SECONDS = 2
STEPS = 1000  # of the run that measures how long a step takes
SOCKET = "/tmp/hotfn-bench-events"
RECEIVERS = {"UDP, listener": "udp:127.0.0.1:0", "Unix socket, listener": f"unix:{SOCKET}",
             "UDP, no listener": None, "Unix socket, no listener": f"unix:{SOCKET}-absent"}
UNUSED_PORT = "udp:127.0.0.1:9"  # the port of the discard service: nothing listens there


def run_program(binary, calls, steps, *words):
    """(processor time, wall time) of the program in ns; its launcher uses the other processors."""
    out = tools.output_of([tools.HOTFN, "run", "-q", "--no-cache", "--mode", "time", "--clock", "cpu", "-f",
                           "work_steps", *words, "-o", tools.WORK / "send.hfr", "--", binary, calls, steps],
                          cpus=tools.CPUS[1:] + tools.CPUS[:1])
    return tuple(int(word) for word in out.split())


def choose_steps(binary):
    """Steps of work in a call, so that a second of processor time has EVENTS_PER_SECOND entries and exits."""
    calls = 100_000
    fastest = min(run_program(binary, calls, STEPS, "--events")[0] for _ in range(5))
    return round(STEPS * 2e9 / EVENTS_PER_SECOND / (fastest / calls))


def run_sending(binary, calls, steps, receiver):
    """(processor time in ns, the listener's summary or None)."""
    if receiver is None or receiver.endswith("-absent"):
        return run_program(binary, calls, steps, "--send", receiver or UNUSED_PORT)[0], None
    with subprocess.Popen([tools.HOTFN, "listen", "--json", "-f", "nothing", receiver], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=tools.pinned(tools.CPUS[1:])) as listener:
        address = listener.stderr.readline().split()[-1]
        cpu = run_program(binary, calls, steps, "--send", address)[0]
        try:
            out, _ = listener.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            listener.send_signal(signal.SIGINT)
            out, _ = listener.communicate()
    return cpu, json.loads(out.splitlines()[-1])


def rows(report, options):
    binary = tools.compile_c(tools.WORK / "send", [tools.HERE / "send.c"])
    calls, steps = EVENTS_PER_SECOND * SECONDS // 2, choose_steps(binary)
    ratios, arrived, rates = ({kind: [] for kind in RECEIVERS} for _ in range(3))
    for _ in range(options.rounds):
        recording = run_program(binary, calls, steps, "--events")
        for kind, receiver in RECEIVERS.items():
            cpu, summary = run_sending(binary, calls, steps, receiver)
            ratios[kind].append(cpu / recording[0])
            rates[kind].append(2e3 * calls / cpu)
            if summary:
                arrived[kind].append(100 * summary["events"] / (2 * calls))
    for kind, values in ratios.items():
        report.add(f"send/{kind}", "CPU ratio", values)
        yield [kind, figures.spread(values, 3), figures.spread(rates[kind]),
               figures.spread(arrived[kind], 1) if arrived[kind] else "", len(values)]


def run(report, options):
    tools.WORK.mkdir(parents=True, exist_ok=True)
    if len(tools.CPUS) < 2:
        print("\nsend: not measured, because the launcher needs a processor of its own")
        return
    report.heading("Sending events as they happen",
                   "Processor time of the program with --send over that of the preceding run with --events, both on "
                   "one processor;", "hotfn and the listener on the others: min, median, upper quartile.")
    report.table(["to", "CPU ratio", "10^6 events a CPU second", "arrived, %", "rounds"], list(rows(report, options)))
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
