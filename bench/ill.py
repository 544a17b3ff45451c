#!/usr/bin/env python3
"""Ill services under load: does the doctor name the cause, and does its advice help?

    python3 bench/ill.py BIN [--seconds N] [CASE ...]

Each case is a service that is ill in one way, a load, and the figure by which its users feel it. The
service runs under its load while the doctor looks at it once for 10 s; then it runs again with the
lines of YAML that the doctor named, or, where those are words, with `cure`, which does what they say,
and the doctor looks once more. BIN is the directory of built programs. Prints a row of a table in Markdown
for each case, and exits 1 if a cause is not named, is still named behind the cure, or the figure is no
better then, or if something is said of a healthy service. The rates behind a cure are those of the load.

The services of bench/ill are by somebody who had not seen the rules of the doctor.
"""
import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from ports import free_port

LOOK = 10  # seconds of the doctor
SETTLING = 1.5


class Case:
    """A service, its illness, and what helps: `rules` are those that name the cause, one of which is
    enough; `figure` is what users feel (wait: of messages to workers, which a load on the same CPUs cannot
    see by itself); `cure` are settings, where the advice is words."""

    def __init__(self, name, rules, program, listener, options, load, figure, cure=None, beside=None):
        self.name, self.rules, self.program, self.listener = name, rules, program, listener
        self.options, self.load, self.figure, self.cure, self.beside = options, load, figure, cure, beside


def loads(**settings):
    return [f"loads.{name}={value}" for name, value in settings.items()]


ONE = "system.threads=1"  # the load has the second CPU
HOGS = 2
CASES = [
    Case("a share of 1 % for io", ["state-starves-io"], "loads_domus", "load",
         [ONE, "scheduler.ioRatio=1", *loads(steps=10000, every=1000, background=140)], "mixed", "p99"),
    Case("a share of 95 % for io", ["io-starves-state"], "loads_domus", "load",
         [ONE, "scheduler.ioRatio=95", *loads(steps=10000, every=1000, background=48)], "small", "wait"),
    Case("64 messages of 50 us in a run", ["long-runs"], "ill", "echo", [ONE, "ill.kind=2"], "talk", "p99"),
    Case("a report of 30 ms in a handler", ["stalls"], "ill", "echo", [ONE, "ill.kind=1"], "talk", "p99",
         ["ill.mended=true"]),
    Case("one ledger for all", ["hot-actor"], "ill", "echo", ["ill.kind=3"], "talk", "p99", ["ill.mended=true"]),
    Case("a family on one thread", ["all-near"], "ill", "echo", ["ill.kind=4"], "talk", "wait", ["ill.mended=true"]),
    Case("one runner for more than a CPU of work", ["pool-full"], "loads_domus", "load",
         [ONE, *loads(actors=16, steps=1000000, every=1, inPool="true")], "talk", "rate", ["pools.work.runners=2"]),
    Case("places for 40 of 64 clients", ["connections-full"], "ill", "echo", [ONE, "channel.maxConnections=40"],
         "talk", "served"),
    Case("two other programs on its CPU", ["cpu-denied"], "ill", "echo", [ONE], "talk", "p99", [], "the two others have ended"),
    Case("eight threads on two CPUs", ["threads-over-cpus"], "loads_domus", "load",
         ["system.threads=8", *loads(actors=10000, steps=200, every=1)], "small", "p99"),
    Case("payments: one at a time", ["mail-waits"], "ill_payments", "desk", [], "payments", "rate",
         ["desk.fixed=true"]),
    Case("search: small packets are held back", ["small-writes"], "ill_search", "search",
         ["channel.socket.noDelay=false"], "search", "p99"),
    Case("sessions: each request sweeps the table", ["hot-actor"], "ill_sessions", "sessions", [], "sessions", "rate",
         ["sessions.fixed=true"]),
    Case("events: 1 MiB for messages", ["messages-full"], "ill_events", "events", ["memory.threadMax=1MiB"], "events",
         "rate"),
    Case("prices: a lock that is held for long", ["handler-waits"], "ill_prices", "prices", [], "prices", "rate",
         ["prices.fixed=true"]),
]
WELL = [
    Case("echo beside work", [], "ill", "echo", [ONE], "echo", "p99"),
    Case("web", [], "web_domus", "web", [ONE], "web", "p99"),
    Case("store, 16 commands at a time", [], "kv", "kv", [ONE, "kv.shards=1"], "kv_near", "p99"),
    Case("ten thousand actors, all that they can do", [], "loads_domus", "load",
         [ONE, *loads(actors=10000, steps=200, every=1)], "small", "rate"),
    Case("bursts of work beside io", [], "loads_domus", "load",
         [ONE, *loads(steps=10000, every=1000, background=48)], "mixed", "p99"),
]
CLIENTS = 64
TALK_RATE = 900  # packets a second of all clients


def configuration(case, port, seen):
    text = f"listeners: [{{name: {case.listener}, address: '127.0.0.1:{port}'}}]\n"
    text += f"observe: {{listen: '127.0.0.1:{seen}'}}\nprofile: {{atExit: false}}\n"
    if any("pools." in option or "inPool" in option for option in case.options):
        text += "pools: [{name: work, runners: 1}]\n"
    return text


