# SPDX-License-Identifier: MIT
"""PE images made by clang, lld and mingw, and what llvm-readobj, objdump and nm say of them."""
import os
import pathlib
import re
import shutil
import subprocess

TARGETS = {"x64": "x86_64-pc-windows-msvc", "x86": "i686-pc-windows-msvc",
           "arm64": "aarch64-pc-windows-msvc"}

# A jump table, a __try block, an export without a name, forwarders, data.
SOURCE = """
int fetch(int);
static volatile int sink;
__declspec(dllexport) int classify(int a) {
    switch (a) {
    case 0: return fetch(3); case 1: return fetch(7) + 1; case 2: sink = 4; return 9;
    case 3: return fetch(a) * 3; case 4: return 77; case 5: return fetch(1) - fetch(2);
    case 6: sink++; return 4; case 9: return fetch(99); default: return -1;
    }
}
__declspec(dllexport) int guarded(volatile int *p) {
    __try { sink = *p; fetch(2); } __except (1) { return -5; }
    return 4;
}
int fetch(int a) { sink += a; return sink * 3 + a; }
int __C_specific_handler(void) { return 0; }
int _except_handler3(void) { return 0; }
void *table[] = { fetch, classify };
int entry(void) { return classify((int)sizeof table) + guarded((int *)&sink); }
"""
EXPORTS = """
LIBRARY sample
EXPORTS
    classify @3
    guarded @7
    quiet=fetch @9 NONAME
    Sleepy=KERNEL32.Sleep
    Numbered=KERNEL32.#12
    data=table DATA
"""
# A function whose frame grows late, and one with a part at another place: their entries are chained.
CHAINED = """
    .text
    .globl entry
entry:
    callq grown
    callq parted
    retq
    .p2align 4
grown:
    testl %ecx, %ecx
    je 1f
grown_2:
    subq $40, %rsp
    callq leaf
    addq $40, %rsp
1:  retq
grown_end:
    .p2align 4
parted:
    subq $40, %rsp
    callq leaf
    testl %eax, %eax
    jne cold
parted_back:
    addq $40, %rsp
    retq
parted_end:
    .p2align 4
leaf:
    movl %ecx, %eax
    retq
    .p2align 4
cold:
    callq leaf
    jmp parted_back
cold_end:
    .section .pdata,"dr"
    .rva entry, grown, plain_info
    .rva grown, grown_2, plain_info
    .rva grown_2, grown_end, grown_info
    .rva parted, parted_end, parted_info
    .rva cold, cold_end, cold_info
    .section .xdata,"dr"
plain_info:
    .byte 1, 0, 0, 0
grown_info:
    .byte 0x21, 4, 1, 0
    .byte 4, 0x42, 0, 0
    .rva grown, grown_2, plain_info
parted_info:
    .byte 1, 4, 1, 0
    .byte 4, 0x42, 0, 0
cold_info:
    .byte 0x21, 0, 0, 0
    .rva parted, parted_end, parted_info
"""
PROGRAM = """
#include <stdio.h>
static int __attribute__((noinline)) twice(int a) { return a * 2 + 1; }
__declspec(dllexport) int thrice(int a) { return a + twice(a); }
int main(int argc, char **argv) { (void)argv; printf("%d\\n", thrice(argc)); return 0; }
"""


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors="surrogateescape", env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.strip()[-300:]}")
    return done.stdout


def missing_tool():
    """The name of a program that these tests need and that is not here, else None."""
    return next((tool for tool in ("clang", "lld-link", "llvm-readobj") if not shutil.which(tool)),
                None)


def samples():
    """The images in $HOTFN_SAMPLES/pdb, none if it is not set."""
    folder = os.environ.get("HOTFN_SAMPLES")
    return sorted(pathlib.Path(folder, "pdb").glob("*.exe")) if folder else []


def make_dll(folder, cpu):
    base = pathlib.Path(folder, cpu)
    base.with_suffix(".c").write_text(SOURCE, encoding="utf-8")
    base.with_suffix(".def").write_text(EXPORTS, encoding="utf-8")
    output("clang", "--driver-mode=cl", f"--target={TARGETS[cpu]}", "/O1", "/Z7", "/GS-", "/c",
           base.with_suffix(".c"), f"/Fo{base}.obj")
    output("lld-link", "/debug", "/dll", f"/pdb:{base}.pdb", "/nodefaultlib", "/entry:entry",
           "/safeseh:no", f"/def:{base}.def", "/Brepro", f"/out:{base}.dll", f"{base}.obj")
    return base.with_suffix(".dll")


# Each library forwards to the next one; the last has the function.  One export forwards to itself.
FORWARDING = {
    "first": "EXPORTS\n one=SECOND.two\n lost=NOWHERE.f\n round=first.round\n gone=second.none\n",
    "second": "EXPORTS\n two=third.#5\n",
    "third": "EXPORTS\n three=entry @5\n",
}


