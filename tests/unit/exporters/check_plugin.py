#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plug-ins of `hotfn export -F ./x.so`: the example works, each bad plug-in is refused in one sentence
and a file that exists keeps its contents.

    check_plugin.py HOTFN EXPORT_TIMED ROOT COMPILER...
"""
import pathlib
import subprocess
import sys
import tempfile

HOTFN, EXPORT_TIMED, ROOT, COMPILER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]

PLUGIN = """
#include <hotfn.h>
static hotfn_status write_it(void *user, const hotfn_record *record, const hotfn_export_options *options,
                             hotfn_write_fn write, void *write_user, hotfn_error *err)
{
    (void)user, (void)record, (void)options, (void)err;
    %(body)s
}
const hotfn_exporter *%(entry)s(void);
const hotfn_exporter *%(entry)s(void)
{
    static hotfn_exporter e = HOTFN_EXPORTER_INIT;
    e.name = "%(name)s", e.extension = ".x", e.about = "a test", e.write = write_it;
    %(change)s
    return &e;
}
"""
HALF = 'for (int i = 0; i < 100000; i++) if (write(write_user, "half", 4)) return HOTFN_E_IO;'


class Plugins:
    def __init__(self, folder):
        self.folder = folder

    def build(self, file, source):
        code, built = self.folder / f"{file}.c", self.folder / f"{file}.so"
        code.write_text(source)
        done = subprocess.run([*COMPILER, "-shared", "-fPIC", "-I", str(ROOT / "include"), "-o", str(built),
                               str(code)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return built

    def make(self, file, body="return write(write_user, \"ok\\n\", 3) ? HOTFN_E_IO : HOTFN_OK;", name="test",
             entry="hotfn_exporter_plugin", change=""):
        return self.build(file, PLUGIN % {"body": body, "name": name, "entry": entry, "change": change})

    def export(self, plugin, *more):
        return subprocess.run([HOTFN, "export", "-F", str(plugin), *more, str(self.folder / "timed.hfr")],
                              capture_output=True, text=True, timeout=60)


def check_refusals(plugins):
    cases = {
        "abi": (plugins.make("abi", change="e.abi_version = 7;"), "exporter ABI version 7"),
        "entry": (plugins.make("entry", entry="another_name"), "does not define hotfn_exporter_plugin"),
        "null": (plugins.make("null", change="return (const hotfn_exporter *)0;"), "returned NULL"),
        "taken": (plugins.make("taken", name="json"), "already an exporter named 'json'"),
        "name": (plugins.make("name", name="A B"), "its name is not"),
        "missing": (plugins.folder / "missing.so", "cannot be loaded"),
        "text": (plugins.folder / "abi.c", "cannot be loaded"),
        "error": (plugins.make("error", body=HALF + " return HOTFN_E_LIMIT;"), "exporter test failed: HOTFN_E_LIMIT"),
    }
    for name, (plugin, sentence) in cases.items():
        target = plugins.folder / "kept.x"
        target.write_text("as it was")
        done = plugins.export(plugin, "-o", str(target))
        assert done.returncode == 1 and done.stdout == "", (name, done)
        assert sentence in done.stderr and done.stderr.count("\n") == 1, (name, done.stderr)
        assert target.read_text() == "as it was", name
        fresh = plugins.folder / "fresh.x"
        assert plugins.export(plugin, "-o", str(fresh)).returncode == 1 and not fresh.exists(), name
    assert not list(plugins.folder.glob("*.x.*")), "a temporary file was not removed"


def check_failed_writes(plugins):
    ignores = plugins.make("ignores", body="for (int i = 0; i < 100000; i++) write(write_user, \"half\", 4);"
                           " return HOTFN_OK;")
    with open("/dev/full", "w") as full:
        done = subprocess.run([HOTFN, "export", "-F", str(ignores), str(plugins.folder / "timed.hfr")],
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr, done


def check_output(plugins):
    good, target = plugins.make("good"), plugins.folder / "good.x"
    assert plugins.export(good).stdout == "ok\n"
    target.write_text("old")
    target.chmod(0o640)
    link = plugins.folder / "link.x"
    link.symlink_to(target)
    assert plugins.export(good, "-o", str(link)).returncode == 0
    assert link.is_symlink() and target.read_text() == "ok\n" and target.stat().st_mode & 0o777 == 0o640
    lines = plugins.export(plugins.build("lines", (ROOT / "docs/examples/exporter_plugin.c").read_text())).stdout
    for word in ("unit ns", "thread ", "function 0 ", "edge ", "node 0 ", " error="):
        assert word in lines, (word, lines)


def main():
    with tempfile.TemporaryDirectory(prefix="hotfn_plugin_") as name:
        plugins = Plugins(pathlib.Path(name))
        with open(plugins.folder / "timed.hfr", "wb") as record:
            subprocess.run([EXPORT_TIMED, "story", record.name], check=True, timeout=60)
        check_refusals(plugins)
        check_failed_writes(plugins)
        check_output(plugins)
    print("plug-ins are loaded, or refused with a message")


if __name__ == "__main__":
    main()
