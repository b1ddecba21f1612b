#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that src/api.list, the public headers and the built files agree.

    check_exports.py library FILE     the shared library exports the names of api.list, no other,
                                      each with the version that stands beside it
    check_exports.py agent FILE       the agent exports no name but the API's, the unwinder's
                                      two, gdb's two, prctl and mlockall, asks for no library but the C library, and calls
                                      nothing by a name that a program may have a function of its own by
    check_exports.py headers          each name declared with HOTFN_API stands in api.list and
                                      the other way round
"""
import re
import subprocess
import sys

import tree

sys.path.insert(0, str(tree.ROOT / "scripts"))
import gen_version_script  # noqa: E402  (needs the path above)

UNWINDER_CALLS = {"_dl_find_object", "dl_iterate_phdr"}
UNWINDER_CALLS_I386 = {"_Unwind_Find_FDE"}  # glibc's own there, see tools/agent/find_fde_i386.c
GDB_NAMES = {"__jit_debug_descriptor", "__jit_debug_register_code"}
# All that the agent leaves to the loader to find.  What it calls by name may be the target's own: src/agent/libc.
OPEN_NAMES = {
    "__register_atfork",    # of the C library alone: pthread_atfork leads to it
    "_r_debug",             # the loader's data
    "__cxa_finalize",       # called when the agent is unloaded: never
    "__cxa_demangle",       # weak; called by who reads records
    "__register_frame",     # weak; called by sessions of the own process
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__",   # weak, of the compiler's frame
    "__tls_get_addr", "__stack_chk_fail",   # the loader's and the C library's alone, where a compiler wants them
    "__getauxval",          # of the C library alone: ARM64's libgcc asks it which atomics there are
}
PASSED_ON = {"prctl", "syscall", "mlockall"}  # src/forbidden_clock.c, src/locked_memory.c
C_LIBRARY = re.compile(r"libc\.so\.\d+|ld-linux[-\w]*\.so\.\d+|libc\.musl-\w+\.so\.\d+")


def listed():
    return dict(gen_version_script.read_api_list(tree.ROOT / "src/api.list"))


def exported(path):
    """{name: version or ''} of the dynamic symbols that a file defines."""
    done = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                          check=True)
    names = {}
    for line in done.stdout.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@")
        if kind != "A":  # the version nodes themselves
            names[name] = version.lstrip("@")
    return names


def undefined(path):
    """The dynamic symbols that a file leaves open, without versions."""
    done = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True,
                          check=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def compare(wanted, got, missing, surplus):
    return ([f"{name}: {missing}" for name in sorted(wanted - got)] +
            [f"{name}: {surplus}" for name in sorted(got - wanted)])


def check_library(path):
    api, got = listed(), exported(path)
    problems = compare(set(api), set(got), "in src/api.list, not exported",
                       "exported, not in src/api.list")
    for name in sorted(set(api) & set(got)):
        if got[name] != f"HOTFN_{api[name]}":
            problems.append(f"{name}: exported as {got[name]}, since {api[name]} in src/api.list")
    return problems, f"{len(got)} exported names"


def needed(path):
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)


def check_agent(path):
    names = set(exported(path))
    allowed = set(listed()) | UNWINDER_CALLS | GDB_NAMES | PASSED_ON
    if path.endswith("-i386.so"):
        allowed |= UNWINDER_CALLS_I386
    problems = [f"{name}: exported by the agent" for name in sorted(names - allowed)]
    problems += [f"{name}: needed by the agent"
                 for name in needed(path) if not C_LIBRARY.fullmatch(name)]
    problems += [f"{name}: called by the agent by name: give src/agent/libc one of its own"
                 for name in sorted(undefined(path) - OPEN_NAMES)]
    return problems, f"the agent's {len(names)} exported names"


def check_headers():
    declared = set()
    for path in tree.files():
        if path.parts[0] == "include":
            code = tree.without_comments(tree.text_of(path))
            declared |= set(re.findall(r"HOTFN_API\b[^;{]*?\b(hotfn_\w+)\s*\(", code))
    problems = compare(set(listed()), declared, "in src/api.list, not declared with HOTFN_API",
                       "declared with HOTFN_API, not in src/api.list")
    return problems, f"{len(declared)} declared names"


def main():
    check = {"library": check_library, "agent": check_agent, "headers": check_headers}[sys.argv[1]]
    tree.finish(*check(*sys.argv[2:]))


if __name__ == "__main__":
    main()
