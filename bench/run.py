#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure the cost of counting and timing, interleaved with other tools in one run; prints ratios and times.

    scripts/bench                    everything (an hour)
    scripts/bench calls programs     parts: calls, programs, start, symbols, timing, budget, collector, runtimes,
                                     python, send, truth, attach, cheap, frames
    scripts/bench --quick            a few minutes, to check that it works; imprecise figures
    scripts/bench -n 100 --json FILE
"""
import argparse
import sys

import attach
import budget
import calls
import cheap
import collector
import figures
import frames
import programs
import python_columns
import runtimes
import send
import start
import symbols
import timing
import tools
import truth

PARTS = {"calls": calls.run, "programs": programs.run, "start": start.run,
         "symbols": symbols.run, "timing": timing.run, "budget": budget.run, "collector": collector.run,
         "runtimes": runtimes.run, "python": python_columns.run, "send": send.run, "truth": truth.run,
         "attach": attach.run, "cheap": cheap.run, "frames": frames.run}


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="calls, programs, start, ... [all]")
    parser.add_argument("-n", "--runs", type=int, default=30, help="pairs of whole programs [30]")
    parser.add_argument("--slow-runs", type=int, default=3,
                        help="pairs under uftrace and callgrind [3]")
    parser.add_argument("--skip-peers", action="store_true",
                        help="whole programs under hotfn only")
    parser.add_argument("--placements", type=int, default=24, help="random placements, minimum 16 [24]")
    parser.add_argument("--slow-placements", type=int, default=4,
                        help="placements under uftrace and callgrind [4]")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds in each placement [7]")
    parser.add_argument("--calls", type=int, default=4_000_000, help="calls in each measurement [4000000]")
    parser.add_argument("--start-runs", type=int, default=7, help="scans, starts, readings of symbols [7]")
    parser.add_argument("--truth-runs", type=int, default=200, help="runs of known shares [200]")
    parser.add_argument("--json", metavar="FILE", help="write all values to a file")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are {', '.join(PARTS)}")
    if options.quick:
        options.runs, options.slow_runs, options.placements, options.slow_placements = 3, 1, 3, 1
        options.rounds, options.calls, options.start_runs, options.truth_runs = 3, 500_000, 1, 5
    return options


def main():
    options = parse()
    about = tools.about_this_run()
    print(f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}, {about['hotfn']}, "
          f"load {about['load_at_start']:.2f} at the start")
    if about["load_at_start"] > 0.5:
        print("warning: the machine is not idle; use the minimum and the median, not the quartile")
    report = figures.Report()
    for part in options.parts or PARTS:
        PARTS[part](report, options)
    if options.json:
        report.write(options.json, {"about": about, "options": vars(options)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
