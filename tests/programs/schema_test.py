# SPDX-License-Identifier: MIT
"""The output of `--json` is valid by docs/*.schema.json."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

HOTFN = os.environ["HOTFN"]
HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"


def output_of(*args):
    return json.loads(subprocess.run([HOTFN, *map(str, args)], check=True, capture_output=True, text=True).stdout)


def check(name, document):
    schema = json.loads((DOCS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    kind = next(kind for kind in ("functions", "symbols", "addresses") if kind in document)
    print("ok", name, len(document[kind]), kind)


def check_can_fail(document):
    document["functions"][0]["state"] = "somehow"
    schema = json.loads((DOCS / "report.schema.json").read_text())
    try:
        jsonschema.validate(document, schema)
    except jsonschema.ValidationError:
        return
    raise AssertionError("the schema accepts an unknown state")


def main():
    with tempfile.TemporaryDirectory() as folder:
        target, record = Path(folder) / "target", Path(folder) / "r.hfr"
        subprocess.run(["gcc", "-O2", "-o", target, HERE / "src" / "target.c"], check=True)
        subprocess.run([HOTFN, "run", "-q", "-o", record, "--module", "*", "--", target, "10"], check=True)
        report = output_of("report", record, "--json", "-n", "0")
        check("report", report)
        assert len(report["functions"]) == report["record"]["functions"]
        check_can_fail(report)
        for options in (["--budget", "0.01%"], ["--mode", "time", "--budget", "0.01%"],
                        ["--mode", "time", "--with", "alloc"]):
            kept = subprocess.run([HOTFN, "run", "-q", "-o", record, *options, "--", target, "100"])
            if kept.returncode == 0:    # not on every CPU
                check("report", output_of("report", record, "--json", "-n", "0"))
        check("scan", output_of("scan", target, "--json"))
        check("scan", output_of("scan", "/bin/bash", "--json"))
        check("refused", output_of("list", target, "--refused", "-"))
        check("symbols", output_of("symbols", target, "--json", "--data"))
        subprocess.run(["gcc", "-O2", "-g", "-o", target, HERE / "src" / "target.c"], check=True)
        check("symbols", output_of("symbols", target, "--json", "--at", "0x1160"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
