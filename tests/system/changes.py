"""Live keys change over the observation port while echo, kv and a site over TLS are under load: no
connection is lost, and no message is lost, doubled or in disorder.

changes.py WEB DIRECTORY CHANGES: WEB is the program of examples/web, DIRECTORY is empty, and CHANGES
is how many keys are put."""
import http.client
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

WEB, DIRECTORY, CHANGES = sys.argv[1], sys.argv[2], int(sys.argv[3])
LIMIT_S = 80

# Values that a service under this load can bear: no time-out is shorter than a pause of the load, and
# no bound is below what it uses.
KEYS = {
    "scheduler.ioRatio": ["1", "10", "50", "90", "100", "auto"],
    "scheduler.minBudget": ["1us", "50us", "500us"],
    "scheduler.minBudgetBusy": ["1us", "50us", "200us"],
    "scheduler.maxBudget": ["1ms", "10ms", "50ms"],
    "scheduler.waitMax": ["1ms", "4ms", "1s"],
    "scheduler.stageTime": ["10us", "1ms", "5ms"],
    "scheduler.deadlineCheckEvery": ["1", "16", "1000"],
    "scheduler.maxMessagesPerRun": ["1", "7", "64", "1000"],
    "scheduler.normalEvery": ["2", "4", "9"],
    "scheduler.channelsRunsPerIteration": ["1", "16", "1024"],
    "scheduler.mailboxMax": ["2000", "32768", "65535"],
    "scheduler.steal.enabled": ["true", "false"],
    "scheduler.steal.floor": ["1", "32", "1000"],
    "scheduler.steal.aggression": ["1", "128"],
    "scheduler.steal.minRun": ["0", "2us"],
    "scheduler.steal.patience": ["1", "100", "32768"],
    "scheduler.idle.spin": ["0", "20us", "auto"],
    "scheduler.idle.standIn": ["0", "100us"],
    "scheduler.idle.doze": ["10us", "2ms"],
    "io.completionsPerPoll": ["1", "16", "256"],
    "io.emptyWakeupsMax": ["1", "512"],
    "channel.sendHigh": ["64KiB", "256KiB"],
    "channel.sendLow": ["0", "64KiB"],
    "channel.idleTimeout": ["60s", "5m", "0"],
    "channel.sendTimeout": ["30s", "0"],
    "channel.requestsMax": ["1", "16", "128", "0"],
    "channel.minRateGrace": ["10s", "20s"],
    "channel.headTimeout": ["10s", "0"],
    "channel.maxConnections": ["100", "10000"],
    "listeners.kv.channel.requestsMax": ["1", "64"],
    "listeners.echo.channel.idleTimeout": ["60s", "2m"],
    "memory.high": ["70%", "80%"],
    "memory.interval": ["1ms", "100ms", "1s"],
    "memory.resetAfter": ["5s", "50s"],
    "stall.threshold": ["0", "25ms", "10s"],
    "log.level": ["warning", "info"],
    "log.addresses": ["true", "false"],
    "profile.level": ["off", "counters", "histograms", "spans"],
    "profile.zeros": ["true", "false"],
}

CONFIG = """
system: {{threads: 2, cpus: none}}
listeners:
- {{name: web, address: 127.0.0.1:0, tls: {{certFile: {0}/cert.pem, keyFile: {0}/key.pem, alpn: http/1.1}}}}
- {{name: kv, address: 127.0.0.1:0}}
- {{name: echo, address: 127.0.0.1:0}}
observe: {{listen: '127.0.0.1:0', change: true}}
web: {{root: {0}}}
"""

is_over = threading.Event()
faults, counts = [], {"echo": 0, "kv": 0, "tls": 0}


def load(work):
    """Run a load in a thread of its own until all is over."""
    def run():
        try:
            work()
        except Exception as error:
            faults.append(f"{work.__name__}: {error!r}")
            is_over.set()
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def read_all(connection, size):
    got = b""
    while len(got) < size:
        piece = connection.recv(size - len(got))
        assert piece, f"the connection has ended after {len(got)} bytes"
        got += piece
    return got


