#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check exports with two packages from npm: speedscope's schema accepts its export, and the command line
of Firefox Profiler shows the times of the report.  Skipped (77) without npm or its registry.

    check_npm.py HOTFN PROGRAM    (export_timed)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HOTFN, STORY = sys.argv[1:3]
VALIDATE = """
const Ajv = require('ajv'), fs = require('fs');
const read = path => JSON.parse(fs.readFileSync(path));
const ajv = new Ajv({ schemaId: 'auto', unknownFormats: 'ignore' });
const holds = ajv.compile(read(process.argv[2]));
if (!holds(read(process.argv[3]))) { console.log(JSON.stringify(holds.errors)); process.exit(1); }
"""


def skip(reason):
    print(f"# skipped: {reason}")
    sys.exit(77)


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=300, **more)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def check_speedscope(folder, record):
    (folder / "validate.js").write_text(VALIDATE)
    schema = folder / "node_modules/speedscope/dist/release/file-format-schema.json"
    out = folder / "story.speedscope.json"
    assert run(HOTFN, "export", "-o", out, record)[0] == 0
    status, text = run("node", "validate.js", schema, out, cwd=folder)
    assert status == 0, text
    out.write_text(out.read_text().replace("nanoseconds", "ns"))
    assert run("node", "validate.js", schema, out, cwd=folder)[0] == 1, "the schema does not refuse an unknown unit"


def check_firefox(folder, record):
    out = folder / "story.firefox.json"
    assert run(HOTFN, "export", "-o", out, record)[0] == 0
    tool, more = folder / "node_modules/.bin/profiler-cli", {
        "cwd": folder, "env": {**os.environ, "HOME": str(folder)}}
    try:
        status, text = run(tool, "load", out, **more)
        for _ in range(20):  # its server process may need some time to start
            status, text = run(tool, "thread", "functions", "--thread", "t-0", **more)
            if status == 0 and "alpha" in text:
                break
            time.sleep(0.5)
        plain = re.sub(r"\s+", " ", text)
        assert "alpha - self: 100" in plain and "total: 142.30" in plain, text
        assert "beta::run() - self: 34.500" in plain and "total: 36.800" in plain, text
        status, text = run(tool, "thread", "functions", "--thread", "t-1", **more)
        assert "gamma - self: 5.050ms (100.0%)" in re.sub(r"\s+", " ", text), text
    finally:
        run(tool, "stop", "--all", **more)


def main(folder):
    record = folder / "story.hfr"
    subprocess.run([STORY, "story", record], check=True)
    status, text = run("npm", "install", "--silent", "--no-audit", "--no-fund", "speedscope",
                       "ajv@6", "@firefox-devtools/profiler-cli", cwd=folder)
    if status != 0:
        skip("the packages cannot be installed: " + text.strip()[-200:])
    check_speedscope(folder, record)
    check_firefox(folder, record)
    print("speedscope's schema and profiler-cli agree with the report")


if not (shutil.which("npm") and shutil.which("node")):
    skip("npm or node is not installed")
with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
