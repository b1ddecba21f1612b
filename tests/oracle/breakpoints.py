# SPDX-License-Identifier: MIT
"""Counts entries of a few functions with gdb's breakpoints, as a second oracle.

valgrind emulates the machine (CPUID, clock, address space), so a program may behave differently under it.
If hotfn and callgrind disagree, gdb counts a native run.  A breakpoint hit takes about 50 microseconds, so
gdb counts only a few functions, and never the hottest.
"""
import ast
import os
import re
import shlex
import shutil
import subprocess

import callgrind_file
import elf_tables

SCRIPT = """
import gdb, re
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set detach-on-fork on")
gdb.execute("set disable-randomization {fixed}")
gdb.execute("set breakpoint pending on")
gdb.execute("handle all nostop noprint pass")


def begin(filler):
    gdb.execute({wrapper!r} + "x" * filler)
    gdb.Breakpoint("{start}", temporary=True)
    gdb.execute("run " + {arguments!r})
    return int(gdb.parse_and_eval("*(unsigned long *)&hotfn_oracle_argv0"))


above = begin(0) - {place}
if 0 < above < 65536:
    gdb.execute("kill")
    begin(above)
maps = open("/proc/%d/maps" % gdb.selected_inferior().pid).read()
points = []
for path, base, address in {places}:
    found = re.search("^([0-9a-f]+)-.* " + re.escape(path) + "$", maps, re.M)
    if found:
        point = gdb.Breakpoint("*%d" % (int(found[1], 16) - base + address))
        point.silent = True
        point.ignore_count = 2000000000
        points.append((path, address, point))
ended = []
gdb.events.exited.connect(
    lambda event: ended.append([(path, address, point.hit_count)
                                for path, address, point in points]))
gdb.execute("continue")
print("\\nWITNESS", ended[0] if ended else [])
"""


def shell_words(words, stdin, folder):
    """The arguments and redirections for gdb's shell."""
    return (f"{shlex.join(map(str, words))} < {stdin or os.devnull} > {folder}/witness.out"
            f" 2> {folder}/witness.err")


def count(places, command, folder, environment, stdin=None, cwd=None, fixed=True, place=None):
    """{(path, address): times entered}, counted from the moment when the agent's constructor would run, in
    one native run; empty if gdb is not installed or failed.  `place`: wanted address of the first argument's
    text; the variable HOTFN_RUN, which stand_in.c removes like the agent, pads the stack accordingly."""
    if not shutil.which("gdb") or not places:
        return {}
    script = folder / "witness.py"
    bases = {path: elf_tables.lowest_load_address(path) for path, _ in places}
    settings = shlex.join(f"{name}={value}" for name, value in environment.items())
    script.write_text(SCRIPT.format(start=callgrind_file.BEFORE,
                                    places=[(path, bases[path], address)
                                            for path, address in sorted(places)],
                                    arguments=shell_words(command[1:], stdin, folder),
                                    wrapper=f"set exec-wrapper env -i {settings} HOTFN_RUN=",
                                    place=place or 0,
                                    fixed="on" if fixed else "off"))
    gdb = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/dev/null", "SHELL=/bin/sh", "gdb",
           "-nx", "-q", "-batch", "-x", script, str(command[0])]
    done = subprocess.run(list(map(str, gdb)), cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=900)
    result = re.search(r"^WITNESS (\[.*\])$", done.stdout, re.M)
    triples = ast.literal_eval(result[1]) if result else []
    return {(path, address): hits for path, address, hits in triples}
