# SPDX-License-Identifier: MIT
"""Long work shows a status line on a terminal, and only there; a record has the time that preparing
the program took."""
import json
import os
import pty
import re
import subprocess
import sys

import cases

HOTFN, PYTHON = os.environ["HOTFN"], "/usr/bin/python3.11"
LINE = re.compile(r"\rhotfn: ([a-z ]+ of) (\S+): ([0-9,]+) of ([0-9,]+) \((\d+) %\)")


def find_library():
    """A library whose scan takes more than a second on any machine of today."""
    listing = subprocess.run(["ldd", "/usr/bin/clang"], check=True, capture_output=True, text=True).stdout
    return re.search(r"=> (\S*/libclang-cpp\S*)", listing).group(1)


def run_on_terminal(words, stdout):
    """What the command writes to stderr, which is a terminal."""
    receiver, terminal = pty.openpty()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        while part := os.read(receiver, 65536):
            text += part
    except OSError:  # EIO: the last writer closed the terminal
        pass
    os.close(receiver)
    assert child.wait(60) == 0, text
    return text.decode()


def what_remains(text):
    """The lines of a terminal that received text."""
    lines, column = [""], 0
    for c in text:
        if c == "\n":
            lines.append("")
            column = 0
        elif c == "\r":
            column = 0
        else:
            lines[-1] = lines[-1][:column] + c + lines[-1][column + 1:]
            column += 1
    return [line.rstrip() for line in lines]


def a_scan_shows_how_far_it_is(case):
    words = [HOTFN, "scan", "--timed", find_library()]
    with open(case / "out", "wb") as out:
        text = run_on_terminal(words, out)
    found = LINE.findall(text)
    assert len(found) > 5, text
    assert {"judging timing of"} <= {action for action, *_ in found}, found
    for action, file, done, total, percent in found:
        done, total = (int(n.replace(",", "")) for n in (done, total))
        assert file.startswith("libclang-cpp") and done < total and int(percent) == 100 * done // total, found
    assert what_remains(text) == [""], what_remains(text)
    assert b"hookable" in (case / "out").read_bytes()
    piped = subprocess.run([HOTFN, "scan", "--timed", PYTHON], check=True, capture_output=True)
    assert piped.stderr == b"", piped.stderr


def preparation_is_not_the_programs_time(case):
    record = case / "r.hfr"
    words = ["env", f"XDG_CACHE_HOME={case}/cache", HOTFN, "run", "-o", record, "--mode", "time", "--",
             PYTHON, "-c", "pass"]
    shown = what_remains(run_on_terminal(words, subprocess.DEVNULL))
    prepared, ran = map(float, re.search(r"prepared in ([0-9.]+) s, ran ([0-9.]+) s", "\n".join(shown)).groups())
    assert not any("judging" in line for line in shown), shown
    assert prepared > 0.1, shown
    info = json.loads(subprocess.run([HOTFN, "info", "--json", record], check=True, capture_output=True).stdout)
    wall = (info["end_ns"] - info["start_ns"]) / 1e9
    assert abs(info["preparation_ns"] / 1e9 - prepared) < 0.01 and wall > prepared, info
    heading = subprocess.run([HOTFN, "report", record, "-n", "1"], check=True, capture_output=True,
                             text=True).stdout.splitlines()[1]
    match = re.search(r"finished, ([0-9.]+) s after ([0-9.]+) s of preparation", heading)
    assert match and abs(float(match[2]) - prepared) < 0.01, heading
    assert abs(float(match[1]) + float(match[2]) - wall) < 0.01, (heading, wall)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # with cached scans
    again = json.loads(subprocess.run([HOTFN, "info", "--json", record], check=True, capture_output=True).stdout)
    assert again["preparation_ns"] < info["preparation_ns"] / 2, (again, info)


CASES = [a_scan_shows_how_far_it_is, preparation_is_not_the_programs_time]

if __name__ == "__main__":
    sys.exit(cases.run(CASES, needs=["clang"]))
