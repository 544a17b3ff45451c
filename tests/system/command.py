"""Judge of the program `domus`: command.py PART PROGRAM REGISTRY [PID PORT]

REGISTRY is a directory in which no programs are registered but those of the test, which has PID and the
observation PORT. A part that fails prints why, and the status is 1. The screen is looked at by pyte, a
terminal in memory.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

PART, PROGRAM, REGISTRY = sys.argv[1:4]
ENVIRONMENT = dict(os.environ, DOMUS_REGISTRY=REGISTRY, LC_ALL="C.UTF-8")


def run(*words, status=0, **more):
    """Run a command. Returns its stdout and stderr, after its status was held."""
    done = subprocess.run([PROGRAM, *words], env=ENVIRONMENT, capture_output=True, timeout=20, **more)
    out, err = done.stdout.decode("latin-1"), done.stderr.decode("latin-1")
    assert done.returncode == status, (words, done.returncode, out, err)
    if status != 0 and words:
        assert err.startswith("domus: ") and err.count("\n") == 1, (words, err)
    return out, err


def start_of(pid):
    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def register(pid, endpoint, name="fake", start=None):
    text = f"domus-observe 1\npid {pid}\nstart {start_of(pid) if start is None else start}\n"
    with open(os.path.join(REGISTRY, str(pid)), "w", encoding="latin-1") as file:
        file.write(text + f"program {name}\nendpoint {endpoint}\n")


# ---- a real program ------------------------------------------------------------------------------


def real(pid, port):
    """The test's program is found, and each command that needs nothing newer works with it."""
    endpoint = f"127.0.0.1:{port}"
    out, _ = run("list")
    assert re.fullmatch(rf"\s+PID PROGRAM\s+ENDPOINT\n\s+{pid} web\s+{endpoint}\n", out), out
    path = os.path.join(REGISTRY, str(pid))
    assert os.stat(path).st_mode & 0o7777 == 0o600 and os.stat(REGISTRY).st_mode & 0o7777 == 0o700

    for words in ([], ["-p", str(pid)], ["-p", "web"], ["-s", endpoint]):
        out, _ = run("stat", *words)
        rows = [line.split() for line in out.splitlines()]
        assert [row[0] for row in rows] == ["thread", "0", "1", "all"], out
        for row in rows[1:]:
            assert abs(sum(map(float, row[1:8])) - 100) < 0.5, row
    out, _ = run("stat", "--json", "50ms", "2")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 2 and all(0.04 < line["seconds"] < 5 for line in lines), out
    for line in lines:
        assert [thread["thread"] for thread in line["threads"]] == [0, 1]
        for thread in line["threads"]:
            assert abs(sum(thread["shares"].values()) - 1) < 0.001, thread

    out, _ = run("actors", "-b", "shard")
    assert out.splitlines()[0].split()[:3] == ["ACTOR", "BEHAVIOUR", "STATE"], out
    assert all(line.split()[1:3] == ["shard", "WAITING"] for line in out.splitlines()[1:]), out
    assert len(out.splitlines()) == 9, out
    out, _ = run("actors", "--count", "--state", "waiting")
    assert re.search(r"^shard +WAITING +8 +0 *$", out, re.M), out
    out, err = run("actors", "-n", "3", "--full")
    assert out.count("actor ") >= 3 and "  mail: " in out and "more actors than the 3" in err, (out, err)
    assert run("actors", "--state", "mounting")[0] == ""

    out, _ = run("top", "-b", "-n", "2", "-d", "60ms", stdin=subprocess.DEVNULL)
    assert out.count("domus top: ") == 2 and out.count("h channels  s state") == 2, out
    bars = re.findall(r"^ +([01]) \[([hsecuo.]{40})\] +[0-9.]+%", out, re.M)
    assert [bar[0] for bar in bars] == ["0", "1", "0", "1"], out


