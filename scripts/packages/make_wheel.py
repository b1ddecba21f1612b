#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make a wheel from an installed tree: the Python package with the library, the agents and the program inside.

    make_wheel.py TREE SOURCE VERSION OUTPUT

The tag of the wheel has the newest version of glibc that any file in it needs.
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

TREE, SOURCE, VERSION, OUTPUT = (pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3],
                                 pathlib.Path(sys.argv[4]))
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux.so.2",
           "ld-linux-aarch64.so.1", "libgcc_s.so.1"}
PROGRAM = '''# Written by make_wheel.py.
"""Runs the hotfn program of this package."""
import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hotfn")
    os.execv(program, [program, *sys.argv[1:]])
'''


def collect():
    """The files of the wheel: name in the wheel -> bytes, whether executable."""
    library = next(TREE.rglob("libhotfn.so.0"))
    files = {f"hotfn/{p.name}": p for p in sorted((SOURCE / "bindings/python/hotfn").iterdir())
             if p.suffix in (".py", ".typed")}
    files["hotfn/libhotfn.so.0"] = library
    files["hotfn/hotfn"] = TREE / "usr/bin/hotfn"
    for agent in sorted(p for p in (library.parent / "hotfn").rglob("*") if p.is_file()):
        # glibc substitutes these names for $PLATFORM on some processors, but not since 2.36.
        if "haswell" not in agent.name and "xeon" not in agent.name:
            files[f"hotfn/{agent.relative_to(library.parent / 'hotfn')}"] = agent
    files["hotfn/LICENSE"] = SOURCE / "LICENSE"
    files["hotfn/THIRD-PARTY.md"] = SOURCE / "THIRD-PARTY.md"
    return {name: path.read_bytes() for name, path in files.items()}, [p for p in files.values()
                                                                       if p.read_bytes()[:4] == b"\x7fELF"]


def glibc_needed(programs):
    newest = (2, 17)
    for path in programs:
        text = subprocess.run(["readelf", "-W", "-d", "-V", path], capture_output=True, text=True, check=True).stdout
        others = set(re.findall(r"NEEDED.*\[(.*)\]", text)) - ALLOWED
        if others:
            sys.exit(f"make_wheel: {path} needs {', '.join(sorted(others))}, which a wheel may not")
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", text):
            newest = max(newest, (int(major), int(minor)))
    return newest


def main():
    files, programs = collect()
    major, minor = glibc_needed(programs)
    files["hotfn/_built_for.py"] = ("# Written by make_wheel.py.\n"
                                    f"GLIBC = ({major}, {minor})\n").encode()
    files["hotfn/_program.py"] = PROGRAM.encode()
    machine = sysconfig.get_platform().split("-", 1)[1].replace("-", "_")
    tag = f"py3-none-manylinux_{major}_{minor}_{machine}"
    info = f"hotfn-{VERSION}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: hotfn\nVersion: {VERSION}\nLicense: MIT\nRequires-Python: >=3.9\n"
        "Summary: Find the hot functions of released programs by counting every call\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n").encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\nhotfn = hotfn._program:main\n"
    files[f"{info}/LICENSE"] = files["hotfn/LICENSE"]
    rows = []
    target = OUTPUT / f"hotfn-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if content[:4] == b"\x7fELF" else 0o100644) << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}")
        wheel.writestr(f"{info}/RECORD", "\n".join(rows + [f"{info}/RECORD,,"]) + "\n")
    print(target)


main()
