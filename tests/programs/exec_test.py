# SPDX-License-Identifier: MIT
"""The program that the command becomes by exec is the target; children that are not counted are listed."""
import json
import os
import subprocess
from pathlib import Path

import cases

HOTFN = os.environ["HOTFN"]
SOURCE = Path(__file__).resolve().parent / "src" / "exec_app.c"


class Case:
    """A folder with a program, and scripts that start it in several ways."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.app = self.folder / "app"
        self.record = self.folder / "r.hfr"
        subprocess.run(["gcc", "-O2", "-o", self.app, SOURCE], check=True)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(self, *command, options=(), **more):
        return subprocess.run([HOTFN, "run", "-o", self.record, *options, "--", *map(str, command)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, cwd=self.folder, **more)

    def report(self):
        out = subprocess.run([HOTFN, "report", self.record, "--json", "-n", "0", "--no-lines"], check=True,
                             capture_output=True, text=True).stdout
        return json.loads(out)

    def first_lines(self):
        return subprocess.run([HOTFN, "report", self.record], check=True, capture_output=True,
                              text=True).stdout.splitlines()[:3]

    def steps(self):
        """Calls of the program's function; the only main module must be the program."""
        report = self.report()
        assert [m["module"] for m in report["modules"] if m["main"]] == ["app"], report["modules"]
        assert {f["module"] for f in report["functions"] if f["calls"]} == {"app"}, "another module is counted"
        return {f["name"]: f["calls"] for f in report["functions"]}["app_step"]


def wrappers_that_exec_are_not_counted(case):
    exec_script = case.script("exec.sh", "#!/bin/sh\nexec ./app 70\n")
    env_script = case.script("env.sh", f"#!/usr/bin/env -S {case.app} 80\n")
    shim = case.script("shim", "#!/usr/bin/env bash\nset -e\nroot=$(echo .)\nexport SHIM_ROOT=$root\n"
                               'exec env SHIM=1 nice "$root/app" "$@"\n')
    for command, calls in ((["env", "X=1", "./app", "10"], 10), (["nice", "./app", "20"], 20),
                           (["env", "-i", "./app", "30"], 30), (["nohup", "nice", "env", "./app", "40"], 40),
                           (["sh", "-c", "exec ./app 50"], 50), (["setsid", "./app", "60"], 60),
                           ([exec_script], 70), ([env_script], 80), ([shim, "90"], 90), (["./app", "5"], 5)):
        done = case.run(*command)
        assert (done.returncode, done.stdout) == (3, "clean\n"), (command, done)
        assert case.steps() == calls, (command, case.steps())
        assert not case.first_lines()[0].startswith("NOTE"), case.first_lines()


def options_apply_to_the_program_behind_a_wrapper(case):
    for options in (["--mode", "time"], ["--durable"], ["--mode", "time", "--clock", "tick"],
                    ["--budget", "5%"], ["-f", "app_*"]):
        done = case.run("env", "X=1", "./app", "1000", options=options)
        assert done.returncode == 3 and case.steps() == 1000, (options, done)
        assert "matches no function" not in done.stderr, done.stderr


def a_program_that_execs_itself_is_counted_from_the_last_exec(case):
    done = case.run("./app", "100", "again")
    assert (done.returncode, done.stdout) == (3, "clean\n"), done
    assert case.steps() == 7, case.steps()


def a_failed_exec_loses_nothing(case):
    done = case.run("./app", "100", "missing")
    assert (done.returncode, done.stdout) == (3, "clean\n"), done
    assert case.steps() == 100, case.steps()
    assert "became" not in case.report()["record"], case.report()["record"]


def exec_while_threads_load_modules_is_followed(case):
    for _ in range(5):
        done = case.run("./app", "100", "threads")
        assert (done.returncode, done.stdout) == (3, "clean\n"), done
        assert case.steps() == 7, case.steps()


def a_static_program_behind_a_wrapper_is_reported(case):
    subprocess.run(["gcc", "-O2", "-static", "-o", case.folder / "fixed", SOURCE], check=True)
    done = case.run("env", "./fixed", "10")
    assert done.returncode == 3 and "became ./fixed" in done.stderr, done
    assert case.first_lines()[0].startswith("NOTE: the program became ./fixed"), case.first_lines()
    assert case.report()["record"]["became"] == "./fixed"


def children_that_are_not_counted_are_listed(case):
    script = case.script("wrap.sh", "#!/bin/sh\n./app 10\n./app 300000000\nexit 0\n")
    done = case.run(script)
    assert done.returncode == 0, done
    assert "children not counted: app (2 processes" in done.stderr and "--target 'app'" in done.stderr, done.stderr
    record = case.report()["record"]
    (child,) = record["children"]
    assert (child["file"], child["processes"], child["path"]) == ("app", 2, str(case.app)), child
    assert child["cpu_ns"] > 50e6 and record["script"] == str(script), record
    note, command, _ = case.first_lines()
    assert note.startswith("NOTE: these are the calls of dash, the interpreter of ") and "child app" in note, note
    assert command.endswith(f"hotfn run --target 'app' -- {script}"), command
    counted = case.run(script, options=["--target", "app"])
    assert counted.returncode == 0 and case.steps() == 300000010, counted


def a_child_that_works_more_than_the_target_is_named_first(case):
    done = case.run("sh", "-c", "./app 300000000; true")
    assert done.returncode == 0, done
    note, command, _ = case.first_lines()
    assert note.startswith("NOTE: these are the calls of sh (") and "child app" in note, note
    assert "--target 'app'" in command, command


def counted_children_are_not_listed(case):
    done = case.run("./app", "10", "fork")
    assert done.returncode == 3 and "children not counted" not in done.stderr, done
    done = case.run("sh", "-c", "./app 300000000; true", options=["--follow"])
    assert "app (" not in done.stderr, done.stderr


def a_link_gives_the_program_its_name(case):
    (case.folder / "other_name").symlink_to("app")
    case.run("./other_name", "10")
    main = [m for m in case.report()["modules"] if m["main"]]
    assert [m["module"] for m in main] == ["other_name"], main


if __name__ == "__main__":
    raise SystemExit(cases.run([
        wrappers_that_exec_are_not_counted, options_apply_to_the_program_behind_a_wrapper,
        a_program_that_execs_itself_is_counted_from_the_last_exec, a_failed_exec_loses_nothing,
        exec_while_threads_load_modules_is_followed, a_static_program_behind_a_wrapper_is_reported,
        children_that_are_not_counted_are_listed, a_child_that_works_more_than_the_target_is_named_first,
        counted_children_are_not_listed, a_link_gives_the_program_its_name,
    ], needs=["gcc"], make=Case))