def wrong(pid, port):
    """Wrong command lines, programs that are not there, and files that are not believed."""
    for words in (["nope"], ["stat", "-x"], ["stat", "2h"], ["stat", "0"], ["stat", "1", "0"], ["stat", "1", "1", "1"],
                  ["stat", "-p"], ["top", "-d", "1ms"], ["top", "-o", "x"], ["flame", "-d", "500ms"],
                  ["flame", "-d", "61s"], ["trace", "-d", "1500ms"], ["level", "much"], ["list", "x"],
                  ["cluster", "-n", "0"], ["cluster", "-n", "10001"], ["cluster", "x"],
                  ["actors", "--state", "x"], ["actors", "-n", "0"], ["actors", "-cf"],
                  ["log", "-f", "--set-level", "info"], ["stat", "\x1b[31m"]):
        _, err = run(*words, status=2)
        assert "\x1b" not in err, err
    assert "'-x'" in run("stat", "-xj", status=2)[1] and "'--nope'" in run("stat", "--nope", status=2)[1]
    assert "usage" in run(status=2)[1]
    for words in (["--help"], ["-h"], ["help"], ["stat", "--help"], ["help", "top"]):
        assert run(*words)[0].startswith("usage: domus "), words
    for name in ("list", "top", "stat", "actors", "trace", "flame", "log", "level", "cluster", "config", "doctor", "tune"):
        assert run(name, "-h")[0].startswith(f"usage: domus {name}")
    assert re.fullmatch(r"domus \d+\.\d+\.\d+\n", run("--version")[0])

    for endpoint, said in (("x", "must be"), ("unix:", "must be"), ("unix:@", "must be"), ("a/b:1", "must be"),
                           ("h:999999", "must be"), ("a@b:1", "must be"), (f"unix:{REGISTRY}/none", "connect"),
                           ("127.0.0.1:1", "connect")):
        _, err = run("stat", "-s", endpoint, status=1)
        assert said in err, err
    assert "domus list" in run("stat", "-p", "nobody", status=1)[1]
    assert "two ways" in run("stat", "-p", "web", "-s", "127.0.0.1:1", status=1)[1]

    # Another program, and files of processes that are gone, or that came later with the same pid.
    me = os.getpid()
    register(me, f"127.0.0.1:{port}", "an%0Aother%1B")
    _, err = run("stat", status=1)
    assert f"{pid} (web)" in err and f"{me} (an\\x0Aother\\x1B)" in err, err
    run("stat", "-p", str(me))
    register(me, f"127.0.0.1:{port}", start=1)
    register(999999999, "127.0.0.1:1", start=1)
    for name, text in (("5", "domus-observe 1\npid 5\n"), ("x", ""), ("6", "\0"), ("7", "x" * 100000)):
        with open(os.path.join(REGISTRY, name), "w", encoding="latin-1") as file:
            file.write(text)
    os.symlink("/proc/self/environ", os.path.join(REGISTRY, "8"))
    os.mkfifo(os.path.join(REGISTRY, "9"))
    assert len(run("list")[0].splitlines()) == 2
    assert sorted(os.listdir(REGISTRY)) == sorted([str(pid), "5", "6", "7", "8", "9", "x"])
    for name in "56789x":
        os.unlink(os.path.join(REGISTRY, name))
    os.chmod(REGISTRY, 0o755)
    assert "observe.listen" in run("list", status=1)[1]
    assert "observe.listen" in run("stat", status=1)[1]
    os.chmod(REGISTRY, 0o700)
    run("stat")


def others():
    """Root believes a user about that user's programs alone. Without root there is nothing to see."""
    if os.geteuid() != 0:
        print("without root the programs of other users are not seen")
        return
    user, place = 61234, "/tmp/domus-61234"
    environment = {k: v for k, v in os.environ.items() if k not in ("DOMUS_REGISTRY", "XDG_RUNTIME_DIR")}
    own = subprocess.Popen(["sleep", "60"], user=user, group=user, extra_groups=[])
    os.mkdir(place, 0o700)
    try:
        for pid in (own.pid, os.getpid()):
            path = os.path.join(place, str(pid))
            with open(path, "w", encoding="latin-1") as file:
                file.write(f"domus-observe 1\npid {pid}\nstart {start_of(pid)}\nprogram theirs\nendpoint 127.0.0.1:1\n")
            os.chown(path, user, user)
        os.chown(place, user, user)
        done = subprocess.run([PROGRAM, "list"], env=environment, capture_output=True, timeout=20)
        theirs = [line.split()[0] for line in done.stdout.decode().splitlines() if " theirs " in line]
        assert theirs == [str(own.pid)], (done, os.getpid())
    finally:
        own.kill()
        own.wait()
        for name in os.listdir(place):
            os.unlink(os.path.join(place, name))
        os.rmdir(place)


