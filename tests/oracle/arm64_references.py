# SPDX-License-Identifier: MIT
"""References of AArch64 code to other code, from the cross binutils' objdump: targets of branches, and addresses
computed by adr, or by adrp and a later add."""
import re
import subprocess

OBJDUMP = "aarch64-linux-gnu-objdump"
BRANCH = re.compile(r"^\s+([0-9a-f]+):\t(bl|b|b\.[a-z]+|cbn?z|tbn?z)\t(?:.*, )?([0-9a-f]+)(?: <|\s*$)")
ADDRESS = re.compile(r"^\s+([0-9a-f]+):\t(adrp?)\t(x\d+), ([0-9a-f]+)(?: <|\s*$)")
ADD = re.compile(r"^\s+([0-9a-f]+):\tadd\tx\d+, (x\d+), #0x([0-9a-f]+)\s*$")


def code_references(path):
    """(source, the x86 mnemonic for its kind: call, jmp or lea, target)."""
    objdump = subprocess.Popen([OBJDUMP, "-d", "-w", "--no-show-raw-insn", path], stdout=subprocess.PIPE)
    grep = subprocess.Popen(["grep", "-E", r"\s(bl?|b\.[a-z]+|cbn?z|tbn?z|adrp?|add)\s"], stdin=objdump.stdout,
                            stdout=subprocess.PIPE, text=True, errors="replace")
    objdump.stdout.close()
    pages = {}      # register -> the page of the last adrp to it, at any distance
    for line in grep.stdout:
        if match := BRANCH.match(line):
            yield int(match[1], 16), "call" if match[2] == "bl" else "jmp", int(match[3], 16)
        elif match := ADDRESS.match(line):
            pages[match[3]] = int(match[4], 16)
            if match[2] == "adr":
                yield int(match[1], 16), "lea", int(match[4], 16)
        elif (match := ADD.match(line)) and match[2] in pages:
            yield int(match[1], 16), "lea", pages[match[2]] + int(match[3], 16)
    grep.wait()
    if objdump.wait():
        raise RuntimeError(f"{OBJDUMP} could not read {path}")
