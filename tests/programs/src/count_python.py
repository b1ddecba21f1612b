# SPDX-License-Identifier: MIT
"""Run the unit tests of a module, and count the calls of Python functions as sys.setprofile reports them.
Arguments: the file for the counts, or - to count nothing; the module."""
import importlib
import json
import os
import random
import sys
import threading
import unittest

counts = {}


def note(frame, event, arg):
    if event == "call":
        code = frame.f_code
        key = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        counts[key] = counts.get(key, 0) + 1


def main(out, name):
    random.seed(1)
    if out != "-":
        threading.setprofile(note)
        sys.setprofile(note)
    tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    with open(os.devnull, "w") as nothing:
        result = unittest.TextTestRunner(stream=nothing, verbosity=0).run(tests)
    if out != "-":
        # Python removes a profiler that fails, as note does where a test exhausts the stack.
        is_complete = sys.getprofile() is note
        sys.setprofile(None)
        threading.setprofile(None)
        with open(out, "w") as file:
            json.dump(counts if is_complete else None, file)
    print(name, result.testsRun, len(result.failures), len(result.errors))


main(sys.argv[1], sys.argv[2])
