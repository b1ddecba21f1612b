# SPDX-License-Identifier: MIT
"""Cases of `survive` that take longer: large programs and third-party test suites."""
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess

import recipes
from survive_quick import pack_with_xz
from world import HERE, WORK, Broken, Skipped, need, wait_until, without_numbers

CASES = {}
# Tests that pass without hooks with Debian's interpreter and the newest tests of the archive.
PYTHON_TESTS = """test_array test_asyncgen test_bytes test_cmath test_collections test_complex
 test_contextlib test_coroutines test_decimal test_deque test_dict test_exceptions test_fork1
 test_functools test_generators test_grammar test_heapq test_itertools test_json test_list test_long
 test_math test_pickle test_string test_set test_signal test_sort test_struct test_subprocess
 test_textwrap test_thread test_unicode test_zlib""".split()


def case(name):
    """Register a function as a case."""
    def register(function):
        CASES[name] = function
        return function
    return register


# Scripts of the official suite that the tarball's Lua 5.1 passes ("OK" is their last line).
LUA_SCRIPTS = """calls closure constructs events locals nextvar sort strings vararg literals db errors
 attrib""".split()


@case("sqlite3-clang")
def sqlite3_by_clang(world):
    world.run(world.built("sqlite3", "clang"), ":memory:", stdin=WORK / "statements.sql")


@case(f"sqlite3-{recipes.M32}")
def sqlite3_for_32_bits(world):
    world.run(world.built("sqlite3", recipes.M32), ":memory:", stdin=WORK / "statements.sql")


@case("xz-gcc")  # most of a minute each; zstd packs with threads in every run
def xz_by_gcc(world):
    pack_with_xz(world, "gcc")


@case("xz-clang")
def xz_by_clang(world):
    pack_with_xz(world, "clang")


for compiler in ("gcc", "clang"):
    @case(f"lua_suite-{compiler}")
    def lua_suite(world, compiler=compiler):
        suite = world.place / "suite"
        shutil.copytree(world.built("lua51_tests"), suite)
        lua = world.built("lua51", compiler)
        for script in LUA_SCRIPTS:
            status, output = world.run(lua, f"{script}.lua", cwd=suite, normal=without_numbers,
                                       env={"LUA_INIT": "package.path = '?;./?.lua'"})
            world.must(status == 0 and "OK" in output, f"{script}: {output[-3000:]}")


def last_line(text):
    """The part of a test run's output that does not depend on its speed."""
    return "\n".join(text.strip().splitlines()[-1:])


def run_python_test(world, python, name):
    tests = world.built("cpython_tests") / "usr/lib/python3.11"
    status, output = world.run(python, "-m", "test", name, timeout=900, normal=last_line,
                               env={"PYTHONPATH": str(tests), "PYTHONHOME": "/usr"})
    world.must(status == 0 and "Tests result: SUCCESS" in output, f"{name}: {output[-3000:]}")


def add_python_test(name):
    @case(f"cpython_{name}")
    def run_it(world):
        run_python_test(world, *need("python3.11"), name)

    @case(f"cpython_shared_{name}")
    def run_with_library(world):
        """The interpreter is in a library; the program and the library are both hooked."""
        library = pathlib.Path(f"/usr/lib/{os.uname().machine}-linux-gnu/libpython3.11.so.1.0")
        compiler, = need("gcc")
        if not library.exists():
            raise Skipped(f"no {library} on this system")
        source = world.place / "main.c"
        source.write_text("int Py_BytesMain(int, char **);\n"
                          "int main(int count, char **words) { return Py_BytesMain(count, words) + 0; }\n")
        world.helper(compiler, "-O0", "-o", world.place / "python", source, library)
        run_python_test(world, world.place / "python", name)


for name in PYTHON_TESTS:
    add_python_test(name)


@case("node_workers")
def node_workers(world):
    world.run(*need("node"), WORK / "workers.js")


@case("java")
def java(world):
    """The Java VM moves stacks and handles faults itself."""
    program, compiler = need("java", "javac")
    world.helper(compiler, "-d", world.place, WORK / "Runs.java")
    world.run(program, "-cp", world.place, "Runs")


@case("go_with_c")
def go_with_c(world):
    """Go moves stacks to grow them; the program is built with cgo, so that the agent can be loaded."""
    program, _ = need("go", "gcc")
    source = world.place / "source"
    source.mkdir()
    shutil.copy(WORK / "calls.go", source / "main.go")
    (source / "go.mod").write_text("module calls\n\ngo 1.19\n")
    world.helper("env", f"GOCACHE={world.place}/cache", "CGO_ENABLED=1", "GOPROXY=off", program,
                 "build", "-o", world.place / "calls", "./source/main.go")
    world.run(world.place / "calls")


