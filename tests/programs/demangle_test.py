# SPDX-License-Identifier: MIT
"""Readable names equal those of llvm-cxxfilt, llvm-undname and rustfilt; hostile names cost little time.

The names are passed in a linker map, whose JSON output has `display`.  If the tools are built without LLVM
($HOTFN_LLVM is not 1), only the C++ runtime's demangler is tested.
"""
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOTFN = os.environ["HOTFN"]
LLVM = os.environ.get("HOTFN_LLVM") == "1"
LLVM_LIBRARY = "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"


def legacy(*components):
    """A path as mangled by rustc's legacy scheme."""
    return "_ZN" + "".join(f"{len(c)}{c}" for c in components) + "17h0123456789abcdefE"


# With the output of rustfilt (without the hash).
RUST_LEGACY = {
    legacy("core", "fmt", "Write", "write_char"): "core::fmt::Write::write_char",
    legacy("_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$", "drop"):
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
    legacy("main", "main", "_$u7b$$u7b$closure$u7d$$u7d$"): "main::main::{{closure}}",
    legacy("_$LT$$RF$T$u20$as$u20$core..Debug$GT$", "fmt"): "<&T as core::Debug>::fmt",
}
RUST_V0 = {
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNvNtCs1234_7mycrate3foo3bar": "mycrate::foo::bar",
    "_RNCC4main0": None,
}
MICROSOFT = [
    "?ChangeState@DIAG_AppManager@@QAAXW4E_DIAG_APP_STATE@@@Z", "??0DIAG_MemoryManager@@QAA@XZ",
    "??_EDIAG_MemoryManager@@UAAPAXI@Z", "?x@@3HA", "??$f@H@@YAHH@Z",
    "??_C@_0P@GHFPNOJB@bad?5allocation?$AA@", "?f@?$A@V?$B@H@@@@QAEXXZ",
    "?print@space@@YAXPEBDZZ", "??_7type_info@@6B@", "??__Ething@@YAXXZ",
]
D_NAMES = ["_D4test3fooFZv", "_Dmain"]


def as_map(names):
    lines = ["             VMA              LMA     Size Align Out     In      Symbol",
             "            1000             1000 %8x    16 .text" % (len(names) * 16)]
    for i, name in enumerate(names):
        lines.append("%16x %16x %8x %5d         a.o:(.text)" % (0x1000 + 16 * i, 0x1000 + 16 * i, 16, 16))
        lines.append("%16x %16x %8x %5d                 %s" % (0x1000 + 16 * i, 0x1000 + 16 * i, 16, 1, name))
    return "\n".join(lines) + "\n"


