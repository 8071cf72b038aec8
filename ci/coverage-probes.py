#!/usr/bin/env python3
"""Whether a latency canary finds what probes find that know nothing of it. usage: coverage-probes.py TAILBACK [JOBS]

In lab jobs that measure an application beside the canary `lat`, the application is this file: on each of the canaries'
hosts a process that sends single messages to the others over TCP, at random moments of its own, each with the time at
which it left. All hosts of a lab have one clock. Loaded percentiles of both, over all jobs, are to agree within a tenth.
Prints them, and exits 1 when they do not.
"""

import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

PORT = 4790
SECONDS = 1.5
DISTANCE = 0.025
QUANTILES = (0.50, 0.75, 0.90)
WITHIN = 0.10


def quantile(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def lab_hosts(tailback):
    """The name of the lab that is up, and host -> address on the shaped network."""
    rows = subprocess.run([tailback, "lab", "status"], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [row.split() for row in rows]
    name = next(w[1] for w in words if w[:1] == ["lab"]).rstrip(":,")
    return name, {w[0]: w[2] for w in words if len(w) > 3 and w[0].startswith("h") and w[0] != "host"}


def agent(out, start, me, *peers):
    """Sends to the peers until it is over, and writes how long each message took that came."""
    delays = []

    def receive(connection):
        while True:
            stamp = b""
            while len(stamp) < 8:
                part = connection.recv(8 - len(stamp))
                if not part:
                    return
                stamp += part
            delays.append(time.monotonic_ns() - struct.unpack("<q", stamp)[0])

    listener = socket.create_server((me, PORT))
    threads = []

    def accept():
        for _ in peers:
            connection, _ = listener.accept()
            threads.append(threading.Thread(target=receive, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    links = []
    for peer in peers:
        for _ in range(200):
            try:
                links.append(socket.create_connection((peer, PORT), timeout=10))
                break
            except OSError:
                time.sleep(0.02)
        links[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    acceptor.join()
    moment = float(start)
    end = moment + SECONDS
    while True:
        moment += random.expovariate(1 / DISTANCE)
        if moment > end:
            break
        time.sleep(max(0.0, moment - time.monotonic()))
        random.choice(links).sendall(struct.pack("<q", time.monotonic_ns()))
    for link in links:
        link.shutdown(socket.SHUT_WR)
    for thread in threads:
        thread.join(timeout=10)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(delays, file)


def application(tailback, folder):
    """On the first canary's host: an agent on each of their hosts, and a figure that tells this repetition from others."""
    name, addresses = lab_hosts(tailback)
    hosts = [host.split(":")[0] for host in os.environ["TAILBACK_APP_HOSTS"].split(",")]
    start = time.monotonic() + 1.5
    outs, agents = [], []
    for host in hosts:
        outs.append(os.path.join(folder, f"{os.getpid()}-{host}.json"))
        peers = [addresses[peer] for peer in hosts if peer != host]
        words = [sys.executable, os.path.abspath(__file__), "--agent", outs[-1], str(start), addresses[host], *peers]
        agents.append(subprocess.Popen([tailback, "lab", "exec", "--name", name, host, "--", *words]))
    for process in agents:
        if process.wait(timeout=60) != 0:
            sys.exit("coverage-probes: an agent failed")
    delays = sorted(delay for out in outs for delay in json.load(open(out, encoding="utf-8")))
    figure = f"{quantile(delays, 0.75) / 1e3:.3f}"
    os.makedirs(os.path.join(folder, "repetitions"), exist_ok=True)
    with open(os.path.join(folder, "repetitions", f"{figure}.json"), "w", encoding="utf-8") as file:
        json.dump(delays, file)
    print(f"p75 {figure} us")


def percentiles(files, state):
    """Of the canary over all jobs: the mean of the jobs' percentiles."""
    tests = [t for f in files for t in f["runs"][0]["tests"] if t["kernel"] == "lat" and t["phase"] == state]
    times = [t["summary"]["times"] for t in tests]
    kept = [t.get("schedule") or {} for t in tests]
    slots = sum(k.get("iterations", 0) for k in kept)
    late = sum(k.get("late", 0) for k in kept)
    lost = sum(k.get("lost", 0) for k in kept)
    mean = [sum(t[key] for t in times) / len(times) for key in ("p50", "p75", "p90")]
    return mean, slots, late, lost


def main():
    if sys.argv[1:2] == ["--agent"]:
        return agent(*sys.argv[2:])
    if sys.argv[1:2] == ["--application"]:
        return application(*sys.argv[2:])
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.splitlines()[0])
    tailback, jobs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 6
    found, files = {"isolated": [], "loaded": []}, []
    with tempfile.TemporaryDirectory() as folder:
        for job in range(jobs):
            out = os.path.join(folder, f"job-{job}.json")
            own = os.path.join(folder, str(job))
            os.makedirs(own)
            words = [tailback, "app", "--no-control", "--canaries", "lat", "--warm-up", "0", "--launcher", "none"]
            words += ["--app-name", "probes", "--figure", r"p75 ([0-9.]+) us", "--figure-unit", "us", "--quiet", "--out", out]
            words += ["--", sys.executable, os.path.abspath(__file__), "--application", tailback, own]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            files.append(json.load(open(out, encoding="utf-8")))
            for placement in files[-1]["runs"][0]["placements"]:
                for test in placement["tests"]:
                    for block in test["blocks"] if test["kernel"].startswith("app") else []:
                        path = os.path.join(own, "repetitions", f"{block['headline']:.3f}.json")
                        found[test["phase"]] += json.load(open(path, encoding="utf-8"))
    missed = 0
    for state in ("isolated", "loaded"):
        probed = [quantile(sorted(found[state]), part) / 1e3 for part in QUANTILES]
        canary, slots, late, lost = percentiles(files, state)
        off = [c / p - 1 for c, p in zip(canary, probed)]
        missed += sum(abs(of) > WITHIN for of in off) if state == "loaded" else 0
        print(f"{state}: {len(found[state])} probes, {slots} iterations of canaries, {late} late, {lost} lost")
        for part, p, c, of in zip(QUANTILES, probed, canary, off):
            print(f"  p{100 * part:.0f}: probes {p:8.1f} us, canary {c:8.1f} us ({100 * of:+.1f}%)")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
