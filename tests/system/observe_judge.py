"""Judges what the observation port shows of the example web: observe_judge.py WHAT PORT_URL WEB_URL.

It uses Python's own libraries alone, and ends with a line and the status 1 when something is wrong."""
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.request

port, web = sys.argv[2], sys.argv[3]
KINDS = ["iteration", "enter", "completions", "channels", "events", "state", "other", "run", "wait",
         "delivery", "reaction"]


def get(path, method="GET", site=None):
    request = urllib.request.Request((site or port) + path, method=method)
    return urllib.request.urlopen(request, timeout=20).read().decode()


def profile(query=""):
    return json.loads(get("/profile" + query))


def metrics():
    """The samples of /metrics: {name: [(labels, value)]}."""
    samples = {}
    for line in get("/metrics").splitlines():
        found = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line)
        if found:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
            samples.setdefault(found[1], []).append((labels, float(found[3])))
    return samples


def until(condition, times=200):
    for _ in range(times):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about")


def load():
    for _ in range(20):
        get("/json", site=web)


def measured(thread, kind):
    return profile("?histograms=1")["threads"][thread]["histograms"][kind]["count"]


def below(histogram, bound_ns):
    """How many times are shorter than a bound, which is the end of a place."""
    return sum(count for end, count in histogram["buckets"] if end <= bound_ns)


def histograms():
    families = [name for name in metrics() if name.endswith("_seconds_bucket")]
    assert families == ["domus_stall_seconds_bucket"], families
    assert "histograms" not in profile()["threads"][0]
    empty = profile("?histograms=1")["threads"][0]["histograms"]
    assert list(empty) == KINDS, empty
    assert empty["run"] == {"count": 0, "sum_ns": 0, "buckets": [], "max_ns": 0}, empty

    get("/profile?level=histograms", "POST")
    until(lambda: (load(), measured(0, "run") + measured(1, "run") > 0)[1])
    one = profile("?histograms=iteration")["threads"]
    assert [list(t["histograms"]) for t in one] == [["iteration"]] * 2, one

    before = profile("?histograms=1")["threads"]
    samples = metrics()
    after = profile("?histograms=1")["threads"]
    for thread in (0, 1):
        for kind in KINDS:
            low, high = (t[thread]["histograms"][kind] for t in (before, after))
            for histogram in (low, high):
                ends = [end for end, _ in histogram["buckets"]]
                assert ends == sorted(set(ends)), ends
                assert sum(c for _, c in histogram["buckets"]) == histogram["count"]
                assert not ends or ends[-1] * 63 / 64 - 2 <= histogram["max_ns"] < ends[-1]
                assert histogram["sum_ns"] <= histogram["count"] * max(ends, default=0)
            check_family(samples, thread, kind, low, high)
    runs = sum(t["histograms"]["run"]["count"] for t in after)
    assert runs > 20, runs
    check_answers()


def check_answers():
    """Requests of the site have a histogram of their own, of times in which they can be answered."""
    def found():
        return [times for t in profile("?histograms=1")["threads"] for name, times in t["answers"]
                if name == "visitor"]

    until(lambda: (load(), sum(times["count"] for times in found()))[1] >= 3)
    assert all(1000 < times["sum_ns"] / times["count"] < 10**9 for times in found()), found()
    samples = [(labels, value) for labels, value in metrics()["domus_answer_seconds_count"]
               if labels["behaviour"] == "visitor"]
    assert samples and sum(value for _, value in samples) >= 3, samples


def check_family(samples, thread, kind, low, high):
    family = {"iteration": "domus_iteration_seconds", "run": "domus_run_seconds",
              "wait": "domus_mailbox_wait_seconds", "delivery": "domus_delivery_seconds",
              "reaction": "domus_reaction_seconds"}.get(kind, "domus_phase_length_seconds")
    own = {"thread": str(thread)}
    if family == "domus_phase_length_seconds":
        own["phase"] = kind
    buckets = [(labels["le"], value) for labels, value in samples.get(family + "_bucket", [])
               if labels == {**own, "le": labels["le"]}]
    if not buckets:  # no thread had measured any
        assert low["count"] == 0, (kind, low)
        return
    bounds = [float(le) for le, _ in buckets]
    assert bounds == [2**k / 1e9 for k in range(6, 36)] + [float("inf")], bounds
    for bound, (le, value) in zip(bounds, buckets):
        end = 2**64 if le == "+Inf" else round(bound * 1e9)
        assert below(low, end) <= value <= below(high, end), (kind, le, value)
    [count] = [v for labels, v in samples[family + "_count"] if labels == own]
    [total] = [v for labels, v in samples[family + "_sum"] if labels == own]
    assert count == buckets[-1][1]
    assert low["sum_ns"] / 1e9 - 1e-8 <= total <= high["sum_ns"] / 1e9 + 1e-8


def status(path, method="GET", site=None):
    try:
        return urllib.request.urlopen(
            urllib.request.Request((site or port) + path, method=method)).status
    except urllib.error.HTTPError as error:
        return error.code


