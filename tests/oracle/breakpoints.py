# SPDX-License-Identifier: MIT
"""Count entries of a few functions natively, by gdb's breakpoints: a second witness.

valgrind is another world (its own CPUID, clock, address space), so a program may really do something
else there.  Where hotfn and callgrind disagree, this says what happens on the processor itself.
Slow (some 50 microseconds a hit), so only for few functions and not for the hottest.
"""
import os
import re
import shlex
import shutil
import subprocess

import elf_tables

SCRIPT = """
import gdb, re
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set detach-on-fork on")
gdb.execute("set disable-randomization {fixed}")
gdb.execute("handle all nostop noprint pass")
gdb.execute("starti " + {arguments!r})
maps = open("/proc/%d/maps" % gdb.selected_inferior().pid).read()
start = int(re.search("^([0-9a-f]+)-.* " + re.escape("{path}") + "$", maps, re.M)[1], 16)
points = []
for address in {addresses}:
    point = gdb.Breakpoint("*%d" % (start - {base} + address))
    point.silent = True
    point.ignore_count = 2000000000
    points.append((address, point))
ended = []
gdb.events.exited.connect(
    lambda event: ended.append([(address, point.hit_count) for address, point in points]))
gdb.execute("continue")
print("\\nWITNESS", ended[0] if ended else [])
"""


def shell_words(words, stdin, folder):
    """Arguments and redirections for gdb's shell."""
    return (f"{shlex.join(map(str, words))} < {stdin or os.devnull} > {folder}/witness.out"
            f" 2> {folder}/witness.err")


def count(path, addresses, command, folder, environment, stdin=None, cwd=None, fixed=True):
    """{address: times entered} in one native run; empty if gdb is not here or failed."""
    if not shutil.which("gdb") or not addresses:
        return {}
    script = folder / "witness.py"
    script.write_text(SCRIPT.format(path=path, addresses=sorted(addresses),
                                    base=elf_tables.lowest_load_address(path),
                                    arguments=shell_words(command[1:], stdin, folder),
                                    fixed="on" if fixed else "off"))
    settings = [word for name, value in environment.items()
                for word in ("-ex", f"set environment {name} {value}")]
    gdb = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/nonexistent", "SHELL=/bin/sh", "gdb",
           "-nx", "-q", "-batch", "-ex",
           "set exec-wrapper env -u LINES -u COLUMNS -u SHELL -u PWD -u OLDPWD",
           *settings, "-x", script, str(command[0])]
    done = subprocess.run(list(map(str, gdb)), cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=900)
    answer = re.search(r"^WITNESS \[(.*)\]$", done.stdout, re.M)
    pairs = re.findall(r"\((\d+), (\d+)\)", answer[1]) if answer else []
    return {int(address): int(hits) for address, hits in pairs}