@case("cmake")
def cmake(world):
    program, *_ = need("cmake", "cc", "make")
    source = world.place / "source"
    shutil.copytree(WORK / "cmake_project", source)
    world.run(program, "-S", source, "-B", world.place / "out", normal=without_numbers)
    world.run(program, "--build", world.place / "out", normal=without_numbers)
    world.see("built", world.helper(world.place / "out" / "hello"))
    world.see("files", sorted(os.listdir(world.place / "out")))


@case("clang")
def clang(world):
    program, = need("clang")
    for number, (source, flags) in enumerate([("threads.c", "-O2 -D_GNU_SOURCE"),
                                              ("cxx_exceptions.cc", "-O3"), ("longjmp.c", "-O0 -g"),
                                              ("processes.c", "-Os -Weverything -D_GNU_SOURCE")]):
        made = world.place / f"{number}.o"
        world.run(os.path.realpath(program), *flags.split(), "-fno-ident", "-c", "-o", made,
                  HERE / "src" / source, "-ffile-prefix-map=" + str(world.place) + "=.")
        world.see("object", hashlib.sha256(made.read_bytes()).hexdigest())
    world.run(os.path.realpath(program), "-c", WORK / "calls.lua", "-x", "c", "-o", "/dev/null")


@case("godot_server")
def godot_server(world):
    """A game server with a GDScript project.  Scanning its 67,000 functions takes the most time."""
    program, = need("godot3-server")
    shutil.copy(WORK / "spike.gd", world.place)
    _, output = world.run(program, "--path", world.place, "-s", "spike.gd", timeout=600)
    world.must("planted at 70" in output, output)


@case("minetest_server")
def minetest_server(world):
    program = "/usr/games/minetestserver"
    if not os.path.exists(program):
        raise Skipped(f"no {program} on this system: install minetest-server")
    shutil.copytree(WORK / "minetest_game", world.place / ".minetest/games/steps")
    (world.place / "map").mkdir()
    (world.place / "map/world.mt").write_text(
        "gameid = steps\nbackend = sqlite3\nplayer_backend = sqlite3\nauth_backend = sqlite3\n")
    _, output = world.run(program, "--world", world.place / "map", "--gameid", "steps", "--port", free_port(),
                          env={"HOME": str(world.place)}, normal=lambda text: re.findall(r"the sum is \d+", text))
    world.must("the sum is" in output, output)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    """A server on a loopback port of its own, with all files in the world's folder."""

    def __init__(self, world, program):
        self.world = world
        self.port = free_port()
        self.log = open(world.place / "server.log", "wb")
        self.process = world.start(program, "--port", self.port, "--bind", "127.0.0.1", "--dir",
                                   world.place, "--save", "", "--enable-debug-command", "local",
                                   "--io-threads", "2", stdin=subprocess.DEVNULL,
                                   stdout=self.log, stderr=self.log)
        if not wait_until(lambda: self.ask("PING", check=False).strip() == "PONG", 60):
            self.process.kill()
            log = (world.place / "server.log").read_text()
            raise Broken(f"server does not answer: {log[-800:]}")

    def ask(self, *words, check=True, **options):
        return self.world.helper("redis-cli", "-p", self.port, *words, check=check, **options)

    def stop(self):
        self.ask("SHUTDOWN", "NOSAVE", check=False)
        status, _, _ = self.world.finish(self.process, 60)
        self.log.close()
        return status


REDIS_COMMANDS = "\n".join(
    [f"SET key:{i} value{i * 7919 % 1009}" for i in range(2000)]
    + [f"ZADD board {i * 31 % 977} member{i}" for i in range(1000)]
    + [f"HSET hash field{i} {i}" for i in range(600)]
    + [f"LPUSH list item{i}" for i in range(600)]
    + ["EVAL 'local s=0 for i=1,20000 do s=s+i end return s' 0", "ZRANGE board 0 5 WITHSCORES",
       "LRANGE list 0 3", "HGET hash field77", "GET nothing", "INCR list", "MULTI", "INCR counter",
       "EXEC", "SORT list ALPHA LIMIT 0 3", "OBJECT ENCODING hash", "DBSIZE", "DEBUG DIGEST"])


def redis_run(world, program):
    need("redis-cli", "redis-benchmark")
    server = RedisServer(world, program)
    world.see("answers", server.ask(input=REDIS_COMMANDS))
    world.helper("redis-benchmark", "-q", "-p", server.port, "-n", "3000", "-c", "10", "-P", "4")
    before = server.ask("LASTSAVE")
    world.see("bgsave", server.ask("BGSAVE"))
    saved = wait_until(lambda: server.ask("LASTSAVE") != before
                       or "rdb_bgsave_in_progress:0" in server.ask("INFO", "persistence"), 60)
    world.see("saved", (saved, "rdb_last_bgsave_status:ok" in server.ask("INFO", "persistence"),
                        (world.place / "dump.rdb").exists()))
    world.see("digest", server.ask("DEBUG", "DIGEST"))
    world.see("status", server.stop())


@case("redis")
def redis(world):
    redis_run(world, *need("redis-server"))


@case("redis-gcc")
def redis_built(world):
    redis_run(world, world.built("redis"))
