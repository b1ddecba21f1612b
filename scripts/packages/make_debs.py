#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make Debian packages from an installed tree: hotfn, libhotfn0, libhotfn-dev and python3-hotfn.

    make_debs.py TREE SOURCE VERSION OUTPUT
"""
import fnmatch
import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

TREE, SOURCE, VERSION, OUTPUT = (pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3],
                                 pathlib.Path(sys.argv[4]))
MAINTAINER = os.environ.get("HOTFN_MAINTAINER", "libhotfn developers <libhotfn@users.noreply.github.com>")
LIBRARIES = next(TREE.rglob("libhotfn.so.0")).parent.relative_to(TREE)
ARCHITECTURE = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True,
                              check=True).stdout.strip()
TEXT = {
    "hotfn": ("devel", "find the hot functions of programs by counting every call",
              " This package has the command-line program."),
    "libhotfn0": ("libs", "count every call of a program's functions (library)",
                  " This package has the shared library, and the agents that run inside programs."),
    "libhotfn-dev": ("libdevel", "count every call of a program's functions (development)",
                     " This package has the headers and the static library."),
    "python3-hotfn": ("python", "count every call of a program's functions (Python 3)",
                      " This package has the Python module hotfn."),
}
ABOUT = """ libhotfn finds the hot functions of programs that are already released: it
 patches the entries of their functions while they run and counts every call.
 The programs need neither source nor special compiler options.
 .
"""
# What each package takes from the tree, first match wins.
PLACES = [
    ("hotfn", [f"{LIBRARIES}/hotfn/windows/*"]),
    ("libhotfn-dev", ["usr/include/*", "*.a", "*.pc", "*.cmake", f"{LIBRARIES}/lib*.so"]),
    ("libhotfn0", [f"{LIBRARIES}/libhotfn*.so.*", f"{LIBRARIES}/hotfn/*"]),
    ("hotfn", ["*"]),
]
# Not packaged: the page of the collector, which is not packaged either, and documents, which write_documents replaces.
EXCLUDED = ["*/hotfn-collector.1", "*/doc/hotfn/*"]


def matches(path, globs):
    return any(fnmatch.fnmatchcase(str(path), glob) for glob in globs)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def distribute_files(stage):
    """Copy each file of the tree to the folder of its package."""
    for path in sorted(TREE.rglob("*")):
        inside = path.relative_to(TREE)
        if (path.is_dir() and not path.is_symlink()) or matches(inside, EXCLUDED):
            continue
        package = next(name for name, globs in PLACES if matches(inside, globs))
        if "/man/" in str(inside):
            write(stage / package / f"{inside}.gz", gzip.compress(path.read_bytes(), 9, mtime=0))
        else:
            copy(path, stage / package / inside)
    for path in (SOURCE / "bindings/python/hotfn").iterdir():
        if path.suffix in (".py", ".typed"):
            copy(path, stage / "python3-hotfn/usr/lib/python3/dist-packages/hotfn" / path.name)


def write_documents(folder, package):
    doc = folder / "usr/share/doc" / package
    notices = (SOURCE / "THIRD-PARTY.md").read_bytes()
    licence = (SOURCE / "LICENSE").read_text()
    write(doc / "copyright", "libhotfn, a library that counts the calls of functions.\n\n" + licence +
          "\nParts of other projects, with their licences, are listed in THIRD-PARTY.md.gz in this folder.\n")
    write(doc / "THIRD-PARTY.md.gz", gzip.compress(notices, 9, mtime=0))
    write(doc / "changelog.gz", gzip.compress(
        f"hotfn ({VERSION}) unstable; urgency=medium\n\n  * Release {VERSION}.\n\n"
        f" -- {MAINTAINER}  Thu, 01 Jan 2026 00:00:00 +0000\n".encode(), 9, mtime=0))
    if package == "libhotfn0":
        # hotfn-me*.so contain only calls and jumps through a table, so they need no library.
        write(folder / "usr/share/lintian/overrides" / package,
              "libhotfn0: shared-library-lacks-prerequisites [usr/lib/*/hotfn/hotfn-me*.so]\n")


def find_shared_depends(folder, scratch):
    programs = [str(p) for p in folder.rglob("*") if p.is_file() and not p.is_symlink()
                and p.read_bytes()[:5] == b"\x7fELF\x02" and "-i386" not in p.name]
    if not programs:
        return ""
    write(scratch / "debian/control", "Source: hotfn\n\nPackage: hotfn\nArchitecture: any\n")
    done = subprocess.run(["dpkg-shlibdeps", "-O", "--ignore-missing-info", f"-l{TREE / LIBRARIES}",
                           *[f"-e{p}" for p in programs]], cwd=scratch, capture_output=True, text=True, check=True)
    names = done.stdout.strip().partition("shlibs:Depends=")[2].split(", ")
    return ", ".join(name for name in names if name and not name.startswith("libhotfn"))


def write_control(folder, package, scratch):
    section, short, detail = TEXT[package]
    depends = [find_shared_depends(folder, scratch)]
    if package != "libhotfn0":
        depends.append(f"libhotfn0 (= {VERSION})")
    if package == "python3-hotfn":
        depends.append("python3 (>= 3.9)")
    fields = {"Package": package, "Source": "hotfn" if package != "hotfn" else None, "Version": VERSION,
              "Architecture": "all" if package == "python3-hotfn" else ARCHITECTURE, "Maintainer": MAINTAINER,
              "Installed-Size": str(sum(p.lstat().st_size for p in folder.rglob("*")) // 1024 + 1),
              "Depends": ", ".join(d for d in depends if d),
              "Recommends": "libdw1, liblzma5" if package == "hotfn" else None,
              "Section": section, "Priority": "optional",
              "Multi-Arch": "same" if package == "libhotfn0" else None,
              "Homepage": None, "Description": f"{short}\n{ABOUT}{detail}"}
    sums = "".join(f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(folder)}\n"
                   for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    write(folder / "DEBIAN/control", "".join(f"{k}: {v}\n" for k, v in fields.items() if v))
    write(folder / "DEBIAN/md5sums", sums)
    if package == "libhotfn0":
        write(folder / "DEBIAN/shlibs", f"libhotfn 0 libhotfn0 (>= {VERSION})\nlibhotfn-push 0 libhotfn0 (>= {VERSION})\n")
        write(folder / "DEBIAN/triggers", "activate-noawait ldconfig\n")


def set_modes(folder):
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or "usr/bin/" in str(path)
            path.chmod(0o755 if runs else 0o644)


def main():
    scratch = OUTPUT.parent / "debs"
    shutil.rmtree(scratch, ignore_errors=True)
    stage = scratch / "stage"
    distribute_files(stage)
    for package in TEXT:
        folder = stage / package
        write_documents(folder, package)
        write_control(folder, package, scratch)
        set_modes(folder)
        target = OUTPUT / f"{package}_{VERSION}_{'all' if package == 'python3-hotfn' else ARCHITECTURE}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", folder, target], check=True,
                       stdout=subprocess.DEVNULL)
        print(target)


main()
