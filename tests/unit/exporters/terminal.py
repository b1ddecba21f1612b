# SPDX-License-Identifier: MIT
"""What a command writes to a terminal."""
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
    """Its text, as a terminal of so many columns gets it (0: it does not say); it must end with 0."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.Popen([str(word) for word in command], stdout=child,
                            env={**own, "TERM": "xterm", **environment})
    os.close(child)
    text = b""
    try:
        while chunk := os.read(parent, 65536):
            text += chunk
    except OSError:  # Linux says EIO at the end
        pass
    os.close(parent)
    assert done.wait(120) == 0
    return text.replace(b"\r\n", b"\n")


class Terminal:
    """A program on a terminal of 20 lines, and what it showed last."""

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
        """The last whole screen's lines, without the commands to the terminal."""
        last = self.text.split("\033[H")[-1]
        return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", last).split("\r\n")

    def finish(self):
        status = self.program.wait(300)
        after = termios.tcgetattr(self.child)
        os.close(self.child)
        os.close(self.parent)
        assert after == self.before, "the terminal is left as it was"
        return status
