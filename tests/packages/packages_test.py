#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The packages of scripts/package work where nothing else of hotfn is installed, and hold the notices.

    packages_test.py FOLDER [tarball|wheel|deb ...]     FOLDER has the results of `scripts/package all`
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(sys.argv[1])
NOTICES = ("Zydis", "cJSON", "uthash")
ENVIRONMENT = {name: value for name, value in os.environ.items()
         if not name.startswith(("HOTFN", "PYTHON", "LD_"))}
SQL = "with recursive n(i) as (select 1 union all select i+1 from n where i<20000) select sum(i) from n"


def output(*command, status=0, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, env=ENVIRONMENT, **more)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def check_notices(text, where):
    for name in NOTICES:
        assert f"## {name}" in text, f"{where} has no notice of {name}"


CONSUMER = """
#include <hotfn.h>
#include <stdio.h>
int main(void)
{
    hotfn_record *record;
    hotfn_error err = HOTFN_ERROR_INIT;
    printf("version %s\\n", hotfn_get_version());
    return hotfn_record_open(&record, "there is no such file", NULL, &err) == HOTFN_OK;
}
"""


def check_development(folder, work):
    """A program is built with pkg-config alone, with the shared library and with the static one."""
    (work / "consumer.c").write_text(CONSUMER)
    config = next(folder.rglob("hotfn.pc"))
    libraries = config.parent.parent
    flags = subprocess.run(["pkg-config", "--static", "--cflags", "--libs", "hotfn"], check=True, capture_output=True,
                           text=True, env={**ENVIRONMENT, "PKG_CONFIG_PATH": str(config.parent)}).stdout.split()
    for name, options, path in (("shared", [], str(libraries)), ("static", ["-static"], "")):
        program = work / name
        output("gcc", "-Wall", "-Werror", *options, "-o", program, work / "consumer.c", *flags)
        assert "version 0." in output("env", f"LD_LIBRARY_PATH={path}", program), name


CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(consumer C)
find_package(hotfn 0.1 REQUIRED)
find_package(hotfn 9.9 QUIET)
if(hotfn_FOUND)
  message(FATAL_ERROR "9.9 was found")
endif()
add_executable(with_shared consumer.c)
target_link_libraries(with_shared hotfn::hotfn)
add_executable(with_static consumer.c)
target_link_libraries(with_static hotfn::static)
"""


def check_cmake(folder, work):
    if not shutil.which("cmake"):
        print("skipped: cmake is not installed")
        return
    (work / "CMakeLists.txt").write_text(CMAKE)
    shutil.rmtree(work / "cmake", ignore_errors=True)
    output("cmake", "-S", work, "-B", work / "cmake", f"-DCMAKE_PREFIX_PATH={folder}")
    output("cmake", "--build", work / "cmake")
    for name in ("with_shared", "with_static"):
        assert "version 0." in output(work / "cmake" / name), name
    assert "libhotfn" not in output("ldd", work / "cmake/with_static")


def check_tarball(work):
    archive, = FOLDER.glob("hotfn-*.tar.gz")
    for place in ("first", "second/place"):
        folder = work / place
        folder.mkdir(parents=True)
        output("tar", "-xzf", archive, "-C", folder)
        hotfn = next(folder.glob("*/bin/hotfn"))
        assert "200010000" in output(hotfn, "run", "--", "/usr/bin/sqlite3", ":memory:", SQL, cwd=folder)
        assert "calls" in output(hotfn, "report", cwd=folder)
        check_notices(next(folder.rglob("THIRD-PARTY.md")).read_text(), archive)
        check_development(folder, work)
        check_cmake(next(folder.glob("*/")), work)
        shutil.rmtree(folder)


def check_wheel(work):
    wheel, = FOLDER.glob("hotfn-*.whl")
    assert "-py3-none-manylinux_2_" in wheel.name, wheel
    output("/usr/bin/python3", "-m", "venv", work / "venv")
    python = work / "venv/bin/python"
    output(python, "-m", "pip", "install", "--no-index", wheel)
    script = ("import hotfn; r = hotfn.run(['/usr/bin/sqlite3', ':memory:', %r]); "
              "print(sum(f.calls or 0 for f in r.record.functions))" % SQL)
    calls = int(output(python, "-c", script, cwd=work).split()[-1])
    assert calls > 10, calls  # of the program; the library of sqlite3 is another module
    assert "calls" in output(work / "venv/bin/hotfn", "report", "-h")
    package = next((work / "venv").rglob("site-packages/hotfn"))
    check_notices((package / "THIRD-PARTY.md").read_text(), wheel)
    built_for = package / "_built_for.py"
    built_for.write_text("GLIBC = (9, 99)\n")
    text = output(python, "-c", "import hotfn", status=1, cwd=work)
    assert "needs glibc 9.99 or newer, but this system has glibc 2." in text.splitlines()[-1], text
    text = output(python, "-c", "import os\nos.confstr = lambda name: None\nimport hotfn", status=1, cwd=work)
    assert "but this system has another C library" in text.splitlines()[-1], text


def check_deb(work):
    packages = sorted(FOLDER.glob("*.deb"))
    assert len(packages) == 4, packages
    if not shutil.which("lintian"):
        print("skipped: lintian is not installed")
    else:
        # A first upload to Debian must close a bug report; these packages are not uploaded.
        text = output("lintian", "--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs", *packages)
        assert not text.strip().startswith(("E:", "W:")), text
    for package in packages:
        archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
        name = package.name.partition("_")[0]
        notices = subprocess.run(["tar", "-xO", f"./usr/share/doc/{name}/THIRD-PARTY.md.gz"], input=archive,
                                 capture_output=True, check=True).stdout
        check_notices(gzip.decompress(notices).decode(), package)
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: the installation in a clean root (needs root and debootstrap)")
        return
    clean = work / "clean"
    mirror = output("apt-get", "indextargets", "--format", "$(REPO_URI)", "Codename: bookworm").split()[0]
    output("debootstrap", "--variant=minbase", "--include=sqlite3,python3", "bookworm", clean, mirror)
    for package in packages:
        shutil.copy(package, clean / "tmp")
    inside = ("chroot", clean)
    output(*inside, "sh", "-c", "dpkg -i /tmp/*.deb")
    output("mount", "-t", "proc", "proc", clean / "proc")
    try:
        assert "200010000" in output(*inside, "hotfn", "run", "-o", "/tmp/r.hfr", "--", "/usr/bin/sqlite3", ":memory:", SQL)
        assert "calls" in output(*inside, "hotfn", "report", "/tmp/r.hfr")
    finally:
        output("umount", clean / "proc")


def main():
    checks = {"tarball": check_tarball, "wheel": check_wheel, "deb": check_deb}
    for name in sys.argv[2:] or checks:
        with tempfile.TemporaryDirectory(prefix="hotfn_package_") as work:
            checks[name](pathlib.Path(work))
        print(f"{name}: ok", flush=True)


main()
