#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Launch a program, wait for its end, and print its ten hottest functions.

    PYTHONPATH=bindings/python HOTFN_LIBRARY=build/release/src/libhotfn.so python3 launch.py PROGRAM [ARGUMENT...]
"""
import sys

import hotfn

run = hotfn.run(sys.argv[1:])
for function in run.hot(10):
    print(f"{function.calls:12}  {function.display}")
sys.exit(run.exit_code if run.exit_code >= 0 else 128 - run.exit_code)
