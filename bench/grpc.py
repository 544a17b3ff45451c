#!/usr/bin/env python3
"""examples/grpc and a client of @grpc/grpc-js, and the CPU time of a unary call beside the server of @grpc/grpc-js.

    python3 bench/grpc.py BIN NODE [--rounds N] [--seconds N] [--rate N]

BIN is the directory of built programs, NODE that of bench/grpc/node with its packages. First judge.js calls methods
of all kinds; each line that begins with "holds:" is a case. Then h2load offers both servers the same calls (one
connection, 10 at a time, paced), in rounds that alternate, because the machine has other things to do. The figure
is the CPU time of the process for a call, by /proc.

stdout: lines `name value unit`, medians of the rounds. stderr: the cases. Exits 1 if a case fails, or a call.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from ports import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROTO = os.path.join(ROOT, "examples/grpc/notes.proto")
WARMING = 3000  # calls; node compiles what runs often
BODY = b"\0\0\0\0\x07\n\x05hello"


def start_domus(programs):
    port = free_port()
    child = subprocess.Popen([os.path.join(programs, "grpc"), "--config",
                              os.path.join(ROOT, "examples/grpc/grpc.yaml"), "--set",
                              f"listeners.grpc.address=127.0.0.1:{port}", "--set", "system.threads=1"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    child.stdout.readline()
    return child, port


def start_node(packages):
    child = subprocess.Popen(["node", "server.js", PROTO], cwd=packages, stdout=subprocess.PIPE, text=True)
    return child, int(child.stdout.readline())


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(port, body, calls, rate):
    """Offer so many calls; a rate of 0 is as fast as they go. Exits if one fails."""
    paced = ["--rps", str(rate)] if rate != 0 else []
    done = subprocess.run(["h2load", "-n", str(calls), "-c", "1", "-m", "10", *paced, "-d", body,
                           "-H", "content-type: application/grpc", "-H", "te: trailers",
                           f"http://127.0.0.1:{port}/notes.Notes/Say"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not re.search(rf"status codes: {calls} 2xx", done.stdout):
        sys.exit("grpc: calls have failed\n" + done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("packages")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rate", type=int, default=2000)
    options = parser.parse_args()
    domus, port = start_domus(options.programs)
    node, node_port = start_node(options.packages)
    try:
        judged = subprocess.run(["node", "judge.js", str(port), PROTO], cwd=options.packages, stdout=sys.stderr,
                                check=False)
        if judged.returncode != 0:
            sys.exit("grpc: a case has failed")
        with tempfile.NamedTemporaryFile() as body:
            body.write(BODY)
            body.flush()
            servers = {"domus": (domus.pid, port), "node": (node.pid, node_port)}
            for _, at in servers.values():
                load(at, body.name, WARMING, 0)
            costs = {name: [] for name in servers}
            for _ in range(options.rounds):
                for name, (pid, at) in servers.items():
                    calls = options.rate * options.seconds
                    before = cpu_seconds(pid)
                    load(at, body.name, calls, options.rate)
                    time.sleep(0.1)
                    costs[name].append((cpu_seconds(pid) - before) / calls * 1e6)
    finally:
        for child in (domus, node):
            child.terminate()
            child.wait()
    for name, values in costs.items():
        print(f"grpc.unary.cpu.{name} {statistics.median(values):.1f} us")
    print(f"grpc.unary.ratio {statistics.median(n / d for n, d in zip(costs['node'], costs['domus'])):.1f} x")


main()
