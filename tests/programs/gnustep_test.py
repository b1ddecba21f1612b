# SPDX-License-Identifier: MIT
"""gnustep-base's own test programs print the same under `hotfn run --runtime objc` as bare.  The source package comes
from Debian (apt_source.py); the programs are built with libgnustep-base-dev and gnustep-make.

HOTFN names the program.  HOTFN_GNUSTEP is a glob on the programs, below Tests/base [*].
"""
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import apt_source
import cases
from cases import Skipped

HOTFN = os.environ["HOTFN"]
MODES = ([], ["--mode", "time"])
WANTED = os.environ.get("HOTFN_GNUSTEP", "*")
TIMEOUT = 20
# Addresses, thread and process numbers, times and random names differ from run to run.
VARIES = [(r"0x[0-9a-fA-F]+", "0x"), (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*( [-+]\d{4})?", "TIME"), (r"\[\d+:\d+\]", "[]"),
          (r"systemUptime \d+", "systemUptime")]


def read_words(*options):
    return subprocess.run(["gnustep-config", *options], capture_output=True, text=True, check=True).stdout.split()


def fetch(folder):
    source = folder / "gnustep-base"
    try:
        apt_source.unpack(pathlib.Path(os.environ.get("HOTFN_APT", folder)), "gnustep-base", source)
    except apt_source.Unavailable as reason:
        raise Skipped(reason)
    return source / "Tests/base"


def build(program, flags, libraries, framework):
    """False if the program needs files that Debian does not package, such as private headers."""
    done = subprocess.run(["gcc", "-w", *flags, f"-I{framework}", "-o", program.with_suffix(""), program.name, *libraries],
                          cwd=program.parent, capture_output=True, text=True)
    return done.returncode == 0


def normalise(text):
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text


def run(words, program, home):
    """What the program prints, and its status; None if it does not end."""
    env = {**os.environ, "HOME": home, "TZ": "UTC", "LC_ALL": "C"}
    try:
        done = subprocess.run([*words, program.with_suffix("")], cwd=program.parent, env=env, capture_output=True,
                              encoding="latin-1", timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None
    # messages of hotfn, such as its warning of exceptions, are not of the program
    lines = [line for line in done.stderr.splitlines() if not line.startswith("hotfn")]
    return done.returncode, normalise(done.stdout), normalise("\n".join(lines))


def compare(program):
    """The modes in which the output differs; None if the bare program fails, as without its bundles,
    when some read variables that are not set; or if it does not print the same twice."""
    with tempfile.TemporaryDirectory(prefix="hotfn_case_") as home:
        bare = [run([], program, home) for _ in range(2)]
        if bare[0] is None or bare[0] != bare[1] or bare[0][0] != 0 or "Failed test:" in bare[0][2]:
            return None
        wrong = []
        for mode in MODES:
            words = [HOTFN, "run", "-q", "--runtime", "objc", *mode, "-o", f"{home}/gnustep.hfr", "--"]
            found = run(words, program, home)
            if found != bare[0] and run(words, program, home) != run([], program, home):
                wrong.append((mode, bare[0], found))
        return wrong


def gnustep_base_passes_its_own_tests(folder):
    base = fetch(folder)
    flags, libraries = read_words("--objc-flags"), read_words("--base-libs")
    framework = read_words("--variable=GNUSTEP_MAKEFILES")[0] + "/TestFramework"
    programs = [p for p in sorted(base.glob("*/*.m")) if fnmatch.fnmatch(str(p.relative_to(base)), WANTED)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = [p for p, ok in zip(programs, pool.map(lambda p: build(p, flags, libraries, framework), programs)) if ok]
        results = dict(zip(built, pool.map(compare, built)))
    compared = {p: r for p, r in results.items() if r is not None}
    print(f"# {len(programs)} programs, {len(built)} built, {len(compared)} pass, and print the same twice")
    wrong = {str(p.relative_to(base)): r for p, r in compared.items() if r}
    assert not wrong, wrong
    assert len(compared) > 100 or WANTED != "*", len(compared)


if __name__ == "__main__":
    sys.exit(cases.run([gnustep_base_passes_its_own_tests], needs=["gnustep-config", "gcc", "apt-get"]))
