#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long a browser takes to show pages of `hotfn export -F html`, for instance those of two builds of hotfn.

    bench/page.py [-n ROUNDS] PAGE.html ...

Each page is opened in turn in a new headless Chromium.  "Shown" is the time from the start of the navigation until a
frame with rows of the table was drawn, "task" the time that the page's main thread worked until then.  A page of few
functions shows what the browser itself takes.
"""
import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/unit/exporters"))
import browser  # noqa: E402  (needs the path above)

WATCH = """
(function wait() {
  if (!document.querySelector("#table .row")) return requestAnimationFrame(wait);
  requestAnimationFrame(() => setTimeout(() => { window.hotfn_shown = performance.now(); }, 0));
})();
"""


def measure(path):
    """(ms until the table is shown, ms of the main thread, MB of its heap)"""
    with browser.Browser() as b:
        b.call("Performance.enable")
        b.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        b.open(path)
        shown = None
        while shown is None:
            shown = b.run("window.hotfn_shown === undefined ? null : window.hotfn_shown")
        metrics = {m["name"]: m["value"] for m in b.call("Performance.getMetrics")["metrics"]}
    return shown, 1000 * metrics["TaskDuration"], metrics["JSHeapUsedSize"] / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--rounds", type=int, default=9)
    parser.add_argument("pages", nargs="+", type=pathlib.Path, metavar="PAGE.html")
    options = parser.parse_args()
    if not browser.find():
        sys.exit("page.py: no Chromium on this system: install chromium")
    for path in options.pages:
        if not path.is_file():
            sys.exit(f"page.py: {path}: no such file: make it with 'hotfn export -F html -o {path} RECORD'")
    found = {path: [] for path in options.pages}
    for number in range(options.rounds):
        for path in options.pages if number % 2 else options.pages[::-1]:
            found[path].append(measure(path.resolve()))
    print(f"minimum and median of {options.rounds} rounds")
    for path, values in found.items():
        shown, task, heap = ((min(column), statistics.median(column)) for column in zip(*values))
        print(f"{path}: {path.stat().st_size:,} bytes, shown {shown[0]:.0f} {shown[1]:.0f} ms, "
              f"task {task[0]:.0f} {task[1]:.0f} ms, heap {heap[0]:.0f} {heap[1]:.0f} MB")


if __name__ == "__main__":
    main()
