# SPDX-License-Identifier: MIT
"""The cost of counting and timing Python functions, compared with cProfile and sys.setprofile in one run; and of
Objective-C messages, compared with a message that is not traced."""
import resource
import subprocess

import figures
import tools

PYTHON = "/usr/bin/python3.11"  # Debian's; the only version whose functions are counted
WORK = """
import json

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Node:
    def __init__(self, value):
        self.value = value
    def get(self):
        return self.value

def work():
    fib(22)
    nodes = [Node(i) for i in range(20000)]
    total = sum(node.get() for node in nodes)
    for i in range(2000):
        json.loads(json.dumps({"k": list(range(20)), "i": i}))
    return total + len(sorted(nodes, key=lambda node: -node.get()))

for _ in range(40):
    work()
"""
PROFILED = {
    "cProfile": "import cProfile\ncProfile.run(compile(open({path!r}).read(), {path!r}, 'exec'), '/dev/null')\n",
    "sys.setprofile": "import sys\ncounts = {{}}\ndef note(frame, event, arg):\n    if event == 'call':\n"
                      "        counts[frame.f_code] = counts.get(frame.f_code, 0) + 1\n"
                      "sys.setprofile(note)\nexec(compile(open({path!r}).read(), {path!r}, 'exec'))\n",
}
MODES = {"hotfn, counted": [], "hotfn, timed": ["--mode", "time", "--clock", "cpu"]}


def get_cpu_seconds(command):
    """Of the command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wrap(words, program):
    """Only Python functions are hooked."""
    return [tools.HOTFN, "run", "-q", "--runtime", "python", *words, "-f", "* (*", "-o",
            tools.WORK / "python.hfr", "--", PYTHON, *program]


def make_commands():
    tools.WORK.mkdir(parents=True, exist_ok=True)
    path = tools.WORK / "python_work.py"
    path.write_text(WORK)
    commands = {"bare": [PYTHON, path]}
    for name, text in PROFILED.items():
        script = tools.WORK / f"under_{name}.py"
        script.write_text(text.format(path=str(path)))
        commands[name] = [PYTHON, script]
    commands.update({name: wrap(words, [path]) for name, words in MODES.items()})
    return commands


SENDS = r"""
#import <objc/objc.h>
#import <objc/runtime.h>
#include <stdio.h>
#include <time.h>
@interface Root { Class isa; long sum; }
- (void)add:(long)value;
@end
@implementation Root
- (void)add:(long)value { sum += value; }
@end
int main(void)
{
    enum { SENDS = 5000000 };
    Root *o = class_createInstance(objc_getClass("Root"), 0);
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (long i = 0; i < SENDS; i++) [o add:i];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.3f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / SENDS);
    return 0;
}
"""
# A message is timed if its method's function is hooked too, so its cost is that of two timed calls.
SEND_MODES = {"counted": ["-f", "-?Root *"], "counted, and its function": [],
              "timed, and its function": ["--mode", "time"]}


def get_send_ns(command):
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])


def measure_sends(report, rounds):
    source, program = tools.WORK / "sends.m", tools.WORK / "sends"
    source.write_text(SENDS)
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-w", "-o", program, source, "-lobjc"], check=True)
    commands = {"not traced": [program]} | {
        name: [tools.HOTFN, "run", "-q", "--runtime", "objc", *words, "-o", tools.WORK / "sends.hfr", "--", program]
        for name, words in SEND_MODES.items()}
    ns = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            ns[name].append(get_send_ns(command))
    rows = []
    for name, values in ns.items():
        added = [value - bare for value, bare in zip(values, ns["not traced"])]
        report.add(f"runtimes/objc/{name}", "ns", added if any(added) else values)
        rows.append([name, figures.spread(values), figures.spread(added), len(values)])
    report.heading("Objective-C messages of GCC's runtime: processor time of one, in ns",
                   "and what tracing adds to it; min, median, upper quartile")
    report.table(["message", "ns", "added ns", "rounds"], rows)


def run(report, options):
    tools.need(PYTHON)
    commands = make_commands()
    seconds = {name: [] for name in commands}
    for _ in range(min(options.runs, 15)):
        for name, command in commands.items():
            seconds[name].append(get_cpu_seconds(command))
    rows = []
    added_by_cprofile = [value - bare for value, bare in zip(seconds["cProfile"], seconds["bare"])]
    for name, values in seconds.items():
        ratios = [value / bare for value, bare in zip(values, seconds["bare"])]
        added = [value - bare for value, bare in zip(values, seconds["bare"])]
        shares = [value / reference for value, reference in zip(added, added_by_cprofile)]
        report.add(f"runtimes/python/{name}", "ratio", ratios)
        rows.append([name, figures.spread(ratios), figures.spread(shares), f"{min(values):.3f}", len(values)])
    report.heading("Python functions: CPU time of program and tool over that of the program alone",
                   "and what a tool adds, as a share of what cProfile adds; min, median, upper quartile")
    report.table(["tool", "ratio", "added / cProfile's", "minimum s", "rounds"], rows)
    measure_sends(report, min(options.runs, 15))
