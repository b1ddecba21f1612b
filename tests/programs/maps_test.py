# SPDX-License-Identifier: MIT
"""Linker maps compared with nm, for each installed linker, and a stripped program with its map's names.

The set of (rva, name) that `hotfn symbols MAP` prints must equal nm's for the same link, except for
symbols that the map does not contain (GNU ld and gold omit local symbols; lld and mold omit symbols that
they define themselves) and symbols without an address (thread-local, absolute).  Sizes in the map must
equal nm's.  The rows of real maps ($HOTFN_SAMPLES, a folder) are counted by a second method.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOTFN = os.environ["HOTFN"]
ENV = dict(os.environ, LC_ALL="C")
A_C = """
#include <stdio.h>
static int counter = 7;
static __thread int per_thread;
int shared_value = 3, bss_table[100];
const int constant_table[4] = {1, 2, 3, 4};
static __attribute__((noinline)) int helper(int x) { per_thread++; counter += x; return x * counter; }
__attribute__((noinline)) int work(int x) { return helper(x) + helper(x + 1) + bss_table[x & 7]; }
__attribute__((noinline, alias("work"))) int work_too(int x);
int other(int x);
int twice(int x);
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += work(argc + i) + other(argc) + work_too(i) + constant_table[argc & 3];
    printf("%d %s\\n", sum + twice(4), argv[0] ? "" : "none");
    return per_thread < 0;
}
"""
B_CC = """
namespace space {
template <class T> __attribute__((noinline)) T twice(T x) { return x * x + x / 3 + 17; }
struct thing { int v; __attribute__((noinline)) int get() const { return v * v + v / 7; } };
}
extern "C" int shared_value;
extern "C" __attribute__((noinline)) int other(int x) { return space::thing{x + shared_value}.get(); }
extern "C" __attribute__((noinline)) int twice(int x) { return space::twice(x) + (int)space::twice((long)x); }
"""
FREE_C = """
int shared_value = 5; static int hidden = 6; int table[10];
static NOINLINE int helper(int x) { hidden += x; return hidden; }
NOINLINE int work(int x) { return helper(x) * 3; }
NOINLINE int same1(int x) { return x * 77 + shared_value; }
NOINLINE int same2(int x) { return x * 77 + shared_value; }
int entry(void) { return work(3) + same1(1) + same2(2) + table[2]; }
int main(void) { return entry(); }
"""


def run(*command, cwd=None, must_pass=True):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=ENV, cwd=cwd)
    if must_pass and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done


def read_symbols(path, *options):
    document = json.loads(run(HOTFN, "symbols", "--json", "--data", *options, path).stdout)
    return document, document["symbols"]


def read_nm(program, tool="nm"):
    """[(address, size, type, name)]; thread-local symbols are omitted."""
    local = set()
    if tool == "nm":
        local = {int(match[1], 16) for match in re.finditer(
            r"^ *\d+: (\w+) +\w+ TLS ", run("readelf", "-sW", program, must_pass=False).stdout, re.MULTILINE)}
    rows = []
    for line in run(tool, "-S" if tool == "nm" else "-a", program).stdout.splitlines():
        match = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([a-zA-Z]) (.+)$", line)
        if match and match[3] not in "aAUN":
            rows.append((int(match[1], 16), int(match[2] or "0", 16), match[3], match[4]))
    return [row for row in rows if row[0] not in local or row[2] not in "bBdD"]


def names_in(map_path):
    return set(re.findall(r"[^\s()]+", map_path.read_text(errors="replace")))


def compare(what, map_path, program, base, sized=False, tool="nm", options=()):
    """Every row is in nm's table; every symbol of nm that the map names is a row."""
    document, rows = read_symbols(map_path, *options)
    assert document["format"], document
    nm = read_nm(program, tool)
    expected = {(address - base, name.split("@")[0]) for address, _, _, name in nm}
    hotfn_rows = {(row["rva"], row["name"].split("@")[0]) for row in rows if row["kind"] != "thunk"}
    named = names_in(map_path)
    missing = {row for row in expected - hotfn_rows if row[1] in named}
    if document["format"] in ("gnu-ld-map", "mold-map", "lld-map"):
        missing = {row for row in missing if not is_linker_symbol(row[1])}
    extra = hotfn_rows - expected
    assert not missing and not extra, (what, "only nm has", sorted(missing)[:20],
                                       "only the map has", sorted(extra)[:20])
    if sized:
        sizes = {(address - base, name): size for address, size, _, name in nm if size}
        wrong = [row for row in rows if not row.get("size_guessed") and row["size"]
                 and sizes.get((row["rva"], row["name"])) not in (None, row["size"])]
        assert not wrong and sum(not row.get("size_guessed", False) for row in rows) > 5, (what, wrong)
    kinds = {row["name"]: row["kind"] for row in rows}
    for name, kind in (("work", "function"), ("shared_value", "data")):
        assert kinds.get(name, kinds.get("_" + name)) == kind, (what, name, kinds)
    print(f"ok {what}: {document['format']}, {len(rows)} rows, nm has {len(expected)}")
    return rows


