#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that src/api.list, the public headers and the built files agree.

    check_exports.py library FILE     the shared library exports exactly the names of api.list, each
                                      with the version given there
    check_exports.py agent FILE       the agent exports only the names of the API, of unwinders, of gdb
                                      and of the calls that it interposes; it needs no library except
                                      the C library; and it refers by name only to RESOLVED_BY_LOADER
    check_exports.py headers          the names declared with HOTFN_API are exactly those of api.list
"""
import re
import subprocess
import sys

import tree

sys.path.insert(0, str(tree.ROOT / "scripts"))
import gen_version_script  # noqa: E402  (needs the path above)

UNWINDER_CALLS = {"_dl_find_object", "dl_iterate_phdr"}
UNWINDER_CALLS_I386 = {"_Unwind_Find_FDE"}  # src/agent/find_fde_i386.c
GDB_NAMES = {"__jit_debug_descriptor", "__jit_debug_register_code"}
# The undefined names of the agent, which the loader resolves.  The target may define any other name, so the
# agent brings its own definitions (src/agent/libc).
RESOLVED_BY_LOADER = {
    "__register_atfork",    # only the C library defines it; pthread_atfork calls it
    "_r_debug",             # data of the loader
    "environ", "__environ", # data of the C library; a program that defines environ means the same variable
    "__cxa_finalize",       # would be called when the agent is unloaded, which never happens
    "__cxa_demangle",       # weak; called only when a record is read
    "__register_frame",     # weak; called only by a program that counts itself
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__",   # weak; start files of the compiler
    "__tls_get_addr", "__stack_chk_fail",   # only the loader and the C library define them; some compilers call them
    "__getauxval",          # only the C library defines it; libgcc on ARM64 reads the CPU's features by it
}
INTERPOSED = {"prctl", "syscall", "mlockall",  # src/agent/tsc_disabled.c, locked_memory.c, exec/interpose.c
              "_exit", "_Exit", "execve", "execvpe", "execv", "execvp", "execl", "execlp", "execle",
              "fexecve", "execveat", "posix_spawn", "posix_spawnp"}
C_LIBRARY = re.compile(r"libc\.so\.\d+|ld-linux[-\w]*\.so\.\d+|libc\.musl-\w+\.so\.\d+")


def read_api_versions():
    """{name: version} of src/api.list."""
    return dict(gen_version_script.read_api_list(tree.ROOT / "src/api.list"))


def exported_versions(path):
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


def undefined_names(path):
    """The undefined dynamic symbols of a file, without versions."""
    done = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True,
                          check=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def compare_names(expected, found, missing, surplus):
    """Problems: the text `missing` or `surplus` for each name that is in one set only."""
    return ([f"{name}: {missing}" for name in sorted(expected - found)] +
            [f"{name}: {surplus}" for name in sorted(found - expected)])


def check_library(path):
    api, found = read_api_versions(), exported_versions(path)
    problems = compare_names(set(api), set(found), "in src/api.list, but not exported",
                             "exported, but not in src/api.list")
    for name in sorted(set(api) & set(found)):
        if found[name] != f"HOTFN_{api[name]}":
            problems.append(f"{name}: exported with version {found[name]}; src/api.list has HOTFN_{api[name]}")
    return problems, f"{len(found)} exported names"


def needed_libraries(path):
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)


def check_agent(path):
    names = set(exported_versions(path))
    allowed = set(read_api_versions()) | UNWINDER_CALLS | GDB_NAMES | INTERPOSED
    if path.endswith("-i386.so"):
        allowed |= UNWINDER_CALLS_I386
    problems = [f"{name}: the agent must not export it" for name in sorted(names - allowed)]
    problems += [f"{name}: the agent must not need this library"
                 for name in needed_libraries(path) if not C_LIBRARY.fullmatch(name)]
    problems += [f"{name}: undefined in the agent: define it in src/agent/libc"
                 for name in sorted(undefined_names(path) - RESOLVED_BY_LOADER)]
    return problems, f"the agent's {len(names)} exported names"


def check_headers():
    declared = set()
    for path in tree.files():
        if path.parts[0] == "include":
            code = tree.without_comments(tree.text_of(path))
            declared |= set(re.findall(r"HOTFN_API\b[^;{]*?\b(hotfn_\w+)\s*\(", code))
    problems = compare_names(set(read_api_versions()), declared,
                             "in src/api.list, but not declared with HOTFN_API",
                             "declared with HOTFN_API, but not in src/api.list")
    return problems, f"{len(declared)} declared names"


def main():
    check = {"library": check_library, "agent": check_agent, "headers": check_headers}[sys.argv[1]]
    tree.finish(*check(*sys.argv[2:]))


if __name__ == "__main__":
    main()
