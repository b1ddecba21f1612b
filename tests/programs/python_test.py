# SPDX-License-Identifier: MIT
"""Functions of Python programs (`hotfn run --runtime python`): counted as sys.setprofile counts them, with the C
functions of the same run, and unharmed."""
import json
import os
import pathlib
import subprocess
import sys

import cases
import switch_test

HOTFN = os.environ["HOTFN"]
HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3.11"  # Debian's
# CPython's own tests whose calls do not depend on time or chance, and which set no profiler themselves.
QUICK = ["test_collections", "test_coroutines", "test_enum", "test_bisect", "test_shelve"]
ALL = QUICK + ["test_asyncio.test_queues", "test_contextlib", "test_copy", "test_dataclasses", "test_decorators",
               "test_deque", "test_dict", "test_fractions", "test_genericalias", "test_heapq", "test_iter",
               "test_itertools", "test_list", "test_operator", "test_pprint", "test_queue", "test_set",
               "test_statistics", "test_string", "test_textwrap", "test_userdict", "test_userlist"]
APP = """
import os
import threading

class Box:
    def __init__(self, value): self.value = value
    def get(self): return self.value

def numbers(count):
    for i in range(count):
        yield i

def fail(): raise ValueError

def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def work():
    for i in range(1000):
        Box(i).get()
    try:
        fail()
    except ValueError:
        pass

print(sum(numbers(50)), fib(15))
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
if os.fork() == 0:
    fib(10)
    os._exit(0)
os.wait()
"""
CALLS = {"Box.__init__": 3000, "Box.get": 3000, "numbers": 51, "fail": 3, "work": 3, "fib": 1973 + 177}


def hook(place, *words, options=(), status=0):
    """Returns the done process and the report as JSON."""
    record = place / "run.hfr"
    done = subprocess.run([HOTFN, "run", "--no-cache", "--runtime", "python", *options, "-o", record, "--", *words],
                          capture_output=True, text=True, cwd=place,
                          env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == status, done.stderr
    if status:
        return done, None
    return done, json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", record], check=True,
                                           capture_output=True, text=True).stdout)


def get_calls(report):
    """The calls of Python functions, by name without place."""
    return {f["name"].split(" (")[0]: f["calls"] for f in report["functions"] if f["module"] == "python"}


def write_app(place):
    (place / "app.py").write_text(APP)
    return place / "app.py"


def calls_are_exact_in_threads_and_children(place):
    app = write_app(place)
    bare = subprocess.run([PYTHON, app], check=True, capture_output=True, text=True).stdout
    for options in ([], ["--mode", "time"], ["--mode", "time", "--clock", "cpu", "--events"], ["--durable"]):
        done, report = hook(place, PYTHON, app, options=options)
        calls = get_calls(report)
        assert done.stdout == bare, (options, done.stdout)
        assert {name: calls.get(name) for name in CALLS} == CALLS, (options, calls)
        assert all(f["name"] for f in report["functions"] if f["module"] == "python")
        c_calls = {f["name"]: f["calls"] for f in report["functions"] if f["module"] == "python3.11"}
        assert c_calls["PyEval_EvalCode"] > 0 and c_calls["PyInterpreterState_New"] is None, options


def times_join_the_tree_of_c_functions(place):
    (place / "app.py").write_text("def inner(): return sum(range(30000))\n\ndef outer():\n"
                                  "    for i in range(200): inner()\n\nouter()\n")
    _, report = hook(place, PYTHON, place / "app.py", options=["--mode", "time", "--clock", "cpu"])
    times = {f["name"].split(" (")[0]: f for f in report["functions"] if f["module"] == "python"}
    assert times["inner"]["calls"] == 200 and times["outer"]["calls"] == 1
    assert times["outer"]["total_ns"] >= times["inner"]["total_ns"] > 0
    folded = subprocess.run([HOTFN, "export", "-F", "folded", place / "run.hfr"], check=True, capture_output=True,
                            text=True).stdout
    stacks = [line for line in folded.splitlines() if "inner (" in line]
    assert stacks and all(line.index("outer (") < line.index("inner (") for line in stacks), folded[:2000]
    # Python called the C function, which called Python: main is above both.
    assert any("Py_BytesMain" in line or "main" in line.split(";")[0] for line in stacks), stacks[:3]


def functions_are_selected_by_name(place):
    app = write_app(place)
    _, report = hook(place, PYTHON, app, options=["-f", "Box.*", "-f", "fib", "-x", "*__init__*"])
    assert get_calls(report) == {"Box.get": 3000, "fib": CALLS["fib"]}, get_calls(report)
    done, _ = hook(place, PYTHON, app, options=["-f", "nosuch"])
    assert "'nosuch' matches no function" in done.stderr, done.stderr


STEPS = """
import sys
def known(): pass
def late(): pass
def other(): pass
print("ready", flush=True)
for line in sys.stdin:
    for i in range(1000):
        known()
        if "l" in line: late()
        if "o" in line: other()
    print("done", flush=True)
"""


def functions_that_are_called_later_obey_the_latest_order(place):
    (place / "steps.py").write_text(STEPS)
    for mode in ("count", "time"):
        with switch_test.Counted(place, "run", "--runtime", "python", "--mode", mode,
                                 command=[PYTHON, place / "steps.py"]) as target:
            target.send("k")
            target.ctl("--mode", "off", "--module", "python")
            target.send("kl")
            target.ctl("--mode", mode, "--module", "python", "-f", "late")
            target.send("kl")
            if mode == "time":
                target.ctl("--mode", "count")
                target.send("klo")
                target.ctl("--mode", "time", "-f", "other")
                target.send("klo")
            found = {name.split(" (")[0]: (f["calls"], f.get("timed_calls"))
                     for name, f in target.finish().items() if f["module"] == "python"}
        expected = {"known": (1000, None), "late": (1000, None)}
        if mode == "time":
            expected = {"known": (3000, 1000), "late": (3000, 1000), "other": (2000, 1000)}
        assert {name: found[name] for name in expected} == expected, (mode, found)


