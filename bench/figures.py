# SPDX-License-Identifier: MIT
"""The results of one run: min, median and upper quartile, printed as tables and collected for --json."""
import json
import statistics


def upper_quartile(values):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, (3 * len(ordered)) // 4)]


def summarise(values):
    return {"min": min(values), "median": statistics.median(values),
            "upper_quartile": upper_quartile(values), "count": len(values)}


def spread(values, digits=2):
    """`0.55 0.58 0.61`: min, median, upper quartile."""
    s = summarise(values)
    return " ".join(f"{s[key]:.{digits}f}" for key in ("min", "median", "upper_quartile"))


class Report:
    """Prints tables to stdout and collects their values for --json."""

    def __init__(self):
        self.results = []
        self.notes = []

    def note_missing(self, what, why):
        """Note below the table why a figure is missing; returns the cell to print."""
        self.notes.append(f"{what}: {why}")
        return "missing"

    def heading(self, title, *notes):
        print(f"\n{title}\n{'-' * len(title)}")
        for note in notes:
            print(note)

    def add(self, name, unit, values, **about):
        self.results.append({"name": name, "unit": unit, **about, **summarise(values),
                             "values": [round(value, 6) for value in values]})

    def table(self, header, rows):
        widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
        for row in [header, *rows]:
            cells = [f"{cell!s:<{widths[0]}}" if i == 0 else f"{cell!s:>{widths[i]}}"
                     for i, cell in enumerate(row)]
            print("  ".join(cells).rstrip(), flush=True)
        for note in self.notes:
            print(f"missing: {note}")
        self.notes = []

    def write(self, path, about):
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schema": "hotfn.bench/1", **about, "results": self.results}, out, indent=1)
            out.write("\n")
