#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that each public header compiles alone, as C11 and as C++11, without a warning."""
import shlex
import subprocess
import sys

import tree

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def compile_alone(compiler, standard, language, header):
    """The compiler's messages for a file that includes this header twice, or ''."""
    line = f"#include <{header}>\n"
    done = subprocess.run([*shlex.split(compiler), f"-std={standard}", "-x", language, *STRICT,
                           "-I", tree.ROOT / "include", "-"],
                          input=line * 2, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip()


def main():
    c_compiler, cxx_compiler = sys.argv[1:3]  # '' means no C++ compiler
    problems = []
    headers = [path for path in tree.files() if path.parts[0] == "include"]
    for path in headers:
        header = path.relative_to("include")
        for compiler, standard, language in ((c_compiler, "c11", "c"),
                                             (cxx_compiler, "c++11", "c++")):
            messages = compiler and compile_alone(compiler, standard, language, header)
            if messages:
                problems.append(f"{path} alone as {standard}:\n{messages}")
    tree.finish(problems, f"{len(headers)} headers alone")


if __name__ == "__main__":
    main()