# ---- a port that says what the test wants --------------------------------------------------------

COUNTERS = {"wall_ns": 0, "phase_ns": {}, "iterations": 0}


class Port:
    """A fake observation port at a Unix socket. `answers` has, by method and target, the status, and the
    pieces of the body: bytes, or seconds to wait; an answer of None says nothing at all."""

    def __init__(self, path):
        self.path, self.answers, self.asked, self.looks, self.peers = path, {}, [], 0, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            self.peers.append(peer)
            threading.Thread(target=self.talk, args=[peer], daemon=True).start()

    def talk(self, peer):
        text = b""
        try:
            while True:
                while b"\r\n\r\n" not in text:
                    got = peer.recv(4096)
                    if not got:
                        return
                    text += got
                head, _, text = text.partition(b"\r\n\r\n")
                method, target = head.decode().split(" ")[:2]
                self.asked.append(f"{method} {target}")
                self.answer(peer, self.answers.get(f"{method} {target}", (404, [b"not found\n"])))
        except OSError:
            pass
        finally:
            peer.close()

    def answer(self, peer, answer):
        if callable(answer):
            answer = answer()
        if answer is None:
            time.sleep(30)
        status, pieces = answer
        peer.sendall(f"HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            if isinstance(piece, bytes):
                peer.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            else:
                time.sleep(piece)
        peer.sendall(b"0\r\n\r\n")

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for peer in self.peers:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.listener.close()
        os.unlink(self.path)

    def profile(self, threads=2, names=("shard", "site", "a\x1b[31mb\n"), more={}):
        """Counters that grow at each look: thread 0 is in `state` for half of its time."""
        self.looks += 1
        look = self.looks
        phases = {"submit": 5, "sleep": 20, "completions": 5, "channels": 15, "events": 3, "state": 50, "other": 2}
        counters = {"wall_ns": look * 10**8, "phase_ns": {k: v * look * 10**6 for k, v in phases.items()} | more,
                    "runs": look * 100, "asks": look * 1000, "stalls": look, "steals": 7 * look}
        behaviours = [{"thread": i % 2, "name": name, "kind": "state", "runs": look * 10 * (i + 1),
                       "run_ns": look * 10**6 * (i + 1), "messages": look * 100 * (9 - i), "waits": look,
                       "wait_ns": look * 5000, "failures": i, "alive": 3, "bytes": 4096}
                      for i, name in enumerate(names)]
        return 200, [json.dumps({
            "now_ns": look * 10**8, "pid": 4711, "program": "fa\x1bke", "version": "9", "uptime_ns": look * 10**9,
            "level": "counters", "threads": [{"thread": i, "counters": counters} for i in range(threads)],
            "outside": {}, "memory": {"used_bytes": 10**6}, "behaviours": behaviours,
            "runners": [{"pool": "work", "runner": 0, "counters": {},
                         "times": {"wall_ns": look * 100, "run_ns": look * 60, "search_ns": look * 10,
                                   "park_ns": look * 30, "turns": look}}]}).encode()]


def fake_cluster(port):
    """Tables of a cluster, whatever columns they have, and what is none."""
    assert "this program is no node of a cluster" in run("cluster", status=1)[1]
    columns = [{"name": name, "title": title, "kind": kind} for name, title, kind in (
        ("node", "node", "label"), ("state", "state", "state"), ("rtt_ns", "round trip", "time"),
        ("sent", "sent", "count"), ("odd", "o\x1bd", "text"))]
    rows = [{"node": "a", "state": "up", "rtt_ns": 1500000, "sent": 12345, "odd": 3},
            {"node": "b\x1b]0;x", "state": None, "rtt_ns": "x", "sent": 1e300, "odd": "n\n"}]
    tables = [{"title": "Here", "columns": [{"name": "up", "title": "up", "kind": "amount"}], "rows": [{"up": 7}]},
              {"title": "Nodes", "total": 5, "columns": columns, "rows": rows},
              {"title": "Names", "total": 0, "columns": columns[:1], "rows": []},
              {"title": "Parts", "total": 0, "columns": [{"name": "up", "kind": "amount"}], "rows": []}]
    port.answers["GET /cluster?count=1000"] = (200, [json.dumps({"tables": tables}).encode()])
    out, _ = run("cluster")
    assert out.startswith("Here: up 7\n\nNODE ") and "\x1b" not in out and "Names" not in out and "Parts" not in out, out
    assert re.search(r"^NODE +STATE +ROUND TRIP +SENT O\\X1BD$", out, re.M), out
    assert re.search(r"^a +up +1\.500ms +12345 3$", out, re.M) and "b\\x1B]0;x " in out, out
    assert out.endswith("n\\x0A\nand 3 more\n"), out
    assert json.loads(run("cluster", "-j")[0]) == {"tables": tables}
    port.answers["GET /cluster?count=1"] = port.answers["GET /cluster?count=1000"]
    assert "and 4 more\n" in run("cluster", "-n", "1")[0]  # though the port says more than was asked for
    many = {"tables": [{"title": "x", "columns": columns * 20, "rows": rows * 30000}, 3, {}, {"columns": [3, {}], "rows": [3]}]}
    port.answers["GET /cluster?count=1000"] = (200, [json.dumps(many).encode()])
    assert len(run("cluster")[0].splitlines()) <= 1010
    for text in (b"", b"[]", b"{", b'{"tables":3}', b"\xff"):
        port.answers["GET /cluster?count=1000"] = (200, [text])
        assert "not to be read" in run("cluster", status=1)[1], text


def fake():
    """What ports say in the form of the contract, and what hostile ones say."""
    path = os.path.join(REGISTRY, "fake.sock")
    port, at = Port(path), ["-s", f"unix:{path}"]
    output = os.path.join(REGISTRY, "output")
    port.answers = {
        "GET /profile": port.profile,
        "GET /trace?seconds=3": (200, [b"\x0a\x00", b"trace"]),
        "GET /trace?seconds=0": (500, [b"broken\x1b]0;x\n" + b"x" * 1000]),
        "GET /profile?cpu=10s&hz=99&format=svg": (200, [b"<svg/>"]),
        "GET /profile?cpu=2s&hz=50&format=folded": (200, [b"a;b 3\n"]),
        "GET /profile?cpu=1s&hz=99&format=folded": (409, [b"another one runs\n"]),
        "GET /log": (200, ["umläut \x1b[2J\r\n".encode(), b"\xc3", b"\xa4\x9b\xff\xe2\x80\xae.\n"]),
        "GET /log?level=warning&follow=1": (200, [b"one\n", 0.2, b"two\n"]),
        "POST /log?level=debug": (200, [b"ok\n"]),
        "POST /profile?level=spans": (200, [b"ok\n"]),
        "POST /profile?level=off": (403, [b"no\n"]),
    }
    register(os.getpid(), f"unix:{path}")
    out, _ = run("stat", "100ms", "1")
    assert re.search(r"^0 +5\.0 +20\.0 +5\.0 +15\.0 +3\.0 +50\.0 +2\.0 +1000 +10000 +0 +70 +1$", out, re.M), out
    assert re.search(r"^work/0 +60\.0 +10\.0 +30\.0 ", out, re.M), out
    assert json.loads(run("stat", "-j", *at)[0])["pid"] == 4711
    out, _ = run("top", "-b", "-n1", "-d", "50ms", "-o", "messages", stdin=subprocess.DEVNULL)
    assert "\x1b" not in out and "fa\\x1Bke (pid 4711)" in out and "a\\x1B[31mb\\x0A" in out, out
    bars = re.findall(r"\[([hsecuo.rl]{40})\]", out)
    assert bars[0] == bars[1] == "h" * 6 + "s" * 20 + "e" + "cc" + "uu" + "o" + "." * 8, bars
    assert bars[2] == "r" * 24 + "l" * 4 + "." * 12, bars
    assert re.findall(r"^ .* (shard|site|a.*)$", out.split("TIME%")[1], re.M)[0] == "shard", out
    port.answers["GET /profile"] = lambda: port.profile(names=("shard", "shard", "site"))
    out, _ = run("top", "-b", "-n1", "-d", "50ms", "--filter", "shard", stdin=subprocess.DEVNULL)
    assert re.findall(r"^ +3\.0 +300 +17k +5\.0us +1 +6 +8\.2k  shard$", out, re.M), out
    assert out.count("shard") == 1, out
    out, _ = run("top", "-b", "-n1", "-d", "50ms", "--filter", "SIT", stdin=subprocess.DEVNULL)
    assert "site" in out and "shard" not in out, out
    # The time of submit may get less.
    port.answers["GET /profile"] = lambda: port.profile(more={"submit": 10**9 - port.looks})
    out, _ = run("stat", "50ms", "1")
    assert re.search(r"^0 +0\.0 +21\.1 ", out, re.M), out
    assert "5.0us" in run("top", "-b", "-n1", "-d", "50ms", stdin=subprocess.DEVNULL)[0]
    assert run("level")[0] == "counters\n"
    run("level", "spans")
    assert "403: no" in run("level", "off", status=1)[1]

    run("trace", "-d", "3s", "-o", output)
    with open(output, "rb") as file:
        assert file.read() == b"\x0a\x00trace"
    _, err = run("trace", "-d", "0", "-o", output, status=1)
    assert "500: broken\\x1B]0;x" in err, err
    assert run("trace", "-d", "3", stdin=subprocess.DEVNULL)[0] == "\x0a\x00trace"
    run("flame", "-o", output + ".svg")
    assert open(output + ".svg", "rb").read() == b"<svg/>"
    assert run("flame", "-d", "2s", "--hz", "50")[0] == "a;b 3\n"
    assert "409: another one runs" in run("flame", "-d", "1s", "-o", output + "2", status=1)[1]
    assert "No such" in run("flame", "-o", "/nowhere/x", status=1)[1]
    assert "does not have that (404)" in run("trace", "-d", "1", "-o", output + "2", status=1)[1]
    assert sorted(name for name in os.listdir(REGISTRY) if name.startswith("output")) == ["output", "output.svg"]

    out = run("log")[0].encode("latin-1").decode()
    assert out == "umläut \\x1B[2J\nä\\x9B\\xFF\\xE2\\x80\\xAE.\n", repr(out)
    assert run("log", "-f", "-l", "warning")[0] == "one\ntwo\n"
    run("log", "--set-level", "debug")
    assert "404" in run("log", "-l", "a b&c", status=1)[1] and "GET /log?level=a%20b%26c" in port.asked

    # Ctrl-C while a trace is under way leaves no part of a file; while a log is followed it is no error.
    for words, status in ((["trace", "-d", "60", "-o", output + "3"], 1), (["log", "-f"], 0)):
        port.answers["GET /trace?seconds=60"] = port.answers["GET /log?follow=1"] = (200, [b"part\n", 30])
        child = subprocess.Popen([PROGRAM, *words], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(port.asked) == 0 or port.asked[-1] not in ("GET /trace?seconds=60", "GET /log?follow=1"):
            time.sleep(0.01)
        time.sleep(0.1)
        port.asked.clear()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
        assert child.returncode == status, (words, child.returncode, out, err)
        assert not [name for name in os.listdir(REGISTRY) if name.startswith("output3")]

    for text in (b"", b"[]", b"{", b'{"threads":3}', b"[" * 100000, b"\xff", b'{"threads":[{}]' + b" " * (17 << 20) + b"}"):
        port.answers["GET /profile"] = (200, [text])
        _, err = run("stat", status=1)
        assert ("too long" if len(text) > 1000000 else "is not its JSON") in err, err
    odd = '{"threads":[{},3,{"counters":[]}],"behaviours":[1,{"name":null}],"runners":{},"pid":-1,"now_ns":1e99}'
    port.answers["GET /profile"] = (200, [odd.encode()])
    run("stat")
    run("top", "-b", "-n1", "-d", "50ms", stdin=subprocess.DEVNULL)
    port.answers["GET /profile"] = (301, [b"x"])
    run("stat", status=1)
    actors = [b"thread 0: stuck: no answer within 1000 ms, in a handler of \x1bx\n"
              b"actor 1/2.3 a b \"na\x1bme\": READY, full\n  mail: 1 replies, 2 asks\n  2 conversations:\n"
              b"    begun by x\n      ask get to 0/1.1, since 1500 ms, 5 ms left\n      sleep, since 20 ms\n",
              b"actor\nactor \nactor x\n"]
    port.answers["GET /actors?from=0&count=100"] = (200, actors + [b"3 actors were left out\n"])
    port.answers["GET /actors?from=0&count=50"] = (200, actors)
    port.answers["GET /actors?from=50&count=50"] = (200, [b"thread 0: 0 actors\n"])
    out, _ = run("actors")
    assert "\x1b" not in out and out.startswith("thread 0: stuck: no answer within 1000 ms, in a handler of \\x1Bx\n")
    assert re.search(r'^1/2\.3 +a b +READY +3 +2 +1\.500s  ask get to 0/1\.1; full  "na\\x1Bme"$', out, re.M), out
    fake_cluster(port)
    # A port without an end, and a disk without room.
    piece = b"x" * (1 << 20)
    port.answers["GET /trace?seconds=4"] = lambda: (200, (piece for _ in range(1000)))
    assert "too long" in run("trace", "-d", "4", "-o", output + "4", status=1)[1]
    assert not [name for name in os.listdir(REGISTRY) if name.startswith("output4")]
    port.answers["GET /trace?seconds=5"] = (200, [piece])
    assert "No space" in run("trace", "-d", "5", "-o", "/dev/full", status=1)[1]

    # An endpoint is a name of a file, which may have any bytes.
    odd = Port(os.path.join(REGISTRY, "\x1b]0;x.sock"))
    odd.answers["GET /profile"] = (200, [b'{"threads":[]}'])
    _, err = run("level", "-s", f"unix:{odd.path}", status=1)
    assert "does not say its level" in err and "\x1b" not in err, err
    odd.close()
    port.close()
    assert "connect" in run("stat", status=1)[1]


# ---- the screen ----------------------------------------------------------------------------------


class Terminal:
    def __init__(self, words, lines=24, columns=100, kind="linux"):
        import pyte
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(PROGRAM, [PROGRAM, *words], dict(ENVIRONMENT, TERM=kind))
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.fd)

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds=0.02):
        try:
            while select.select([self.fd], [], [], seconds)[0]:
                got = os.read(self.fd, 65536)
                if not got:
                    return False
                self.raw += got
                self.stream.feed(got)
        except OSError:
            return False
        return True

    def type(self, keys):
        os.write(self.fd, keys)

    def text(self):
        return "\n".join(self.screen.display)

    def await_(self, wanted, seconds=8):
        """Wait until the screen holds something: a text, or a function of it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            text = self.text()
            if wanted(text) if callable(wanted) else wanted in text:
                return text
        raise AssertionError(f"not seen: {wanted}\n{self.text()}")

    def end(self):
        end = time.monotonic() + 8
        while self.read() and time.monotonic() < end:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def first_row(text):
    """The name of the behaviour in the first row."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "TIME%" in line)
    return lines[at + 1].split()[-1]


