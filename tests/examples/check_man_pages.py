#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the man pages: formatted without a warning, and with the options that the program has.

HOTFN names the program; without it only the format is checked.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
PAGES = ROOT / "docs/man"
LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OPTION_LINE = re.compile(r"^(?:usage:| {2,6}(?=-))(.*?)(?:   |$)", re.MULTILINE)  # without what is said of it
COMMON = {"--help", "--version"}


def warnings_of(page):
    if not shutil.which("man"):
        return []
    # Not the caller's: groff never ends where COLUMNS is 20, and man warns of a locale that is not installed.
    own = dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8")
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], env=own,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return [f"{page.name}: {line}" for line in done.stderr.splitlines()]


def documented(page):
    """The long options of a page: mdoc writes --name as `Fl -name`."""
    text = page.read_text(encoding="utf-8")
    return {"--" + name for name in re.findall(r"(?:Fl|,) -([a-z][a-z0-9-]+)", text)}


def offered(*verb):
    done = subprocess.run([os.environ["HOTFN"], *verb, "--help"], capture_output=True, text=True)
    return done.stdout


def option_problems(verbs):
    """Each page names its verb's options, and else only what some verb knows."""
    texts = {verb: offered(verb) for verb in verbs}
    anybody = COMMON.union(*map(LONG_OPTION.findall, texts.values()))
    for verb, text in texts.items():
        page = PAGES / f"hotfn-{verb}.1"
        own = {name for line in OPTION_LINE.findall(text) for name in LONG_OPTION.findall(line)}
        says = documented(page)
        yield from (f"{page.name}: lacks {name}" for name in sorted(own - says - COMMON))
        yield from (f"{page.name}: {name} is no option" for name in sorted(says - anybody))


def verb_problems():
    text = (PAGES / "hotfn.1").read_text(encoding="utf-8")
    for verb in re.findall(r"^  ([a-z]+) ", offered(), re.MULTILINE):
        if verb != "hotfn" and f".It Cm {verb}\n" not in text:
            yield f"hotfn.1: lacks the verb {verb}"


def main():
    problems = [problem for page in sorted(PAGES.glob("*.1")) for problem in warnings_of(page)]
    if os.environ.get("HOTFN"):
        problems += verb_problems()
        problems += option_problems([page.stem.removeprefix("hotfn-") for page in sorted(PAGES.glob("hotfn-*.1"))])
    print("\n".join(problems) or "pages are well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
