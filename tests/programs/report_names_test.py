# SPDX-License-Identifier: MIT
"""`hotfn report` of a C++ program with long names: which parts of a name remain on a terminal and in a pipe."""
import os
import subprocess
import sys

import cases

HOTFN = os.environ["HOTFN"]
SOURCE = """
#include <map>
#include <string>
#include <vector>
namespace engine { namespace render { namespace materials {
typedef std::map<std::string, std::vector<std::pair<int, double> > > Lights;
struct Phong { static Lights shade(Lights const &a, Lights const &b, std::string const &name, int depth); };
struct Toon { static Lights shade(Lights const &a, Lights const &b, std::string const &name, int depth); };
__attribute__((noinline)) Lights Phong::shade(Lights const &a, Lights const &, std::string const &, int)
{
    return a;
}
__attribute__((noinline)) Lights Toon::shade(Lights const &, Lights const &b, std::string const &, int)
{
    return b;
}
}}}
using namespace engine::render::materials;
int main(int argc, char **)
{
    Lights a, b;
    for (int i = 0; i < 20; i++)
        a = Phong::shade(a, b, "x", argc);
    for (int i = 0; i < 10; i++)
        b = Toon::shade(a, b, "x", argc);
}
"""


def record(place, *options):
    (place / "scene.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-w", "-O1", "-o", place / "scene", place / "scene.cpp"], check=True)
    subprocess.run([HOTFN, "run", "-q", *options, "-f", "*shade*", "-o", place / "scene.hfr", "--", place / "scene"],
                   check=True)
    return place / "scene.hfr"


def rows(*words):
    """The lines of the table with a call of shade, and its title."""
    lines = subprocess.run([HOTFN, "report", "--no-lines", *map(str, words)], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [line for line in lines if "shade" in line], next(line for line in lines if "  function" in line)


def check_80_columns(where):
    found, title = rows("--width", "80", where)
    assert len(found) == 2 and max(map(len, found)) <= 80, found
    assert sum("Phong::shade(" in line for line in found) == sum("Toon::shade(" in line for line in found) == 1, found
    assert title.endswith("  function of scene") and "module" not in title, title


def class_and_function_remain_at_80_columns(place):
    check_80_columns(record(place))
    check_80_columns(record(place, "--mode", "time"))


def the_function_remains_on_a_narrow_terminal(place):
    found, _ = rows("--width", "40", record(place))
    assert len(found) == 2 and all("shade(" in line and len(line) <= 40 for line in found), found


def a_pipe_gets_names_of_100_characters_unless_all_are_wanted(place):
    where = record(place)
    found, title = rows(where)
    names = [line.split("  scene   ")[1] for line in found]
    assert title.endswith("  module  function") and all(len(name) <= 100 for name in names), (title, names)
    assert all("::shade(" in name for name in names), names
    for words in (("--full-names",), ("--full-names", "--width", "60")):
        found, _ = rows(*words, where)
        assert all("engine::render::materials::" in line and len(line) > 200 for line in found), found


CASES = [class_and_function_remain_at_80_columns, the_function_remains_on_a_narrow_terminal,
         a_pipe_gets_names_of_100_characters_unless_all_are_wanted]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["g++"]))
