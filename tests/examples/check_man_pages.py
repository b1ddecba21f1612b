#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the man pages: they format without a warning and list the options that the program accepts.

HOTFN names the program; without it only the formatting is checked.
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
OPTION_LINE = re.compile(r"^(?:usage:| {2,6}(?=-))(.*?)(?:   |$)", re.MULTILINE)  # without the description
COMMON = {"--help", "--version"}


def format_warnings(page):
    if not shutil.which("man"):
        return []
    # Not the caller's environment: groff hangs if COLUMNS is 20, and man warns about missing locales.
    own = dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8")
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], env=own,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return [f"{page.name}: {line}" for line in done.stderr.splitlines()]


def documented_options(page):
    """The long options of a page: mdoc writes --name as `Fl -name`."""
    text = page.read_text(encoding="utf-8")
    return {"--" + name for name in re.findall(r"(?:Fl|,) -([a-z][a-z0-9-]+)", text)}


# Programs of their own, and commands that a build may lack: without them only the formatting is checked.
PROGRAMS = {"collector": os.environ.get("HOTFN_COLLECTOR")}
OPTIONAL = {"push"}


def get_help(*command):
    program = [PROGRAMS[command[0]]] if command and command[0] in PROGRAMS else [os.environ["HOTFN"], *command]
    done = subprocess.run([*program, "--help"], capture_output=True, text=True)
    return done.stdout


def has_help(command):
    return PROGRAMS[command] if command in PROGRAMS else command not in OPTIONAL or get_help(command)


def option_problems(commands):
    """Each page names all options of its command, and no option that no command accepts."""
    texts = {command: get_help(command) for command in list(commands)}
    all_options = COMMON.union(*map(LONG_OPTION.findall, texts.values()))
    for command, text in texts.items():
        page = PAGES / f"hotfn-{command}.1"
        own = {name for line in OPTION_LINE.findall(text) for name in LONG_OPTION.findall(line)}
        documented = documented_options(page)
        yield from (f"{page.name}: lacks {name}" for name in sorted(own - documented - COMMON))
        yield from (f"{page.name}: {name} is not an option" for name in sorted(documented - all_options))


def command_problems():
    text = (PAGES / "hotfn.1").read_text(encoding="utf-8")
    for command in re.findall(r"^  ([a-z]+) ", get_help(), re.MULTILINE):
        if command != "hotfn" and f".It Cm {command}\n" not in text:
            yield f"hotfn.1: lacks the command {command}"


def main():
    problems = [problem for page in sorted(PAGES.glob("*.1")) for problem in format_warnings(page)]
    if os.environ.get("HOTFN"):
        problems += command_problems()
        problems += option_problems(filter(has_help, [page.stem.removeprefix("hotfn-")
                                                      for page in sorted(PAGES.glob("hotfn-*.1"))]))
    print("\n".join(problems) or "pages are correct")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
