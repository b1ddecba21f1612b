# SPDX-License-Identifier: MIT
"""The language rules that a program can check: words of words.list, function names of one word, type
names that are defined twice, comments wider than 100 columns, and bodies without braces.

exempt.list names the files that these rules do not cover: one path pattern a line, with its reason in
the comment above it.
"""
import fnmatch
import functools
import re

import check_lengths
import tree

HERE = tree.ROOT / "tests/abi"
TEXTS = (".c", ".h", ".S", ".cc", ".cpp", ".py", ".md", ".js", ".css", ".html", ".1", ".5", ".build", ".sh")
COMMENT_COLUMNS = 100
TYPE = re.compile(r"^(?:typedef\s+(?:struct|union|enum)\s+\w+\s*)?\}\s*(hfn_\w+);|^(?:struct|union) (hfn_\w+)\s*\{",
                  re.MULTILINE)
# Calls of the C library that the agent replaces keep their names.
C_LIBRARY = re.compile(r"src/agent/libc/|src/agent/(?:tsc_disabled|locked_memory|exec/interpose)\.c")


def read_patterns(name):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


@functools.lru_cache
def exempt_patterns():
    return read_patterns("exempt.list")


def is_exempt(path):
    return any(fnmatch.fnmatch(str(path), pattern) for pattern in exempt_patterns())


@functools.lru_cache
def words():
    """[(compiled expression, replacement)].  A word ends at any character that is not a letter; \\b would treat _ as one."""
    found = []
    for line in (HERE / "words.list").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            expression, replacement = re.split(r"\s{2,}", line, maxsplit=1)
            found.append((re.compile(rf"(?<![A-Za-z])(?:{expression})(?![A-Za-z])", re.IGNORECASE), replacement))
    return found


def is_text(path):
    return (path.suffix in TEXTS or path.parts[0] == "scripts") and str(path) != "tests/abi/language.py"


def word_problems(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for expression, replacement in words():
            match = expression.search(line)
            if match:
                yield f"{path}:{number}: '{match[0]}': write {replacement}"


@functools.lru_cache
def public_names():
    """Public calls, whose names src/api.list fixes."""
    return {line.split()[0] for line in (tree.ROOT / "src/api.list").read_text().splitlines() if line.strip()}


def name_problems(path, text):
    """The name of a function is a verb and an object: two or more words."""
    if path.parts[0] not in ("src", "tools") or path.suffix not in (".c", ".h") or C_LIBRARY.match(str(path)):
        return
    for name, first, _ in check_lengths.functions(text):
        if name in public_names():
            continue
        plain = re.sub(r"^(?:hotfn|hfn)_", "", name)
        if name not in ("main", "wmain") and "_" not in plain and plain.islower():
            yield f"{path}:{first}: function {name} has a name of one word: write verb and object"


def width_problems(path, text):
    if path.suffix not in (".c", ".h", ".S", ".cc", ".cpp"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        at = max(line.rfind("/*"), line.rfind("//"))
        is_comment = at >= 0 or line.lstrip().startswith("*")
        if is_comment and len(line) > COMMENT_COLUMNS:
            yield f"{path}:{number}: {len(line)} columns: comments wrap at {COMMENT_COLUMNS}"


CONTROL = re.compile(r"\s*(?:\}\s*)?(?:else\s+)?(?:if|for|while)\s*\(.*\)$|\s*(?:\}\s*)?else$")
LOOP_END = re.compile(r"\s*\}\s*while")


def brace_problems(path, text):
    if path.suffix not in (".c", ".h", ".cc", ".cpp") or str(path).startswith("tests/programs/src/"):
        return
    for number, line in enumerate(tree.without_comments(text).splitlines(), 1):
        code = line.rstrip()
        if CONTROL.match(code) and not LOOP_END.match(code) and code.count("(") == code.count(")"):
            yield f"{path}:{number}: write braces around this body"


def type_problems(defined):
    for name, places in sorted(defined.items()):
        if len(set(places)) > 1:
            yield f"type {name} is defined in {', '.join(sorted(set(places)))}"


def problems(paths):
    defined = {}
    for path, text in paths:
        yield from brace_problems(path, text)
        if not is_text(path) or is_exempt(path):
            continue
        yield from word_problems(path, text)
        yield from name_problems(path, text)
        yield from width_problems(path, text)
        if path.parts[0] == "src":
            for match in TYPE.finditer(tree.without_comments(text)):
                defined.setdefault(match[1] or match[2], []).append(str(path))
    yield from type_problems(defined)