@contextlib.contextmanager
def service(binaries, case, options):
    """Starts the service; yields its port, and the port at which it is observed."""
    port, seen = free_port(), free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(configuration(case, port, seen))
        file.flush()
        command = [os.path.join(binaries, case.program), "--config", file.name]
        if not any(option.startswith("system.threads=") for option in options):
            options = ["system.threads=2", *options]
        for option in options:
            command += ["--set", option]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            for line in process.stdout:
                if line.startswith("listening observe"):
                    break
            yield port, seen
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


@contextlib.contextmanager
def hogs(count):
    """Others that have the CPU of the service's first thread."""
    first = min(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {first})) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


# --- loads -------------------------------------------------------------------------------------------


def print_figures(rate, waits):
    p99 = sorted(waits)[len(waits) * 99 // 100] if waits else 0
    print(f"rate {rate:.1f} /s\np99 {p99 * 1e6:.1f} us")


class Clients:
    """CLIENTS clients, which send packets of 64 bytes in turn, whatever has come back, and connect again
    when they are refused. Figures: `rate` of answers, `p99` from when a packet was due until it was
    answered, and `served`, the share of clients that got an answer in the last second."""

    PACKET = 64

    def __init__(self, port, seconds):
        self.port, self.until = port, time.monotonic() + seconds
        self.due = [[] for _ in range(CLIENTS)]  # when the packets of a client were due that are not answered
        self.bytes = [0] * CLIENTS
        self.answered = [0.0] * CLIENTS
        self.sockets = [None] * CLIENTS
        self.waits, self.answers = [], 0
        self.selector = selectors.DefaultSelector()

    def connect(self, number):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", self.port))
        self.waits += [time.monotonic() - due for due in self.due[number]]  # they were never answered
        self.sockets[number], self.due[number], self.bytes[number] = client, [], 0
        self.selector.register(client, selectors.EVENT_READ, number)

    def read(self, number):
        try:
            got = self.sockets[number].recv(65536)
        except OSError:
            got = b""
        if not got:
            self.selector.unregister(self.sockets[number])
            self.sockets[number].close()
            self.connect(number)
            return
        self.answered[number] = time.monotonic()
        self.bytes[number] += len(got)
        while self.bytes[number] >= self.PACKET:
            self.bytes[number] -= self.PACKET
            self.waits.append(self.answered[number] - self.due[number].pop(0))
            self.answers += 1

    def send(self, packet, due):
        number = packet % CLIENTS
        with contextlib.suppress(OSError):
            self.sockets[number].send(packet.to_bytes(8, "little") + bytes(self.PACKET - 8))
            self.due[number].append(due)

    def run(self):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        for number in range(CLIENTS):
            self.connect(number)
        began, packet = time.monotonic(), 0
        while (now := time.monotonic()) < self.until:
            while (due := began + packet / TALK_RATE) <= now:
                self.send(packet, due)
                packet += 1
            for key, _ in self.selector.select(max(0, due - time.monotonic())):
                self.read(key.data)
        self.waits += [now - due for dues in self.due for due in dues]  # they are late, too
        served = 100.0 * sum(at > now - 1 for at in self.answered) / CLIENTS
        print_figures(self.answers / (now - began), self.waits)
        print(f"served {served:.1f} %")


class Asks:
    """Clients that ask again when they have their answers: lines of text, of which those that begin with
    `answer` are good ones, and those that begin with `before` none yet. `lines` are sent at once, and the
    next ones `pause` seconds behind the answers."""

    def __init__(self, clients, make, answer, before=b"\n", lines=1, pause=0.0):
        self.clients, self.make, self.answer, self.before = clients, make, answer, before
        self.lines, self.pause = lines, pause

    async def talk(self, port, until, waits):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (begin := time.monotonic()) < until:
            writer.write(b"".join(self.make() for _ in range(self.lines)))
            left = self.lines
            while left > 0:
                line = await asyncio.wait_for(reader.readline(), 30)
                if not line:
                    return
                left -= not line.startswith(self.before)
                if line.startswith(self.answer):
                    waits.append(time.monotonic() - begin)
            await asyncio.sleep(self.pause)
        writer.close()

    async def run(self, port, seconds):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        began, waits = time.monotonic(), []
        await asyncio.gather(*(self.talk(port, began + seconds, waits) for _ in range(self.clients)))
        print_figures(len(waits) / (time.monotonic() - began), waits)


ASKS = {
    "payments": Asks(64, lambda: b"pay %d 5\n" % random.randrange(1024), b"balance"),
    "search": Asks(24, lambda: b"find word%d\n" % random.randrange(100000), b"hits", b"found", pause=0.005),
    "sessions": Asks(40, lambda: b"get %d\n" % random.randrange(1, 250000), b"value", pause=0.002),
    "events": Asks(50, lambda: b"host=web level=info " + b"x" * 800 + b"\n", b"ok", lines=20, pause=0.16),
    "prices": Asks(40, lambda: b"price %d\n" % random.randrange(4096), b"cents", pause=0.002),
}


def figures_of(text):
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) in (2, 3):
            with contextlib.suppress(ValueError):
                found[words[0]] = (float(words[1]), words[2] if len(words) == 3 else "")
    return found


