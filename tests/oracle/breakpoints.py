# SPDX-License-Identifier: MIT
"""Count entries of a few functions natively, by gdb's breakpoints: a second witness.

valgrind is another world (its own CPUID, clock, address space), so a program may really do something
else there.  Where hotfn and callgrind disagree, this says what happens on the processor itself.
Slow (some 50 microseconds a hit), so only for few functions and not for the hottest.
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
    return int(gdb.parse_and_eval("*(unsigned long *)&hotfn_oracle_place"))


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
    """Arguments and redirections for gdb's shell."""
    return (f"{shlex.join(map(str, words))} < {stdin or os.devnull} > {folder}/witness.out"
            f" 2> {folder}/witness.err")


def count(places, command, folder, environment, stdin=None, cwd=None, fixed=True, place=None):
    """{(path, address): times entered} after the agent's constructor would have run, in one native
    run; empty if gdb is not here or failed.  `place`: where its first argument's text shall stand; the
    variable HOTFN_RUN, which stand_in.c takes away as the agent does, fills the stack up to it."""
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
    answer = re.search(r"^WITNESS (\[.*\])$", done.stdout, re.M)
    triples = ast.literal_eval(answer[1]) if answer else []
    return {(path, address): hits for path, address, hits in triples}
