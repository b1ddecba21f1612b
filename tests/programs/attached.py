# SPDX-License-Identifier: MIT
"""Runs a program to its end with `hotfn attach`, which is there before main."""
import os
import pathlib
import subprocess
import time

# Makes a child of the test wait for a byte before main; its own code stays as it is.  Its own children do not wait.
PAUSE = """#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_for_byte(void)
{
    const char *parent = getenv("PAUSED_BY");
    char byte;
    if (parent && atoi(parent) == getppid()) {
        (void)!read(0, &byte, 1);
    }
}
"""


def build_pause(folder):
    """The library for LD_PRELOAD, made once in the folder."""
    library, source = pathlib.Path(folder, "pause.so"), pathlib.Path(folder, "pause.c")
    if not library.exists():
        source.write_text(PAUSE)
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def run_attached(command, record, options, folder, environment, timeout=240):
    """(what became of the program, of hotfn attach), as subprocess.run returns them."""
    from attach_test import HOTFN, is_attached
    paused = {**environment, "LD_PRELOAD": str(build_pause(folder)), "PAUSED_BY": str(os.getpid())}
    target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=paused,
                              cwd=folder)
    words = [HOTFN, "attach", "-o", str(record), *options, str(target.pid)]
    with target, subprocess.Popen(words, stderr=subprocess.PIPE, env=environment) as attach:
        while attach.poll() is None and not is_attached(target.pid):
            time.sleep(0.01)
        output, errors = target.communicate(b"x", timeout=timeout)
        message = attach.communicate(timeout=timeout)[1]
    return (subprocess.CompletedProcess(command, target.returncode, output, errors),
            subprocess.CompletedProcess(words, attach.returncode, b"", message))