def screen():
    path = os.path.join(REGISTRY, "fake.sock")
    port = Port(path)
    port.answers["GET /profile"] = lambda: port.profile(names=("shard", "site", "meter"))
    top = Terminal(["top", "-s", f"unix:{path}", "-d", "100ms"])
    text = top.await_(lambda text: re.search(r" 0\[h+s+e*c+u*o*\.+\] +80\.0%", text))
    assert "fa\\x1Bke (pid 4711)" in text and "work/0[r" in text and "s state" in text, text
    assert re.search(rb"\x1b\[[0-9;]*32m", top.raw), top.raw[:300]

    top.await_(lambda text: first_row(text) == "meter")  # by time
    top.type(b"M")
    top.await_(lambda text: first_row(text) == "shard")
    top.type(b"I")
    top.await_(lambda text: first_row(text) == "meter")
    top.type(b"N")
    top.await_(lambda text: first_row(text) == "site")
    top.type(b"I>")  # behind the last column is the first one
    top.await_(lambda text: first_row(text) == "meter")
    top.type(b"\x1b[17~<<I")  # F6; the columns before time are name and bytes
    top.type(b"I")
    top.await_("BEHAVIOUR")

    top.type(b"/SHA")
    top.await_("/SHA_")
    top.type(b"\r")
    text = top.await_(lambda text: "/SHA " in text and "site" not in text)
    assert first_row(text) == "shard"
    top.type(b"\x1b")
    top.await_("site")

    top.type(b" ")
    top.await_("FROZEN")
    looks = port.looks
    time.sleep(0.3)
    top.read()
    assert port.looks <= looks + 1, (port.looks, looks)
    top.type(b"/SIT\r")  # the filter works on what is frozen
    top.await_(lambda text: first_row(text) == "site" and "shard" not in text)
    top.type(b"\x1b")
    top.await_("shard")
    top.type(b" ")
    top.await_(lambda text: "FROZEN" not in text and port.looks > looks + 1)

    top.type(b"h")
    top.await_("turn the order round")
    top.type(b"x")
    top.await_("TIME%")
    top.type(b"\x1bOB\x1bOB\x1bOA\x1b[6~\x1b[5~\x1bOF\x1bOH")  # the keys that move
    top.type(b"t")
    top.await_(lambda text: "0[" not in text)
    top.type(b"t")
    top.await_("0[")

    for lines, columns, wanted in ((5, 30, "domus top"), (2, 10, "too small"), (1, 1, ""), (50, 200, "parks"),
                                   (24, 80, "q quit")):
        top.resize(lines, columns)
        top.await_(wanted)
        time.sleep(0.05)
        top.read()
    port.answers["GET /profile"] = lambda: port.profile(threads=64)
    top.await_("more threads and runners")
    top.resize(80, 200)
    top.await_(lambda text: "63[" in text and "work/0[" in text)

    port.close()
    top.await_("GONE: ")
    port = Port(path)
    port.answers["GET /profile"] = port.profile
    top.await_(lambda text: "GONE" not in text and "0[" in text)

    top.type(b"q")
    assert top.end() == 0

    for end in (signal.SIGINT, signal.SIGTERM, b"q"):  # the terminal is as before, too
        top = Terminal(["top", "-s", f"unix:{path}", "-d", "10s"], kind="xterm")
        before = top.before
        top.await_("domus top")
        assert b"\x1b[?1049h" in top.raw and b"\x1b[?25l" in top.raw, top.raw[:300]
        if isinstance(end, bytes):
            top.type(end)
        else:
            os.kill(top.pid, end)
        while b"\x1b[?1049l" not in top.raw and top.read(0.1):
            pass
        assert b"\x1b[?1049l" in top.raw[-200:]
        try:
            assert termios.tcgetattr(top.fd) == before
        except termios.error:
            pass  # it has ended
        assert top.end() == 0
    top = Terminal(["top", "-s", f"unix:{path}", "-n", "1", "-d", "50ms"])
    assert top.end() == 0
    top = Terminal(["trace", "-s", f"unix:{path}"])  # no bytes of a trace for a terminal
    assert top.end() == 2 and b"-o" in top.raw
    port.close()


parts = {"real": real, "wrong": wrong, "others": others, "fake": fake, "screen": screen}
try:
    parts[PART](*map(int, sys.argv[4:]))
except AssertionError:
    import traceback
    traceback.print_exc()
    sys.exit(1)
