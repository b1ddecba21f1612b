# SPDX-License-Identifier: MIT
"""Run commands on a pseudo-terminal and return their output."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


def on_terminal(command, columns=0, **environment):
    """The output of a command on a terminal with so many columns (0: unknown); its exit status must be 0."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.Popen([str(word) for word in command], stdout=child,
                            env={**inherited, "TERM": "xterm", **environment})
    os.close(child)
    text = b""
    try:
        while chunk := os.read(parent, 65536):
            text += chunk
    except OSError:  # the read fails with EIO once the command has ended
        pass
    os.close(parent)
    assert done.wait(120) == 0
    return text.replace(b"\r\n", b"\n")


class Terminal:
    """A program on a terminal of 20 lines, with its output since the last key."""

    def __init__(self, *command, columns=100):
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
        self.before = termios.tcgetattr(child)
        self.child = child
        self.program = subprocess.Popen(command, stdin=child, stdout=child, start_new_session=True)
        self.text = ""

    def read(self, want, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not want(self.text):
            if select.select([self.parent], [], [], 0.2)[0]:
                self.text += os.read(self.parent, 65536).decode(errors="replace")
        assert want(self.text), self.text[-2000:]
        return self.text

    def press(self, keys):
        self.text = ""
        os.write(self.parent, keys.encode())

    def screen(self):
        """The lines of the last screen, without escape sequences."""
        last = self.text.split("\033[H")[-1]
        return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", last).split("\r\n")

    def finish(self):
        status = self.program.wait(300)
        after = termios.tcgetattr(self.child)
        os.close(self.child)
        os.close(self.parent)
        assert after == self.before, "the settings of the terminal were not restored"
        return status
