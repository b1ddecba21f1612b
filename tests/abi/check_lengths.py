#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the lengths of functions and files.

The limits in lines:

    70    a function, from the first line of its declaration to its last brace
    800   a C file, with a note above 500
    300   a public header
    60    a page of docs/design
    650   all files of src/agent together, except these:
    100       the files for i386 together, and those for Windows together
    400       src/agent/exec
    160       src/agent/attach
    -         src/agent/libc

A comment in a function, or in the ten lines before it, may raise its limit, for instance for a switch that
decodes: `length: up to 120 lines because ...`.  In the first 20 lines of a file, it raises the file's limit.
"""
import re

import tree

FUNCTION_CAP, FILE_NOTE_ABOVE, FILE_CAP, HEADER_CAP, PAGE_CAP = 70, 500, 800, 300, 60
AGENT_CAP, AGENT_CPU_CAP = 650, 100  # files of all agents; of the i386 agent, or of the Windows agent
AGENT_EXEC_CAP = 400  # exec/, which follows the target through exec
AGENT_ATTACH_CAP = 160  # attach/, for processes that run already on Windows
EXCEPTION = re.compile(r"length: up to (\d+) lines because \S")
PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
FOLDERS = ("src", "include", "tools", "tests", "fuzz", "bench", "docs")


def code_of(text):
    """C with comments, strings and preprocessor lines blanked, line numbers kept."""
    code = tree.without_comments(text, keep_strings=False)
    return PREPROCESSOR.sub(lambda match: "\n" * match.group().count("\n"), code)


def is_function_head(head):
    """Whether the text before a brace is a function's: not `struct x`, `int table[] =`, `extern ""`."""
    return bool(re.search(r"\w\s*\(", head)) and "=" not in head and head.rstrip().endswith(")")


def head_name(head):
    return re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)|HFN_\w+\([^()]*\)", "",
                                           head))[1]


def matching_brace(code, start):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def functions(text):
    """Yield (name, first line, last line) of each function that is defined in C text."""
    code = code_of(text)
    head_start = position = 0
    while True:
        match = re.compile(r"[{};]").search(code, position)
        if not match:
            return
        position = match.end()
        head = code[head_start:match.start()]
        if match.group() == "{" and re.fullmatch(r'\s*extern\s*""\s*', head):
            head_start = position
            continue
        if match.group() == "{":
            end = matching_brace(code, match.start())
            if is_function_head(head):
                first = head_start + len(head) - len(head.lstrip())
                yield (head_name(head), code.count("\n", 0, first) + 1,
                       code.count("\n", 0, end) + 1)
            position = end + 1
        head_start = position


def allowed_lines(lines, first, last):
    """The limit for a function: 70, or that of a comment in it or in the ten lines before it."""
    around = "\n".join(lines[max(0, first - 11):last])
    exception = EXCEPTION.search(around)
    return int(exception[1]) if exception else FUNCTION_CAP


def file_cap(path, text):
    exception = EXCEPTION.search("\n".join(text.splitlines()[:20]))
    return int(exception[1]) if exception else HEADER_CAP if path.parts[0] == "include" else FILE_CAP


def check_file(path, text, lengths):
    lines = text.splitlines()
    if len(lines) > file_cap(path, text):
        yield f"{path}: {len(lines)} lines, at most {file_cap(path, text)} are allowed"
    elif len(lines) > FILE_NOTE_ABOVE:
        print(f"note: {path}: {len(lines)} lines, should have at most {FILE_NOTE_ABOVE}")
    for name, first, last in functions(text):
        length = last - first + 1
        lengths.append(length)
        if length > allowed_lines(lines, first, last):
            yield f"{path}:{first}: {name} has {length} lines, at most {allowed_lines(lines, first, last)} are allowed"


def check_page(path, text):
    count = len(text.splitlines())
    return [f"{path}: {count} lines, a page of the design has at most {PAGE_CAP}"] if count > PAGE_CAP else []


def print_distribution(lengths):
    if lengths:
        ordered = sorted(lengths)
        median, p90 = ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10]
        print(f"note: {len(ordered)} functions, median {median} (goal 15), 90 % have at most {p90} "
              f"(goal 40), longest {ordered[-1]}")


def main():
    problems, lengths, agent_lines = [], [], [0, 0, 0, 0, 0]
    for path in tree.files():
        if path.parts[:2] == ("docs", "design") and path.suffix == ".md":
            problems += check_page(path, tree.text_of(path) or "")
        if path.parts[0] not in FOLDERS or path.suffix not in (".c", ".h"):
            continue
        if path.parts[:2] == ("tests", "programs"):
            continue  # test programs; some are upstream's, some are generated
        text = tree.text_of(path) or ""
        problems += check_file(path, text, lengths)
        if path.parts[:3] == ("src", "agent", "exec"):
            agent_lines[3] += len(text.splitlines())
        elif path.parts[:3] == ("src", "agent", "attach"):
            agent_lines[4] += len(text.splitlines())
        elif path.parts[:2] == ("src", "agent") and len(path.parts) == 3:
            part = 1 if path.stem.endswith("_i386") else 2 if path.stem.endswith("_windows") else 0
            agent_lines[part] += len(text.splitlines())
    for lines, cap in zip(agent_lines, (AGENT_CAP, AGENT_CPU_CAP, AGENT_CPU_CAP, AGENT_EXEC_CAP,
                                           AGENT_ATTACH_CAP)):
        if lines > cap:
            problems.append(f"src/agent: {lines} lines together, at most {cap} are allowed")
    print_distribution(lengths)
    tree.finish(problems, f"lengths of {len(lengths)} functions")


if __name__ == "__main__":
    main()
