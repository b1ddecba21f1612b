# SPDX-License-Identifier: MIT
"""A thousand random functions of a real module are replaced by forwarders; the program behaves as without, and
all bytes are restored at its end."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import cases

BUILD = pathlib.Path(os.environ["HOTFN_BUILD_ROOT"])
ROOT = pathlib.Path(os.environ["HOTFN_SOURCE_ROOT"])
HERE = pathlib.Path(__file__).resolve().parent

PYTHON_WORK = """
import decimal, hashlib, json, re, zlib
class Tree:
    def __init__(self, depth): self.kids = [Tree(depth - 1) for _ in range(2)] if depth else []
    def count(self): return 1 + sum(k.count() for k in self.kids)
def fail(n):
    if n == 0: raise KeyError("deep")
    fail(n - 1)
try: fail(50)
except KeyError as e: print(repr(e))
print(Tree(10).count(), hashlib.sha256(b"x" * 99999).hexdigest())
print(json.loads(json.dumps({"a": [1, 2.5, None, "\\u00e9"] * 500}))["a"][-1], zlib.crc32(bytes(range(256)) * 999))
print(decimal.Decimal(2).sqrt(), re.sub(r"(\\w+) (\\w+)", r"\\2 \\1", "hello world " * 3), sorted("replace"))
"""


def preload(place):
    library = place / "replace_many.so"
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", ROOT / "include", "-o", library,
                    HERE / "src" / "replace_many.c", f"-Wl,-rpath,{BUILD / 'src'}", f"-L{BUILD / 'src'}", "-lhotfn"],
                   check=True)
    return library


def module_of(name, program):
    for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines():
        if name in line:
            return os.path.realpath(line.split("=>")[1].split()[0])
    return os.path.realpath(program)


def check_program(place, command, module, count, stdin=None):
    library = preload(place)
    read = lambda: open(stdin, "rb") if stdin else subprocess.DEVNULL  # noqa: E731
    bare = subprocess.run(command, stdin=read(), capture_output=True, cwd=place)
    for seed in (1, 2, 3):
        log = place / "log"
        log.unlink(missing_ok=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "REPLACE_MODULE": module, "REPLACE_LOG": str(log),
                       "REPLACE_COUNT": str(count), "REPLACE_SEED": str(seed)}
        hooked = subprocess.run(command, stdin=read(), capture_output=True, cwd=place, env=environment)
        what = f"{command[0]} with {module}, seed {seed}"
        assert hooked.returncode == bare.returncode, (what, bare.returncode, hooked.returncode, hooked.stderr[-500:])
        assert (hooked.stdout, hooked.stderr) == (bare.stdout, bare.stderr), (what, hooked.stdout[-500:],
                                                                              hooked.stderr[-500:])
        replaced, refused, changed, status = map(int, re.findall(r"-?\d+", log.read_text()))
        assert replaced >= 0.95 * count and changed == 0 and status == 0, (what, log.read_text())
        print(f"{what}: {replaced} replaced, {refused} refused")


def functions_of_libpython_or_python(place):
    python = "/usr/bin/python3"
    check_program(place, [python, "-I", "-c", PYTHON_WORK], module_of("libpython", python), 1000)


def functions_of_the_c_library(place):
    check_program(place, ["/usr/bin/python3", "-I", "-c", PYTHON_WORK], module_of("libc.so", "/usr/bin/python3"), 1000)


def functions_of_sqlite3(place):
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        raise cases.Skipped("no sqlite3 on this system")
    check_program(place, [sqlite, ":memory:"], module_of("libsqlite3", sqlite), 1000,
                  HERE / "work" / "statements.sql")


CASES = [functions_of_libpython_or_python, functions_of_the_c_library, functions_of_sqlite3]

if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: the forwarders are x86-64 code")
        sys.exit(77)
    sys.exit(cases.run(CASES, needs=["gcc", "ldd"]))