def later(path):
    """Ask on a thread; its answer is (head, bytes, seconds) once it has ended."""
    def run():
        began = time.monotonic()
        with urllib.request.urlopen(port + path, timeout=20) as answer:
            thread.answer = answer.headers, answer.read(), time.monotonic() - began
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def packets(trace):
    """The packets of a trace, which is a list of them: field 1, with its length before it."""
    at, found = 0, []
    while at < len(trace):
        assert trace[at] == 0x0a, at
        at, size, shift = at + 1, 0, 0
        while True:
            byte = trace[at]
            at, size, shift = at + 1, size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        found.append(trace[at:at + size])
        at += size
    assert at == len(trace), at
    return found


def recordings():
    assert status("/trace") == 409
    trace, cpu = later("/trace?seconds=1"), later("/profile?cpu=1s&hz=1000")
    until(lambda: profile()["level"] == "spans")
    assert status("/trace") == 409 and status("/trace?seconds=1") == 409
    until(lambda: status("/profile?cpu=0") == 409)  # without one under way it is 400
    get("/profile?level=histograms", "POST")
    assert profile()["level"] == "spans"
    while trace.is_alive():
        load()
    trace.join()
    until(lambda: profile()["level"] == "histograms")
    head, data, took = trace.answer
    assert 1 <= took < 2, took
    assert head["Content-Type"] == "application/octet-stream"
    pid = profile()["pid"]
    assert head["Content-Disposition"] == f'attachment; filename="web-{pid}.pftrace"'
    found = packets(data)
    assert len(found) > 200 and any(b"thread 1" in packet for packet in found), len(found)

    cpu.join()
    head, data, took = cpu.answer
    assert 1 <= took < 2, took
    assert head["Content-Type"] == "text/plain; charset=utf-8"
    lines = data.decode().splitlines()
    assert lines and all(re.fullmatch(r"[ -~]+(;[ -~]+)* \d+", line) for line in lines), lines

    held = get_bytes("/trace?seconds=0")  # what was recorded before, and no more than that
    assert len(packets(held)) > 10 and profile()["level"] == "histograms"


def get_bytes(path):
    return urllib.request.urlopen(port + path, timeout=20).read()


def listeners():
    def web_of(rows):
        [row] = [row for row in rows if row["name"] == "web"]
        return row

    before = web_of(profile()["listeners"])
    assert before["listener"] == web.removeprefix("http://") and before["served"] is True, before
    assert (before["open"], before["refused"]) == (0, 0), before
    [rooms] = [row for row in profile()["listeners"] if row["name"] == "rooms"]
    assert (rooms["accepted"], rooms["closed"]) == (0, 0), rooms
    host, number = rooms["listener"].split(":")
    socket.create_connection((host, int(number))).close()
    until(lambda: [row["closed"] for row in profile()["listeners"] if row["name"] == "rooms"] == [1])
    assert web_of(profile()["listeners"]) == before
    host, number = before["listener"].split(":")
    opened = [socket.create_connection((host, int(number))) for _ in range(6)]
    until(lambda: web_of(profile()["listeners"])["open"] == 6)
    opened.pop().close()
    opened.pop().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: web_of(profile()["listeners"])["open"] == 4)
    get("/json", site=web)
    until(lambda: web_of(profile()["listeners"])["closed"] == before["closed"] + 3)
    now = web_of(profile()["listeners"])
    assert now["accepted"] == before["accepted"] + 7 and now["open"] == 4, now
    assert now["reset"] == before["reset"] + 1, now
    opened += [socket.create_connection((host, int(number))) for _ in range(5)]  # the 9th is refused
    until(lambda: [web_of(profile()["listeners"])[key] for key in ("refused", "open")] == [1, 8])
    samples = metrics()
    for name, field in [("accepted_total", "accepted"), ("refused_total", "refused"),
                        ("open", "open"), ("closed_total", "closed"), ("reset_total", "reset")]:
        values = {labels["listener"]: value for labels, value in samples["domus_listener_" + name]}
        assert list(values) == ["web", "kv", "rooms", "echo"], values
        assert values["web"] == web_of(profile()["listeners"])[field], (name, values)


def dashboard():
    path = os.path.join(os.path.dirname(__file__), "../../docs/grafana-dashboard.json")
    with open(path) as file:
        board = json.load(file)
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions += [one["definition"] for one in board["templating"]["list"] if "definition" in one]
    wanted = {name for text in expressions for name in re.findall(r"domus_\w+", text)}
    assert len(panels) > 15 and len(wanted) > 40, (len(panels), len(wanted))
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24 and panel["title"], panel
        assert all(text.count("(") == text.count(")") for text in
                   [target["expr"] for target in panel["targets"]]), panel["title"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])

    # these are of nodes of a cluster alone (tests/cluster/observed_test.c)
    wanted = {name for name in wanted if not name.startswith(("domus_cluster_", "domus_node_"))}
    # these are samples of what few messages here do, so the family may be missing
    wanted.remove("domus_delivery_seconds_bucket")

    def are_there():
        for key in range(40):  # keys are on both threads, so messages go to and fro
            status(f"/kv/{key}", site=web)
        left = wanted - metrics().keys()
        return not left or print(left, file=sys.stderr)
    until(are_there, 50)


{"dashboard": dashboard, "listeners": listeners, "histograms": histograms, "recordings": recordings}[sys.argv[1]]()
