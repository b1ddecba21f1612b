# SPDX-License-Identifier: MIT
"""The contents of a PDB by llvm-pdbutil and breakpad, as sets; and PDBs made by clang and lld."""
import bisect
import os
import pathlib
import re
import shutil
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The record kinds by their kind in `hotfn symbols`; that of S_PUB32 depends on flags and section.
PROCEDURES = {"S_GPROC32", "S_LPROC32", "S_GPROC32_ID", "S_LPROC32_ID", "S_LPROC32_DPC",
              "S_LPROC32_DPC_ID"}
VARIABLES = {"S_GDATA32", "S_LDATA32"}
RECORD = re.compile(r"^ *\d+ \| (S_\w+) \[size = \d+\](?: `(.*)`)?$")
ADDRESS = re.compile(r"\b(?:addr|source) = (\d+):(\d+)")
SIZE = re.compile(r"\b(?:code )?size = (\d+)")


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors="surrogateescape", env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.strip()[-300:]}")
    return done.stdout


def samples():
    """The PDBs in $HOTFN_SAMPLES/pdb, none if it is not set."""
    folder = os.environ.get("HOTFN_SAMPLES")
    return sorted(pathlib.Path(folder, "pdb").glob("*.pdb")) if folder else []


def sections(pdb):
    """[(RVA, is code)]"""
    text = output("llvm-pdbutil", "dump", "-section-headers", pdb)
    linked, _, before_omap = text.partition("Original Section Headers")
    text = before_omap if "virtual address" in before_omap else linked
    starts = [int(value, 16) for value in re.findall(r"(\w+) virtual address", text)]
    flags = [int(value, 16) for value in re.findall(r"(\w+) flags", text)]
    return [(rva, bool(flag & 0x20000020)) for rva, flag in zip(starts, flags)]


def omap_from_source(pdb, folder):
    """[(source, image)], empty if the PDB has none."""
    match = re.search(r"Stream +(\d+) .*\[Omap From Source Data\]",
                      output("llvm-pdbutil", "dump", "-streams", pdb))
    if not match:
        return []
    out = pathlib.Path(folder, "omap")
    output("llvm-pdbutil", "export", f"--stream={match[1]}", f"--out={out}", pdb)
    return list(struct.iter_unpack("<II", out.read_bytes()))


def pieces(omap, source, size):
    """[(image RVA, size)] of the code at [source, source + size), neighbours joined."""
    if not omap:
        return [(source, size)]
    starts = [entry[0] for entry in omap]
    found, end, at = [], source + max(size, 1), source
    while at < end:
        i = bisect.bisect_right(starts, at) - 1
        stop = min(end, starts[i + 1] if i + 1 < len(starts) else end)
        if i >= 0 and omap[i][1]:
            image = omap[i][1] + at - starts[i]
            if found and sum(found[-1]) == image:
                found[-1] = (found[-1][0], found[-1][1] + stop - at)
            else:
                found.append((image, stop - at))
        at = stop
    return [(rva, bytes_ if size else 0) for rva, bytes_ in found]


def records(*command):
    """(kind, name, section, offset, size) of each record that has an address."""
    kind = name = None
    size = 0
    for line in output("llvm-pdbutil", "dump", *command).splitlines():
        match = RECORD.match(line)
        if match:
            kind, name, size = match[1], match[2], 0
            continue
        match = SIZE.search(line)
        if match:
            size = int(match[1])
        match = ADDRESS.search(line)
        if match and kind:
            match_size = SIZE.search(line)
            yield kind, name, int(match[1]), int(match[2]), int(match_size[1]) if match_size else size
            kind = None


def expected(pdb, folder):
    """{(RVA, name): sizes}: procedures, thunks, publics, variables.  A trampoline's name is None."""
    headers, omap, found = sections(pdb), omap_from_source(pdb, folder), {}
    for kind, name, section, offset, size in [*records("-symbols", pdb),
                                              *records("-publics", "-globals", pdb)]:
        if kind in VARIABLES or kind == "S_PUB32":
            size = 0
        elif kind not in PROCEDURES and kind not in ("S_THUNK32", "S_TRAMPOLINE"):
            continue
        if not 1 <= section <= len(headers):
            continue
        for rva, part in pieces(omap, headers[section - 1][0] + offset, size):
            found.setdefault((rva, name), set()).add(part)
    return found


