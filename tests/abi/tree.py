# SPDX-License-Identifier: MIT
"""Functions that the checks of this folder share: the project's files, and C without comments."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT",
                                   pathlib.Path(__file__).resolve().parents[2]))


def files():
    """Paths relative to ROOT of all files that belong to the project, new ones included."""
    done = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "ls-files", "-z",
                           "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True)
    if done.returncode == 0:
        names = [name for name in done.stdout.split("\0") if name]
    else:  # an unpacked release
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0].startswith("build")]
    return sorted(pathlib.PurePosixPath(name) for name in set(names) if (ROOT / name).is_file())


def text_of(path):
    """The file's text, or None if it is not text."""
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return None
    return data.decode("utf-8", errors="replace")


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_comments(text, keep_strings=True):
    """C text with comments blanked, and strings unless keep_strings is set; line numbers stay the same."""
    def blank(match):
        token = match.group()
        if token[0] in "\"'":
            return token if keep_strings else token[0] * 2
        return " " + "\n" * token.count("\n")
    return TOKEN.sub(blank, text)


def finish(problems, what):
    """Print the problems and exit, with status 1 if there are any."""
    for problem in problems:
        print(problem)
    print(f"{what}: {len(problems)} problems")
    raise SystemExit(1 if problems else 0)