def echo(port):
    def echo_work():
        with socket.create_connection(("127.0.0.1", port), 30) as connection:
            number = 0
            while not is_over.is_set():
                number += 1
                text = f"{number:07}\n".encode() * random.choice((1, 10, 500))
                connection.sendall(text)
                assert read_all(connection, len(text)) == text, number
                counts["echo"] += 1
    return echo_work


def kv(port, key):
    """INCR, eight at a time: each answer is one more than the last."""
    def kv_work():
        with socket.create_connection(("127.0.0.1", port), 30) as connection:
            number = 0
            while not is_over.is_set():
                connection.sendall(f"INCR {key}\r\n".encode() * 8)
                wanted = b"".join(b":%d\r\n" % (number + i) for i in range(1, 9))
                got = read_all(connection, len(wanted))
                assert got == wanted, (got, wanted)
                number += 8
                counts["kv"] += 8
    return kv_work


def site(port):
    def tls_work():
        trust = ssl.create_default_context(cafile=f"{DIRECTORY}/cert.pem")
        connection = http.client.HTTPSConnection("localhost", port, timeout=30, context=trust)
        connection.connect()
        held = connection.sock
        while not is_over.is_set():
            connection.request("GET", "/static/page.txt")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read() == PAGE, answer.status
            assert connection.sock is held, "the connection was closed"
            counts["tls"] += 1
        connection.close()
    return tls_work


def put(port, key, value):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", f"/config/{key}", value)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


PAGE = b"A page.\n" * 1000


def begin():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{DIRECTORY}/key.pem",
                    "-out", f"{DIRECTORY}/cert.pem"], check=True, capture_output=True)
    with open(f"{DIRECTORY}/a.yaml", "w") as file:
        file.write(CONFIG.format(DIRECTORY))
    with open(f"{DIRECTORY}/page.txt", "wb") as file:
        file.write(PAGE)
    with open(f"{DIRECTORY}/index.html", "w") as file:
        file.write("<p>")
    errors = open(f"{DIRECTORY}/errors", "wb")
    service = subprocess.Popen([WEB, "--config", f"{DIRECTORY}/a.yaml"], stdout=subprocess.PIPE, stderr=errors)
    ports = {}
    while len(ports) < 4:
        line = service.stdout.readline().decode()
        assert line, open(f"{DIRECTORY}/errors").read()
        name, port = re.fullmatch(r"listening (\w+) .*:(\d+)\n", line).groups()
        ports[name] = int(port)
    return service, ports


def change(ports):
    """Put values by chance. Two of them may contradict each other, which is refused."""
    chance = random.Random(34)
    done = refused = 0
    until = time.monotonic() + LIMIT_S
    while done + refused < CHANGES and not is_over.is_set():
        key = chance.choice(list(KEYS))
        value = chance.choice(KEYS[key])
        status, text = put(ports["observe"], key, value)
        assert status == 200 or (status == 400 and "must" in text), (key, value, status, text)
        done += status == 200
        refused += status != 200
        assert time.monotonic() < until, f"{done} changes in {LIMIT_S} s"
    return done, refused


def main():
    random.seed(1)
    service, ports = begin()
    works = [echo(ports["echo"]), echo(ports["echo"]), kv(ports["kv"], "a"), kv(ports["kv"], "b"), site(ports["web"])]
    threads = [load(work) for work in works]
    try:
        while min(counts.values()) == 0 and not is_over.is_set():
            time.sleep(0.01)
        assert put(ports["observe"], "scheduler.beltSlots", "64")[0] == 409
        assert put(ports["observe"], "scheduler.ioRatio", "101")[0] == 400
        assert put(ports["observe"], "no.such", "1")[0] == 404
        done, refused = change(ports)
        before = dict(counts)
        while any(counts[name] == before[name] for name in counts) and not is_over.is_set():
            time.sleep(0.01)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
        service.terminate()
        status = service.wait(60)
    errors = open(f"{DIRECTORY}/errors").read()
    assert not faults, (faults, errors[-2000:])
    assert status == 0, (status, errors[-4000:])
    assert done > CHANGES / 2, (done, refused)
    print(f"{done} changes, {refused} refused; {counts}")


main()
