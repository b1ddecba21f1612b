# SPDX-License-Identifier: MIT
"""Cases of `survive` that take a few seconds each."""
import hashlib

import recipes
from world import WORK, need

CASES = {}
COMPILERS = ("gcc", "clang")
OWN = [name for name, recipe in recipes.ALL.items() if recipe.small]


def case(name):
    """Register a function as a case."""
    def register(function):
        CASES[name] = function
        return function
    return register


def add_built(name, compiler, *arguments, stdin=None):
    """A case that runs one built program once."""
    @case(f"{name}-{compiler}")
    def run_it(world):
        world.run(world.built(name, compiler), *arguments, stdin=stdin)


# In soak by clang and for 32 bits: each of them takes most of a minute to compile.
add_built("sqlite3", "gcc", ":memory:", stdin=WORK / "statements.sql")
for compiler in (*COMPILERS, recipes.M32):
    add_built("lua", compiler, WORK / "calls.lua")
for own in OWN:
    for compiler in recipes.ALL[own].compilers:
        add_built(own, compiler)
for own in ("cxx_exceptions", "cxx_exceptions_static", "threads", "clones", "processes", "longjmp", "fibers"):
    add_built(own, recipes.M32)


def some_text(size):
    """Text that compresses moderately and is the same in each run."""
    words = [hashlib.md5(str(i).encode()).hexdigest()[:i % 9 + 1] for i in range(1000)]
    text, state = [], 1
    while size > 0:
        state = state * 1103515245 + 12345 & 0x7fffffff
        text.append(words[(state >> 12) % 1000])
        size -= len(text[-1]) + 1
    return " ".join(text).encode()


def pack_and_unpack(world, packer, level, suffix):
    plain = world.place / "text"
    packed = world.place / ("text" + suffix)
    plain.write_bytes(some_text(3_000_000))
    world.run(packer, "-k", *level, plain)
    world.see("packed", hashlib.sha256(packed.read_bytes()).hexdigest())
    world.run(packer, "-t", packed)
    plain.unlink()
    world.run(packer, "-d", "-k", packed)
    world.see("unpacked", hashlib.sha256(plain.read_bytes()).hexdigest())


def pack_with_xz(world, compiler):
    pack_and_unpack(world, world.built("xz", compiler), ["-3", "-T2", "--block-size=1MiB"], ".xz")


@case("zstd")
def zstd(world):
    pack_and_unpack(world, *need("zstd"), ["-q", "-9", "-T2"], ".zst")


@case("bash")
def bash(world):
    world.run(*need("bash"), WORK / "script.sh")


@case("script_with_interpreter")
def script_with_interpreter(world):
    """The target is a script: its interpreter is hooked."""
    script = world.place / "hello"
    script.write_text("#!/bin/bash\nfor i in 1 2 3; do echo \"$0 $i $*\"; done; exit 3\n")
    script.chmod(0o755)
    world.run(script, "a", "b c")


@case("python")
def python(world):
    world.run(*need("python3.11"), WORK / "calls.py")


@case("git")
def git(world):
    program, = need("git")
    date = "2024-01-01T00:00:00Z"
    dated = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date,
             "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    (world.place / ".gitconfig").write_text("[user]\nname=A B\nemail=a@b\n[init]\n"
                                            "defaultBranch=main\n")

    def step(*arguments):
        world.run(program, "-C", world.place, *arguments, env=dated)
    step("init", "-q")
    for number in range(4):
        (world.place / f"file{number}").write_text("line\n" * (number * 100 + 3))
        step("add", f"file{number}")
        step("commit", "-q", "-m", f"file {number}")
    step("checkout", "-q", "-b", "side", "HEAD~2")
    (world.place / "file0").write_text("other\n")
    step("commit", "-q", "-a", "-m", "side")
    step("merge", "-q", "main", "-m", "merged")
    step("log", "--stat", "--graph", "--format=%H %an %s")
    step("gc", "-q")
    step("fsck", "--strict")
    step("diff", "HEAD~1", "--stat")
    step("no-such-command")


@case("signals_and_status")
def signals_and_status(world):
    """The end of a program is passed on: an exit status, a signal, a missing command in a shell."""
    shell, = need("dash")
    world.run(shell, "-c", "exit 41")
    world.run(shell, "-c", "kill -TERM $$")
    world.run(shell, "-c", "kill -SEGV $$")
    world.run(shell, "-c", "no_such_command_here")
    world.run(shell, "-c", "env | sort | grep -v ^_=; echo $0 $#", "name", "x")
    world.run(shell, "-c", "cat; readlink /proc/self/fd/1 | cut -d: -f1", stdin=WORK / "calls.py")
