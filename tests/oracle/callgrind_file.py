# SPDX-License-Identifier: MIT
"""Runs a command under callgrind and reads its counts, by address.

Names in callgrind's file are not used: it writes f'2 for a recursive call, joins functions of the same
name and file, and names parts of a function separately.  With --dump-instr=yes every line has an address,
which callgrind writes relative to the object, as in the file:
  0xADDR COST            the instruction at ADDR was executed COST times (event Ir)
  calls=N 0xADDR         the next line's instruction went N times to the function at ADDR
callgrind counts a jump as a call if its target is the first instruction of any function (including the
jumping function), another section or another object.  Entries of signal handlers have no calls= line.
Code outside .text (.plt, .init, .fini) is in the object '???', at its address in memory.  With
--skip-plt=yes the PLT's instructions would be added to the call instruction, which is wrong for a
function that begins with a call.
The count of a function is the count of its first instruction; calls= lines show how it was reached.
"""
import collections
import dataclasses
import functools
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import elf_tables

UNPLACED = "???"
BEFORE = "hotfn_oracle_start"         # layout_shift.c splits the profile with this name
UNDER_CALLGRIND, UNDER_HOTFN, NATIVE = "callgrind", "hotfn", "native"      # how a program runs


@dataclasses.dataclass
class Profile:
    """Counts of one process (or one part of it), by object path."""
    executed: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(
        collections.Counter))         # object -> address -> times executed
    calls: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(
        collections.Counter))         # object -> (target, source object, source) -> times

    def add(self, other):
        for object_path, counts in other.executed.items():
            self.executed[object_path].update(counts)
        for object_path, counts in other.calls.items():
            self.calls[object_path].update(counts)

    def load_bias(self, object_path, decoded):
        """Address in memory minus address in the file, or None if unknown.

        It follows from a direct call into '???', whose target is a memory address for callgrind and a
        file address for objdump.  decoded has objdump's instructions at the sources of such calls.
        """
        for target, source_object, source in self.calls[UNPLACED]:
            instruction = decoded.get(source) if source_object == object_path else None
            if instruction is not None and instruction.target is not None:
                return target - instruction.target
        return None

    def count(self, object_path, address, bias):
        """The number of executions of the instruction at an address of the object's file."""
        times = self.executed[object_path][address]
        return times or (self.executed[UNPLACED][address + bias] if bias is not None else 0)

    def reached_by(self, object_path):
        """target address -> list of (source object, source address, times)."""
        found = collections.defaultdict(list)
        for (target, source_object, source), times in self.calls[object_path].items():
            found[target].append((source_object, source, times))
        return found


def decoded_sources(path, profiles):
    """objdump's instructions where calls and jumps to this image, or out of it to '???', are."""
    wanted = {source for profile in profiles for target_object in (path, UNPLACED)
              for _, source_object, source in profile.calls[target_object]
              if source_object == path}
    return {address: instruction for address, instruction in elf_tables.instructions(path)
            if address in wanted}


class Reader:
    """Reads one callgrind file, line by line."""

    def __init__(self):
        self.profile = Profile()
        self.trigger = ""
        self.object_path = ""
        self.callee_object = None
        self.call = None              # (times, target) of a calls= line whose source line follows

    def read(self, path):
        with open(path, errors="replace") as lines:
            for line in lines:
                self.line(line.rstrip("\n"))
        return self

    def line(self, line):
        if line.startswith("0x"):
            self.cost(line)
        elif line.startswith("ob="):
            self.object_path = line[3:]
        elif line.startswith("cob="):
            self.callee_object = line[4:]
        elif line.startswith("calls="):
            times, target = line[6:].split()[:2]
            self.call = int(times), int(target, 16)
        elif line.startswith("desc: Trigger:"):
            self.trigger = line[14:].strip()
        elif line.startswith("positions:") and line != "positions: instr":
            raise ValueError("callgrind file without --dump-instr=yes --dump-line=no")

    def cost(self, line):
        fields = line.split()
        address = int(fields[0], 16)
        if self.call is None:
            self.profile.executed[self.object_path][address] += int(fields[1])
            return
        times, target = self.call
        callee = self.callee_object or self.object_path
        self.profile.calls[callee][target, self.object_path, address] += times
        self.call = self.callee_object = None