def breakpad(sym):
    """({(RVA, size, name up to its parameters)} of FUNC, {(RVA, name)} of PUBLIC)."""
    functions, publics = set(), set()
    for line in sym.read_text(encoding="latin-1").splitlines():
        match = re.match(r"FUNC (?:m )?(\w+) (\w+) \w+ (.*)", line)
        if match:
            functions.add((int(match[1], 16), int(match[2], 16), plain(match[3])))
        match = re.match(r"PUBLIC (?:m )?(\w+) \w+ (.*)", line)
        if match:
            publics.add((int(match[1], 16), match[2]))
    return functions, publics


def plain(name):
    """Without the parameters at its end."""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0 and name[i] == "(":
            return name[:i]
        if depth == 0:
            break
    return name


SOURCE = """
static int table[16]; int shared = 3;
static __attribute__((noinline)) int local_one(int a) { table[a & 15] += a; return a * 3; }
__attribute__((noinline)) int public_one(int a) { static int kept; kept += a; return local_one(a) + kept; }
__attribute__((noinline)) int public_two(int a, int b) { return a > b ? public_one(a) : local_one(b + shared); }
%s
int entry(void) { return public_two(table[0], 7)%s; }
int main(void) { return entry(); }
"""


def source(count):
    """C with count more functions, so that streams have several blocks."""
    body = "\n".join(f"__attribute__((noinline)) int more_{i:05}(int a) {{ return public_one(a + {i}); }}"
                     for i in range(count))
    return SOURCE % (body, "".join(f" + more_{i:05}({i})" for i in range(count)))


TARGETS = {"x64": "x86_64-pc-windows-msvc", "x86": "i686-pc-windows-msvc",
           "arm64": "aarch64-pc-windows-msvc"}


def make_lld(folder, cpu, page_bytes, count=300):
    """A PDB (and its .exe) by clang-cl and lld-link, freestanding."""
    base = pathlib.Path(folder, f"{cpu}-{page_bytes}")
    base.with_suffix(".c").write_text(source(count), encoding="utf-8")
    output("clang", "--driver-mode=cl", f"--target={TARGETS[cpu]}", "/O1", "/Z7", "/GS-", "/c",
           base.with_suffix(".c"), f"/Fo{base}.obj")
    output("lld-link", "/debug", f"/pdb:{base}.pdb", f"/pdbpagesize:{page_bytes}", "/nodefaultlib",
           "/subsystem:console", "/entry:entry", "/safeseh:no", "/Brepro", f"/out:{base}.exe",
           f"{base}.obj")
    return base.with_suffix(".pdb")


def make_mingw(folder, triple="x86_64", count=20):
    """The same by mingw's C library, clang and lld; None if it is not installed."""
    gcc = shutil.which(f"{triple}-w64-mingw32-gcc")
    if not gcc:
        return None
    base = pathlib.Path(folder, f"mingw-{triple}")
    base.with_suffix(".c").write_text(source(count), encoding="utf-8")
    libraries = pathlib.Path(output(gcc, "-print-libgcc-file-name").strip()).parent
    output("clang", "-O1", "-g", "-gcodeview", f"--target={triple}-w64-windows-gnu", "-fuse-ld=lld",
           f"-L{libraries}", f"-Wl,--pdb={base}.pdb", base.with_suffix(".c"), "-o",
           base.with_suffix(".exe"))
    return base.with_suffix(".pdb")


def move_far(pdb, by_bytes):
    """A copy, sparse, in which every block but the first lies that many bytes further on."""
    data, far = pdb.read_bytes(), pdb.with_name(f"far-{pdb.name}")
    block_bytes, _, _, directory_bytes, _, map_block = struct.unpack_from("<6I", data, 32)
    by = by_bytes // block_bytes
    moved = bytearray(data)
    struct.pack_into("<I", moved, 40, len(data) // block_bytes + by)
    struct.pack_into("<I", moved, 52, map_block + by)
    numbers = []  # places of block numbers in the file
    for i in range(-(-directory_bytes // block_bytes)):
        numbers.append(map_block * block_bytes + 4 * i)
    directory = [struct.unpack_from("<I", data, at)[0] * block_bytes for at in numbers]

    def place(word):
        return directory[4 * word // block_bytes] + 4 * word % block_bytes

    streams = struct.unpack_from("<I", data, place(0))[0]
    numbers += [place(word) for word in range(1 + streams, directory_bytes // 4)]
    for at in numbers:
        struct.pack_into("<I", moved, at, struct.unpack_from("<I", data, at)[0] + by)
    with open(far, "wb") as out:
        out.write(moved[:block_bytes])
        out.seek(by * block_bytes)
        out.write(moved)
    return far


def missing_tool():
    """The name of a program that these tests need and that is not installed, else None."""
    return next((tool for tool in ("clang", "lld-link", "llvm-pdbutil") if not shutil.which(tool)),
                None)
