#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Count the calls of the functions of a library that this Python program uses.

    PYTHONPATH=bindings/python HOTFN_LIBRARY=build/release/src/libhotfn.so python3 count_self.py
"""
import sqlite3

import hotfn


def work():
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t(n)")
        database.executemany("insert into t values (?)", ((n,) for n in range(1000)))
        return database.execute("select sum(n) from t").fetchone()[0]


with hotfn.Session(modules="libsqlite3*") as session:
    work()
work()      # not counted: the session has restored all bytes

for function in session.hot(0):
    if function.name in ("sqlite3_step", "sqlite3_prepare_v2", "sqlite3_open_v2"):
        print(f"{function.calls:8}  {function.display}")
