# SPDX-License-Identifier: MIT
"""Replacing functions, compared with other libraries for inline hooks: bench/replace_peers.cc, built against each of them.

    replace_peers.py [--funchook FOLDER] [--gum FOLDER] [--rounds N]
    replace_peers.py --windows BUILD --library sqlite3.dll [--minhook FOLDER] [--detours FOLDER] [--rounds N]

FOLDER holds a build made by hand: include/funchook.h and libfunchook.so; include/frida-1.0 and libfrida-gum-1.0.a of an
installed frida-gum, with capstone's headers in include/capstone and libcapstone.a; MinHook.h and libminhook.a; detours.h
and libdetours.a.  BUILD is hotfn's build for Windows; the programs run under wine, in $WINEPREFIX.  HOTFN_BUILD_ROOT and
HOTFN_SOURCE_ROOT name the build and the sources of hotfn.  Not a part of scripts/bench, because nothing is downloaded
there."""
import argparse
import collections
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

BUILD, ROOT = (pathlib.Path(os.environ[name]) for name in ("HOTFN_BUILD_ROOT", "HOTFN_SOURCE_ROOT"))
PARTS = [("library", 1), ("call", 1), ("throw", 1)]
GUM = ["-lfrida-gum-1.0", "-lcapstone", "-lgio-2.0", "-lgobject-2.0", "-lglib-2.0", "-lffi", "-ldwarf", "-lelf", "-lunwind",
       "-llzma"]
NUMBERS = {"hotfn": 0, "funchook": 1, "gum": 2, "gum_fast": 3, "minhook": 4, "detours": 5}  # PEER
LIBRARIES = {"funchook": ["-lfunchook"], "gum": GUM, "gum_fast": GUM, "minhook": ["-lminhook"], "detours": ["-ldetours"]}


def build(place, name, folder, windows):
    """The command of the program."""
    program = place / (name + ".exe" if windows else name)
    search = [f"-I{folder}", f"-I{folder}/include", f"-I{folder}/include/frida-1.0", f"-I{folder}/include/capstone",
              f"-L{folder}", f"-L{folder}/lib", f"-L{folder}/lib/x86_64-linux-gnu"] if folder else []
    if windows:
        own = [f"-L{windows}/src", "-lhotfn.dll", "-static", "-D_WIN32_WINNT=0x0600"]
        shutil.copy(pathlib.Path(windows) / "src/libhotfn-0.dll", place / "hotfn.dll")
    else:
        own = [f"-L{BUILD}/src", f"-Wl,-rpath,{BUILD}/src", f"-Wl,-rpath,{folder}", "-lhotfn", "-pthread", "-ldl",
               "-I/usr/include/glib-2.0", "-I/usr/lib/x86_64-linux-gnu/glib-2.0/include"]
    subprocess.run(["x86_64-w64-mingw32-g++" if windows else "g++", "-std=c++17", "-O2", "-w", f"-DPEER={NUMBERS[name]}",
                    f"-I{ROOT}/include", *search, ROOT / "bench" / "replace_peers.cc", "-o", program,
                    *LIBRARIES.get(name, []), *own], check=True)
    return ["wine", program] if windows else [program]


def measure(command, library, part, count):
    """{name: value} of one part; a program that a signal has ended has the value "ended" """
    done = subprocess.run([*command, library, part, str(count)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=300)
    found = dict(line.split() for line in done.stdout.splitlines())
    return found if done.returncode == 0 else {**found, part: f"ended with status {done.returncode}"}


def read_options():
    parser = argparse.ArgumentParser()
    for name in ("windows", "funchook", "gum", "minhook", "detours"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--removals", type=int, default=1000)
    parser.add_argument("--library", default="/usr/lib/x86_64-linux-gnu/libsqlite3.so.0")
    return parser.parse_args()


def main():
    chosen = read_options()
    folders = {"hotfn": None, "funchook": chosen.funchook, "gum": chosen.gum, "gum_fast": chosen.gum,
               "minhook": chosen.minhook, "detours": chosen.detours}
    with tempfile.TemporaryDirectory() as folder:
        commands = {name: build(pathlib.Path(folder), name, path, chosen.windows) for name, path in folders.items()
                    if path or name == "hotfn"}
        values = {name: collections.defaultdict(list) for name in commands}
        for _ in range(chosen.rounds):
            for name, command in commands.items():
                for part, count in [*PARTS, ("removal", chosen.removals)]:
                    for key, value in measure(command, chosen.library, part, count).items():
                        values[name][key].append(value)
    for name, found in values.items():
        for key, texts in found.items():
            if all(text.lstrip("-").isdigit() for text in texts):
                numbers = sorted(map(int, texts))
                print(f"{name:10} {key:16} minimum {numbers[0]}  median {int(statistics.median(numbers))}")
            else:
                print(f"{name:10} {key:16} {dict(collections.Counter(texts))}")


if __name__ == "__main__":
    main()
