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
# Windows x64: each function, and why it is only counted.
HOME_SPACE = {
    "stores": ("movq %rcx, 8(%rsp); movq %r9, 32(%rsp); movq 8(%rsp), %rax", ""),
    "addresses": ("movq %rcx, 8(%rsp); subq $40, %rsp; leaq 48(%rsp), %rcx; call leaf; addq $40, %rsp", ""),
    "makes_a_va_list": ("movq %rdx, 16(%rsp); movq %r8, 24(%rsp); movq %r9, 32(%rsp); subq $40, %rsp;"
                        "leaq 56(%rsp), %rcx; call leaf; addq $40, %rsp", "stack-arguments"),
    "stores_an_argument": ("movq %rcx, 40(%rsp); movl $1, %eax", "stack-arguments"),
    "addresses_an_argument": ("subq $40, %rsp; leaq 80(%rsp), %rcx; call leaf; addq $40, %rsp", "stack-arguments"),
    "stores_across_the_end": ("movups %xmm0, 32(%rsp); movl $1, %eax", "stack-arguments"),
    "calls_the_kernel": ("movq %rcx, %r10; movl $0x57, %eax; syscall", "system-call"),
    "stores_the_return_address": ("xorl %eax, %eax; movq %rcx, (%rsp); movl $1, %eax", "return-address"),
}
# Functions whose faults continue at 3, behind this code.
CONTINUED = {"continues": ("xorl %eax, %eax", ""), "continues_with_a_store": ("movq %rcx, 88(%rsp)", "stack-arguments")}
GUARDED = """
.globl {0}; .p2align 4; .seh_proc {0}
{0}: subq $40, %rsp
.seh_stackalloc 40; .seh_endprologue
1: movl (%rcx), %eax; call leaf
2: nop; addq $40, %rsp; ret
3: {1}; addq $40, %rsp; ret
.seh_handler __C_specific_handler, @except; .seh_handlerdata
.long 1; .rva 1b, 2b; .long 1; .rva 3b
.text; .seh_endproc
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
    done = subprocess.run([HOTFN, "kit", "-o", folder / "kit", "--windows", folder / "none", folder / "main.exe"],
                          capture_output=True, text=True)
    needed = "--windows DIR" if target == "x86_64" else "only x86-64 programs"
    assert done.returncode == 1 and needed in done.stderr, done
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


def check_home_space(folder):
    compiler = shutil.which("x86_64-w64-mingw32-gcc")
    if not compiler:
        print("# no mingw for x86_64")
        return
    functions = HOME_SPACE | {"leaf": ("movl $1, %eax; nop", "")}
    text = "".join(f".globl {name}; .p2align 4; {name}: {code}; ret\n" for name, (code, _) in functions.items())
    text += "".join(GUARDED.format(name, code) for name, (code, _) in CONTINUED.items())
    functions |= CONTINUED
    (folder / "home.s").write_text(".text\n" + text)
    (folder / "main.c").write_text("".join(f"void {name}(void);\n" for name in functions) + "int main(void) { " +
                                   " ".join(f"{name}();" for name in functions) + " }\n")
    run(compiler, "-O1", "main.c", "home.s", "-o", "home.exe", cwd=folder)
    document = json.loads(run(HOTFN, "scan", "--json", "--timed", folder / "home.exe", cwd=folder))
    rows = {f["name"]: f for f in document["functions"]}
    for name, (_, reason) in functions.items():
        assert (rows[name]["timing_reason"] or "") == reason, (name, reason, rows[name])
    print("ok x86_64: the home space belongs to the function, unless its address may be a va_list")


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
        assert not [row for row in rows if row["reason"] == "relocated"], path
        functions = [row for row in rows if row["reason"] != "plt"]
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
    with tempfile.TemporaryDirectory() as folder:
        check_home_space(pathlib.Path(folder))
    check_samples()
    return 0


if __name__ == "__main__":
    sys.exit(main())
