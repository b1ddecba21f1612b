# SPDX-License-Identifier: MIT
"""The cost of counting and timing Python functions, compared with cProfile and sys.setprofile in one run."""
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
