#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that README.md and the pages below name only commands, options and files that exist."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
TEXTS = ["README.md", "docs/pipeline.md", "docs/compare.md", "docs/examples/README.md",
         "src/README.md"]
COMMAND = re.compile(r"^    (?:\$ )?hotfn ([a-z]+)((?: [^ #]\S*)*)", re.MULTILINE)
FILE = re.compile(r"`((?:docs|src|tests|scripts|bench|bindings|include)/[\w./-]*\w)`")


def get_help(command):
    done = subprocess.run([os.environ["HOTFN"], command, "--help"], capture_output=True, text=True)
    return done.stdout


def command_problems(name, text):
    for command, words in COMMAND.findall(text):
        known = get_help(command)
        if not known:
            yield f"{name}: no command {command}"
            continue
        own_words = words.split(" -- ")[0]  # the program follows --
        for option in re.findall(r"(?<=\s)(--[a-z][a-z-]*|-[a-zA-Z])(?=\s|$)", own_words):
            if not re.search(rf"(?<![\w-]){option}\b", known):
                yield f"{name}: hotfn {command} has no {option}"


def main():
    problems = []
    for name in TEXTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        if os.environ.get("HOTFN"):
            problems += command_problems(name, text)
        problems += [f"{name}: {path} does not exist" for path in FILE.findall(text)
                     if not (ROOT / path).exists()]
    print("\n".join(problems) or "texts are correct")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
