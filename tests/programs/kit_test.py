# SPDX-License-Identifier: MIT
"""A kit: made on one machine, used on another that has only the program, the kit and a C library.

The other machine is a folder with an empty cache and without a PATH to hotfn.  The program there is stripped,
so its names can only come from the kit.  The counts must equal those of an ordinary run.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HOTFN = os.environ["HOTFN"]
HERE = Path(__file__).resolve().parent
FLAGS = os.environ.get("HOTFN_TARGET_FLAGS", "").split()  # -m32: the same tests for 32-bit targets


def run(*command, good=True, **more):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **more)
    if good and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.returncode} {done.stderr[-2000:]}")
    return done


def counts(record):
    rows = json.loads(run(HOTFN, "report", "--json", "-n", "0", record).stdout)["functions"]
    return {row["name"]: row["calls"] for row in rows if row["state"] == "hooked"}


def check_counts(folder, program, kit, machine, environment):
    run(HOTFN, "run", "-q", "--no-cache", "-o", folder / "usual.hfr", "--", program, "50")
    run("strip", "-o", machine / "target", program)
    done = run(kit / "count", "-o", machine / "kit.hfr", "--", machine / "target", "50", env=environment,
               cwd=machine)
    want, got = counts(folder / "usual.hfr"), counts(machine / "kit.hfr")
    assert got == want and len(got) > 5, (got, want)
    assert not list(machine.glob("cache/**/*.scan")), "something was scanned"
    print(f"ok {len(got)} functions counted by the kit, with the names and counts of an ordinary run")
    return done


def check_without_program(machine, kit, environment):
    """The program next to the kit is counted in its own folder; the record is in the kit."""
    done = run(kit / "count", "-q", env=environment, cwd="/", good=False)
    records = list(kit.glob("target-*.hfr"))
    assert done.returncode == 0 and len(records) == 1 and counts(records[0])["main"] == 1, (done, records)
    (machine / "target").rename(machine / "moved")
    done = run(kit / "count", env=environment, cwd="/", good=False)
    assert done.returncode == 127 and "next to the program" in done.stderr, done
    (machine / "moved").rename(machine / "target")
    print("ok a kit finds its program in the folder above")


def check_selection(folder, program, machine, environment):
    kit = folder / "small"
    errors = run(HOTFN, "kit", "-f", "ma*", program, "-o", kit).stderr
    run(kit / "count", "-q", "-o", machine / "s.hfr", machine / "target", "50", env=environment, cwd=machine)
    assert set(counts(machine / "s.hfr")) == {"main"}, counts(machine / "s.hfr")
    assert re.search(r"\b1 function in", errors), errors
    print("ok a kit counts the functions that it was made for")


def check_other_build(folder, kit, machine, environment, facts):
    other = folder / "other"
    run("gcc", *FLAGS, "-O2", "-DOTHER", "-o", other, HERE / "src" / "target.c", "-fno-inline")
    done = run(kit / "count", "-o", machine / "x.hfr", "--", other, "50", good=False, env=environment,
               cwd=machine)
    assert done.returncode == 125 and "another build" in done.stderr and not done.stdout and facts["image_id"] in done.stderr, done
    print("ok another build is refused, and nothing is run")


def check_place(folder, program):
    (folder / "file").write_text("")
    done = run(HOTFN, "kit", program, "-o", folder / "file" / "kit", good=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    print("ok an output folder that cannot be created is reported once")


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))


def check_no_room(folder, program):
    done = run(HOTFN, "kit", program, "-o", folder / "large", good=False, preexec_fn=limit_files)
    assert done.returncode == 1 and "program.scan" in done.stderr, done
    assert not (folder / "large").exists(), list((folder / "large").iterdir())
    print("ok a kit without enough disk space is reported, and no part of it stays")


def check_broken(kit, machine, environment):
    plan = kit / "program.scan"
    whole = plan.read_bytes()
    for broken in (b"", whole[:100], whole[:-1], whole[:200] + b"\0" * 64 + whole[264:]):
        plan.write_bytes(broken)
        done = run(kit / "count", "-o", machine / "x.hfr", "--", machine / "target", "50", good=False,
                   env=environment, cwd=machine)
        assert done.returncode in (0, 125) and (done.returncode == 0 or done.stderr), done
    plan.unlink()
    done = run(kit / "count", "--", machine / "target", "50", good=False, env=environment, cwd=machine)
    assert done.returncode == 125 and "program.scan" in done.stderr, done
    plan.write_bytes(whole)
    print("ok a broken kit is reported")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, made, machine = folder / "target", folder / "made", folder / "machine"
        machine.mkdir()
        run("gcc", *FLAGS, "-O2", "-o", program, HERE / "src" / "target.c")
        run(HOTFN, "kit", program, "-o", made)
        facts = json.loads((made / "kit.json").read_text())
        assert facts["schema"] == "hotfn.kit/1" and facts["image_id"], facts
        kit = machine / "kit"  # a kit may be moved
        shutil.copytree(made, kit)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(machine), "XDG_CACHE_HOME": str(machine / "cache")}
        check_counts(folder, program, kit, machine, environment)
        check_without_program(machine, kit, environment)
        check_selection(folder, program, machine, environment)
        check_other_build(folder, kit, machine, environment, facts)
        check_place(folder, program)
        check_no_room(folder, program)
        check_broken(kit, machine, environment)
        done = run(HOTFN, "kit", "/etc/passwd", "-o", folder / "no", good=False)
        assert done.returncode == 1 and done.stderr, done
    return 0


if __name__ == "__main__":
    sys.exit(main())