def make_forwarding(folder):
    """first.dll, with the others beside it."""
    for name, exports in FORWARDING.items():
        base = pathlib.Path(folder, name)
        base.with_suffix(".def").write_text(f"LIBRARY {name}\n{exports}", encoding="utf-8")
        base.with_suffix(".c").write_text("int entry(void) { return 1; }\n", encoding="utf-8")
        output("clang", "--driver-mode=cl", f"--target={TARGETS['x64']}", "/O1", "/c",
               base.with_suffix(".c"), f"/Fo{base}.obj")
        output("lld-link", "/dll", "/nodefaultlib", "/entry:entry", f"/def:{base}.def", "/Brepro",
               f"/out:{base}.dll", f"{base}.obj")
    return pathlib.Path(folder, "first.dll")


def make_chained(folder):
    base = pathlib.Path(folder, "chained")
    base.with_suffix(".s").write_text(CHAINED, encoding="utf-8")
    output("clang", f"--target={TARGETS['x64']}", "-c", base.with_suffix(".s"), "-o",
           base.with_suffix(".obj"))
    output("lld-link", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/Brepro",
           f"/out:{base}.exe", base.with_suffix(".obj"))
    return base.with_suffix(".exe")


def make_mingw(folder, triple):
    """A program of mingw's C library with its COFF symbols; None if mingw is not installed."""
    gcc = f"{triple}-w64-mingw32-gcc"
    if not shutil.which(gcc):
        return None
    base = pathlib.Path(folder, f"mingw-{triple}")
    base.with_suffix(".c").write_text(PROGRAM, encoding="utf-8")
    output(gcc, "-O1", base.with_suffix(".c"), "-o", base.with_suffix(".exe"))
    return base.with_suffix(".exe")


def make_all(folder):
    made = [make_dll(folder, cpu) for cpu in TARGETS] + [make_chained(folder)]
    made += [make_mingw(folder, triple) for triple in ("x86_64", "i686")]
    return [path for path in made if path]


def headers(path):
    """{"ImageBase": 0x140000000, ...} of all numbers; of equal names, the first."""
    found = {}
    for name, value in re.findall(r"^ *(\w+): (?:[^\n(]*\()?(0x[0-9A-F]+|\d+)\)?$",
                                  output("llvm-readobj", "--file-headers", path), re.MULTILINE):
        found.setdefault(name, int(value, 0))
    return found


def sections(path):
    """[(name, rva, bytes in memory, offset, bytes in the file, flags)]"""
    text = output("llvm-readobj", "--sections", path)
    return [(name, *(int(value, 0) for value in (rva, size, offset, raw, flags)))
            for name, size, rva, raw, offset, flags in re.findall(
                r"Name: (\S+) \(.*?VirtualSize: (\S+).*?VirtualAddress: (\S+).*?RawDataSize: (\S+)"
                r".*?PointerToRawData: (\S+).*?Characteristics \[ \((\S+)\)", text, re.DOTALL)]


def pdb_id(path):
    """GUID and age, as the image has them; None if it names no PDB."""
    match = re.search(r"PDBGUID: [({]*([^)}\n]*)[)}]*\s+PDBAge: (\d+)",
                      output("llvm-readobj", "--coff-debug-directory", path))
    if not match:
        return None
    digits = re.sub(r"[^0-9A-Fa-f]", "", match[1])
    return bytes.fromhex(digits), int(match[2])


def exports(path):
    """{(ordinal, name, rva)}; the name is "" if there is none.  Empty entries are omitted."""
    return {(int(ordinal), name, int(rva, 16)) for ordinal, name, rva in re.findall(
        r"Export \{\n  Ordinal: (\d+)\n  Name: ?(.*)\n  RVA: (\w+)\n",
        output("llvm-readobj", "--coff-exports", path)) if int(rva, 16)}


def unwinds(path, base):
    """[(rva, end, parent's rva or None, is a fragment)] of .pdata."""
    found = []
    for part in re.split(r"^  RuntimeFunction \{$", output("llvm-readobj", "--unwind", path),
                         flags=re.MULTILINE)[1:]:
        start = re.search(r"(?:StartAddress|Function): (?:.*\()?(0x[0-9A-F]+)", part)
        end = re.search(r"^    EndAddress: (?:.*\()?(0x[0-9A-F]+)", part, re.MULTILINE)
        length = re.search(r"FunctionLength: (\d+)", part)
        parent = re.search(r"Chained \{\n +StartAddress: (?:.*\()?(0x[0-9A-F]+)", part)
        begin = int(start[1], 16) - base
        stop = int(end[1], 16) - base if end else begin + int(length[1])
        codes = re.search(r"PrologSize: (\d+).*?UnwindCodeCount: (\d+)", part, re.DOTALL)
        inside = (bool(parent) or "Fragment: Yes" in part or
                  bool(re.search(r"Prologue \[\n +0xe5 ", part)) or
                  bool(codes and codes[1] == "0" and codes[2] != "0"))
        found.append((begin, stop, int(parent[1], 16) - base if parent else None, inside))
    return found
