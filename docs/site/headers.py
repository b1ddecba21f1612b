# SPDX-License-Identifier: MIT
"""Reads the public headers: each comment with the declarations that it describes.

A comment describes the declarations that follow it up to the next blank line.
"""
import dataclasses
import re

COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
MACRO_LINE = re.compile(r"HOTFN_[A-Z_]+(?=\n)")    # a macro that is a whole declaration
CALL = re.compile(r"^HOTFN(?:_PUSH)?_API\b[^(]*?\b(hotfn_\w+)\(", re.DOTALL)
TYPE = re.compile(r"^typedef .*?(?:\}\s*|\(\*|\s\*?)(hotfn_\w+)(?:\)\([^;]*\))?;$", re.DOTALL)
MACRO = re.compile(r"^#define (HOTFN_\w+)")
CPLUSPLUS = re.compile(r'#ifdef __cplusplus\n(?:extern "C" \{|\})\n#endif\n')
SKIPPED = re.compile(r"^(#include|#ifn?def|#endif|#if |#else|struct hotfn_\w+;$|#define HOTFN_\w+_(?:H$|API\b)|#define HOTFN_API\b|HOTFN_[A-Z_]+$)")


@dataclasses.dataclass
class Item:
    """A declaration: its name, its kind (call, type, constant) and its text."""
    name: str
    kind: str
    code: str


@dataclasses.dataclass
class Group:
    """A comment and the declarations that it describes; a heading ("---- ...") has none."""
    comment: str
    items: list


@dataclasses.dataclass
class Header:
    path: str           # hotfn/record.h
    about: str
    groups: list


def clean_comment(text):
    """The text of a comment without the stars of its lines."""
    lines = [re.sub(r"^\s*\* ?", "", line) if number else line.strip() for number, line in enumerate(text.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip()


def split_blocks(text):
    """[(kind, text)], in order; the kinds are comment (at the start of a line), blank (a line) and code (a declaration)."""
    blocks, at = [], 0
    while at < len(text):
        if text[at] == "\n":
            blocks.append(("blank", ""))
            at += 1
            continue
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            blocks.append(("comment", clean_comment(text[at + 2:end - 2])))
        else:
            end = find_end(text, at)
            blocks.append(("code", text[at:end].strip()))
        at = end + 1 if text[end:end + 1] == "\n" else end
    return blocks


def find_end(text, at):
    """The end of the declaration or preprocessor line at `at`, including a comment in the same line."""
    if text[at] == "#":
        end = at
        while True:
            line_end = text.index("\n", end)
            if not text[end:line_end].rstrip().endswith("\\"):
                break
            end = line_end + 1
        opened = text.rfind("/*", at, line_end)
        return text.index("*/", opened) + 2 if opened > text.rfind("*/", at, line_end) else line_end
    macro = MACRO_LINE.match(text, at)
    if macro:
        return macro.end()
    depth = 0
    code = COMMENT.sub(lambda match: " " * len(match.group()), text[at:])
    for offset, character in enumerate(code):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and character == ";":
            line_end = text.index("\n", at + offset)
            opened = text.rfind("/*", at + offset, line_end)
            return text.index("*/", opened) + 2 if opened >= 0 else line_end
    raise ValueError(f"a declaration does not end: {text[at:at + 80]!r}")


def read_item(code):
    """The Item of a declaration; None for lines that are not shown, such as #include."""
    if SKIPPED.match(code):
        return None
    for kind, pattern in (("call", CALL), ("type", TYPE), ("constant", MACRO)):
        found = pattern.match(code)
        if found:
            return Item(found[1], kind, code)
    raise ValueError(f"not understood: {code!r}")


def read_header(path, text):
    """Read the text of a header; path is what a program includes, such as hotfn/record.h."""
    blocks = split_blocks(CPLUSPLUS.sub("", text))
    comments = [block for kind, block in blocks if kind == "comment"]
    about = next(block for block in comments if not block.startswith("SPDX"))
    groups, comment, group = [], "", None
    for kind, block in blocks:
        if kind == "blank":
            group = None
        elif kind == "comment":
            group, comment = None, "" if block == about or block.startswith("SPDX") else block
            if comment.startswith("----"):
                groups.append(Group(comment.strip("- "), []))
                comment = ""
        else:
            item = read_item(block)
            if item is None:
                continue
            if group is None:
                group = Group(comment, [])
                groups.append(group)
                comment = ""
            group.items.append(item)
    return Header(path, about, groups)
