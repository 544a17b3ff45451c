"""Judge of `domus tune`: tune.py PART BIN DIRECTORY

BIN has the programs domus and echo; DIRECTORY is empty, and files may be written there. The services and
loads are short scripts of the shell. A part that fails prints why, and the status is 1.
"""
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import xml.dom.minidom

PART, BIN, DIRECTORY = sys.argv[1:4]
ENVIRONMENT = dict(os.environ, LC_ALL="C.UTF-8", BIN=BIN)
os.chdir(DIRECTORY)

# It writes the values that it got to the file `state`, for the load, and the pids to `pids`.
SERVICE = """#!/bin/sh
echo $$ >>pids
printf '%s ' "$@" >state
case "$*" in
*=bad*) echo "scheduler.ioRatio: 'bad' is no number" >&2; exit 2 ;;
esac
trap 'exit 0' TERM
echo 'listening fake 127.0.0.1:1'
sleep 100 &
wait
"""

# More ioRatio is more rate, and more latency.
LOAD = """#!/bin/sh
echo $$ >>pids
case "$(cat state)" in
*ioRatio=70*) echo 'rate 1200 1/s
p99 3 ms' ;;
*ioRatio=30*) echo 'rate 900 1/s
p99 1 ms' ;;
*) echo 'rate 1000 1/s
p99 2 ms' ;;
esac
echo lost 0
"""


def script(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o755)
    return "./" + name


def words(*more, service=None, load=None):
    return [os.path.join(BIN, "domus"), "tune", "--service", service or script("service", SERVICE),
            "--load", load or script("load", LOAD), "--pairs", "6", *more]


def nothing_runs():
    """All processes whose pids were written are gone."""
    with open("pids", encoding="utf-8") as file:
        pids = {int(line) for line in file}
    assert pids
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}"), pid
    os.unlink("pids")


def tune(*more, status=0, **commands):
    """Run a search. Returns its stdout and stderr, after its status was held."""
    done = subprocess.run(words(*more, **commands), env=ENVIRONMENT, capture_output=True, timeout=40)
    out, err = done.stdout.decode("latin-1"), done.stderr.decode("latin-1")
    assert done.returncode == status, (more, done.returncode, out, err)
    return out, err


