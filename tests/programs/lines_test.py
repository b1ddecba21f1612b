# SPDX-License-Identifier: MIT
"""`hotfn symbols --json` and `hotfn report` give the same source line for each function as llvm-symbolizer:
the function's own line, even if code was inlined at its entry; also from a separate debug file; and never from
a file of another build."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOTFN = os.environ["HOTFN"]
C = """#include <stdio.h>
static inline __attribute__((always_inline)) int twice(int x) {
  return x * 2 + x / 3;
}
__attribute__((noinline)) int three(int a, int b)
{
  return twice(a) + b;
}
__attribute__((noinline)) int four(int a) {
  int s = 0;
  for (int i = 0; i < a; i++) s += twice(i);
  return s;
}
int main(int c, char **v) { (void)v; printf("%d\\n", three(c, 2) + four(c)); return 0; }
"""
CPP = """#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
static int hot(std::vector<int> &v) { std::sort(v.begin(), v.end()); int s = 0; for (int x : v) s += x; return s; }
struct A { virtual ~A() {} virtual int f(int x) { return (int)m.size() + x; } std::map<std::string, int> m; };
int main()
{
  A a; std::vector<int> v;
  for (int i = 0; i < 100; i++) { a.m[std::to_string(i)] = i; v.push_back(i * 7919 % 1000); }
  printf("%d %d\\n", hot(v), a.f(3));
}
"""
BUILDS = [("gcc", "-O2", "a.c"), ("clang", "-O2", "a.c"), ("g++", "-O2", "b.cpp"), ("g++", "-O0", "b.cpp"),
          ("g++", "-O2 -gdwarf-4 -no-pie", "b.cpp"), ("clang++", "-O2", "b.cpp")]


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def link_base(path):
    return min(int(value, 16) for value in
               re.findall(r"^  LOAD +\S+ (\S+)", output("readelf", "-lW", path), re.MULTILINE)) & ~4095


def symbolize(path, rvas):
    """{RVA: (file name, line)} of the outermost frame, from llvm-symbolizer."""
    base, found = link_base(path), {}
    addresses = "".join(f"{rva + base:#x}\n" for rva in rvas)
    text = subprocess.run(["llvm-symbolizer", "--output-style=LLVM", "--inlines", "-e", path], check=True,
                          input=addresses, capture_output=True, text=True).stdout
    for rva, frames in zip(rvas, text.split("\n\n")):
        file, line = frames.strip().splitlines()[-1].rsplit(":", 2)[:2]
        if int(line):
            found[rva] = (os.path.basename(file), int(line))
    return found


def symbolize_frames(path, rvas):
    """{RVA: [(function, file name, line), ...]}, innermost frame first, from llvm-symbolizer.
    It takes the outermost name from the symbol table ("main.cold"), so that name is omitted."""
    base, found = link_base(path), {}
    text = subprocess.run(["llvm-symbolizer", "--output-style=LLVM", "--no-demangle", "--inlines", "-e", path],
                          check=True, input="".join(f"{rva + base:#x}\n" for rva in rvas), capture_output=True,
                          text=True).stdout
    for rva, frames in zip(rvas, text.split("\n\n")):
        lines, chain = frames.strip().splitlines(), []
        for function, place in zip(lines[::2], lines[1::2]):
            file, line = place.rsplit(":", 2)[:2]
            chain.append((function, os.path.basename(file) if int(line) else "", int(line)))
        found[rva] = outermost_unnamed(chain)
    return found


def outermost_unnamed(chain):
    return [*chain[:-1], ("", *chain[-1][1:])] if chain else chain


def check_frames(what, path, symbols):
    """Compare `hotfn symbols --at` for addresses of each function that has lines."""
    rvas = [rva for s in symbols if "line" in s for rva in range(s["rva"], s["rva"] + s["size"], 3)]
    expected, hotfn_rows = symbolize_frames(path, rvas), {}
    for first in range(0, len(rvas), 2000):
        words = [word for rva in rvas[first:first + 2000] for word in ("--at", f"{rva:#x}")]
        for row in json.loads(output(HOTFN, "symbols", "--json", *words, path))["addresses"]:
            assert row["frames"][-1]["function"].startswith("_Z") or row["symbol"].startswith(
                row["frames"][-1]["function"]), row
            hotfn_rows[row["rva"]] = outermost_unnamed([
                (f.get("function", ""), os.path.basename(f.get("file", "")) if "line" in f else "", f.get("line", 0))
                for f in row["frames"]])
    wrong = [f"{rva:#x}: hotfn {hotfn_rows.get(rva)}, expected {expected[rva]}" for rva in rvas if hotfn_rows.get(rva) != expected[rva]]
    assert not wrong, "\n".join([what, f"{len(wrong)} of {len(rvas)}", *wrong[:5]])
    deepest = max(map(len, hotfn_rows.values()))
    assert deepest > 1, what
    print(f"{what}: {len(rvas)} addresses, {sum(len(f) > 1 for f in hotfn_rows.values())} of inlined code, {deepest} deep")


def function_lines(functions, file, line):
    return {f["rva"]: (os.path.basename(f[file]), f[line]) for f in functions if line in f}


def check_same(what, hotfn_rows, expected, line_count_min):
    wrong = [f"{rva:#x}: hotfn {hotfn_rows.get(rva)}, expected {expected.get(rva)}"
             for rva in sorted({*hotfn_rows, *expected}) if hotfn_rows.get(rva) != expected.get(rva)]
    assert not wrong, "\n".join([what, *wrong])
    assert len(hotfn_rows) >= line_count_min, f"{what}: only {len(hotfn_rows)} lines"
    print(f"{what}: {len(hotfn_rows)} lines")


def check_symbols(folder):
    for compiler, flags, source in BUILDS:
        path = folder / "program"
        output(compiler, "-g", *flags.split(), folder / source, "-o", path)
        symbols = [s for s in json.loads(output(HOTFN, "symbols", "--json", path))["symbols"]
                   if s["kind"] == "function"]
        expected = symbolize(path, sorted({s["rva"] for s in symbols}))
        check_same(f"{compiler} {flags}", function_lines(symbols, "file", "line"), expected, 3)
        if "-O0" not in flags:
            check_frames(f"{compiler} {flags}, inlined", path, symbols)


def report(record, *words):
    return output(HOTFN, "report", *words, record)


def check_report(folder):
    """Without debug sections: the lines are in a separate file that is found only by its build id."""
    path, debug, record = folder / "game", folder / "symbols", folder / "r.hfr"
    output("gcc", "-g", "-O2", "-Wl,--build-id", folder / "a.c", "-o", path)
    build_id = re.search(r"Build ID: (\w+)", output("readelf", "-n", path))[1]
    file = debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    file.parent.mkdir(parents=True)
    expected = symbolize(path, [int(line.split()[0], 16) for line in output("nm", path).splitlines()
                               if line.split()[-1] in ("main", "three", "four")])
    output("objcopy", "--only-keep-debug", path, file)
    output("strip", "--strip-debug", path)
    at = json.loads(output(HOTFN, "symbols", "--json", "--at", hex(min(expected)), "--symbol-dir", debug, path))
    assert at["addresses"][0]["frames"][-1].get("line"), at
    assert not json.loads(output(HOTFN, "symbols", "--json", "--at", hex(min(expected)), path))["addresses"][0]["frames"]
    output(HOTFN, "run", "-o", record, "--", path)
    functions = json.loads(report(record, "--json", "--symbol-dir", debug))["functions"]
    check_same("report", function_lines(functions, "source_file", "source_line"), expected, 3)
    assert re.search(r"three  a\.c:7$", report(record, "--symbol-dir", debug), re.MULTILINE)
    assert "a.c" not in report(record, "--symbol-dir", debug, "--no-lines")
    exported = json.loads(output(HOTFN, "export", "-F", "json", "--symbol-dir", debug, record))["functions"]
    check_same("export", function_lines(exported, "source_file", "source_line"), expected, 3)
    pages = [folder / "without.html", folder / "with.html"]
    output(HOTFN, "open", "--print", "-o", pages[0], record)
    output(HOTFN, "open", "--print", "-o", pages[1], "--symbol-dir", debug, record)
    assert [f"{folder}/a.c" in page.read_text() for page in pages] == [False, True]
    assert "source_line" not in report(record, "--json")
    output("gcc", "-g", "-O1", "-Wl,--build-id", folder / "a.c", "-o", path)
    assert "source_line" not in report(record, "--json"), "lines of another build"


def check_without_libdw(folder):
    """If libdw cannot be loaded, missing lines are reported once, and not with --no-lines."""
    path, broken, record = folder / "lined", folder / "broken", folder / "l.hfr"
    broken.mkdir()
    output("gcc", "-g", "-O2", folder / "a.c", "-o", path)
    output("gcc", "-shared", "-x", "c", "/dev/null", "-o", broken / "libdw.so.1")
    output(HOTFN, "run", "-q", "-o", record, "--", path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(broken)}
    for words, times in ((("report", record), 1), (("report", "--json", record), 1), (("symbols", "--json", path), 1),
                         (("report", "--no-lines", record), 0)):
        errors = subprocess.run([HOTFN, *words], env=environment, capture_output=True, text=True).stderr
        assert errors.count("libdw.so.1, which reads them") == times, (words, errors)
    output("strip", path)
    assert "libdw" not in subprocess.run([HOTFN, "report", record], env=environment, capture_output=True, text=True).stderr


def check_stripped(folder):
    """Without any names: `run`, `scan`, `list` and `kit` also find the separate file by its build id."""
    path, debug, record, kit = folder / "bare", folder / "names", folder / "s.hfr", folder / "kit"
    output("gcc", "-g", "-O2", "-Wl,--build-id", folder / "a.c", "-o", path)
    build_id = re.search(r"Build ID: (\w+)", output("readelf", "-n", path))[1]
    file = debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    file.parent.mkdir(parents=True)
    output("objcopy", "--only-keep-debug", path, file)
    output("strip", path)
    for words in (("scan", "--json"), ("list", "--json"), ("symbols", "--json")):
        assert '"three"' in output(HOTFN, *words, "--symbol-dir", debug, path), words
        assert '"three"' not in output(HOTFN, *words, path), words
    output(HOTFN, "run", "-q", "--no-cache", "--symbol-dir", debug, "-o", record, "--", path)
    counts = {f["name"]: f.get("calls") for f in json.loads(report(record, "--json"))["functions"]}
    assert counts["three"] == counts["four"] == 1, counts
    output(HOTFN, "kit", "--symbol-dir", debug, "-o", kit, path)
    output(kit / "count", "-q", "-o", record, "--", path)
    again = {f["name"]: f.get("calls") for f in json.loads(report(record, "--json"))["functions"]}
    assert again["three"] == again["four"] == 1, again
    print("a stripped program: names by build-id in scan, list, symbols, run and kit")


def check_log_levels(folder):
    """$HOTFN_LOG chooses the messages: a damaged .gnu_debugdata is a warning, where debug files are searched is for
    debugging."""
    path = folder / "damaged"
    output("gcc", folder / "a.c", "-o", path)
    output("objcopy", "--add-section", f".gnu_debugdata={folder}/a.c", path)
    output("strip", path)

    def messages(level):
        done = subprocess.run([HOTFN, "symbols", path], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "HOTFN_LOG": level})
        assert done.returncode == 0, done
        return ["could not be unpacked" in done.stderr, ".debug: skipped" in done.stderr, "not a level" in done.stderr]

    assert messages("none") == messages("error") == [False, False, False]
    assert messages("") == messages("warning") == messages("info") == [True, False, False]
    assert messages("debug") == [True, True, False]
    assert messages("loud") == [True, False, True]


def main():
    if os.environ.get("HOTFN_LIBDW") != "1":
        print("skipped: hotfn was built without libdw")
        return 77
    for tool in ("llvm-symbolizer", "clang++", "g++", "objcopy"):
        if not shutil.which(tool):
            print(f"skipped: no {tool} on this system")
            return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.c").write_text(C, encoding="utf-8")
        (folder / "b.cpp").write_text(CPP, encoding="utf-8")
        check_symbols(folder)
        check_report(folder)
        check_stripped(folder)
        check_log_levels(folder)
        check_without_libdw(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
