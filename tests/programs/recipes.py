# SPDX-License-Identifier: MIT
"""What build_programs builds: a table of names, sources and shell commands.

Commands run in an empty folder; upstream's tree, where there is one, is in ./upstream.  They leave
the files named in `results` there.  Symbols are kept, debug information is not made: callgrind
then names functions by the symbol table alone, and no inlined function is named.
"""
import dataclasses
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE / "src"
CXX = {"gcc": "g++", "clang": "clang++"}
M32 = "gcc-m32"                       # programs of 32 bits; beside the compilers of a recipe
ALL = {}


def words_of(compiler, word):
    """What stands for {cc} or {cxx}.  Debian's gcc-12-multilib leaves asm/ in the 64-bit folder."""
    if compiler != M32:
        return word
    multiarch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    return f"{word} -m32 -idirafter /usr/include/{multiarch}"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One program: how it is made and what comes out."""
    name: str
    lines: tuple                      # shell commands, {cc} {cxx} {src} are filled in
    debian: str = ""                  # source package with upstream's tarball
    sources: tuple = ()               # own files, part of the stamp
    results: tuple = ()               # files the commands leave
    tools: tuple = ()                 # commands beside the compiler that must be there
    compilers: tuple = ("gcc", "clang")
    compiler_free: bool = False       # built by something else (rustc)
    small: bool = False               # a program of our own

    def commands(self, compiler):
        driver = compiler.partition("-")[0]
        return [line.format(cc=words_of(compiler, driver), cxx=words_of(compiler, CXX[driver]), src=SRC)
                for line in self.lines]

    def is_built_by(self, compiler):
        return compiler in self.compilers or compiler == M32 and not self.compiler_free

    def own_sources(self):
        return [SRC / name for name in self.sources]


def add(name, *lines, results=None, **more):
    ALL[name] = Recipe(name=name, lines=lines, results=tuple(results or [name]), **more)


def add_small(name, source, flags="", more_sources=(), compilers=("gcc", "clang")):
    """A program of one own file; -pthread does no harm where it is not needed."""
    driver = "{cxx}" if source.endswith(".cc") else "{cc}"
    add(name, f"{driver} -O2 -D_GNU_SOURCE -pthread -o {name} {{src}}/{source} {flags}",
        sources=(source, "totals.h", *more_sources), compilers=compilers, small=True)


# Upstream programs.  sqlite3's amalgamation is made by its own tcl scripts.
SQLITE3_FLAGS = ("-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE"
                 " -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_DBSTAT_VTAB -lpthread -ldl -lm")
LUA_FLAGS = ("-std=gnu99 -DLUA_USE_LINUX -DLUA_COMPAT_5_3 '-Dluai_makeseed(L)=((void)(L),20231u)'"
             " -Wl,-E -lm -ldl")
add("sqlite3",
    "mkdir make && cd make && ../upstream/configure --disable-tcl && make sqlite3.c shell.c",
    "{cc} -O2 -o sqlite3 make/shell.c make/sqlite3.c " + SQLITE3_FLAGS,
    debian="sqlite3", tools=("tclsh", "make"))
add("lua",
    "rm upstream/src/luac.c",
    "{cc} -O2 -o lua upstream/src/*.c " + LUA_FLAGS,
    debian="lua5.4")
# Lua 5.1, and the official test suite of 5.1, which Debian has in another package's source.
add("lua51",
    "rm upstream/src/luac.c upstream/src/print.c",
    "{cc} -O2 -w -DLUA_USE_POSIX -DLUA_USE_DLOPEN -o lua51 upstream/src/*.c -Wl,-E -lm -ldl",
    debian="lua5.1")
add("lua51_tests",
    "mv upstream/_lua5.1-tests lua51_tests",
    debian="golang-github-yuin-gopher-lua", compilers=("gcc",), compiler_free=True)
# Their sources alone, for `flagged`.
add("sqlite3_source",
    "mkdir make && cd make && ../upstream/configure --disable-tcl && make sqlite3.c shell.c",
    "mkdir sqlite3_source && cp make/sqlite3.[ch] make/shell.c sqlite3_source",
    debian="sqlite3", tools=("tclsh", "make"), compilers=("gcc",), compiler_free=True)
add("lua_source",
    "rm upstream/src/luac.c",
    "mv upstream/src lua_source",
    debian="lua5.4", compilers=("gcc",), compiler_free=True)
add("xz",
    "mkdir make && cd make && CC={cc} CFLAGS=-O2 ../upstream/configure --disable-shared"
    " --disable-nls --disable-doc --disable-scripts --disable-xzdec --disable-lzmadec --disable-lzmainfo"
    " && make && cp src/xz/xz ..",
    debian="xz-utils", tools=("make",))

# Our own, each about one hazard.  `total NAME N` on stdout: NAME was called N times, by the source.
add_small("cxx_exceptions", "cxx_exceptions.cc")
add_small("cxx_exceptions_static", "cxx_exceptions.cc", "-static-libstdc++ -static-libgcc")
add_small("threads", "threads.c")
add_small("processes", "processes.c")
add_small("longjmp", "longjmp.c")
add_small("fibers", "fibers.cc")
add("dlopen_host",
    "{cc} -O2 -shared -fPIC -o dlopen_plugin.so {src}/dlopen_plugin.c",
    "{cc} -O2 -o dlopen_host {src}/dlopen_host.c -ldl",
    sources=("dlopen_host.c", "dlopen_plugin.c", "totals.h"),
    results=("dlopen_host", "dlopen_plugin.so"), small=True)
add("calls_rust",
    "rustc -C opt-level=2 -C strip=none -C codegen-units=1 -o calls_rust {src}/calls.rs",
    sources=("calls.rs",), tools=("rustc",), compilers=("gcc",), compiler_free=True, small=True)
HAZARDS = ("call_first", "entry_loop", "fall_through", "ifunc", "jump_into_entry", "landing_pads", "live_state",
           "red_zone", "rip_relative", "rseq", "short")
for hazard in HAZARDS:
    add_small("hazard_" + hazard, f"hazard_{hazard}.c",
              "-fcf-protection=full" if hazard == "landing_pads" else "",
              more_sources=("hazard.h",))

# Larger ones, for the long tests.  redis with the C library's allocator; CPython without its
# modules (it takes Debian's, of the same version, with PYTHONHOME=/usr).
add("redis",
    "make -C upstream/src redis-server MALLOC=libc CC={cc} OPTIMIZATION=-O2 DEBUG=",
    "cp upstream/src/redis-server redis",
    debian="redis", tools=("make", "pkg-config"))
add("cpython",
    "mkdir make && cd make && CC={cc} CFLAGS='-O2 -g0' ../upstream/configure --without-ensurepip",
    "make -C make python && cp make/python cpython",
    debian="python3.11", tools=("make",))
add("cpython_tests",
    "apt-get -q download libpython3.11-testsuite",
    "dpkg-deb -x *.deb cpython_tests",
    "cp -rn /usr/lib/python3.11/test cpython_tests/usr/lib/python3.11/",
    tools=("apt-get", "dpkg-deb"), compilers=("gcc",), compiler_free=True)