def read_parts(prefix, pid):
    """(profile before the agent's constructor would run, profile after it) of one process."""
    before, after = Profile(), Profile()
    paths = [f"{prefix}.{pid}", *sorted(glob.glob(f"{glob.escape(str(prefix))}.{pid}.*"))]
    for path in paths:
        reader = Reader().read(path)
        (before if BEFORE in reader.trigger else after).add(reader.profile)
    return before, after


def valgrind_command(prefix, command):
    """The command line that counts `command` and writes PREFIX.PID[.PART].

    Debian's `valgrind` is a script that adds four variables to the environment and runs valgrind.bin;
    variables are input of the program and would change counts.
    """
    return [shutil.which("valgrind.bin") or "valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no",
            "--compress-strings=no", "--compress-pos=no", "--demangle=no", "--skip-plt=no",
            f"--callgrind-out-file={prefix}.%p", "--", *map(str, command)]


compiler = ["cc"]


def compile_for(program):
    """Select a compiler for preloaded libraries of the program's word size."""
    path = shutil.which(program) or program
    if "ELF32" in elf_tables.output_of("readelf", "-hW", path):
        multiarch = elf_tables.output_of("gcc", "-print-multiarch").strip()
        compiler[:] = ["gcc", "-m32", "-idirafter", f"/usr/include/{multiarch}"]


def compile_library(folder, source, *flags):
    """The path of a shared library built from a C file in this folder."""
    library = folder / (pathlib.Path(source).stem + ".so")
    subprocess.run([*compiler, "-O1", "-shared", "-fPIC", "-o", library,
                    pathlib.Path(__file__).resolve().parent / source, *flags], check=True)
    return library


def place_file(folder):
    """The file to which layout_shift.c writes the position of the stack."""
    return folder / "place"


def read_place(folder):
    """The address of the first argument's text; None if it was not written."""
    try:
        return int.from_bytes(place_file(folder).read_bytes(), sys.byteorder)
    except OSError:
        return None


@functools.cache
def without_randomisation():
    """The words before a command that disable address randomisation; none if that is not permitted."""
    command = ["setarch", "-R"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return command


def build_preloads(folder, layout, way_to_run):
    """The preloaded libraries: layout_shift.c, which moves heap and mappings; under callgrind its constructor
    runs first, like the agent's, and natively stand_in.c, which replaces the agent, precedes it."""
    place_option = f'-DPLACE="{place_file(folder)}"'
    if way_to_run == UNDER_CALLGRIND:
        return compile_library(folder, "layout_shift.c", f"-DLAYOUT={layout}", place_option, "-Wl,-z,initfirst")
    shift = compile_library(folder, "layout_shift.c", "-DLAYOUT=0", place_option)
    if way_to_run == UNDER_HOTFN:
        return shift
    agent = compile_library(folder, "stand_in.c", f"-DLAYOUT={layout}", "-D_GNU_SOURCE",
                            "-ftls-model=initial-exec", "-Wl,-z,initfirst")
    return f"{agent}:{shift}"


def relocated_command(command, layout):
    """Every second layout starts the program through its interpreter, because valgrind otherwise always loads
    it at the same address."""
    path = shutil.which(command[0]) or command[0]
    described = elf_tables.output_of("readelf", "-lW", path)
    interpreter = re.search(r"interpreter: (.*)\]", described)
    if layout % 2 == 0 or not interpreter or "Type is EXEC" in described:
        return command
    return [interpreter[1], path, *command[1:]]


def make_environment(environment, folder, layout, way_to_run):
    """The environment is input of a program (Python makes objects of it), so every run has the same variables,
    including LD_PRELOAD, which valgrind sets anyway."""
    preloads = build_preloads(folder, layout, way_to_run)
    return dict(environment, LD_PRELOAD=str(preloads),
                HOTFN_ORACLE_PAD="x" * (1040 * layout * (way_to_run != NATIVE)))


def run(command, folder, environment, layout=0, stdin=None, cwd=None):
    """Run under callgrind; `layout` selects the placement of stack, heap, libraries and program."""
    environment = make_environment(environment, folder, layout, UNDER_CALLGRIND)
    command = valgrind_command(folder / "callgrind", relocated_command(command, layout))
    with open(stdin or os.devnull, "rb") as source, open(folder / "stdout", "wb") as output, \
            open(folder / "stderr", "wb") as problems:
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=source, stdout=output,
                                   stderr=problems)
        status = process.wait()
    return status, read_parts(folder / "callgrind", process.pid)
