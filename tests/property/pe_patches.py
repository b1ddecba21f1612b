#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the decoder and the verdicts with llvm-objdump on PE images.

pe_patches.py HOTFN DECODE_DUMP [FILE...]: images made by clang and lld (x64, x86), and those of
$HOTFN_SAMPLES if it is set.  In each function the decoder's instructions begin where llvm-objdump's do, and
no branch that llvm-objdump shows leads into the bytes that a plain jump patches, except to the first one.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/image"))
import pe_oracle as oracle  # noqa: E402

JUMP_BYTES, NOPS = 5, 32
LINE = re.compile(r"^ *([0-9a-f]+): +\t?(\S+)(?:\s+(\S.*))?$")
PREFIXES = {"lock", "rep", "repne"}  # llvm-objdump prints them on separate lines
CPUS = {"x86": "i386", "x86-64": "x86-64"}


def disassemble(path, base):
    """({address of an instruction}, {target of a direct branch: a branch to it}), as RVAs."""
    starts, targets, prefixed = set(), {}, False
    for line in oracle.output("llvm-objdump", "-d", "--no-show-raw-insn", path).splitlines():
        match = LINE.match(line)
        if not match:
            continue
        rva = int(match[1], 16) - base
        if not prefixed and match[2] != "<unknown>":  # in a jump table
            starts.add(rva)
        prefixed = match[2] in PREFIXES and not match[3]
        target = re.match(r"0x([0-9a-f]+)", match[3] or "")
        if target and re.match(r"j|call|loop", match[2]):
            targets[int(target[1], 16) - base] = rva
    return starts, targets


def read_raw(path, sections, rva, size):
    for _, begin, _, offset, raw_bytes, _ in sections:
        if begin <= rva < begin + raw_bytes:
            with open(path, "rb") as file:
                file.seek(offset + rva - begin)
                return file.read(size)
    return b""


def dump_starts(decode_dump, cpu, parts):
    """{RVA}: each part is decoded separately; nops after it resynchronise the decoder."""
    found, at, bounds = set(), 0, []
    with tempfile.NamedTemporaryFile() as file:
        for rva, code in parts:
            bounds.append((at, rva, len(code)))
            at += file.write(code + b"\x90" * NOPS)
        file.flush()
        lines = oracle.output(decode_dump, file.name, "0", cpu).splitlines()
    offsets = {int(line.split()[0], 16) for line in lines if " bad " not in line}
    for offset, rva, size in bounds:
        found |= {rva + k for k in range(size) if offset + k in offsets}
    return found


def check(hotfn, decode_dump, path):
    done = subprocess.run([hotfn, "scan", "--json", str(path)], check=True, stdout=subprocess.PIPE)
    scan = json.loads(done.stdout)
    if scan["machine"] not in CPUS:
        return None
    base, sections = oracle.headers(path)["ImageBase"], oracle.sections(path)
    starts, targets = disassemble(path, base)
    # A function after a jump table that llvm-objdump decoded as code does not begin at one of its instructions.
    known = [f for f in scan["functions"] if f["rva"] in starts and f["verdict"] != "fragment"]
    dumped = dump_starts(decode_dump, CPUS[scan["machine"]],
                      [(f["rva"], read_raw(path, sections, f["rva"], f["size"])) for f in known])
    wrong = [(f["name"], hex(rva)) for f in known for rva in range(f["rva"], f["rva"] + f["size"])
             if (rva in dumped) != (rva in starts)]
    inside = [(f["name"], hex(at), hex(targets[at])) for f in scan["functions"]
              if f["strategy"] == "jump" for at in range(f["rva"] + 1, f["rva"] + JUMP_BYTES)
              if at in targets]
    lost = len(scan["functions"]) - len(known)
    return len(known), lost, sum(f["strategy"] == "jump" for f in scan["functions"]), wrong, inside


def main():
    hotfn, decode_dump, given = sys.argv[1], sys.argv[2], sys.argv[3:]
    missing = oracle.missing_tool()
    if missing:
        print(f"1..0 # SKIP {missing} is not installed")
        return 77
    failed = number = 0
    with tempfile.TemporaryDirectory() as folder:
        made = [oracle.make_dll(folder, cpu) for cpu in ("x64", "x86")]
        for path in given or [*made, *oracle.samples()]:
            result = check(hotfn, decode_dump, pathlib.Path(path))
            if not result:
                continue
            known, lost, jumps, wrong, inside = result
            for row in wrong[:10] + inside[:10]:
                print("#", *row)
            bad = bool(wrong or inside) or lost > 1 + known // 20 or jumps == 0
            failed += bad
            number += 1
            print(f"{'not ' if bad else ''}ok {number} {pathlib.Path(path).name}: {known} functions "
                  f"agree ({lost} not compared), no branch into {jumps} jumps")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
