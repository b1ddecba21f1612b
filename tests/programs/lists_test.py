# SPDX-License-Identifier: MIT
"""Function lists: protoc reads the files that `hotfn list -o` writes, and `run --list` hooks the listed functions."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOTFN = os.environ["HOTFN"]
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
SOURCE = """
#include <stdio.h>
__attribute__((noinline)) int first(int x) { return x * 3 + (x >> 2) + 1; }
__attribute__((noinline)) int second(int x) { return first(x) + (x << 3) + 7; }
__attribute__((noinline)) int third(int x) { return second(x) * 5 + first(x + 1); }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += third(i);
    printf("%d\\n", sum);
    return 0;
}
"""

LONG_NAME = """
#include <cstdio>
namespace ns {
template <class A, class B> struct pair_of_types {};
template <class T, int depth> struct doubled { typedef typename doubled<pair_of_types<T, T>, depth - 1>::type type; };
template <class T> struct doubled<T, 0> { typedef T type; };
template <class T> __attribute__((noinline)) int work(int x, T *) { return x * 3 + (x >> 2) + 1; }
}
int main()
{
    ns::doubled<int, 8>::type *none = nullptr;
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += ns::work(i, none);
    std::printf("%d\\n", sum);
    return 0;
}
"""


def run(*command, good=True, **more):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **more)
    if good and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done


def calls(record):
    rows = json.loads(run(HOTFN, "report", "--json", "-n", "0", record).stdout)["functions"]
    return {row["name"]: row["calls"] for row in rows}, {row["name"]: row["state"] for row in rows}


def build(folder, source, name):
    (folder / f"{name}.c").write_text(source)
    run("gcc", "-O1", folder / f"{name}.c", "-o", folder / name)
    return folder / name


def check_protoc(program, flf):
    if not shutil.which("protoc"):
        print("skipped: no protoc: the wire format is checked by the unit test only")
        return
    with open(flf, "rb") as bytes_:
        text = subprocess.run(["protoc", "--decode=hotfn.FunctionList", f"-I{DOCS}", DOCS / "hotfn.proto"],
                              stdin=bytes_, capture_output=True, text=True, check=True).stdout
    document = json.loads(run(HOTFN, "scan", "--json", program).stdout)
    want = [(f["rva"], f["size"], f["name"]) for f in document["functions"] if f["verdict"] == "hookable"]
    got = [(int(m[1] or 0), int(m[2]), m[3]) for m in re.finditer(
        r'functions \{\n(?:  index: \d+\n)?(?:  rva: (\d+)\n)?  size: (\d+)\n  name: "([^"]*)"\n\}', text)]
    assert got == want and len(got) > 5, (got, want)
    assert "version: 1\n" in text and f'module: "{program.name}"' in text and "machine: 2\n" in text, text
    assert not re.search(r"^\d+:", text, re.MULTILINE), "a field that the .proto does not know"
    print(f"ok protoc reads {len(got)} functions, as scan has them")


def check_refused(program, flf, refused):
    document = json.loads(refused.read_text())
    listed = json.loads(run(HOTFN, "list", "--json", program).stdout)["functions"]
    assert document["schema"] == "hotfn.refused/1"
    rows = document["functions"]
    assert all(row["reason"] and row["reason_text"] for row in rows if row["verdict"] == "refused"), rows
    count = int(re.search(r"(\d+) functions? in", flf)[1])
    assert count + len(rows) == len(listed), (count, len(rows), len(listed))
    print(f"ok {count} listed and {len(rows)} refused are all {len(listed)}")


def check_long_name(folder):
    """A glob finds the same functions in list, in run and in report, however long their names are."""
    (folder / "long.cpp").write_text(LONG_NAME)
    program, record = folder / "long", folder / "long.hfr"
    run("g++", "-O1", folder / "long.cpp", "-o", program)
    listed = json.loads(run(HOTFN, "list", "--json", program, "-f", "*ns::work*").stdout)["functions"]
    assert len(listed) == 1 and len(listed[0]["display"]) > 5000, listed
    done = run(HOTFN, "run", "-f", "*ns::work*", "-o", record, "--", program)
    assert "matches no function" not in done.stderr, done.stderr
    for glob in ("*ns::work*", "int ns::work<*>", "*_of_types<int, int>*"):
        rows = json.loads(run(HOTFN, "report", "--json", "-f", glob, record).stdout)["functions"]
        assert [(row["name"], row["calls"]) for row in rows] == [(listed[0]["name"], 100)], (glob, rows)
    print(f"ok a name of {len(listed[0]['display'])} characters is found by list, run and report")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder, SOURCE, "prog")
        flf, text, refused, record = (folder / n for n in ("x.flf", "x.txt", "y.json", "r.hfr"))
        said = run(HOTFN, "list", program, "-o", flf, "--refused", refused).stderr
        check_protoc(program, flf)
        check_refused(program, said, refused)
        run(HOTFN, "list", program, "-f", "*ir*", "-o", flf)
        run(HOTFN, "list", program, "-f", "*ir*", "-o", text)
        for path in (flf, text):
            run(HOTFN, "run", "-q", "--list", path, "-o", record, "--", program)
            counted, state = calls(record)
            assert counted["first"] == 200 and counted["third"] == 100, counted
            assert counted["second"] is None and state["second"] == "excluded", state
        text.write_text("# by name\nprog!second\nother!third\n")
        run(HOTFN, "run", "-q", "--list", text, "-o", record, "--", program)
        counted, _ = calls(record)
        assert counted["second"] == 100 and counted["first"] is None and counted["third"] is None, counted
        print("ok run --list hooks what is listed, .flf and text")
        check_long_name(folder)
        (folder / "later").mkdir()
        other = build(folder / "later", SOURCE.replace("* 5", "* 6"), "prog")
        done = run(HOTFN, "run", "-q", "--list", flf, "-o", record, "--", other, good=False)
        assert done.returncode == 125 and "another build" in done.stderr and not done.stdout, done
        text.write_text("prog+0x10\nwhat is this\n")
        done = run(HOTFN, "run", "-q", "--list", text, "-o", record, "--", program, good=False)
        assert done.returncode == 125 and "line 2" in done.stderr, done
        flf.write_bytes(flf.read_bytes()[:-3])
        done = run(HOTFN, "run", "-q", "--list", flf, "-o", record, "--", program, good=False)
        assert done.returncode == 125 and "not a function list" in done.stderr, done
        before = program.read_bytes()
        for option in ("-o", "--refused"):
            done = run(HOTFN, "list", program, option, program, good=False)
            assert done.returncode == 1 and "would be overwritten" in done.stderr and program.read_bytes() == before, done
        print("ok lists of another build and broken ones are refused, and nothing is run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