def is_linker_symbol(name):
    """Names that a linker script may define without a line in the map."""
    return name in ("_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__TMC_END__", "__GNU_EH_FRAME_HDR",
                    "__dso_handle", "__TMC_LIST__", "__FRAME_END__", "completed.0")


def find_base(program):
    loads = re.findall(r"^  LOAD +0x\w+ 0x(\w+)", run("readelf", "-lW", program).stdout, re.MULTILINE)
    return min(int(address, 16) for address in loads) & ~0xfff


def elf_linkers(folder):
    """(name, gcc options that select it) of each installed linker."""
    for name, binary in (("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "mold")):
        path = shutil.which(binary)
        if not path:
            print("skipped: not installed:", binary)
            continue
        place = folder / f"use-{name}"
        place.mkdir()
        (place / "ld").symlink_to(path)
        yield name, [f"-B{place}"]


def check_elf(folder):
    (folder / "a.c").write_text(A_C)
    (folder / "b.cc").write_text(B_CC)
    cases = {"pie": ["-pie", "-fPIE"], "fixed": ["-no-pie", "-fno-pie"],
             "sections": ["-pie", "-fPIE", "-ffunction-sections", "-fdata-sections"]}
    made = {}
    for case, flags in cases.items():
        for source in ("a.c", "b.cc"):
            run("gcc", "-O1", "-c", *flags, source, "-o", f"{source}.{case}.o", cwd=folder)
        (folder / case).mkdir()
        for name, words in elf_linkers(folder / case):
            program, map_path = folder / f"{name}-{case}", folder / f"{name}-{case}.map"
            link = ["-Wl,--gc-sections"] if case == "sections" else []
            if name != "mold":
                link.append("-Wl,--no-demangle")
            run("gcc", *flags[:1], *words, f"a.c.{case}.o", f"b.cc.{case}.o", *link,
                f"-Wl,-Map,{map_path}", "-o", program, cwd=folder)
            if name == "mold":  # mold always writes readable names
                restore_mangled_names(map_path, program)
            compare(f"{name} {case}", map_path, program, find_base(program), sized=name == "lld")
            made[name, case] = program, map_path
    return made


def restore_mangled_names(map_path, program):
    """Replace readable names in the map by mangled names with the same address."""
    mangled = {}
    for address, _, _, name in read_nm(program):
        if name.startswith("_Z"):
            mangled[address] = name
    lines = []
    for line in map_path.read_text().splitlines():
        match = re.match(r"( +0x([0-9a-f]+) +\d+ +\d+ {17})(.*\(.*)$", line)
        if match and int(match[2], 16) in mangled:
            line = match[1] + mangled[int(match[2], 16)]
        lines.append(line)
    map_path.write_text("\n".join(lines) + "\n")


def read_counts(record):
    document = json.loads(run(HOTFN, "report", "--json", "-n", "0", record).stdout)
    return {f["rva"]: (f["name"], f.get("calls"), f["state"]) for f in document["functions"]}


def check_stripped(folder, made):
    """A stripped program has its map's names and the counts of the unstripped program."""
    for (name, case), (program, map_path) in made.items():
        stripped = folder / f"{program.name}.stripped"
        run("strip", "-o", stripped, program)
        run(HOTFN, "run", "-q", "--no-cache", "-o", folder / "twin.hfr", "--", program)
        run(HOTFN, "run", "-q", "--no-cache", "--map", map_path, "-o", folder / "map.hfr", "--",
            stripped)
        twin, hotfn_rows = read_counts(folder / "twin.hfr"), read_counts(folder / "map.hfr")
        named = {rva: row for rva, row in hotfn_rows.items() if "+0x" not in row[0]}
        differ = {rva: (row, twin.get(rva)) for rva, row in named.items()
                  if rva not in twin or twin[rva][1] != row[1]}
        assert not differ, (name, case, differ)
        unnamed = [rva for rva in hotfn_rows if rva not in named and rva in twin and hotfn_rows[rva][1] != twin[rva][1]]
        assert not unnamed, (name, case, unnamed)
        assert {"work", "main"} <= {row[0] for row in named.values()}, named
        assert [row[1] for row in named.values() if row[0] == "work"] == [2000], named
        print(f"ok {name} {case}: {len(named)} functions with the map's names and the unstripped program's counts")


SELF_C = """
#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdio.h>
__attribute__((noinline)) static int helper(int x) { static int sum; return sum += x; }
__attribute__((noinline)) int work(int x) { return helper(x) + helper(x + 1); }
int main(int argc, char **argv)
{
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session;
    int sum = 0;

    options.map_path = argc > 1 ? argv[1] : NULL;
    if (hotfn_session_create(&session, &options, NULL, &err) || hotfn_session_start(session, &err)) {
        fprintf(stderr, "%s: %s\\n", err.file, err.text);
        return 1;
    }
    for (int i = 0; i < 500; i++)
        sum += work(i);
    hotfn_session_stop(session, NULL);
    if (hotfn_session_save(session, argv[2], &err))
        return 1;
    hotfn_session_destroy(session);
    return sum == 0;
}
"""


def check_session(folder, made):
    """A stripped program that counts itself uses the names of its map; another program's map is refused."""
    build = Path(HOTFN).resolve().parents[2]
    include = Path(__file__).resolve().parents[2] / "include"
    (folder / "self.c").write_text(SELF_C)
    program, record = folder / "self", folder / "self.hfr"
    run("gcc", "-O1", "-I", include, "self.c", "-Wl,-Map,self.map", "-s", "-L", build / "src", "-lhotfn",
        f"-Wl,-rpath,{build / 'src'}", "-o", program, cwd=folder)
    run(program, folder / "self.map", record)
    counts = {name: calls for name, calls, _ in read_counts(record).values()}
    assert counts.get("work") == 500, counts
    other = next(map_path for _, map_path in made.values())
    done = run(program, other, record, must_pass=False)
    assert done.returncode == 1 and "another build" in done.stderr, done
    print("ok a session uses the names of a map, and refuses another program's map")


def check_other_build(folder, made):
    """The map of another link is refused, and nothing is run."""
    programs = {name: program for (name, case), (program, _) in made.items() if case == "pie"}
    maps = {name: map_path for (name, case), (_, map_path) in made.items() if case == "pie"}
    for name, program in programs.items():
        for other, map_path in maps.items():
            if other == name:
                continue
            done = run(HOTFN, "run", "-q", "--map", map_path, "-o", folder / "x.hfr", "--", program,
                       must_pass=False)
            assert done.returncode == 125 and "another build" in done.stderr, done
            assert done.stdout == "", done
            assert run(HOTFN, "scan", "--map", map_path, program, must_pass=False).returncode == 1
    print("ok maps of other builds are refused")


def check_shifted(folder):
    """A map with the same sections but two functions swapped is refused because of the unwind data."""
    text = A_C.replace("int shared_value", "int unused0(int x) { return x * 3; }\nint shared_value")
    swapped = A_C + "int unused0(int x) { return x * 3; }\n"
    for name, source in (("first", text), ("second", swapped)):
        (folder / f"{name}.c").write_text(source)
        run("gcc", "-O1", "-fno-toplevel-reorder", "-pie", f"{name}.c", "b.cc", f"-Wl,-Map,{name}.map",
            "-o", name, cwd=folder)
    sizes = [run("size", "-A", name, cwd=folder).stdout.split("\n", 2)[2] for name in ("first", "second")]
    if sizes[0] != sizes[1]:
        print("skipped: the two links differ in size:", "shifted functions are not tested")
        return
    done = run(HOTFN, "scan", "--map", folder / "second.map", folder / "first", must_pass=False)
    assert done.returncode == 1 and "in the middle" in done.stderr, done
    print("ok a map with the same sections and other functions is refused")


def list_functions(*words):
    document = json.loads(run(HOTFN, "list", "--json", *words).stdout)
    return {(f["rva"], f["size"]): set(f["names"]) for f in document["functions"]}


def check_image(folder, machine):
    """With its image a map gives the functions and sizes of the PDB; if both are given, the PDB is used."""
    image, map_path = folder / f"g_{machine}.exe", folder / f"f_{machine}.map"
    pdb = ("--pdb", folder / f"f_{machine}.pdb")
    hotfn_rows, expected = list_functions("--map", map_path, image), list_functions(*pdb, image)
    if machine != "x86":  # without .pdata the last function reaches to the end of the section
        assert set(hotfn_rows) == set(expected), (machine, hotfn_rows, expected)
    assert {rva for rva, _ in hotfn_rows} == {rva for rva, _ in expected}, (machine, hotfn_rows, expected)
    done = run(HOTFN, "list", *pdb, "--map", map_path, image)
    assert "--pdb takes precedence" in done.stderr, done.stderr
    print(f"ok {machine}: with its image a map gives the {len(hotfn_rows)} functions of the PDB")


def check_windows(folder):
    clang, lld_link = shutil.which("clang"), shutil.which("lld-link")
    if clang and lld_link:
        (folder / "f.c").write_text("#define NOINLINE __declspec(noinline)\n" + FREE_C)
        for target, machine in (("x86_64", "x64"), ("i686", "x86"), ("aarch64", "arm64")):
            run(clang, "--driver-mode=cl", f"--target={target}-pc-windows-msvc", "/O1", "/Z7", "/GS-", "/Gy", "/c",
                "f.c", f"/Fof_{machine}.obj", cwd=folder)
            run(lld_link, "/debug", f"/pdb:f_{machine}.pdb", "/export:work", "/opt:ref,icf",
                f"/map:f_{machine}.map", "/nodefaultlib", "/subsystem:console", "/entry:entry", "/safeseh:no",
                f"/out:g_{machine}.exe", f"f_{machine}.obj", cwd=folder)
            check_image(folder, machine)
            run(lld_link, "/debug:symtab", "/opt:ref,icf", f"/map:f_{machine}.map", f"/lldmap:f_{machine}.lldmap",
                "/nodefaultlib", "/subsystem:console", "/entry:entry", "/safeseh:no",
                f"/out:f_{machine}.exe", f"f_{machine}.obj", cwd=folder)
            image = 0x140000000 if machine != "x86" else 0x400000
            for kind in ("map", "lldmap"):
                compare(f"lld-link {machine} /{kind}", folder / f"f_{machine}.{kind}",
                        folder / f"f_{machine}.exe", image, tool="llvm-nm")
    for target in ("x86_64", "i686"):
        gcc = shutil.which(f"{target}-w64-mingw32-gcc")
        if not gcc:
            print("skipped: not installed:", f"{target}-w64-mingw32-gcc")
            continue
        (folder / "g.c").write_text("#define NOINLINE __attribute__((noinline))\n" + FREE_C)
        run(gcc, "-O1", "g.c", f"-Wl,-Map,g_{target}.map", "-o", f"g_{target}.exe", cwd=folder)
        base = 0x140000000 if target == "x86_64" else 0x400000
        document, rows = read_symbols(folder / f"g_{target}.map")
        skip = 1 if target == "i686" else 0  # the map omits the leading '_', except in assignments
        expected = {(address - base, name[at:]) for address, _, _, name in
                  read_nm(folder / f"g_{target}.exe", f"{target}-w64-mingw32-nm") for at in (0, skip)}
        # nm reports __end__ as undefined, though the linker script defines it.
        extra = {(row["rva"], row["name"]) for row in rows if row["name"] not in ("__end__", "_end__")} - expected
        assert not extra and len(rows) > 100, (target, sorted(extra)[:20])
        globals_ = {(address - base, name[skip:]) for address, _, kind, name in
                    read_nm(folder / f"g_{target}.exe", f"{target}-w64-mingw32-nm")
                    if kind == "T"} - {(row["rva"], row["name"]) for row in rows}
        globals_ = {row for row in globals_ if row[1] in names_in(folder / f"g_{target}.map")}
        assert not globals_, (target, sorted(globals_)[:20])
        print(f"ok mingw ld {target}: {document['format']}, {len(rows)} rows")


def check_apple(folder):
    clang = shutil.which("clang")
    ld64 = shutil.which("ld64.lld") or shutil.which("ld64.lld-14")
    if not clang or not ld64:
        print("skipped: not installed: ld64.lld")
        return
    (folder / "m.c").write_text("#define NOINLINE __attribute__((noinline))\n" + FREE_C)
    for arch in ("x86_64", "arm64"):
        run(clang, f"--target={arch}-apple-macos11", "-O1", "-c", "m.c", "-o", f"m_{arch}.o", cwd=folder)
        run(ld64, "-arch", arch, "-platform_version", "macos", "11.0", "11.0", f"m_{arch}.o", "-map",
            f"m_{arch}.map", "-undefined", "dynamic_lookup", "-o", f"m_{arch}", cwd=folder)
        compare(f"ld64.lld {arch}", folder / f"m_{arch}.map", folder / f"m_{arch}", 0x100000000,
                tool="llvm-nm")


def check_bad_input(folder):
    """A file that is not a map is refused with its name and a line or offset, at once however large it is."""
    good = (folder / "self.map").read_text()
    cut = re.search(r"^ +0x[0-9a-f]+ +(work)$", good, re.MULTILINE).start(1)
    head = good[:good.rindex("\n", 0, cut) + 1]
    bad = {"empty": (b"", "offset 0"),
           "utf16": (good.encode("utf-16"), "UTF-16"),
           "cut": (good[:cut].encode(), f"line {head.count(chr(10)) + 1} "),
           "nul": ((head + " " * 16 + "0x1100" + " " * 16 + "wo\0rk\n").encode(), "line "),
           "other": (b"int main(void) { return 0; }\n" * 9, "offset 0")}
    for name, (text, words) in bad.items():
        (folder / f"{name}.map").write_bytes(text)
        done = run(HOTFN, "symbols", "--map", folder / f"{name}.map", folder / "self", must_pass=False)
        assert done.returncode == 1 and f"{name}.map" in done.stderr and words in done.stderr, (name, done)
        assert not done.stdout, name
    with open(folder / "huge.map", "wb") as file:
        file.write(head.encode())
        file.write(b"x" * 4096)
        file.truncate(4 << 30)  # a sparse file with a line of 4 GiB
    done = run(HOTFN, "symbols", folder / "huge.map", must_pass=False)
    assert done.returncode == 1 and f"line {head.count(chr(10)) + 1} is longer than 1 MiB" in done.stderr, done
    mixed = good.replace("\n", "\r\n").replace("\r\n", "\n", len(good) // 200)
    (folder / "mixed.map").write_bytes(mixed.encode())
    assert read_symbols(folder / "mixed.map")[1] == read_symbols(folder / "self.map")[1]
    print(f"ok {len(bad) + 1} kinds of bad input are reported, mixed line ends are accepted")


def count_msvc(text):
    rows = set(re.findall(r"^ (000[1-9]:[0-9a-f]{8})       (\S+) +[0-9a-f]{8,16} ", text, re.MULTILINE))
    return len(rows)


def count_gnu(text):
    text = text[text.index("\nLinker script and memory map\n"):]
    text = text[:text.index("\n.comment ")]  # debug information follows and has no addresses
    rows = set(re.findall(r"^ {16}0x([0-9a-f]+) {16}([^\s.=][^=\n]*)$", text, re.MULTILINE))
    script = set(re.findall(r"^ {16}0x([0-9a-f]+) {16}(?:PROVIDE \()?(\w+) = \.\)?$", text, re.MULTILINE))
    return {row for row in rows if not row[1].startswith("PROVIDE")} | script


def count_apple(text):
    """{kind: number of symbols} of an ld64 map: in __text, in the stubs, and in the sections of variables."""
    sections, symbols = text.split("# Symbols:\n")[0], text.split("# Symbols:\n")[1].split("# Dead ")[0]
    places = {"function": r"__text", "thunk": r"__(?:stubs|stub_helper)",
              "data": r"__(?:const|data|bss|common|entitlements|objc_(?:const|data|ivar|\w+list|imageinfo|\w+refs))"}
    found = {}
    for kind, pattern in places.items():
        ranges = [(int(a, 16), int(a, 16) + int(n, 16)) for a, n in
                  re.findall(rf"^0x(\w+)\t0x(\w+)\t__\w+\t{pattern}$", sections, re.MULTILINE)]
        rows = {(int(a, 16), name) for a, name in
                re.findall(r"^0x(\w+)\t0x\w+\t\[ *\d+\] (.*?) *$", symbols, re.MULTILINE)}
        found[kind] = sum(any(low <= a < high for low, high in ranges) for a, _ in rows)
    return found


def check_samples():
    folder = os.environ.get("HOTFN_SAMPLES")
    if not folder or not Path(folder, "map").is_dir():
        print("skipped: HOTFN_SAMPLES is not set: no real maps")
        return
    for path in sorted(Path(folder, "map").glob("*.map")):
        done = run(HOTFN, "symbols", "--json", "--data", path)
        assert "omitted" not in done.stderr, done.stderr
        rows = json.loads(done.stdout)["symbols"]
        text = path.read_text(errors="replace")
        if "Preferred load address" in text:
            assert len(rows) == count_msvc(text), (path.name, len(rows), count_msvc(text))
        elif text.startswith("# Path:"):
            kinds = [row["kind"] for row in rows]
            assert {kind: kinds.count(kind) for kind in set(kinds)} == count_apple(text), (path.name, count_apple(text))
        else:
            want = count_gnu(text)
            got = {(row["rva"] + 0x400000, row["name"]) for row in rows}
            lacking = {(int(a, 16), n) for a, n in want} - got
            inside = [row for row in lacking if not in_tls(text, row[0])]
            assert not inside and got <= {(int(a, 16), n) for a, n in want}, (path.name, inside[:9])
        print(f"ok {path.name}: {len(rows)} rows, as counted by the test")


def in_tls(text, address):
    for match in re.finditer(r"^\.(?:tdata|tbss) +0x([0-9a-f]+) +0x([0-9a-f]+)", text, re.MULTILINE):
        if int(match[1], 16) <= address <= int(match[1], 16) + int(match[2], 16):
            return True
    return False


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = check_elf(folder)
        check_stripped(folder, made)
        check_session(folder, made)
        check_bad_input(folder)
        check_other_build(folder, made)
        check_shifted(folder)
        check_windows(folder)
        check_apple(folder)
    check_samples()
    return 0


if __name__ == "__main__":
    sys.exit(main())
