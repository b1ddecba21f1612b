# SPDX-License-Identifier: MIT
"""Replacing functions, compared with other libraries for inline hooks: bench/replace_peers.cc, built against each of them.

    replace_peers.py [--funchook FOLDER] [--gum FOLDER] [--rounds N]

FOLDER holds a build made by hand: include/funchook.h and libfunchook.so; gum/gum.h and libfrida-gum.a.
HOTFN_BUILD_ROOT and HOTFN_SOURCE_ROOT name the build and the sources of hotfn.  Not a part of scripts/bench, because
nothing is downloaded there."""
import argparse
import collections
import os
import pathlib
import statistics
import subprocess
import tempfile

BUILD, ROOT = (pathlib.Path(os.environ[name]) for name in ("HOTFN_BUILD_ROOT", "HOTFN_SOURCE_ROOT"))
PARTS = [("library", 1), ("call", 1), ("throw", 1), ("removal", 1000)]


def build(place, name, number, folder):
    program = place / name
    more = [[], ["-lfunchook"], ["-lfrida-gum", "-lglib-2.0", "-lgobject-2.0", "-ldl"]][number]
    search = [f"-I{folder}/include", f"-I{folder}", f"-L{folder}", f"-Wl,-rpath,{folder}"] if folder else []
    subprocess.run(["g++", "-std=c++17", "-O2", "-w", f"-DPEER={number}", f"-I{ROOT}/include", *search,
                    ROOT / "bench" / "replace_peers.cc", "-o", program, f"-L{BUILD}/src", f"-Wl,-rpath,{BUILD}/src",
                    "-lhotfn", *more, "-pthread", "-ldl"], check=True)
    return program


def measure(program, library, part, count):
    """{name: value} of one part; a program that a signal has ended has the value "ended" """
    done = subprocess.run([program, library, part, str(count)], capture_output=True, text=True, timeout=300)
    found = dict(line.split() for line in done.stdout.splitlines())
    return found if done.returncode == 0 else {**found, part: f"ended by signal {-done.returncode}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--funchook")
    parser.add_argument("--gum")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--library", default="/usr/lib/x86_64-linux-gnu/libsqlite3.so.0")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        programs = {name: build(place, name, number, path) for number, (name, path) in enumerate(
            [("hotfn", None), ("funchook", chosen.funchook), ("gum", chosen.gum)]) if number == 0 or path}
        values = {name: collections.defaultdict(list) for name in programs}
        for _ in range(chosen.rounds):
            for name, program in programs.items():
                for part, count in PARTS:
                    for key, value in measure(program, chosen.library, part, count).items():
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
