# SPDX-License-Identifier: MIT
"""gdb names the stubs of a hooked program and unwinds from each of their instructions: started under
gdb, attached later, and on the slow path that a thread's first hooked call takes."""
import os
import re
import subprocess
import sys
from pathlib import Path

import cases

HOTFN = os.environ["HOTFN"]
STUB = "hotfn:stub"
STEPS_AT_MOST = 3000

# t_pushes: the moved instructions lower the stack.  t_middle: its own first call is redirected to its stub
# (retarget), so it has a frame there.  t_worker is not hooked: t_short's stub is its thread's first.
SOURCE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
static volatile int sink;
OWN int t_short(int x) { return x * 3 + 1; }
OWN int t_pushes(int x)
{
    char b[200];
    memset(b, x, sizeof b);
    __asm__ volatile("" ::"r"(b) : "memory", "rbx", "rbp");
    return b[3] + x;
}
OWN int t_flags(int x) { return x > 3 ? sink : sink + x; }
OWN int t_middle(int x)
{
    sink += t_pushes(x);
    sink += t_short(x);
    sink += t_flags(x);
    return sink;
}
OWN void *t_worker(void *x) { sink += t_short(1); return x; }
int main(int argc, char **argv)
{
    pthread_t thread;
    t_middle(1);
    if (argc > 1) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        printf("%d\n", (int)getpid());
        fflush(stdout);
        for (;;) {
            usleep(1000);
            t_middle(2);
        }
    }
    raise(SIGUSR1);
    t_middle(2);
    pthread_create(&thread, 0, t_worker, 0);
    pthread_join(thread, 0);
    return argv == 0;
}
"""

HEAD = """set pagination off
set confirm off
handle SIGUSR1 stop nopass
"""

# To the function's stub if its entry jumps there (direct calls bypass the entry), else to the function.
GO = """set $entry = (long)&FUNCTION
if *(unsigned int *)$entry == 0xfa1e0ff3
  set $entry = $entry + 4
end
if *(unsigned char *)$entry == 0xe9
  set $entry = $entry + 5 + *(int *)($entry + 1)
end
tbreak *$entry
continue
"""

# To the next stub, then until the program's own text, which is one page, is reached again.
WALK = f"""set $left = {STEPS_AT_MOST}
while $left > 0 && ((long)$pc & ~4095) == ((long)&main & ~4095)
  stepi
  set $left = $left - 1
end
while $left > 0 && ((long)$pc & ~4095) != ((long)&main & ~4095)
  echo \\n@step FUNCTION\\n
  bt
  stepi
  set $left = $left - 1
end
"""


def walk(*functions):
    return "".join((GO + WALK).replace("FUNCTION", function) for function in functions)


def check(holds, text):
    if not holds:
        raise AssertionError(text)


class Case:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.target = self.folder / "target"
        (self.folder / "target.c").write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-pthread", "-o", self.target, self.folder / "target.c"],
                       check=True)
        self.environment = {**os.environ, "HOME": folder, "DEBUGINFOD_URLS": ""}

    def hotfn_run(self, *command, mode="count"):
        return [HOTFN, "run", "-q", "-o", self.folder / "r.hfr", "--target", self.target,
                "--mode", mode, "-x", "t_worker", "--", *command]

    def gdb(self, lines):
        script = self.folder / "script.gdb"
        script.write_text(HEAD + lines + "kill\n")
        return ["gdb", "-nx", "--batch", "-x", script]

    def output(self, command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=900)
        text = done.stdout + done.stderr
        if re.search(r"ptrace: (Operation not permitted|Function not implemented)|Cannot PTRACE", text):
            raise cases.Skipped("this system allows no ptrace")
        return text


def backtraces(output, function):
    """For each instruction outside of the program: the names of its frames, innermost first."""
    found = []
    for block in output.split("\n@step ")[1:]:
        head, _, rest = block.partition("\n")
        if head == function:
            frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(", rest, re.MULTILINE)
            found.append(frames)
    return found


def check_walk(output, function, chain):
    traces = backtraces(output, function)
    check(5 <= len(traces) < STEPS_AT_MOST,
          f"{function}: {len(traces)} instructions outside of the program\n{output[-3000:]}")
    for number, names in enumerate(traces):
        check(names == [STUB, *chain], f"{function}, instruction {number}: {names}")


def gdb_unwinds_a_program_that_it_started(case):
    functions = ("t_middle", "t_short", "t_flags")
    lines = "run\n" + walk(*functions)
    output = case.output(case.hotfn_run(*case.gdb(lines), case.target))
    for function in functions:
        check_walk(output, function, ["t_middle", "main"])


def gdb_unwinds_after_attaching(case):
    with subprocess.Popen(case.hotfn_run(case.target, "forever"), stdout=subprocess.PIPE,
                          text=True) as child:
        pid = child.stdout.readline().strip()
        try:
            output = case.output([*case.gdb(walk("t_pushes", "t_flags")), "-p", pid])
        finally:
            if child.poll() is None:
                subprocess.run(["kill", "-9", pid], stderr=subprocess.DEVNULL, check=False)
    for function in ("t_pushes", "t_flags"):
        check_walk(output, function, ["t_middle", "main"])


def gdb_unwinds_on_the_slow_path(case):
    lines = "run\n" + GO.replace("FUNCTION", "t_worker") + walk("t_short")
    output = case.output(case.hotfn_run(*case.gdb(lines), case.target))
    traces = backtraces(output, "t_short")
    deepest = max(map(len, traces), default=0)
    check(len(traces) < STEPS_AT_MOST, "the slow path has no end")
    check(deepest > 3 and any(names[0] != STUB for names in traces),
          f"no slow path in {len(traces)} instructions\n{output[-3000:]}")
    for number, names in enumerate(traces):
        check(STUB in names, f"slow path, instruction {number}: {names}")
        outer = names[len(names) - names[::-1].index(STUB):]
        check(outer[:1] == ["t_worker"], f"slow path, instruction {number}: {names}")


def frames_outside_stubs(names):
    """The frames that are outside of all frames of stubs and of the engine."""
    inner = [i for i, name in enumerate(names) if name == STUB or name.startswith("hfn_")]
    return names[inner[-1] + 1:] if inner else None


def gdb_unwinds_through_timed_stubs(case):
    """At each instruction of stub and engine, and in the function body after them."""
    functions = ("t_pushes", "t_flags")
    lines = "run\n" + "".join(walk(name) + f"echo \\n@step body_{name}\\n\nbt\n"
                              for name in functions)
    output = case.output(case.hotfn_run(*case.gdb(lines), case.target, mode="time"))
    for function in functions:
        traces = backtraces(output, function)
        check(20 <= len(traces) < STEPS_AT_MOST,
              f"{function}: {len(traces)} instructions outside of the program\n{output[-3000:]}")
        for number, names in enumerate(traces):
            check(frames_outside_stubs(names) == ["t_middle", "main"],
                  f"{function}, instruction {number}: {names}")
        body, = backtraces(output, "body_" + function)
        check(body == [function, STUB, "t_middle", "main"], f"{function}'s body: {body}")


CASES = [gdb_unwinds_a_program_that_it_started, gdb_unwinds_after_attaching, gdb_unwinds_on_the_slow_path, gdb_unwinds_through_timed_stubs]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["gdb", "gcc"], make=Case))