def records_of_two_runs_are_added(place):
    app = write_app(place)
    hook(place, PYTHON, app)
    os.rename(place / "run.hfr", place / "first.hfr")
    hook(place, PYTHON, app, options=["-x", "Py*"])
    subprocess.run([HOTFN, "merge", place / "first.hfr", place / "run.hfr", "-o", place / "both.hfr"], check=True)
    both = json.loads(subprocess.run([HOTFN, "report", "--json", "-n", "0", place / "both.hfr"], check=True,
                                     capture_output=True, text=True).stdout)
    calls = get_calls(both)
    assert {name: calls[name] for name in CALLS} == {name: 2 * n for name, n in CALLS.items()}, calls


def a_program_without_python_is_reported(place):
    done, report = hook(place, "/bin/true")
    assert "no selected function of the runtime 'python' was called" in done.stderr, done.stderr
    assert get_calls(report) == {}
    done, _ = hook(place, "env", "X=1", PYTHON, "-c", "def f(): pass\nf()")
    assert "no selected function" not in done.stderr, done.stderr
    done = subprocess.run([HOTFN, "run", "--runtime", "perl", "--", "/bin/true"], capture_output=True, text=True)
    assert done.returncode == 2 and "'perl' is not a runtime" in done.stderr, done


def another_version_is_refused(place):
    """A stand-in with the symbols that the tracer searches for."""
    (place / "other.c").write_text("const unsigned long Py_Version = 0x030c01f0;\n"
                                   "__attribute__((noipa)) void *PyInterpreterState_New(void) { return 0; }\n"
                                   "void *PyFunction_NewWithQualName(void) { return 0; }\n"
                                   "int main(void) { return PyInterpreterState_New() != 0; }\n")
    subprocess.run(["gcc", "-O1", "-rdynamic", "-o", place / "python3.12", place / "other.c"], check=True)
    done, report = hook(place, place / "python3.12")
    assert "this is CPython 3.12, and only 3.11 is known" in done.stderr, done.stderr
    quiet, _ = hook(place, place / "python3.12", options=["-q"])
    assert "CPython" not in quiet.stderr.replace("must contain CPython 3.11", ""), quiet.stderr
    assert {f["name"]: f["calls"] for f in report["functions"]}["PyInterpreterState_New"] == 1


def a_second_interpreter_is_not_counted(place):
    (place / "app.py").write_text("import _xxsubinterpreters as sub\ndef f(): pass\nf()\n"
                                  "i = sub.create()\nsub.run_string(i, 'def g(): pass\\ng()')\n"
                                  "sub.destroy(i)\nf()\nprint('done')\n")
    done, report = hook(place, PYTHON, place / "app.py")
    assert done.stdout == "done\n" and get_calls(report)["f"] == 2, done
    assert "second Python interpreter" in done.stderr and "g" not in get_calls(report), done.stderr


def count_as_setprofile(place, names, at_least):
    """Python removes a profiler during some tests that exhaust its stack; such modules are not compared."""
    tests = pathlib.Path("/usr/lib/python3.11/test")
    if not (tests / "test_bisect.py").exists():
        raise cases.Skipped("CPython's tests are missing (Debian: libpython3.11-testsuite)")
    script, counts = HERE / "src" / "count_python.py", place / "counts.json"
    compared = []
    for name in names:
        profiled = subprocess.run([PYTHON, script, counts, f"test.{name}"], check=True, capture_output=True, text=True,
                                  cwd=place, env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"})
        done, report = hook(place, PYTHON, script, "-", f"test.{name}", options=["-q", "-f", "*/python3.11/test/*"])
        assert done.stdout == profiled.stdout, (name, done.stdout, profiled.stdout)
        profile = json.loads(counts.read_text())
        if profile is None:
            continue
        compared.append(name)
        expected = {key: n for key, n in profile.items() if str(tests) in key}
        found = {f["name"]: f["calls"] for f in report["functions"] if f["module"] == "python"}
        different = {key: (found.get(key), expected.get(key)) for key in {*found, *expected}
                     if found.get(key) != expected.get(key)}
        assert expected and not different, (name, different)
    assert len(compared) >= at_least, compared


def counts_equal_those_of_setprofile(place):
    count_as_setprofile(place, QUICK, 3)


def all_counts_equal_those_of_setprofile(place):
    """Minutes: in soak."""
    count_as_setprofile(place, ALL, 20)


CASES = [calls_are_exact_in_threads_and_children, times_join_the_tree_of_c_functions, functions_are_selected_by_name,
         functions_that_are_called_later_obey_the_latest_order, records_of_two_runs_are_added, a_program_without_python_is_reported,
         another_version_is_refused, a_second_interpreter_is_not_counted, counts_equal_those_of_setprofile]
SOAK = [all_counts_equal_those_of_setprofile]

if __name__ == "__main__":
    if os.uname().machine != "x86_64" or not os.access(PYTHON, os.X_OK):
        print(f"skipped: no {PYTHON} for x86-64 on this system")
        sys.exit(cases.SKIPPED)
    sys.exit(cases.run(SOAK if sys.argv[1:] == [SOAK[0].__name__] else CASES))
