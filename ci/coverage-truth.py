#!/usr/bin/env python3
"""Whether a paced canary reads a delay that is known. usage: coverage-truth.py TAILBACK

In a lab of four hosts on one leaf, two hosts flood a third with datagrams at twice the rate of its port, whose queue is
then full: a packet to that host waits queue * 8 / rate. A canary between the fourth host and the flooded one, by a schedule,
is to find just that. A get crosses the queue once, with its question from one side and with its answer from the other.
Prints a line for each queue and rate, and exits 1 when a median is off by more than a tenth.
"""

import json
import os
import subprocess
import sys
import tempfile

LAB = "truth"
WITHIN = 0.10
FLOOD = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[2])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
packet = bytes(1400)
while time.monotonic() < end:
    for _ in range(50):
        try:
            s.sendto(packet, (sys.argv[1], 9))
        except OSError:
            pass
"""


def addresses(tailback):
    """host -> (data, control), from the lab's status."""
    rows = subprocess.run([tailback, "lab", "status"], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [row.split() for row in rows if row.startswith("h")]
    return {name: (data, control) for name, _, data, control in (w[:4] for w in words if w[0] != "host")}


def measure(tailback, rate, queue_kib):
    """The paced canary's median in seconds, and the share of iterations that began late."""
    due = queue_kib * 1024 * 8 / (rate * 1e6)
    pace_ms = max(10, round(3e3 * due))
    seconds = max(4.0, 0.06 * pace_ms)
    inside = [tailback, "lab", "exec", "--name", LAB]
    up = ["lab", "up", "--name", LAB, "--hosts", "4", "--leaves", "1", "--link-rate", f"{rate}mbit", "--queue", f"{queue_kib}KiB"]
    subprocess.run([tailback, *up], check=True, stdout=subprocess.DEVNULL)
    started = []
    try:
        hosts = addresses(tailback)
        for source in ("h2", "h3"):
            words = [*inside, source, "--", sys.executable, "-c", FLOOD, hosts["h1"][0], str(seconds + 30)]
            started.append(subprocess.Popen(words))
        secret = subprocess.run([tailback, "secret"], check=True, capture_output=True, text=True).stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "result.json")
            ranks = []
            for rank in range(2):
                env = dict(
                    os.environ,
                    TAILBACK_RANK=str(rank),
                    TAILBACK_SIZE="2",
                    TAILBACK_ROOT=f"{hosts['h0'][1]}:4777",
                    TAILBACK_SECRET=secret,
                    TAILBACK_HOST=f"h{rank}",
                    TAILBACK_WAIT="block",
                    TAILBACK_DATA_IF="d0",
                    TAILBACK_BOOTSTRAP_IF="c0",
                )
                words = [tailback, "network", "--canaries", "get-lat", "--pace", f"{pace_ms}ms", "--budget", f"{seconds:.1f}s"]
                words += ["--quiet"] + (["--out", out] if rank == 0 else [])
                ranks.append(subprocess.Popen([*inside, f"h{rank}", "--", *words], env=env, stdout=subprocess.DEVNULL))
            started += ranks
            for rank in ranks:
                if rank.wait(timeout=seconds + 60) != 0:
                    sys.exit("coverage-truth: a rank failed")
            with open(out, encoding="utf-8") as file:
                test = json.load(file)["runs"][0]["tests"][0]
    finally:
        for process in started:
            process.kill()
            process.wait()
        subprocess.run([tailback, "lab", "down", "--name", LAB], check=True, stdout=subprocess.DEVNULL)
    return due, 1e-6 * test["summary"]["times"]["p50"], test["schedule"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    missed = 0
    for rate in (100, 200):
        for queue in (32, 128, 512):
            due, median, kept = measure(os.path.abspath(sys.argv[1]), rate, queue)
            off = median / due - 1
            missed += abs(off) > WITHIN
            late = 100 * kept["late"] / max(1, kept["iterations"])
            print(
                f"{queue:4} KiB at {rate} Mbit/s: {1e3 * due:6.2f} ms by queue and rate, {1e3 * median:6.2f} ms by the"
                f" canary's median ({100 * off:+.1f}%), {kept['iterations']} iterations, {late:.1f}% late",
                flush=True,
            )
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