def used_seconds():
    """CPU time of the programs started so far and of their children; other processes do not affect it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def display(names, folder):
    path = folder / "names.map"
    path.write_text(as_map(names))
    began = used_seconds()
    done = subprocess.run([HOTFN, "symbols", "--json", path], capture_output=True, text=True, check=True,
                          timeout=120)
    rows = {row["name"]: row["display"] for row in json.loads(done.stdout)["symbols"]}
    return [rows[name] for name in names], used_seconds() - began


def oracle(tool, names):
    if not shutil.which(tool):
        return None
    done = subprocess.run([tool], input="\n".join(names) + "\n", capture_output=True, text=True, check=True)
    return done.stdout


def check_known(folder):
    for names in (RUST_LEGACY, RUST_V0 if LLVM else {}):
        shown, _ = display(list(names), folder)
        for (name, want), got in zip(names.items(), shown):
            assert want is None or got == want, (name, got, want)
    print("ok Rust names, without the hash of the legacy scheme")


def check_microsoft(folder):
    shown, _ = display(MICROSOFT, folder)
    text = oracle("llvm-undname", MICROSOFT)
    if not LLVM or text is None:
        print("# no LLVM: Microsoft's names are not demangled")
        return
    blocks = [block.strip().split("\n") for block in text.strip().split("\n\n")]
    want = {block[0]: block[1] for block in blocks if len(block) > 1 and not block[1].startswith("error")}
    for name, got in zip(MICROSOFT, shown):
        assert got == want.get(name, name), (name, got, want.get(name))
    assert len(want) >= 8, want
    print(f"ok {len(want)} names of Microsoft's C++ as llvm-undname")


def check_itanium(folder):
    """A sample of the names of a real library, compared with llvm-cxxfilt."""
    if not os.path.exists(LLVM_LIBRARY) or not shutil.which("llvm-cxxfilt"):
        print("skipped: no library with C++ names on this system")
        return
    nm = subprocess.run(["nm", "-D", "--defined-only", LLVM_LIBRARY], capture_output=True, text=True, check=True)
    names = sorted({line.split()[-1].split("@")[0] for line in nm.stdout.splitlines() if " T _Z" in line})
    names = random.Random(1).sample(names, 3000)
    shown, seconds = display(names, folder)
    want = oracle("llvm-cxxfilt", names).splitlines()
    # The C++ runtime may demangle names that LLVM cannot.
    different = [(n, g, w) for n, g, w in zip(names, shown, want) if g != w and w != n]
    # libstdc++'s demangler formats some names differently.
    assert len(different) <= (0 if LLVM else len(names) // 10), different[:5]
    print(f"ok {len(names)} C++ names as llvm-cxxfilt ({seconds:.2f} s)")


def encode_sequence_number(number, digits):
    """The sequence of `seq-id` (Itanium, base 36) and `base-62-number` (Rust): empty, 0, 1, ..."""
    text = ""
    while number > 0:
        number -= 1 if not text else 0
        text = digits[number % len(digits)] + text
        number //= len(digits)
        if number == 0:
            break
    return text


def doubling_itanium(levels):
    """f(A<int, int>, B<A, A>, C<B, B>, ...): each level doubles the length."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text, reference = "_Z1f1aIiiE", 1
    for level in range(1, levels):
        one = f"S{encode_sequence_number(reference, digits)}_"
        text += f"1{chr(97 + level % 26)}I{one}{one}E"
        reference += 2
    return text


def doubling_rust(levels):
    """f::<(i32, i32), (T, T), ...>, where T is the previous type."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text = "INvC1c1f"
    place = len(text)
    text += "TllE"
    for _ in range(1, levels):
        one, place = f"B{encode_sequence_number(place, digits)}_", len(text)
        text += f"T{one}{one}E"
    return "_R" + text + "E"


def hostile():
    """Names that recurse, double in length at each level, or are long."""
    for levels in (10, 30, 60, 200):
        yield doubling_itanium(levels)
        yield doubling_rust(levels)
    yield "_Z1f" + "P" * 15000 + "i"
    yield "_Z1f" + "PF" * 5000 + "v" + "E" * 5000
    yield "_Z1f" + "".join(f"PF{'S_' * 9}E" for _ in range(60))
    yield "_Z" + "P" * 15000 + "i"
    yield "_Z1f" + "N" * 12000
    yield "_Z1f" + "1AI" * 4000 + "i" + "E" * 4000
    yield "?f@@YA" + "PA" * 7000 + "XZ"
    yield "?f@@YAX" + "P6AX0000000000@Z" * 200 + "@Z"
    yield "?" + "?$A@V" * 3000
    yield "_RNv" + "Nt" * 7000
    yield "_D" + "4testQ" * 2500
    yield "_Z" + "x" * 20000
    yield "_R" + "B_" * 8000
    rng = random.Random(7)
    for begin, letters in (("_Z", "NKPRSTILEX_0123iAcvS_"), ("_R", "NvCTBIE_0s1aA"), ("?", "?@$A0123PVYXZH6"),
                           ("_D", "Q0123aFZvtTA")):
        for length in (60, 300, 600, 4000):
            for _ in range(10):
                yield begin + "".join(rng.choice(letters) for _ in range(length))


def check_hostile(folder):
    names = list(dict.fromkeys(hostile()))
    shown, seconds = display(names, folder)
    assert all(shown), "an empty name"
    assert seconds < 10, seconds        # eight crashes of a quarter of a second each, and the demangling
    after, _ = display(["_ZN5space5thing3getEv"], folder)
    assert after == ["space::thing::get()"], after
    print(f"ok {len(names)} hostile names in {seconds:.2f} s")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_known(folder)
        check_microsoft(folder)
        check_itanium(folder)
        check_hostile(folder)
        if LLVM:
            shown, _ = display(D_NAMES, folder)
            assert shown[1] in ("D main", "_Dmain"), shown
            print("ok D:", shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
