# SPDX-License-Identifier: MIT
"""The completions for bash, zsh and fish offer each command, and each option of each command."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cases
from cases import Skipped

HOTFN = os.environ["HOTFN"]
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "completions"
ZSH = """
compadd() { shift; print -l -- $@ }
_describe() { print -l -- ${${(P)2}%%:*} }
_files() { print files }
_normal() { print -- "command: $words" }
complete_words() { words=("$@"); CURRENT=$#; PREFIX=$words[-1]; source FILE }
complete_words "$@"
"""
BASH = """
source FILE
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_hotfn
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run_shell(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": f"{pathlib.Path(HOTFN).parent}:{os.environ['PATH']}"})
    assert done.returncode == 0 and not done.stderr, done
    return set(done.stdout.split("\n")) - {""}


def complete_in_bash(*words):
    return run_shell("bash", "-c", BASH.replace("FILE", str(FOLDER / "hotfn.bash")), "bash", *words)


def complete_in_zsh(*words):
    return run_shell("zsh", "-f", "-c", ZSH.replace("FILE", str(FOLDER / "_hotfn")), "zsh", *words)


def complete_in_fish(*words):
    found = run_shell("fish", "--no-config", "-c", f"source {FOLDER / 'hotfn.fish'}; complete -C '{' '.join(words)}'")
    return {line.partition("\t")[0] for line in found}


def help_of(*words):
    return subprocess.run([HOTFN, *words, "--help"], capture_output=True, text=True, check=True).stdout


def check(shell, complete):
    if not shutil.which(shell):
        raise Skipped(f"no {shell} on this system")
    commands = set(re.findall(r"^  (\w+)  ", help_of(), re.M))
    assert {"run", "report", "attach"} < commands
    assert complete("hotfn", "") >= commands
    assert complete("hotfn", "dif") == {"diff"} or shell == "zsh"  # zsh itself chooses by the prefix
    for command in commands:
        options = set(re.findall(r"(?:^|[ ,])(--[a-z][a-z0-9-]*)", "\n".join(
            line for line in help_of(command).splitlines() if line.lstrip().startswith("-"))))
        found = complete("hotfn", command, "--")
        assert found >= options, (command, options - found)
    assert "--mode" in complete("hotfn", "run", "--mo") and "-o" in complete("hotfn", "run", "-")
    assert not complete("hotfn", "run", "--", "/bin/true", "--mo") & {"--mode"}


def bash_completes_all_options(_):
    check("bash", complete_in_bash)


def zsh_completes_all_options(_):
    check("zsh", complete_in_zsh)


def fish_completes_all_options(_):
    check("fish", complete_in_fish)


if __name__ == "__main__":
    sys.exit(cases.run([bash_completes_all_options, zsh_completes_all_options, fish_completes_all_options]))