def runs_of(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def best():
    """The value that is best for each goal wins; all but the YAML are comments."""
    out, err = tune("--values", "ioRatio=30,70", "--json", "a.json", "--plot", "a.svg", "--seed", "5", "--runs", "15")
    assert "".join(line for line in out.splitlines(True) if line[0] != "#") == "scheduler:\n  ioRatio: 70\n", out
    assert "# rate: +20.0 % (+20.0 .. +20.0 %) against today's values\n#   p99 +50.0 % (" in out, out
    assert re.search(r"^# +1.2 k +3 ms +\S+ \S+ +\d+  ioRatio=70  <- chosen$", out, re.M), out
    assert re.search(r"^# +1 k +2 ms +\S+ \S+ +\d+  today's values$", out, re.M), out
    assert re.search(r"^# +900 +1 ms .*  ioRatio=30$", out, re.M), out  # the least latency, so of the front
    assert re.search(r"^run 1 of at most 15: .*: rate \S+( k)? p99 \d ms cpu", err), err
    nothing_runs()

    # The command that repeats it does the same runs.
    command = re.search(r"# Once more:\n#   (domus .*)\n", out)[1]
    assert "--seed 5 " in command and command.count("--seed") == 1, command
    subprocess.run(command.replace("a.json", "b.json").replace("domus", BIN + "/domus", 1), shell=True, check=True,
                   env=ENVIRONMENT, capture_output=True, timeout=40)
    first, second = runs_of("a.json"), runs_of("b.json")
    assert [run["values"] for run in first["runs"]] == [run["values"] for run in second["runs"]]
    assert first["winner"] == {"scheduler.ioRatio": "70"} and first["verdict"] == "better", first
    assert first["runs"][0]["stage"] == "check" and first["runs"][-1]["stage"] == "duel"
    assert first["runs"][0]["figures"]["rate"] == 1000 and first["runs"][0]["figures"]["p99"] == 0.002
    todays = [run for run in first["runs"] if not run["values"] and run["stage"] != "check"]
    assert re.search(rf"^# +1 k +2 ms +\S+ \S+ +{len(todays)}  today's values$", out, re.M), (len(todays), out)
    picture = xml.dom.minidom.parse("a.svg")
    assert len(picture.getElementsByTagName("circle")) == 3

    # A value of an element of a list is no YAML: a second file would replace the list.
    pools = script("pools", LOAD.replace("ioRatio", "work.throughput"))
    out, _ = tune("--values", "pools.work.throughput=70", "--runs", "14", load=pools)
    assert "\n#   --set pools.work.throughput=70\n" in out and all(line[0] == "#" for line in out.splitlines()), out

    # Another goal, and one with a bound: the rate may not fall.
    out, _ = tune("--values", "ioRatio=30", "--goal", "p99", "--runs", "14")
    assert "  ioRatio: 30\n" in out and "# p99: -50.0 %" in out, out
    out, _ = tune("--values", "ioRatio=30", "--goal", "p99", "--keep", "rate >= 1k")
    assert out.startswith("# No candidate was better, or they broke the bounds or failed: today's values"), out

    same = script("same", "#!/bin/sh\necho rate 5; echo it costs nothing\n")
    out, _ = tune("--values", "web.shards=1,it's", load=same)
    assert out.startswith("# No difference of rate above the noise of 0.0 %: today's values stay.\n"), out
    assert all(line[0] == "#" for line in out.splitlines()), out
    assert "'web.shards=1,it'\\''s'" in out, out
    out, _ = tune("--values", "web.shards=1", "--", load=same)
    assert re.search(r"#   domus tune --seed \d+ --service .* --\n", out), out


def refused():
    """A value that the service refuses leaves; what the service says is shown without control characters."""
    service = script("service", SERVICE.replace("is no number", "is \\033[31mno number"))
    out, err = tune("--values", "ioRatio=bad,70", "--runs", "15", service=service)
    assert "  ioRatio: 70\n" in out, out
    assert "domus: tune: with ioRatio=bad: the service has ended before it was ready (status 2)\n" in err, err
    assert "the service's stderr:\nscheduler.ioRatio: 'bad' is " in err and "\x1b" not in err, err
    assert err.count("'bad'") == 1, err  # once: it is no chance
    nothing_runs()

    # A load that fails now and then is tried again, and one that fails always lets its candidate leave.
    load = script("load", LOAD.replace("*ioRatio=30*)", "*ioRatio=30*) exit 3;;\n*=5*)").replace(
        "echo $$ >>pids", "echo $$ >>pids\nn=$(cat n 2>/dev/null || echo 0)\necho $((n + 1)) >n\n"
        '[ $((n % 3)) != 2 ] || [ -z "${state##*ioRatio=30*}" ] || { echo chance >&2; exit 1; }').replace(
            'case "$(cat state)"', 'case "$state"').replace("#!/bin/sh", "#!/bin/sh\nstate=$(cat state)"))
    out, err = tune("--values", "ioRatio=30,70", "--runs", "15", "--json", "a.json", load=load)
    assert "  ioRatio: 70\n" in out and "chance" not in err, (out, err)
    again = [run for run in runs_of("a.json")["runs"] if "again" in run]
    assert len(again) > 2 and all("failed" in run and not run["figures"] for run in again), again
    assert f"\n# Runs that failed and were done once more: {len(again)}\n" in out, out
    assert "with ioRatio=30: the load has failed (status 3)\n" in err, err
    nothing_runs()


def bounds():
    """A bound decides; one that nobody keeps is said with the best figure."""
    out, _ = tune("--values", "ioRatio=70", "--keep", "p99 < 2ms")
    assert "\nscheduler" not in out, out
    out, _ = tune("--values", "ioRatio=30,70", "--keep", "p99 < 1.5ms", "--keep", "lost < 1",
                  "--runs", "15")
    assert "# These values keep the bounds, which today's break.\n" in out and "  ioRatio: 30\n" in out, out
    assert "# rate: -10.0 %" in out, out
    out, err = tune("--values", "ioRatio=30,70", "--keep", "p99 < 0.5ms", "--runs", "15", "--json", "a.json",
                    status=1)
    assert "domus: tune: no candidate keeps 'p99 < 0.5ms': the best run had 1 ms\n" in err, err
    assert out.startswith("# No candidate keeps the bounds, so today's values stay.\n") and "\nsch" not in out, out
    assert runs_of("a.json")["verdict"] == "broken"
    nothing_runs()


def lost():
    """A best that loses the duel: the line and the JSON say why. Its first two runs gain a fifth."""
    for later, verdict, said, keep in (
            ("exit 3", "fails", "has failed", []), ("echo 'rate 900 1/s'; echo 'p99 2 ms'", "worse", "was worse", []),
            ("echo 'rate 1200 1/s'; echo 'p99 9 ms'", "breaks", "broke the bounds", ["--keep", "p99 < 4ms"])):
        load = script("load", LOAD.replace("*ioRatio=70*) ", "*ioRatio=70*) n=$(cat n 2>/dev/null)x; echo $n >n\n"
                                           f"[ ${{#n}} -lt 2 ] || {{ {later}; echo lost 0; exit 0; }}\n"))
        out, _ = tune("--values", "ioRatio=70", "--runs", "14", "--json", "a.json", *keep, load=load)
        assert out.startswith(f"# The best of the search {said} in the duel, so today's values stay: ioRatio=70\n"), out
        assert ("\n# rate: " in out) == (verdict != "fails") and "\nsch" not in out, out
        assert runs_of("a.json")["verdict"] == verdict
        os.unlink("n")
    nothing_runs()


def failures():
    """Each way in which today's configuration may fail ends the search with a line, and nothing is left."""
    for why, said, service, load, more in (
            ("the service has ended before it was ready (status 1)", "in use", "echo address in use >&2; exit 1",
             "", []),
            ("the service has ended before it was ready (status 137)", "", "kill -9 $$", "", []),
            ("the service printed no line 'listening ...' within 150 ms", "", "sleep 9 & wait", "",
             ["--start-limit", "150ms"]),
            ("the command of --ready did not succeed within 150 ms", "", "", "",
             ["--start-limit", "150ms", "--ready", "exit 1"]),
            ("the load has failed (status 3)", "stdout:\nhalf\n", "", "echo half; exit 3", []),
            ("the load has not ended within 200 ms (--limit)", "", "", "sleep 9", ["--limit", "200ms"]),
            ("the load has printed no figures", "", "", "exit 0", []),
            ("the load has printed no figure rate; there are: p50 cpu", "", "", "echo p50 1 ms; exit 0", []),
            ("the load has printed no figure p50; there are: rate p99 lost cpu", "", "", "", ["--keep", "p50 < 1s"]),
            ("it has 0 as the figure rate", "", "", "echo rate 0; exit 0", []),
            ("the load: 'rate' stands in its output twice", "", "", "echo rate 1; echo rate 1; exit 0", []),
            ("the load has printed a figure cpu", "", "", "echo rate 1; echo cpu 5; exit 0", []),
            ("the load had errors: 2", "", "", "echo errors 2; echo rate 1; exit 0", []),
            ("the service has ended while the load ran (status 4)", "",
             "rm -f loaded; echo listening x; until [ -e loaded ]; do sleep 0.02; done; exit 4",
             "touch loaded; sleep 9", []),
            ("the service has not ended within 100 ms of SIGTERM", "", "trap '' TERM; echo listening x; sleep 9",
             "", ["--stop-limit", "100ms"])):
        script("service", SERVICE.replace("trap", service + "\ntrap", 1))
        script("load", LOAD.replace("case", load + "\ncase", 1))
        begin = time.monotonic()
        out, err = tune("--values", "ioRatio=70", *more, service="./service", load="./load", status=1)
        assert time.monotonic() - begin < 5, why  # a group that has to be killed takes no longer
        assert out == "" and f"domus: tune: with today's values: {why[:4]}" in err and why in err, (why, err)
        assert said in err, (said, err)
        nothing_runs()

    # Today's values fail later: the first run and two of the stage are good.
    load = script("load", LOAD.replace("\n*)", "\n*) n=$(cat n 2>/dev/null)x; echo $n >n; [ ${#n} -lt 4 ] || exit 5;"))
    out, err = tune("--values", "ioRatio=70", load=load, status=1)
    assert "a run with the values to compare with has failed, so the search ends" in err, err
    nothing_runs()

    # A service that prints without an end does not stop, and what it started ends with it.
    service = script("service", SERVICE.replace(
        "sleep 100 &", "yes >&2 & echo $! >>pids; yes & echo $! >>pids; sleep 100 & echo $! >>pids;"))
    load = script("load", "#!/bin/sh\nsleep 0.05\necho rate 1\n")
    tune("--values", "ioRatio=70", "--least", "50", service="FOO=1 " + service, load=load)
    nothing_runs()


def forks():
    """The CPU time of children that end counts, and a process that leaves its group ends with the run."""
    service = script("service", SERVICE.replace(
        "sleep 100 &\n", "setsid sh -c 'echo $$ >>pids; echo >left; exec sleep 100' &\n"
                         "while :; do [ ! -e go ] || { rm go; sh -c 'while [ $((i += 1)) -lt 60000 ]; do :; done'; "
                         "echo >burnt; }; sleep 0.02; done &\n"))
    load = script("load", "#!/bin/sh\n[ ! -e burnt ] || exit 3\nuntil [ -e left ]; do sleep 0.02; done\n>go\n"
                          "until [ -e burnt ]; do sleep 0.02; done\necho rate 10; echo count 1\n")
    tune("--values", "ioRatio=70", "--json", "a.json", service=service, load=load, status=1)
    first = runs_of("a.json")["runs"][0]["figures"]
    assert 0.02 < first["cpu"] < 5, first
    nothing_runs()

    # Who has left the group is not counted, which is said.
    service = script("service", SERVICE.replace("sleep 100 &\n", "").replace("trap", "sleep 100 &\nsleep 0.2\ntrap"))
    out, _ = tune("--values", "ioRatio=70", "--least", "50", load=script("load", "#!/bin/sh\necho rate 10\n"), service=service)
    assert "\n# cpu is 0 in each run: the service may have left its process group.\n" in out, out


def signals():
    """A signal ends the service and the load, and the command; a terminal shows one line meanwhile."""
    load = script("load", LOAD.replace("case", "[ ! -e go ] || sleep 30\ncase", 1))
    for number in (signal.SIGINT, signal.SIGTERM):
        master, slave = pty.openpty()
        process = subprocess.Popen(words("--values", "ioRatio=30,70", "--json", "a.json", load=load), env=ENVIRONMENT,
                                   stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        seen = b""
        while b"run 3/24" not in seen:
            seen += os.read(master, 4096)
        with open("go", "w", encoding="utf-8"):
            pass
        assert b"\r\x1b[K[          ] scheduler.ioRatio round 1, run 2/24, " in seen and b"\n" not in seen, seen
        time.sleep(0.3)
        begin = time.monotonic()
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 1 and out == b"" and time.monotonic() - begin < 5, (process.returncode, out)
        assert b"domus: tune: stopped by a signal after " in os.read(master, 4096)
        os.close(master)
        nothing_runs()
        assert len(runs_of("a.json")["runs"]) >= 3
        os.unlink("go")

    # A reader of stderr that goes does not end the search, which would leave a service.
    process = subprocess.Popen(words("--values", "ioRatio=70", "--runs", "14"), env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stderr.close()
    out, _ = process.communicate(timeout=40)
    assert process.returncode == 0 and b"  ioRatio: 70\n" in out, (process.returncode, out)
    nothing_runs()


def wrong():
    """Wrong command lines; and what a search would do."""
    for more, said in ((["x"], "takes no 'x'"), (["--keys", "nope"], "--values"), (["--values", "a"], "KEY=VALUE"),
                       (["--goal", "a b"], "figure"), (["--keep", "p99"], "bound"), (["--runs", "5"], "at least 14"),
                       (["--runs", "10001"], "number"), (["--pairs", "5"], "number"), (["--least", "0"], "percentage"),
                       (["--least", "x"], "percentage"), (["--limit", "1ms"], "time"), (["--seed", "-1"], "number"),
                       (["--nope"], "no option"), (["--keep", "a<1"] * 9, "more than 8")):
        _, err = tune("--values", "ioRatio=70", *more, status=2)
        assert err.startswith("domus: ") and said in err and err.count("\n") == 1, (more, err)
    for more in ([], ["--service", "x"], ["--load", "x"]):
        done = subprocess.run([BIN + "/domus", "tune", *more], capture_output=True, timeout=20)
        assert done.returncode == 2 and b"needs --service and --load" in done.stderr, done
    for service, said in (("./service | tee log", "has a pipe"), ("./service # x", "has a comment"), ("./service &", "ends with")):
        _, err = tune("--values", "ioRatio=70", service=service, status=2)
        assert f"--service {said}" in err and err.count("\n") == 1, err
    out, err = tune("--keys", "ioRatio,idle.spin", "--dry-run")
    assert out.startswith("scheduler.ioRatio: today's value, 20, 35, 65, 80\nscheduler.idle.spin: ") and err == "", out
    assert "at most 52 runs, and 1 to see that all works; a sweep of all combinations, 10 rounds of each, takes 250\n" \
        in out, out
    assert not os.path.exists("pids")
    load = script("load", "#!/bin/sh\necho rate 1\n")
    _, err = tune("--values", "ioRatio=70", "--json", "/nowhere/a.json", "--plot", "a.svg", load=load, status=1)
    assert err.startswith("domus: /nowhere/a.json: No such file") and err.count("\n") == 1, err
    assert not os.path.exists("pids") and not [name for name in os.listdir() if name.startswith("a.svg")]


ECHOES = """
import socket, sys, time
peer, times = socket.create_connection(("127.0.0.1", int(sys.argv[1]))), []
begin = time.monotonic()
for i in range(300):
    sent = time.monotonic()
    peer.sendall(b"hello")
    assert peer.recv(100) == b"hello"
    times.append(time.monotonic() - sent)
print("rate", 300 / (time.monotonic() - begin), "1/s")
print("p99", sorted(times)[296], "s")
"""


def real():
    """The example echo, with keys of domus, one of which it refuses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script("echoes.py", ECHOES)
    script("echo.yaml", f"system:\n  threads: 1\nlisteners:\n- name: echo\n  address: 127.0.0.1:{port}\n")
    out, err = tune("--values", "idle.spin=20us,fast", "--runs", "15", "--least", "50", "--json", "a.json",
                    service=BIN + "/echo --config echo.yaml", load=f"{sys.executable} echoes.py {port}")
    assert out.startswith("# "), out
    assert "with idle.spin=fast: the service has ended before it was ready (status 2)" in err, err
    assert "the service's stderr:\n--set: scheduler.idle.spin" in err, err
    good = [run for run in runs_of("a.json")["runs"] if "failed" not in run]
    assert len(good) >= 3 and all(1e-7 < run["figures"]["cpu"] < 1e-2 for run in good), good


parts = {"best": best, "refused": refused, "bounds": bounds, "lost": lost, "failures": failures, "forks": forks, "signals": signals,
         "wrong": wrong, "real": real}
try:
    parts[PART]()
except AssertionError:
    import traceback
    traceback.print_exc()
    sys.exit(1)
