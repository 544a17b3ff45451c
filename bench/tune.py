#!/usr/bin/env python3
"""Does `domus tune` find what a full sweep finds, in a tenth of its runs?

    python3 bench/tune.py BIN [--rounds N] [--seconds N] [LOAD ...]

BIN is the directory of built programs; the loads are those of bench_sweep. For each load all
combinations of the values below run in rounds, each round in an order by chance, and a combination's
gain is the median of its ratios to the defaults in the same round. Then `domus tune` may search with
a tenth of these runs. As the best of many is the best by luck, too, the best of the sweep, what
tune has chosen, and the defaults run in fresh rounds, whose gains are the ones to compare.
Prints a row of a table in Markdown for each load.
"""
import argparse
import itertools
import os
import random
import re
import statistics
import subprocess
import sys
import time

KEYS = {"scheduler.ioRatio": ["50", "auto", "10", "30", "70", "90"],
        "scheduler.minBudget": ["50us", "500us", "5ms"],
        "scheduler.maxMessagesPerRun": ["64", "16", "256"]}  # the first one is the default
GOALS = {"echo": "cpu", "web": "cpu", "kv_near": "cpu", "kv_spread": "cpu", "mixed": "p90", "bursts": "p90",
         "hot": "rate", "small": "rate", "pool": "p90", "tls": "cpu"}
PORT = 20100


def settings(point):
    return [f"{key}={value}" for key, value in zip(KEYS, point)]


def wait_until_it_listens(service):
    for line in service.stdout:
        if line.startswith("listening"):
            return
    raise RuntimeError("the service has not begun to listen")


def run(sweep, load, point, seconds):
    """Returns what the load is judged by; more is better."""
    options = [word for setting in settings(point) for word in ("--set", setting)]
    with subprocess.Popen([sweep, "serve", load, str(PORT), *options], stdout=subprocess.PIPE, text=True) as service:
        try:
            wait_until_it_listens(service)
            told = subprocess.run([sweep, "load", load, str(PORT), "--seconds", str(seconds), "--watch",
                                   str(service.pid)], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        finally:
            service.terminate()
    figures = {line.split()[0]: float(line.split()[1]) for line in told.stdout.splitlines()}
    return figures["rate"] if GOALS[load] == "rate" else 1 / figures[GOALS[load]]


def gains(sweep, load, points, rounds, seconds):
    """Returns for each point the median of its ratios to the first one."""
    ratios = {point: [] for point in points}
    for number in range(rounds):
        order = list(points)
        random.shuffle(order)
        figures = {point: run(sweep, load, point, seconds) for point in order}
        for point in points:
            ratios[point].append(figures[point] / figures[points[0]])
        print(f"{load}: round {number + 1} of {rounds}", file=sys.stderr)
    return {point: statistics.median(ratios[point]) for point in points}


def tune(binaries, load, runs, seconds):
    """Returns what tune prints."""
    sweep = os.path.join(binaries, "bench_sweep")
    command = [os.path.join(binaries, "domus"), "tune", "--service", f"{sweep} serve {load} {PORT}", "--load",
               f"{sweep} load {load} {PORT} --seconds {seconds}", "--goal", GOALS[load], "--runs", str(runs)]
    for key, values in KEYS.items():
        command += ["--values", f"{key}={','.join(values[1:])}"]
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=1800,
                          check=False)
    return told.stdout


def chosen(text):
    """The values of the YAML that tune prints, in the order of KEYS."""
    found = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in text.splitlines()
             if ":" in line and not line.startswith("#")}
    return tuple(found.get(key.split(".")[-1], values[0]) for key, values in KEYS.items())


def examine(binaries, load, rounds, seconds):
    sweep = os.path.join(binaries, "bench_sweep")
    points = list(itertools.product(*KEYS.values()))
    started = time.monotonic()
    swept = gains(sweep, load, points, rounds, seconds)
    took = time.monotonic() - started
    top = max(swept, key=swept.get)
    started = time.monotonic()
    text = tune(binaries, load, len(points) * rounds // 10 - 1, seconds)
    tuned, took_tune = chosen(text), time.monotonic() - started
    # At its end: the choices once more, which nobody has chosen by these figures.
    fresh = gains(sweep, load, list(dict.fromkeys([points[0], tuned, top])), 2 * rounds, seconds)
    runs = re.search(r"^# (\d+) runs", text, re.M)
    if runs is None:
        sys.exit(f"{load}: tune has found nothing:\n{text}")
    says = next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")
    print(f"| `{load}` | {', '.join(settings(top))} | {swept[top]:.3f}, {fresh[top]:.3f} | "
          f"{', '.join(settings(tuned)) if tuned != points[0] else 'as it is'} | {fresh[tuned]:.3f} | "
          f"{fresh[tuned] / fresh[top]:.3f} | {runs[1]} of {len(points) * rounds} | "
          f"{took_tune:.0f} of {took:.0f} s | {says} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("loads", nargs="*")
    arguments = parser.parse_intermixed_args()
    print("| load | best of the sweep | its gain, and once more | tune | its gain | ratio | runs | time | says |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for load in arguments.loads or GOALS:
        seconds = arguments.seconds or (0.8 if GOALS[load] == "p90" else 0.3)
        examine(arguments.binaries, load, arguments.rounds, seconds)


if __name__ == "__main__":
    main()
