#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotfn bisect finds the function whose hook breaks a program: bisect_test.py TOUCHY."""
import os
import re
import subprocess
import sys

HOTFN = os.environ["HOTFN"]
FOUND, NO_CHANGE = 3, 0         # exit statuses


def bisect(*words, stdin=b""):
    done = subprocess.run([HOTFN, "bisect", *words], input=stdin, capture_output=True, timeout=240)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def expect(condition, claim, answer):
    if not condition:
        status, out, err = answer
        sys.exit(f"failed: {claim}\nstatus {status}\nstdout:\n{out}\nstderr:\n{err}")


def functions(answer):
    return re.findall(r"^function  (\S+)", answer[1], re.MULTILINE)


def expect_hang_found(touchy, culprits):
    """On a busy machine a run that does not hang may take longer than a second: then try again with more time."""
    words = ["--", touchy, "hang"]
    if functions(bisect("--timeout", "1s", *words)) != culprits:
        expect_found("a hang is found", culprits, "--timeout", "5s", *words)


def expect_found(claim, culprits, *words):
    answer = bisect(*words)
    expect(answer[0] == FOUND and functions(answer) == culprits, claim, answer)
    return answer


def main():
    touchy = os.path.abspath(sys.argv[1])
    one = ["touchy_culprit"]
    answer = expect_found("a change of the exit status is found", one, "--by", "exit", "--", touchy, "exit")
    for line in (r"^module    \S+\+0x[0-9a-f]+$", r"^strategy  jump", r"^bytes     ([0-9a-f]{2} ){4}"):
        expect(re.search(line, answer[1], re.MULTILINE), f"{line} is printed", answer)
    expect_found("a change of the output is found", one, "--", touchy, "output")
    expect_found("a signal is found", one, "--", touchy, "signal")
    expect_hang_found(touchy, one)
    expect_found("--check decides by a shell command", one, "--check",
                 'test "$STATUS" = 0 && grep -q well', "--", touchy, "exit")
    answer = bisect("--", touchy, "exit", "two")
    expect(answer[0] == FOUND and sorted(functions(answer)) == ["touchy_culprit", "touchy_other"],
           "two culprits are found, one after the other", answer)
    answer = bisect("--by", "exit", "--", touchy, "output")
    expect(answer[0] == NO_CHANGE, "--by exit ignores the output", answer)
    answer = bisect("-x", "touchy_culprit", "--", touchy, "exit")
    expect(answer[0] == NO_CHANGE, "options of run are passed on", answer)
    answer = bisect("--", "sh", "-c", "date +%N")
    expect(answer[0] == 1 and "two bare runs differ" in answer[2], "a program with varying output is refused",
           answer)
    answer = bisect("--", "cat", stdin=b"the same input each time\n")
    expect(answer[0] == NO_CHANGE, "each run gets the same input", answer)
    answer = bisect("--by", "colour", "--", touchy, "exit")
    expect(answer[0] == 2, "an invalid option gives status 2", answer)
    print("bisect finds every culprit")


if __name__ == "__main__":
    main()
