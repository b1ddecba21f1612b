# SPDX-License-Identifier: MIT
"""Code that only Windows images contain: on each CPU, stubs of imports and of delayed imports are recognised, and
functions that were compiled for hot patching can be hooked like any other."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HOTFN = os.path.abspath(sys.argv[1])
LIBRARY = "".join(f"__declspec(dllexport) int foo_{n}(int x) {{ return x + {i}; }}\n" for i, n in enumerate(("one", "two")))
PROGRAM = """
__declspec(dllimport) int foo_one(int);
int foo_two(int);
#ifdef _M_IX86
void *__stdcall __delayLoadHelper2(const void *d, void **slot) { (void)d; return *slot; }
#else
void *__delayLoadHelper2(const void *d, void **slot) { (void)d; return *slot; }
#endif
int work(int x) { return foo_one(x) * 2 + foo_two(x); }
int entry(void) { return work(3); }
"""
TARGETS = ("x86_64", "i686", "aarch64")
PATCHABLE = """
__attribute__((ms_hook_prologue, noinline)) int work(int x) { return x * 7 + 3; }
__attribute__((ms_hook_prologue, noinline)) int with_frame(int x) { volatile int y[9]; y[x & 7] = x; return y[1]; }
int main(int argc, char **argv) { (void)argv; return work(argc) + with_frame(argc); }
"""


def run(*command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def scanned(path):
    document = json.loads(run(HOTFN, "scan", "--json", path, cwd=path.parent))
    return {f["name"].lstrip("_"): f for f in document["functions"]}


def check_delayed(folder, target):
    compiler = ["clang", f"--target={target}-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-c"]
    link = ["lld-link", "/nodefaultlib", "/safeseh:no", "/debug"]
    (folder / "foo.c").write_text(LIBRARY)
    (folder / "main.c").write_text(PROGRAM)
    for source in ("foo.c", "main.c"):
        run(*compiler, source, "-o", source + ".obj", cwd=folder)
    run(*link, "/dll", "/noentry", "/out:foo.dll", "/implib:foo.lib", "foo.c.obj", cwd=folder)
    for delayed in ((), ("/delayload:foo.dll",)):
        run(*link, *delayed, "/entry:entry", "/subsystem:console", "/out:main.exe", "main.c.obj", "foo.lib", cwd=folder)
        rows = scanned(folder / "main.exe")
        found = {name for name, row in rows.items() if row.get("reason") == "plt"}
        stubs = {"foo_one", "foo_two", *(("imp_load_foo_one", "imp_load_foo_two") if delayed else ())}
        assert found == stubs, (target, delayed, rows)
        assert rows["work"]["verdict"] == "hookable", rows["work"]
    done = subprocess.run([HOTFN, "kit", "-o", folder / "kit", folder / "main.exe"], capture_output=True, text=True)
    assert done.returncode == 1 and "main.exe: a Windows image" in done.stderr, done
    assert not (folder / "kit").exists()
    print(f"ok {target}: stubs of imports and of delayed imports are recognised")


def check_hot_patch(folder, target):
    compiler = shutil.which(f"{target}-w64-mingw32-gcc")
    if not compiler:
        print(f"# no mingw for {target}")
        return
    (folder / "patchable.c").write_text(PATCHABLE)
    run(compiler, "-O2", "patchable.c", "-o", "patchable.exe", cwd=folder)
    code = run("objdump", "-d", "patchable.exe", cwd=folder)
    assert "<_work>" in code or "<work>" in code
    rows = scanned(folder / "patchable.exe")
    for name in ("work", "with_frame"):
        assert rows[name]["verdict"] == "hookable" and rows[name]["strategy"] == "jump", (target, rows[name])
    print(f"ok {target}: functions to be hot-patched are hooked by a jump")


def check_samples():
    """In real images of Microsoft's tools, with their PDBs, each function has a strategy, or a reason with an offset."""
    folder = pathlib.Path(os.environ.get("HOTFN_SAMPLES") or "/nonexistent", "pdb")
    for path in sorted(folder.glob("*.exe")):
        rows = json.loads(run(HOTFN, "scan", "--json", path, cwd=folder))["functions"]
        hookable = [row for row in rows if row["verdict"] == "hookable"]
        others = [row for row in rows if row["verdict"] != "hookable"]
        assert all(row["strategy"] and not row["reason"] for row in hookable), path
        assert all(row["reason"] and row["reason_text"] and row["offset"] is not None for row in others), path
        assert not [row for row in rows if "+0x" in row["name"] and row["reason"] != "plt"], (path, "without a name")
        # On x86 many entries have relocated addresses, which cannot move yet (docs/design/pe.md).
        functions = [row for row in rows if row["reason"] not in ("plt", "relocated")]
        assert len(hookable) > 0.9 * len(functions) > 20, path
        print(f"ok {path.name}: {len(hookable)} of {len(functions)} functions can be hooked, {len(rows) - len(functions)} stubs")


def main():
    for tool in ("clang", "lld-link", "objdump"):
        if not shutil.which(tool):
            print(f"skipped: no {tool} here")
            return 77
    for target in TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            check_delayed(pathlib.Path(folder), target)
    for target in ("x86_64", "i686"):
        with tempfile.TemporaryDirectory() as folder:
            check_hot_patch(pathlib.Path(folder), target)
    check_samples()
    return 0


if __name__ == "__main__":
    sys.exit(main())