class Load:
    """A load that runs beside; result() waits for its figures."""

    def __init__(self, binaries, case, port, seconds):
        if case.load == "talk" or case.load in ASKS:
            command = [sys.executable, __file__, "--load", case.load, str(port), str(seconds)]
        else:
            command = [os.path.join(binaries, "bench_sweep"), "load", case.load, str(port), "--seconds", str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def result(self):
        text, _ = self.process.communicate(timeout=120)
        return figures_of(text)


def mean_wait(seen):
    """Returns for how long messages have waited in mailboxes of workers, in us, on average."""
    with urllib.request.urlopen(f"http://127.0.0.1:{seen}/profile", timeout=10) as answer:
        workers = [one for one in json.load(answer)["behaviours"] if one["name"] == "worker"]
    return sum(one["wait_ns"] for one in workers) / max(1, sum(one["waits"] for one in workers)) / 1000


def run(binaries, case, options, seconds, is_cured=False):
    """Returns the figures of the load, and the findings of the doctor."""
    beside = hogs(HOGS) if case.beside and not is_cured else contextlib.nullcontext()
    with beside, service(binaries, case, options) as (port, seen):
        load = Load(binaries, case, port, seconds)
        try:
            time.sleep(SETTLING)
            doctor = [os.path.join(binaries, "domus"), "doctor", "-s", f"127.0.0.1:{seen}", "-n", f"{LOOK}s", "--json"]
            told = subprocess.run(doctor, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            findings = json.loads(told.stdout)["findings"]
            figures = load.result()
        finally:
            load.process.kill()
            load.process.wait()
        if case.figure == "wait":
            figures["wait"] = (mean_wait(seen), "us")
        return figures, findings


# --- the table ---------------------------------------------------------------------------------------


def settings_of(change):
    """`scheduler: {ioRatio: 50}` is scheduler.ioRatio=50."""
    settings = []
    for line in change:
        match = re.fullmatch(r"([A-Za-z.]+): \{(.*)\}", line.strip())
        if match and match[1] not in ("pools", "listeners"):
            path, inner = match[1], match[2]
            while nested := re.fullmatch(r"([A-Za-z]+): \{(.*)\}", inner):
                path, inner = path + "." + nested[1], nested[2]
            settings += [path + "." + part.strip().replace(": ", "=") for part in inner.split(",")]
    return settings


def told(figure):
    return f"{figure[0]:,.4g} {figure[1]}" if figure[0] < 1000 else f"{figure[0]:,.0f} {figure[1]}"


def names_of(findings):
    return ", ".join(f"`{finding['rule']}`" for finding in findings) or "nothing"


def print_sentences(findings):
    for finding in findings:
        print("   ", finding["rule"], finding["sentence"], finding["change"], file=sys.stderr)


def is_better(case, before, after):
    more = case.figure in ("rate", "served")
    return after > before if more else after < before


def examine_well(binaries, case, seconds):
    before, findings = run(binaries, case, case.options, seconds)
    print(f"| {case.name} | {names_of(findings)} | | {case.figure} {told(before[case.figure])} | | |", flush=True)
    print_sentences(findings)
    return not findings


def examine_ill(binaries, case, seconds):
    before, findings = run(binaries, case, case.options, seconds)
    mine = [finding for finding in findings if finding["rule"] in case.rules]
    if not mine:
        print(f"| {case.name} | {names_of(findings)} | | {case.figure} {told(before[case.figure])} | | |", flush=True)
        print_sentences(findings)
        return False
    advice = case.cure if case.cure is not None else settings_of(mine[0]["change"])
    changed = {one.split("=")[0] for one in advice}
    cured = [one for one in case.options if one.split("=")[0] not in changed] + advice
    after, rest = run(binaries, case, cured, seconds, is_cured=True)
    print(f"| {case.name} | {names_of(findings)} | {', '.join(f'`{one}`' for one in advice) or case.beside} | "
          f"{case.figure} {told(before[case.figure])} | {told(after[case.figure])} | {names_of(rest)} |", flush=True)
    print_sentences(rest)
    return (is_better(case, before[case.figure][0], after[case.figure][0]) and
            not any(finding["rule"] == mine[0]["rule"] for finding in rest))


def main():
    if sys.argv[1:2] == ["--load"]:
        name, port, seconds = sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
        if name in ASKS:
            asyncio.run(ASKS[name].run(port, seconds))
        else:
            Clients(port, seconds).run()
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("--seconds", type=float, default=LOOK + 3)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_intermixed_args()
    missed = []
    print("| service | the doctor names | changed | before | after | named then |\n|---|---|---|---|---|---|")
    for case in CASES + WELL:
        if arguments.cases and not any(word in case.name for word in arguments.cases):
            continue
        examine = examine_ill if case.rules else examine_well
        if not examine(arguments.binaries, case, arguments.seconds):
            missed.append(case.name)
    for name in missed:
        print("missed:", name, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
