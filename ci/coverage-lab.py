#!/usr/bin/env python3
"""What a series of equal lab runs says of their intervals. usage: coverage-lab.py FOLDER

Reads run-*.json (results) and compare-*.json (`tailback compare --json`) and prints, for each canary with a bound: how
many headline intervals hold the geometric mean of all runs, the sd of ln(headline), the interval's median half-width,
and how many comparisons mark a primary figure. Exits 1 when a bound is missed.

Fields read: .runs[0].impacts[] | {kernel, headline: {factor, interval: {low, high}}}, and of comparisons
.rows[] | {kernel, primary, cells[].verdict}. A comparison without `primary` has none to mark, which is an error here.
"""

import json
import math
import pathlib
import statistics
import sys

# Of 20 runs at least 17 intervals hold the mean; sd of ln; no wider than +-20%; at most 2 of 20 comparisons marked.
HELD = 0.85
MOST_SD = {"lat": 0.10, "allreduce": 0.15}
MOST_HALF_WIDTH = 1.20
MARKED = 0.10


def headlines(folder):
    """kernel -> [(factor, low, high)], low and high None where there is no interval."""
    found = {}
    for path in sorted(folder.glob("run-*.json")):
        for impact in json.loads(path.read_text())["runs"][0]["impacts"]:
            headline = impact.get("headline")
            if headline is None:
                sys.exit(f"{path}: no headline of {impact['kernel']}")
            interval = headline.get("interval") or {}
            found.setdefault(impact["kernel"], []).append(
                (headline["factor"], interval.get("low"), interval.get("high"))
            )
    return found


def judge(kernel, runs):
    """Prints a line, returns what was missed."""
    logs = [math.log(factor) for factor, _, _ in runs]
    mean = statistics.fmean(logs)
    spread = statistics.stdev(logs) if len(logs) > 1 else 0.0
    held = sum(low is not None and low <= math.exp(mean) <= high for _, low, high in runs)
    widths = [math.sqrt(high / low) for _, low, high in runs if low]
    width = statistics.median(widths) if widths else math.inf
    print(
        f"{kernel:<12} {math.exp(mean):9.2f}x   {held:3} of {len(runs):3} hold it   sd(ln) {spread:.3f}"
        f"   half-width {100 * (width - 1):5.1f}%   factors {math.exp(min(logs)):.2f} to {math.exp(max(logs)):.2f}"
    )
    if kernel not in MOST_SD:
        return []
    missed = []
    if held < HELD * len(runs):
        missed.append(f"{kernel}: {held} of {len(runs)} intervals hold the mean")
    if spread > MOST_SD[kernel]:
        missed.append(f"{kernel}: sd of ln {spread:.3f}, at most {MOST_SD[kernel]}")
    if width > MOST_HALF_WIDTH:
        missed.append(f"{kernel}: intervals of +-{100 * (width - 1):.0f}%, at most {100 * (MOST_HALF_WIDTH - 1):.0f}%")
    return missed


def comparisons(folder):
    paths = sorted(folder.glob("compare-*.json"))
    marked = 0
    for path in paths:
        primary = [row for row in json.loads(path.read_text())["rows"] if row.get("primary")]
        if not primary:
            sys.exit(f"{path}: no primary figure")
        verdicts = [cell["verdict"] for row in primary for cell in row["cells"]]
        marked += any(verdict in ("worse", "better") for verdict in verdicts)
    print(f"\n{marked} of {len(paths)} comparisons of equal runs mark a primary figure")
    return [f"{marked} of {len(paths)} equal runs told apart"] if marked > MARKED * len(paths) else []


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    folder = pathlib.Path(sys.argv[1])
    found = headlines(folder)
    if not found:
        sys.exit(f"{folder}: no run-*.json")
    missed = [what for kernel, runs in found.items() for what in judge(kernel, runs)]
    missed += [f"{kernel}: not measured" for kernel in MOST_SD if kernel not in found]
    missed += comparisons(folder)
    for what in missed:
        print(f"missed: {what}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
