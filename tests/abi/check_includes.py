#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the includes between folders (described in src/README.md and src/meson.build).

A folder of src/ may include its own headers and those of the folders that USES lists for it, directly or
indirectly; each public header belongs to a folder too.  Headers of other projects, and conditions on the
system or the CPU, are allowed only in certain places.  Tools and examples may include only public headers.
"""
import posixpath
import re

import tree

USES = {
    "base": [],
    "os": ["base"],
    "image": ["os"],
    "symbols": ["image"],
    "functions": ["symbols"],
    "arch": ["base"],
    "verdicts": ["functions", "arch"],
    "plan": ["verdicts"],
    "hooks": ["plan", "os"],
    "live": ["os"],
    "counters": ["live"],
    "records": ["live", "functions"],
    "profile": ["records"],
    "exporters": ["profile"],
    "events": ["records"],
    "scan": ["plan", "os"],
    "session": ["scan", "hooks", "counters", "profile"],
    "launch": ["scan", "hooks", "live", "os", "profile", "counters", "events"],
    "runtimes": ["session", "live", "counters"],
    "agent": ["session", "runtimes"],
}
ALWAYS_PUBLIC = {"status", "env", "machine", "function", "json", "ranks"}  # <hotfn/status.h> and the like belong to base
OWNER = {"lists": "scan", "timing": "live", "budget": "live", "record": "live", "frame": "session", "zone": "session", "switch": "launch",
         "export": "exporters"}  # the folder of a public header, where the names differ
FOREIGN = [  # headers of other projects, and the paths that may include them
    (re.compile(r"uthash|utarray|utlist|utstring|uthash/.*"), re.compile(r"src/base/")),
    (re.compile(r"cjson/.*|cJSON\.h"), re.compile(r"src/base/json\.c$")),
    (re.compile(r"Zydis/.*|Zycore/.*"), re.compile(r"src/arch/x86/decode(_data)?\.[ch]$")),
]
# Headers of an operating system or of POSIX.  Those of the C standard are allowed everywhere.
SYSTEM_HEADER = re.compile(
    r"(sys|linux|asm|arpa|net|netinet|mach)/.*|aio|dirent|dlfcn|elf|execinfo|fcntl|fnmatch|ftw|glob|grp|"
    r"io|langinfo|libgen|link|netdb|poll|process|pthread|pwd|regex|sched|semaphore|signal|spawn|strings|"
    r"syscall|syslog|termios|ucontext|unistd|unwind|utime|windows|winternl")
SYSTEM_PLACE = re.compile(r"src/(os|agent)/|src/arch/.*\.S$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b((?:\\\n|[^\n])*)", re.MULTILINE)
SYSTEM_OR_CPU = re.compile(
    r"\b(_WIN32|_WIN64|WIN32|_MSC_VER|__MINGW\w+|__CYGWIN__|__linux__|__linux|__gnu_linux__|"
    r"__unix__|__ANDROID__|__APPLE__|__MACH__|__FreeBSD__|__NetBSD__|__OpenBSD__|"
    r"__x86_64__|__x86_64|__amd64__|__i386__|__i386|__aarch64__|__arm__|__riscv|"
    r"_M_X64|_M_IX86|_M_ARM64|_M_ARM|__SSE\w*__|__AVX\w*__)\b")
CPU_NAME = re.compile(r"(x86|amd64|i386|arm64|aarch64)")
MAY_TEST_SYSTEM = re.compile(r"src/arch/|src/os/|src/base/compiler\.h$|include/hotfn/(status|optional)\.h$")


def closure(folder):
    reached, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += USES[name]
    return reached


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def folder_of(path):
    """The folder below src/, or None for src/sizeof.c."""
    return path.parts[1] if len(path.parts) > 2 else None


def inside_target(path, header):
    """The path of the file that a quoted include in src/ refers to."""
    sibling = posixpath.normpath(posixpath.join(str(path.parent), header))
    if (tree.ROOT / sibling).is_file():
        return sibling
    return posixpath.normpath(posixpath.join("src", header))


def public_problem(allowed, header):
    """The problem if a folder that may use the folders `allowed` includes a public header, or None."""
    name = header.removeprefix("hotfn/").removeprefix("lowlevel/").removesuffix(".h")
    if header.startswith("hotfn/") and (name in ALWAYS_PUBLIC or OWNER.get(name, name) in allowed):
        return None
    return f"<{header}> belongs to a folder that this folder may not use"


def inside_problem(path, kind, header):
    """The problem of an include in src/, or None."""
    folder = folder_of(path)
    if folder is None:
        return None
    if folder == "agent" and header in ("hotfn.h", "hotfn/lowlevel.h"):
        return None
    if folder not in USES:
        return f"folder src/{folder} is not in USES of check_includes.py"
    allowed = closure(folder)
    if header == "hotfn.h" or header.startswith("hotfn/"):
        return public_problem(allowed, header)
    if kind == "<":
        return None
    parts = inside_target(path, header).split("/")
    if CPU_NAME.search(parts[2] if parts[1:2] == ["arch"] else "") and folder != "arch":
        return f'"{header}" is for src/arch only: include arch/arch.h or arch/stub.h'
    if parts[0] != "src":
        return f'"{header}" lies outside of src/'
    if len(parts) < 3 or parts[1] not in allowed:
        return f'{folder} may not include "{header}"'
    return None


def outside_problem(path, kind, header):
    """The problem of an include outside of src/, or None."""
    if kind == "<":
        return None
    sibling = posixpath.normpath(posixpath.join(str(path.parent), header))
    if (tree.ROOT / sibling).is_file() and sibling.startswith(str(path.parent)):
        return None
    if path.parts[0] == "tools" and (tree.ROOT.joinpath(*path.parts[:2]) / header).is_file():
        return None
    return f'"{header}": include only <hotfn...> and files of the same program'


def foreign_problem(path, header):
    for pattern, place in FOREIGN:
        if pattern.fullmatch(header.removesuffix(".h")) or pattern.fullmatch(header):
            if not place.match(str(path)):
                return f"{header} may be included from {place.pattern} only"
    return None


def system_problem(path, header):
    """System headers, and src/os/<system>/, are for src/os and src/agent only."""
    if path.parts[0] != "src" or SYSTEM_PLACE.match(str(path)):
        return None
    if SYSTEM_HEADER.fullmatch(header.removesuffix(".h")):
        return f"<{header}> belongs to one system: use src/os"
    if re.match(r"os/[a-z]+/", header):
        return f'"{header}" belongs to one system: include os/os.h or one of its headers'
    return None


def check_file(path, text):
    code = tree.without_comments(text)
    if path.parts[0] == "src" and folder_of(path) not in ("arch", "agent") and CPU_NAME.search(str(path)):
        yield f"{path}: the name of a CPU is allowed in src/arch only"
    for match in INCLUDE.finditer(code):
        kind, header = match.groups()
        where = f"{path}:{line_of(code, match)}"
        own = inside_problem if path.parts[0] == "src" else outside_problem
        if path.parts[0] == "include":
            own = outside_problem
        for problem in (own(path, kind, header), foreign_problem(path, header), system_problem(path, header)):
            if problem:
                yield f"{where}: {problem}"
    for match in CONDITION.finditer(code):
        found = SYSTEM_OR_CPU.search(match.group(1))
        if found and not MAY_TEST_SYSTEM.match(str(path)):
            yield (f"{path}:{line_of(code, match)}: #if on {found[0]} outside of src/arch, src/os "
                   "and src/base/compiler.h")


def main():
    problems, checked = [], 0
    for path in tree.files():
        if path.parts[0] in ("src", "include", "tools") and path.suffix in (".c", ".h", ".S"):
            problems += check_file(path, tree.text_of(path) or "")
            checked += 1
    tree.finish(problems, f"includes of {checked} files")


if __name__ == "__main__":
    main()
