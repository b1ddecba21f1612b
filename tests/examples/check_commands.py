#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that README.md and docs/pipeline.md speak of verbs, options and files that there are."""
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


def help_of(verb):
    done = subprocess.run([os.environ["HOTFN"], verb, "--help"], capture_output=True, text=True)
    return done.stdout


def command_problems(name, text):
    for verb, words in COMMAND.findall(text):
        known = help_of(verb)
        if not known:
            yield f"{name}: no verb {verb}"
            continue
        ours = words.split(" -- ")[0]  # behind -- stands the program
        for option in re.findall(r"(?<=\s)(--[a-z][a-z-]*|-[a-zA-Z])(?=\s|$)", ours):
            if not re.search(rf"(?<![\w-]){option}\b", known):
                yield f"{name}: hotfn {verb} has no {option}"


def main():
    problems = []
    for name in TEXTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        if os.environ.get("HOTFN"):
            problems += command_problems(name, text)
        problems += [f"{name}: {path} is not there" for path in FILE.findall(text)
                     if not (ROOT / path).exists()]
    print("\n".join(problems) or "texts are well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
