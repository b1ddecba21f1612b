#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check `hotfn report`, `info` and `repair` on a record with difficult names, and messages about wrong options.

    check_commands.py HOTFN PROGRAM    (export_hostile)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from terminal import Terminal, on_terminal

ROOT = pathlib.Path(os.environ.get("HOTFN_SOURCE_ROOT", pathlib.Path(__file__).parents[3]))
HOTFN = os.path.abspath(sys.argv[1])


def hotfn(*arguments, status=0, **more):
    done = subprocess.run([HOTFN, *map(str, arguments)], capture_output=True, **more)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def table(*arguments, **more):
    return hotfn("report", *arguments, **more).stdout.decode()


def check_schema(name, document):
    import jsonschema
    schema = json.loads((ROOT / f"docs/{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)


def check_report(record, folder):
    assert "18,446,744,073,709,551,615" in table(record)
    assert "\033" not in table(record) and "\033[" in table(record, "--color", "always")
    assert len(json.loads(table(record, "--json"))["functions"]) == 17
    assert len(json.loads(table(record, "--json", "-n", "3"))["functions"]) == 3
    assert table(record, "--csv", "-f", "plai?").count("\r\n") == 2
    assert "beta::run()" in table(record) and "_ZN4beta" in table(record, "--mangled")
    hotfn("report", record, "-o", folder / "out.json", "--json")
    check_schema("report", json.loads((folder / "out.json").read_text()))
    assert hotfn("report", record, "-o", "/none/out", status=1).stderr
    assert b"table, json, csv" in hotfn("report", record, "-F", "xml", status=2).stderr
    for wrong in (["-n", "x"], ["-n", "-1"], ["--color", "red"], ["--by", "name"], ["-f", "[a"],
                  ["--process", "x"], ["--what"]):
        assert hotfn("report", record, *wrong, status=2).stderr, wrong
    assert len(json.loads(table(record, "--json", "-n", 10**11))["functions"]) == 17
    kept = folder / "kept.txt"
    kept.write_text("kept")
    for wrong, status, words in ((("-f", "nosuch*"), 1, b"no function matches 'nosuch*'"),
                                 (("-F", "xml"), 2, b"xml"), (("--by", "alloc"), 1, b"--with alloc"),
                                 (("--by", "self"), 1, b"--mode time")):
        said = hotfn("report", record, *wrong, "-o", kept, status=status).stderr
        assert words in said and kept.read_text() == "kept", (wrong, said, kept.read_text())
    assert "the record has no callers" in table(record, "--edges")
    whole = record.read_bytes()
    assert b"would be overwritten" in hotfn("report", record, "-o", record, status=1).stderr
    assert record.read_bytes() == whole
    assert table(record, "--csv", "--json") == table(record, "--json")  # the last format option has effect
    assert b"no process 9" in hotfn("report", record, "--process", 9, status=1).stderr
    with open("/dev/full", "wb") as full:
        assert subprocess.run([HOTFN, "report", record], stdout=full,
                              stderr=subprocess.DEVNULL).returncode == 1


def check_colours(record):
    assert b"\033[1m" in on_terminal([HOTFN, "report", record])
    assert b"\033" not in on_terminal([HOTFN, "report", record], NO_COLOR="1")
    assert b"\033" not in on_terminal([HOTFN, "report", record], TERM="dumb")
    assert b"\033" not in on_terminal([HOTFN, "report", record, "--color", "never"])
    assert b"\033[1m" in on_terminal([HOTFN, "report", record, "--color", "always"], NO_COLOR="1")


def check_default_record(record, folder):
    """Without a record name, a command reads ./hotfn.hfr and reports that; without that file it is a usage error."""
    here = folder / "here"
    here.mkdir()
    commands = (["report"], ["info"], ["export", "-F", "csv"], ["top", "--once"], ["open", "--print", "-o", "page.html"])
    for command in commands:
        shown = hotfn(*command, status=2, cwd=here)
        assert b"there is no hotfn.hfr in this folder" in shown.stderr and not shown.stdout, shown
    (here / "hotfn.hfr").symlink_to("nowhere")
    assert b"hotfn.hfr: " in hotfn("report", status=1, cwd=here).stderr
    (here / "hotfn.hfr").unlink()
    (here / "hotfn.hfr").write_bytes(record.read_bytes())
    for command in commands:
        shown = hotfn(*command, cwd=here)
        assert b"using hotfn.hfr" in shown.stderr, shown
        assert shown.stdout == hotfn(*command, "hotfn.hfr", cwd=here).stdout


def check_narrow(record):
    """Lines are wrapped or shortened to the terminal; a pipe gets unchanged lines."""
    cxx = subprocess.run(["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True).stdout.strip()
    for words, cut in ((["scan", HOTFN], False), (["scan", "--why", "--timed", HOTFN], False), (["info", record], False),
                       (["list", cxx, "-f", "*construct*"], True), (["symbols", cxx], True)):
        whole = hotfn(*words).stdout.decode(errors="replace").splitlines()
        for columns in 60, 100:
            shown = on_terminal([HOTFN, *words], columns).decode(errors="replace").splitlines()
            words_of = [word for line in whole for word in line.split()]
            if cut:
                assert max(map(len, shown)) <= columns < max(map(len, whole)), (words, columns)
                assert len(shown) == len(whole) and any("\u2026" in line for line in shown)
                assert all(line == full or len(full) > columns for line, full in zip(shown, whole)), words
                assert words[0] == "symbols" or any("<\u2026>" in line or ", \u2026>" in line for line in shown), shown
            else:
                assert [word for line in shown for word in line.split()] == words_of, words
                assert all(len(line) <= columns or len(line.split()) == 1 for line in shown), (words, columns, shown)
        assert on_terminal([HOTFN, *words], 0).decode(errors="replace").splitlines() == whole, words


def check_top_folds(record):
    """A name is cut in the middle only after the contents of its brackets were folded."""
    t = Terminal(HOTFN, "top", str(record), columns=48)
    t.read(lambda text: "q quit" in text)
    assert any(line.endswith("  <script>alert(1)<\u2026>") for line in t.screen()), t.screen()
    t.press("q")
    assert t.finish() == 0


def check_info(record):
    text = hotfn("info", record).stdout
    assert all(byte >= 0x20 or byte == 0x0a for byte in text), text
    assert b"finished, exit status 0" in text and b"17 functions" in text
    info = json.loads(hotfn("info", "--json", record).stdout)
    check_schema("info", info)
    assert info["functions"] == 17 and info["modules"][0]["note"] == 'a "note"\n'
    assert info["threads"][0]["calls"] == 2**64 - 1 and info["threads"][0]["name"] == "worker"


def repairs_shown(record, folder):
    """Return how info, the report, the page and the JSON documents show a repair."""
    page, documents = folder / "page.html", [json.loads(hotfn(*command, "--json", record).stdout) for command in (["info"], ["report"])]
    for name, document in zip(("info", "report"), documents):
        check_schema(name, document)
    hotfn("export", "-F", "html", record, "-o", page)
    notes = page.read_text(errors="replace").partition('"notes":[')[2].partition("]")[0]
    return (hotfn("info", record).stdout.decode(errors="replace"), table(record), documents[0].get("repaired"),
            documents[1]["record"].get("repaired"), notes)


def check_repair_is_shown(record, lost, folder):
    """The loss of a repair is shown for the repaired record, for a repair of it and for a merge of both."""
    assert lost
    again, merged = folder / "again.hfr", folder / "merged.hfr"
    hotfn("repair", record, "-o", again)
    hotfn("merge", again, record, "-o", merged)
    both = f"again.hfr: {lost}; {record.name}: {lost}"
    for repaired, shown in ((record, lost), (again, lost), (merged, both)):
        info, report, *in_json, notes = repairs_shown(repaired, folder)
        assert f"repaired   lost: {shown}\n" in info and f"\nrepaired; lost: {shown}\n" in report, (info, report)
        assert in_json == [shown, shown] and f"this record was repaired, and lost: {shown}" in notes, (in_json, notes)


def check_repair(record, folder):
    whole = record.read_bytes()
    cut, new = folder / "cut.hfr", folder / "new.hfr"
    info, report, *in_json, notes = repairs_shown(record, folder)
    assert "repaired" not in info + report + notes and in_json == [None, None]
    cut.write_bytes(whole[:-300])
    problem = hotfn("report", cut, status=1).stderr.decode()
    assert "hotfn repair" in problem and "offset" in problem and "cut.hfr" in problem, problem
    said = hotfn("repair", cut, "-o", new).stdout.decode()
    assert "lost" in said and "names" in said, said
    calls = [f["calls"] for f in json.loads(table(new, "--json"))["functions"]]
    assert len(calls) == 17
    check_repair_is_shown(new, said.partition("; lost: ")[2].strip(), folder)
    cut.write_bytes(whole[:100])
    assert hotfn("repair", cut, "-o", new, status=1).stderr
    assert "nothing lost" in hotfn("repair", record, "-o", new).stdout.decode()
    check_repair_is_shown(new, "nothing", folder)
    assert hotfn("repair", record, status=2).stderr
    assert hotfn("repair", "/none", "-o", new, status=1).stderr
    assert hotfn("repair", record, "-o", "/none/new", status=1).stderr


def said(*arguments, status=2):
    return hotfn(*arguments, status=status).stderr.decode()


def check_usage_messages(record):
    for typed, meant in (("rnu", "run"), ("reprot", "report"), ("lst", "list"), ("dif", "diff"), ("mergee", "merge")):
        assert f"did you mean '{meant}'?" in said(typed), typed
    for typed in ("zzz", "o", "x" * 300):
        assert "did you mean" not in said(typed), typed
    assert f"hotfn run -- {HOTFN}" in said(HOTFN)
    for command in ("repair", "diff", "merge", "scan", "list", "symbols"):
        lines = said(command).splitlines()
        assert len(lines) == 2 and "a name is missing: hotfn " + command in lines[0], lines
    assert "a name is missing" in said("diff", record)
    assert "'b' is one name too many" in said("report", record, "b")
    for command in ("merge", "repair", "kit"):
        assert "-o is missing" in said(command, record), command
    assert "a program is missing" in said("bisect", "--by", "exit")
    assert hotfn("help", "report").stdout == hotfn("report", "--help").stdout
    assert "did you mean 'report'" in said("help", "reprot")
    sizes = ["--min-size", "9", "--max-size", "8"]
    assert "--min-size is above --max-size" in said("list", *sizes, HOTFN)
    assert "--min-size is above --max-size" in said("run", *sizes, "--", HOTFN, status=125)
    assert "cannot write to stdout" in said("list", "-o", "-", HOTFN)


def check_pipe():
    """A pipe can be read only once."""
    with open(HOTFN, "rb") as file:
        through = subprocess.run(["sh", "-c", 'cat | "$0" symbols /dev/stdin', HOTFN], stdin=file,
                                 capture_output=True, check=True).stdout
    assert through == hotfn("symbols", HOTFN).stdout


def check_addresses():
    """The exit status is 1 for an address without a symbol and a line."""
    outside = hotfn("symbols", "--at", 0x7fffffff0000, HOTFN, status=1)
    assert b"is outside of" in outside.stderr and outside.stdout == b"0x7fffffff0000\n", outside
    assert b"no symbol and no line there" in hotfn("symbols", "--json", "--at", 0, HOTFN, status=1).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[2], folder], check=True)
        record = folder / "hostile.hfr"
        check_report(record, folder)
        check_colours(record)
        check_default_record(record, folder)
        check_narrow(record)
        check_top_folds(record)
        check_info(record)
        check_repair(record, folder)
        check_usage_messages(record)
        check_addresses()
        check_pipe()
        for command in ("report", "info", "repair"):
            assert b"usage" in hotfn(command, "--help").stdout
            assert hotfn(command, "--unknown", status=2).stderr
    print("report, info and repair work as documented")


if __name__ == "__main__":
    main()
