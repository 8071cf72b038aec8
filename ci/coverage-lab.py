#!/usr/bin/env python3
"""What series of lab jobs say of added times, their intervals and comparisons. usage: coverage-lab.py TAILBACK FOLDER

Reads results: seeds-*.json (each of another seed), one-*.json (all of one), busy-*.json (half of the seeds again, beside a busy
core) and longer-*.json (half of the seeds again, queues 20% longer). Prints a line for each set and
canary, and what `tailback compare` marks with one and with three jobs a side. Exits 1 when a bound is missed.

Fields read: .runs[0].impacts[] | {kernel, added_us: {value, interval: {low, high}}, not_reportable}, and of comparisons
.rows[] | {kernel, primary, cells[].verdict}.
"""

import itertools
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

# Of ln(added time) over jobs.
MOST_SD = {"lat": 0.03, "allreduce": 0.03, "bw-sync": 0.10}
HELD = 0.9
# Of the jobs of a set: on a machine that others disturb more, a series says nothing.
FEWEST_REPORTABLE = 0.6
BUSY_WITHIN = 0.10
JOBS_A_SIDE = 3
PAIRS = 40
MOST_MARKED = 1
TOLD_APART = 0.9


def answers(path):
    """kernel -> (added, low, high, whether it may be reported)."""
    found = {}
    for impact in json.loads(path.read_text())["runs"][0]["impacts"]:
        added = impact["added_us"]
        interval = added.get("interval") or {}
        reportable = not impact.get("not_reportable")
        found[impact["kernel"]] = (added["value"], interval.get("low"), interval.get("high"), reportable)
    return found


def judge(name, paths):
    """Prints a line for each canary of a set, returns what was missed. What a job itself does not report does not count."""
    jobs, missed = [answers(path) for path in paths], []
    for kernel, most in MOST_SD.items():
        all_of = [job[kernel] for job in jobs]
        found = [of for of in all_of if of[3]]
        if len(found) < FEWEST_REPORTABLE * len(all_of):
            missed.append(f"{name}, {kernel}: only {len(found)} of {len(all_of)} jobs may be reported")
        if len(found) < 2:
            continue
        logs = [math.log(added) for added, *_ in found]
        mean, spread = statistics.fmean(added for added, *_ in found), statistics.stdev(logs)
        held = sum(low is not None and low <= mean <= high for _, low, high, _ in found)
        half = statistics.median((high - low) / 2 / mean for _, low, high, _ in found if low is not None)
        print(
            f"{name:<7} {kernel:<10} added {mean:10.0f}   sd(ln) {spread:.3f}   {held:3} of {len(found):3} intervals hold the mean"
            f"   half-width {100 * half:4.1f}%   {len(found)} of {len(all_of)} reportable"
        )
        if spread > most:
            missed.append(f"{name}, {kernel}: sd of ln {spread:.3f}, at most {most}")
        if held < HELD * len(found):
            missed.append(f"{name}, {kernel}: {held} of {len(found)} intervals hold the mean")
    return missed


def beside_a_busy_core(quiet, busy):
    """What jobs beside a busy core say is within bounds, or is not reported."""
    missed = []
    for kernel in MOST_SD:
        usual = statistics.fmean(of[0] for of in (answers(path)[kernel] for path in quiet) if of[3])
        found = [answers(path)[kernel] for path in busy]
        off = [abs(added / usual - 1) for added, _, _, reportable in found if reportable]
        beyond = sum(of > BUSY_WITHIN for of in off)
        said = len(found) - len(off)
        together = statistics.fmean([added for added, _, _, reportable in found if reportable] or [usual]) / usual - 1
        print(
            f"busy    {kernel:<10} {len(found)} jobs beside a busy core: {100 * together:+.1f}% together, {beyond} reportable"
            f" ones off by more than {100 * BUSY_WITHIN:.0f}%, {said} not reportable"
        )
        if abs(together) > BUSY_WITHIN and said < len(found):
            missed.append(f"beside a busy core, {kernel}: {100 * together:+.1f}%")
    return missed


def marks(tailback, one, other):
    """Whether a comparison marks an added time."""
    words = [tailback, "compare", "--json", *map(str, one), "--with", *map(str, other)]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    primary = [row for row in found["rows"] if row["primary"]]
    if not primary:
        sys.exit(f"{words}: no primary figure")
    return any(cell.get("verdict") in ("worse", "better") for row in primary for cell in row["cells"])


def comparisons(tailback, equal, longer):
    draw = random.Random(1)
    single = sum(marks(tailback, [a], [b]) for a, b in itertools.islice(zip(equal, equal[1:] + equal[:1]), PAIRS))
    several = 0
    for _ in range(PAIRS):
        jobs = draw.sample(equal, 2 * JOBS_A_SIDE)
        several += marks(tailback, jobs[:JOBS_A_SIDE], jobs[JOBS_A_SIDE:])
    print(f"equal jobs: {single} of {min(PAIRS, len(equal))} marked with one a side, {several} of {PAIRS} with {JOBS_A_SIDE}")
    tries = 10
    told = sum(marks(tailback, draw.sample(equal, JOBS_A_SIDE), draw.sample(longer, JOBS_A_SIDE)) for _ in range(tries))
    print(f"queues 20% longer: {told} of {tries} told apart with {JOBS_A_SIDE} a side")
    missed = [f"{single} single jobs marked"] if single else []
    missed += [f"{several} of {PAIRS} equal sides marked"] if several > MOST_MARKED else []
    return missed + ([f"{told} of {tries} longer queues told apart"] if told < TOLD_APART * tries else [])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    tailback, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    sets = {name: sorted(folder.glob(f"{name}-*.json")) for name in ("seeds", "one", "busy", "longer")}
    for name, paths in sets.items():
        fewest = JOBS_A_SIDE if name in ("busy", "longer") else 2 * JOBS_A_SIDE
        if len(paths) < fewest:
            sys.exit(f"{folder}: {len(paths)} {name}-*.json, at least {fewest} are needed")
    missed = judge("seeds", sets["seeds"]) + judge("one", sets["one"])
    missed += beside_a_busy_core(sets["seeds"], sets["busy"])
    sound = {name: [path for path in paths if all(of[3] for of in answers(path).values())] for name, paths in sets.items()}
    missed += comparisons(tailback, sound["seeds"], sound["longer"])
    for what in missed:
        print(f"missed: {what}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
