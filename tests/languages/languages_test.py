#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs of many languages, each with exceptions, closures, collection and, where the language has them, threads and
coroutines, run in every mode with the output and status of the bare run.

    languages_test.py [LANGUAGE ...]

Programs whose calls do not depend on threads, time or addresses are also compared with callgrind.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))
from attached import run_attached  # noqa: E402  (needs the path above)

ORACLE = HERE.parent / "oracle" / "callgrind_counts.py"
SKIPPED = 77
MODES = {
    "count": [],
    "count again": [],
    "tree": ["--mode", "time"],
    "flat": ["--mode", "time", "--flat"],
    "sample": ["--mode", "time", "--sample", "16"],
    "all modules": ["--module", "*"],
    "all modules, times": ["--module", "*", "--mode", "time"],
}
ATTACHED = {"attach": [], "attach, times": ["--mode", "time"]}  # before main


class Language:
    """build: commands, run in a folder with a copy of the source, that create ./work or the program in `run`."""

    def __init__(self, needs, source, build, run=("./work",), exact=False):
        self.needs, self.source, self.build, self.run, self.exact = needs, source, build, run, exact


LANGUAGES = {
    "ada": Language(["gnatmake"], "work.adb", ["gnatmake -q -O2 -g work.adb"]),
    "chez": Language(["scheme"], "work.scm", [], ["scheme", "--script", "work.scm"]),
    "crystal": Language(["crystal"], "work.cr", ["crystal build --release work.cr"]),
    "csharp": Language(["mcs", "mono"], "work.cs", ["mcs -optimize+ work.cs"], ["mono", "work.exe"]),
    "csharp_aot": Language(["mcs", "mono"], "work.cs", ["mcs -optimize+ work.cs", "mono --aot work.exe"],
                           ["mono", "work.exe"]),
    "d": Language(["ldc2"], "work.d", ["ldc2 -O2 -g work.d"]),
    "erlang": Language(["erlc", "erl"], "work.erl", ["erlc work.erl"],
                       ["erl", "-noshell", "-noinput", "-s", "work", "main"]),
    "fortran": Language(["gfortran"], "work.f90", ["gfortran -O2 -g work.f90 -o work"], exact=True),
    "go_with_c": Language(["go"], "work.go", ["go build -o work work.go"]),
    "guile": Language(["guile"], "work.scm", [], ["guile", "--no-auto-compile", "work.scm"]),
    "haskell": Language(["ghc"], "work.hs", ["ghc -v0 -O1 -threaded work.hs"]),
    "lisp": Language(["sbcl"], "work.lisp", [], ["sbcl", "--script", "work.lisp"]),
    "nim": Language(["nim"], "work.nim", ["nim c --hints:off -d:release --debugger:native work.nim"]),
    "ocaml": Language(["ocamlopt"], "work.ml", ["ocamlopt -O2 -g work.ml -o work"], exact=True),
    "pascal": Language(["fpc"], "work.pas", ["fpc -v0 -O2 -g work.pas"], exact=True),
    "prolog": Language(["swipl"], "work.pl", [], ["swipl", "work.pl"]),
    "rust": Language(["rustc"], "work.rs", ["rustc -O -g work.rs"]),
}


def build(language, folder):
    shutil.copy(HERE / "src" / language.source, folder)
    environment = {**os.environ, "GOCACHE": str(folder / "cache"), "CRYSTAL_CACHE_DIR": str(folder / "cache"),
                   "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    for command in language.build:
        done = subprocess.run(command.split(), cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")


def run(language, folder, options=None):
    """(status, output, errors) of the program, hooked if options are given."""
    hooked = [os.environ["HOTFN"], "run", "-q", "-o", "r.hfr", *options, "--"] if options is not None else []
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run([*hooked, *language.run], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


def check_record(folder):
    """Failures if the record has no hooked function: a program that was not hooked has the output of the bare run."""
    report = subprocess.run([os.environ["HOTFN"], "report", "r.hfr"], cwd=folder, capture_output=True, text=True)
    return [] if report.returncode == 0 and " hooked, " in report.stdout else [f"report: {report}"]


def check_attached(name, language, folder, options, bare):
    """Times may be refused: of a program that is linked statically, or with an unwinder of its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done, attach = run_attached(language.run, folder / "r.hfr", options, folder, environment, timeout=600)
    if (done.returncode, done.stdout.decode(), done.stderr.decode()) != bare:
        return [f"{name}: bare {bare}, hooked {done}, {attach}"]
    if attach.returncode != 0:
        message = attach.stderr.decode().strip()
        may_be_refused = options and re.search("is linked statically|has an unwinder of its own", message)
        print(f"# {name}: {message}", flush=True)
        return [] if may_be_refused else [f"{name}: {attach}"]
    return [f"{name}: {text}" for text in check_record(folder)]


def check_language(language, folder):
    """The failures, as texts."""
    build(language, folder)
    bare, failures = run(language, folder), []
    if bare[0] != 0 or not bare[1]:
        return [f"the bare program: {bare}"]
    for name, options in MODES.items():
        hooked = run(language, folder, options)
        if hooked != bare:
            failures.append(f"{name}: bare {bare}, hooked {hooked}")
        else:
            failures += [f"{name}: {text}" for text in check_record(folder)]
    for name, options in ATTACHED.items():
        failures += check_attached(name, language, folder, options, bare)
    if language.exact and shutil.which("valgrind"):
        done = subprocess.run([sys.executable, ORACLE, "--hotfn", os.environ["HOTFN"], "--", folder / "work"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            failures.append(f"callgrind: {done.stdout}{done.stderr}")
    return failures


def main(names):
    outcomes = set()
    for name in names or LANGUAGES:
        missing = [tool for tool in LANGUAGES[name].needs if not shutil.which(tool)]
        if missing:
            print(f"skipped {name}: no {missing[0]} on this system", flush=True)
            outcomes.add(SKIPPED)
            continue
        with tempfile.TemporaryDirectory(prefix="hotfn_language_") as folder:
            try:
                failures = check_language(LANGUAGES[name], pathlib.Path(folder))
            except (RuntimeError, subprocess.TimeoutExpired) as reason:
                failures = [str(reason)]
        print("not ok" if failures else "ok", name, *failures, sep="\n  " if failures else " ", flush=True)
        outcomes.add(1 if failures else 0)
    return 1 if 1 in outcomes else 0 if 0 in outcomes else SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
