# SPDX-License-Identifier: MIT
"""Run a command under callgrind and read what it counted, by address.

Names in callgrind's file are not used: it writes f'2 for a recursive call, joins functions of one
name and one file, and gives parts of a function names of their own.  With --dump-instr=yes every
line carries an address, and callgrind writes it relative to the object, as it is in the file:
  0xADDR COST            the instruction at ADDR was executed COST times (event Ir)
  calls=N 0xADDR         the next line's instruction went N times to the function at ADDR
callgrind takes a jump for a call when it reaches the first instruction of any function (also the
jumping one's own), another section or another object.  A signal handler's entry is in no calls= line.
With --skip-plt=yes it would add the PLT's instructions to those of the call instruction: that is
wrong for a function that begins with a call.
So the count of a function is the count of its first instruction; the calls= lines tell how it
was reached.
"""
import collections
import dataclasses
import os
import pathlib
import subprocess

BEFORE = "hotfn_oracle_start"         # layout_shift.c cuts the profile in two with this name


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

    def reached_by(self, object_path):
        """target address -> list of (source object, source address, times)."""
        found = collections.defaultdict(list)
        for (target, source_object, source), times in self.calls[object_path].items():
            found[target].append((source_object, source, times))
        return found


class Reader:
    """Reads one callgrind file, line by line."""

    def __init__(self):
        self.profile = Profile()
        self.trigger = ""
        self.object_path = ""
        self.callee_object = None
        self.call = None              # (times, target) that waits for its source line

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


def read_parts(folder, pid):
    """(profile before the agent would have entered, profile after) of one process."""
    before, after = Profile(), Profile()
    found = False
    for path in sorted(folder.glob(f"callgrind.{pid}*")):
        reader = Reader().read(path)
        (before if BEFORE in reader.trigger else after).add(reader.profile)
        found = True
    if not found:
        raise FileNotFoundError(f"callgrind left no file for process {pid}")
    return before, after


def build_layout_shift(folder):
    """Compile the small library that moves heap and mappings; see layout_shift.c."""
    source = pathlib.Path(__file__).resolve().parent / "layout_shift.c"
    library = folder / "layout_shift.so"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    return library


def run(command, folder, environment, layout=0, stdin=None, cwd=None):
    """Run under callgrind with the stack, heap and mappings moved by `layout` steps."""
    library = build_layout_shift(folder)
    environment = dict(environment, LD_PRELOAD=str(library), HOTFN_ORACLE_SHIFT=str(layout),
                       HOTFN_ORACLE_PAD="x" * (1 + 1040 * layout))
    valgrind = ["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no",
                "--compress-strings=no", "--compress-pos=no", "--demangle=no", "--skip-plt=no",
                f"--callgrind-out-file={folder}/callgrind.%p", "--", *command]
    with open(stdin or os.devnull, "rb") as source, open(folder / "stdout", "wb") as output, \
            open(folder / "stderr", "wb") as problems:
        process = subprocess.Popen(valgrind, env=environment, stdin=source, stdout=output,
                                   stderr=problems, cwd=cwd)
        status = process.wait()
    return status, read_parts(folder, process.pid)
