#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make pictures of the collector's page: a program that testers ran with different input, and one of its functions.

    screenshot.py SQLITE3 PICTURE PICTURE_OF_A_FUNCTION
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import uuid

from harness import Collector

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit/exporters"))
import browser  # noqa: E402

HOTFN, TESTERS = os.environ["HOTFN"], 20


def run_tester(c, place, program, number):
    statements = ["create table t(a integer primary key, b text, c real);", "begin;"]
    statements += [f"insert into t(b, c) values('row {i * number % 97}', {i}.5);" for i in range(50 * number)]
    statements += ["commit;", *["create index i on t(b);"] * (number % 3 == 0),
                   *["select b, count(*), avg(c) from t group by b order by 2 desc;"] * (1 + number % 4)]
    environment = dict(os.environ, XDG_STATE_HOME=str(place / f"state_{number}"), HOTFN_TOKEN=c.admin)
    subprocess.run([HOTFN, "run", "-q", "--mode", "time", "--flat", "-o", place / f"{uuid.uuid4()}.hfr", "--push",
                    f"http://127.0.0.1:{c.port}", "--app", "sqlite3", "--app-version", "3.40.1", "--label",
                    f"workload={number % 4}", "--", program, ":memory:"], check=True, env=environment, text=True,
                   input="\n".join(statements), stdout=subprocess.DEVNULL)


def main():
    program, picture = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        shutil.copy(program, place / "sqlite3")
        with Collector(place, "--quiet") as c, browser.Browser(1200, 520) as b:
            for number in range(1, TESTERS + 1):
                run_tester(c, place, place / "sqlite3", number)
            b.visit(f"http://127.0.0.1:{c.port}/#token={c.admin}&metric=self&agg=average")
            while not b.run("document.querySelectorAll('#hottable .row').length > 5"):
                pass
            b.screenshot(picture)
            b.run("document.querySelector('#hottable .row').click()")
            while not b.run("document.querySelectorAll('#functionpage svg').length == 2"):
                pass
            b.screenshot(sys.argv[3])


main()
