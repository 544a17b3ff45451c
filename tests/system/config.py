"""Judge of `domus config`: config.py PART PROGRAM REGISTRY [PID PORT]

REGISTRY is a directory in which only the program of the test is registered, which has PID and the
observation PORT. The schema is judged by python3-jsonschema, and by what the reader itself takes. A part
that fails prints why, and the status is 1.
"""
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

PART, PROGRAM, REGISTRY = sys.argv[1:4]
BIN = os.path.dirname(PROGRAM)
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = dict(os.environ, DOMUS_REGISTRY=REGISTRY, LC_ALL="C.UTF-8")
FILE = os.path.join(REGISTRY, "a.yaml")
# Programs of the tree with sections of their own, and their files.
PROGRAMS = {"kv": "kv/kv.yaml", "rooms": "rooms/rooms.yaml", "thumbnails": "thumbnails/thumbnails.yaml",
            "web": "web/web.yaml", "ill": "ill/ill.yaml", "cluster": "cluster/cluster.yaml", "lines": "lines.yaml",
            "proxy": "proxy.yaml"}


def run(*words, status=0, **more):
    """Run domus config. Returns its stdout and stderr, after its status was held."""
    done = subprocess.run([PROGRAM, "config", *words], env=ENVIRONMENT, capture_output=True, timeout=40, check=False, **more)
    out, err = done.stdout.decode("latin-1"), done.stderr.decode("latin-1")
    assert done.returncode == status, (words, done.returncode, out, err)
    return out, err


def write(text, path=FILE):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# ---- the schema ----------------------------------------------------------------------------------


def loader():
    """A loader of the core schema of YAML 1.2, as editors have it; that of PyYAML is of 1.1."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for tag, form, first in (("bool", "true|True|TRUE|false|False|FALSE", "tTfF"), ("null", "~|null|Null|NULL|", "~nN\0"),
                             ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
                             ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789")):
        chars = [*first.replace("\0", "")] + ([""] if "\0" in first else [])
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{form})$"), chars)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda self, node: int(node.value.replace("0o", "0"), 0)
                           if node.value[:2] in ("0x", "0o") else int(node.value))
    return lambda text: yaml.load(text, Loader)


def validator_of(*words):
    import jsonschema
    schema = json.loads(run("schema", *words)[0])
    if not words:  # it takes long
        jsonschema.Draft7Validator.check_schema(schema)
        jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def faults(validator, load, text):
    return [list(error.absolute_path) for error in validator.iter_errors(load(text))]


def files(load):
    """Files of the tree are right, and copies with one fault are not, as the program itself says."""
    mine = validator_of()
    with open(os.path.join(TREE, "config/domus.yaml"), encoding="utf-8") as file:
        whole = file.read()
    for text in (whole, "", "# nothing\n", "{}\n"):
        assert not faults(mine, load, text), text[:100]
    for program, path in PROGRAMS.items():
        at = os.path.join(BIN, program)
        validator = validator_of("-x", at)
        with open(os.path.join(TREE, "examples", path), encoding="utf-8") as file:
            text = file.read()
        assert not faults(validator, load, text), (path, faults(validator, load, text))
        run("check", "-x", at, "--set", "observe.listen=", os.path.join(TREE, "examples", path))
        run("check", "-x", at, write(text + "\nnonsense: 1\n"), status=1)
        assert faults(validator, load, text + "\nnonsense: 1\n") == [[]]
    for wrong in ("nonsense: 1", "scheduler:", "scheduler: 3", "scheduler: [1]", "scheduler: {ioRatio: {}}",
                  "scheduler: {ioRatio: 50, x: 1}", "listeners: {}", "listeners: [{name: a}]", "listeners: [x]",
                  "listeners: [{name: a, address: '127.0.0.1:1', tls: {x: 1}}]", "pools: [{policy: rings}]",
                  "listeners: [" + "{name: a, address: '127.0.0.1:1'}, " * 65 + "]", "- a", "text"):
        assert faults(mine, load, wrong + "\n"), wrong
        run("check", write(wrong + "\n"), status=1)


VALUES = ("0 1 2 3 8 9 10 15 16 17 34 49 50 51 63 64 65 99 100 101 127 128 129 255 256 257 512 1000 1023 1024 1025 4096 "
          "32768 65535 65536 65537 1048576 1048577 4194304 16777216 16777217 2147483648 4294967295 4294967296 99999999999 "
          "0% 1% 49% 50% 51% 99% 100% 101% 0ns 1ns 999ns 1000ns 1us 9us 10us 999us 1000us 1000000us 1000001us 1ms 9ms 10ms "
          "99ms 100ms 499ms 500ms 1000ms 1001ms 3600000ms 1s 10s 11s 60s 61s 3599s 3600s 3601s 1m 60m 61m 1h 2h 9h 10h "
          "8760h 8761h 0B 1B 255B 256B 4095B 4096B 1KiB 3KiB 4KiB 63KiB 64KiB 512KiB 513KiB 1MiB 2MiB 1024MiB 1GiB 4GiB "
          "5GiB 1048576GiB 1048577GiB 1us1 1KB 5S 1.5s -1s auto none AUTO off counters info spans uring epoll 1.2 1.3 "
          "true false required optional a a-b a_b a.b '' '8' '1.2' 'true' '50%' 0-3,8 3,1 8191 8192 0-8192 127.0.0.1:7000 "
          "127.0.0.1:70000 127.0.0.1:0 127.0.0.1:01 127.0.0.256:1 '[::1]:1' '::1:1' unix:/a 'unix:@a' 'unix:' "
          "'10.0.0.0/8, unix' '10.0.0.0/33' '10.0.0.0/8,' '::1' '[::]:1' '[1:2:3:4:5:6:7:8]:1' '[1:2:3:4:5:6:7:8:9]:1' '[1::2::3]:1' '[::1.2.3.4]:1' "
          "'[1:2:3:4:5:6:1.2.3.4]:1' '[1::2:1.2.3.4]:1' '[1:2:3:4:5:6:7::]:1' '[::12345]:1' '[1:2:3:4::5:6:7:8]:1' 'x y' 00 007 0x8 1% '%' ns").split(" ")
# Values that are tried in each case; the empty one is left out in the file.
ALWAYS = ["", "127.0.0.1:0", "'[::1]:1'", "'10.0.0.0/8, unix'", "'::1/128'", "'::1/129'", "0-3,8"]
# Numbers for a reader of YAML, and none for the one of the library.
LENIENT = {"00", "007", "0x8"}


def joined(words):
    """The words of VALUES, with those in quotes that have a blank put together again."""
    result = []
    for word in words:
        if result and result[-1].startswith("'") and not (result[-1].endswith("'") and len(result[-1]) > 1):
            result[-1] += " " + word
        else:
            result.append(word)
    return result


def bounds(key):
    """The ends of the range of a number, and what lies beyond them."""
    if "least" not in key or "words" in key:
        return []
    unit = {"duration": "ns", "size": "B", "share": "%"}.get(key["kind"], "")
    return [key["least"], key["most"], f"{max(int(key['minimum']) - 1, 0)}{unit}", f"{int(key['maximum']) + 1}{unit}",
            f"{key['minimum']}{unit}", f"{key['maximum']}{unit}"]


def document(table, rows):
    """The lines of a file that gives values to keys of a table, (path, text)."""
    tree = {"name": "n", "address": "127.0.0.1:1"} if table == "listeners" else {"name": "n"} if table == "pools" else {}
    for path, text in rows:
        at = tree
        *parts, last = path.split(".")
        for part in parts:
            at = at.setdefault(part, {})
        at[last] = text

    def lines(at, indent):
        for key, value in at.items():
            if isinstance(value, dict):
                yield f"{indent}{key}:"
                yield from lines(value, indent + "  ")
            else:
                yield f"{indent}{key}: {value}"

    if table == "keys":
        return lines(tree, "")
    first, *rest = lines(tree, "    ")
    return [f"{table}:", "  - " + first.lstrip(), *rest]


def refused(table, rows):
    """The paths at which the reader refuses values. It tells 64 faults of a file."""
    text = "\n".join(document(table, rows)) + "\n"
    done = subprocess.run([os.path.join(BIN, "domus-keys"), "--config", write(text), "--tell", "values"],
                          capture_output=True, text=True, timeout=40, check=False)
    told = re.findall(r"^[^:]*:\d+:\d+: (\S+): (?!must be (?:at least|more than) )", done.stderr, re.M)
    return {re.sub(r"^(listeners|pools)\[0\]\.", "", path) for path in told}


def values(load):
    """Each key takes in the schema what the reader takes: the ends of its range, and texts of all sorts."""
    import jsonschema
    schema = json.loads(run("schema")[0])
    keys = json.loads(subprocess.run([os.path.join(BIN, "domus-keys"), "--tell", "keys"], capture_output=True, check=True).stdout)
    texts = joined(VALUES)[::1 if os.environ.get("DOMT_LONG") else 7] + ALWAYS
    tried, taken, loaded = 0, 0, {}
    for table in ("keys", "listeners", "pools"):
        root = schema if table == "keys" else schema["properties"][table]["items"]
        tries = {}
        for key in keys[table]:
            tries.setdefault(key["key"], set(texts)).update(bounds(key))
        tries.pop("policy", None)  # the names of policies are in no table
        validators = {}
        for path in tries:
            at = root
            for part in path.split("."):
                at = at["properties"][part]
            validators[path] = jsonschema.Draft7Validator(at)
        tries = {path: sorted(each) for path, each in tries.items()}
        for i in range(max(map(len, tries.values()))):
            rows = [(path, each[i]) for path, each in tries.items() if i < len(each)]
            for start in range(0, len(rows), 60):
                part = rows[start:start + 60]
                wrong = refused(table, part)
                for path, text in part:
                    if text not in loaded:
                        loaded[text] = load(text)
                    is_right = validators[path].is_valid(loaded[text])
                    tried, taken = tried + 1, taken + is_right
                    assert is_right == (path not in wrong) or text in LENIENT, (table, path, text, is_right)
    assert tried > 4000 and taken > 1000, (tried, taken)


def schema():
    load = loader()
    files(load)
    values(load)


# ---- the verbs -----------------------------------------------------------------------------------


def script(text):
    """A program that does something else than a program of domus."""
    path = os.path.join(REGISTRY, "program")
    write("#!/bin/sh\n" + text + "\n", path)
    os.chmod(path, 0o700)
    return path


def words_of():
    """Command lines that are wrong end with a line and 2."""
    for words in ([], ["nope"], ["-j"], ["check"], ["schema", "x"], ["diff"], ["diff", "a", "b", "c"], ["check", "-j", "a"],
                  ["check", "-p", "x", "a"], ["explain", "--set", "a=b"], ["schema", "--json"], ["diff", "-c", "a", "b"],
                  ["show", "-p", "x", "a"], ["show", "-s", "x:1", "-x", "a"], ["diff", "-p", "x", "a", "b"], ["show", "-x"],
                  ["show", "\x1b[31m", "--nope"]):
        out, err = run(*words, status=2)
        assert out == "" and err.startswith("domus: config: ") and err.count("\n") == 1 and "\x1b" not in err, (words, err)
    assert "check takes FILE..." in run("check", status=2)[1] and "no option '--set'" in run("schema", "--set", "a=b", status=2)[1]


def strangers():
    """Programs that do not answer, and hostile ones."""
    file = write("scheduler: {ioRatio: 60}\n")
    for text, said in (("/nonexistent", "No such file"), (REGISTRY, "Permission denied"), (file, "Permission denied"),
                       ("exit 0", "it says nothing"), ("exec yes", "it says too much"),
                       ("printf 'what?\\033[2J\\nmore\\n' >&2; exit 2", ": what?\\x1B[2J\n"),
                       ("echo '{\"tell\": \"keys\"}'", "does not answer to --tell"),
                       ("echo '{\"tell\": \"values\", \"right\": true'", "does not answer to --tell"),
                       ("echo '{\"tell\": \"values\", \"keys\": {}}'", "has no keys"),
                       ("printf '%070000d' 0 | sed 's/0/[/g'", "does not answer to --tell")):
        path = text if text.startswith("/") else script(text)
        out, err = run("show", "-x", path, file, status=1)
        assert out == "" and said in err and err.count("\n") == 1 and "\x1b" not in err, (path, err)
    path = script("printf 'a\\033[2J:1:1: b\\n' >&2; echo '{\"tell\": \"check\", \"right\": false}'")
    assert run("check", "-x", path, file, status=1) == ("", "a\\x1B[2J:1:1: b\n")
    path = script("echo '{\"tell\": \"values\", \"keys\": [3, {}, {\"key\": \"a\\u001b\", \"value\": \"\", \"origin\": \"b\\u001b\"}]}'")
    out, _ = run("show", "-x", path)
    assert out.splitlines()[2].split() == ["a\\x1B", '""', "b\\x1B"] and "\x1b" not in out, out
    # What it has started ends with it, also by a signal; and a name is no program of PATH.
    for text, status in (("sleep 77 & echo $! >%s; yes", 1), ("sleep 77 >&- 2>&- & echo $! >%s; exit 3", 1),
                         ("sleep 77 & echo $! >%s; wait", -1)):
        pid = os.path.join(REGISTRY, "pid")
        asked = subprocess.Popen([PROGRAM, "config", "show", "-x", script(text % pid)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        while status < 0 and not (os.path.exists(pid) and os.path.getsize(pid)):
            time.sleep(0.01)
        if status < 0:
            asked.send_signal(signal.SIGINT)
        assert asked.wait(20) == 1
        with open(pid, encoding="utf-8") as told:
            left = f"/proc/{int(told.read())}/stat"
        end = time.monotonic() + 5
        while os.path.exists(left) and open(left, encoding="utf-8").read().split()[2] != "Z":
            assert time.monotonic() < end, text
            time.sleep(0.01)
        os.unlink(pid)
    assert "No such file" in run("show", "-x", "true", file, status=1)[1]
    path = script("cat; echo '{\"tell\": \"values\", \"keys\": []}'")  # its input is empty
    assert run("show", "-x", path, input=b"typed") == ("", "")


def patterns():
    """Numbers of ranges that no key has, up to the greatest of 64 bits, as a program tells them."""
    import random
    units = {"count": [("", 1)], "duration": [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9), ("m", 6 * 10**10), ("h", 36 * 10**11)],
             "size": [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)], "share": [("%", 1)]}
    chance, most, rows = random.Random(7), 2**64 - 2, []
    marks = [0, 1, 9, 10, 99, 100, 1023, 10**18, 10**19 - 1, 10**19, most, *(chance.randrange(2**chance.randrange(1, 64)) for _ in range(12))]
    for _ in range(250):
        low, high = sorted((min(chance.choice(marks), most), min(chance.choice(marks), most)))
        kind, power = chance.choice(list(units)), chance.random() < 0.2
        rows.append({"key": f"k{len(rows)}", "kind": kind, "minimum": str(low), "maximum": str(high), "default": "1", "zero": chance.random() < 0.2 or low == 0,
                     "power_of_two": power})
    with open(os.path.join(REGISTRY, "keys.json"), "w", encoding="utf-8") as file:
        json.dump({"tell": "keys", "program": "p", "keys": rows, "listeners": [], "pools": [], "listeners_max": 1, "pools_max": 1}, file)
    schema = json.loads(run("schema", "-x", script(f"cat {REGISTRY}/keys.json"))[0])["properties"]
    for row in rows:
        low, high, kind = int(row["minimum"]), int(row["maximum"]), row["kind"]
        forms = [form["pattern"] for form in schema[row["key"]].get("anyOf", [schema[row["key"]]]) if "pattern" in form]
        tries = {0, low, high, *(max(0, end + by) for end in (low, high) for by in (-1, 1)), *(10**i + by for i in range(20) for by in (-1, 0, 1)),
                 *(2**i for i in range(64)), *(chance.randrange(high - low + 1) + low for _ in range(20))}
        for unit, factor in units[kind]:
            for number in {at // factor + by for at in tries for by in (0, 1)}:
                value = number * factor
                right = low <= value <= high and (not row["power_of_two"] or value & (value - 1) == 0) and (value != 0 or row["zero"])
                assert any(re.search(form, f"{number}{unit}") for form in forms) == (right or value == 0 and row["zero"]), (row, number, unit, forms)
                assert not any(re.search(form, f"0{number}{unit}") for form in forms)


def installed():
    """The command finds domus-keys where it was installed, and says so if it is not there."""
    import shutil
    for folder in ("usr/bin", "usr/libexec/domus"):
        os.makedirs(os.path.join(REGISTRY, folder))
    program = shutil.copy(PROGRAM, os.path.join(REGISTRY, "usr/bin"))
    done = subprocess.run([program, "config", "schema"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "domus-keys is not beside this one" in done.stderr and done.stderr.count("\n") == 1
    shutil.copy(os.path.join(BIN, "domus-keys"), os.path.join(REGISTRY, "usr/libexec/domus"))
    subprocess.run([program, "config", "check", "/dev/null"], check=True)
    shutil.rmtree(os.path.join(REGISTRY, "usr"))
    done = subprocess.run([os.path.join(BIN, "domus-keys")], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 1 and "not supported" in done.stderr, done.stderr


def check():
    path = write("scheduler:\n  ioRatio: 200\n  steel: 1\nsystem: {threads: 500us}\n")
    out, err = run("check", path, status=1)
    assert out == "" and err.splitlines() == [
        f"{path}:2:12: scheduler.ioRatio: must be auto or 1..100, is 200", f"{path}:3:3: scheduler.steel: unknown key (did you mean 'steal'?)",
        f"{path}:4:19: system.threads: expected auto or a count such as 8, found '500us'",
        "domus: keys of a program's own are known with -x PROGRAM"], err
    assert run("check", write("channel: {sendLow: 1MiB}\n"), status=1)[1] == \
        f"{path}:1:20: channel.sendHigh: must be at least channel.sendLow (1MiB), is 256KiB\n"
    assert run("check", "/nonexistent", status=1)[1] == "/nonexistent: cannot be read: No such file or directory\n"
    other = write("channel: {sendHigh: 1MiB}\n", path + ".b")
    assert run("check", path, other) == ("", "") and run("check", path, "--set", "channel.sendHigh=2MiB") == ("", "")
    # Without a program certificates are not looked at, which may be on another machine.
    write("listeners:\n- {name: web, address: 127.0.0.1:1, tls: {certFile: /nonexistent/a.pem}}\n")
    run("check", path)
    out, err = run("check", "-x", os.path.join(BIN, "web"), path, status=1)
    assert err.startswith("web: listeners.web.tls.certFile: /nonexistent/a.pem: ") and err.count("\n") == 1, err
    out, err = run("check", "-x", os.path.join(BIN, "kv"), write("kv: {maxMemory: 1}\n"), status=1)
    assert err.startswith(f"{path}:1:17: kv.maxMemory: expected a size") and err.count("\n") == 1, err


def show():
    path = write("scheduler: {ioRatio: 60%}\ncluster: {password: secret}\nlisteners:\n- name: a\n  address: 127.0.0.1:1\n")
    out, _ = run("show", "-c", "--set", "log.level=error", path)
    assert [line.split() for line in out.splitlines()] == [
        ["scheduler.ioRatio", "60", f"{path}:1"], ["cluster.password", "***", f"{path}:2"], ["log.level", "error", "--set"],
        ["listeners.a.name", "a", f"{path}:4"], ["listeners.a.address", "127.0.0.1:1", f"{path}:5"]], out
    out, _ = run("show", path)
    assert re.search(r"^io\.backend +auto +default$", out, re.M) and re.search(r'^observe\.listen +"" +default$', out, re.M)
    rows = json.loads(run("show", "-j", path)[0])["keys"]
    assert len(rows) == len(out.splitlines()) and {"key": "scheduler.ioRatio", "value": "60", "origin": f"{path}:1"} in rows
    out, _ = run("show", "-x", os.path.join(BIN, "kv"), "-c")
    assert out == "", out
    assert re.search(r"^kv\.maxMemory +256MiB +--set$", run("show", "-x", os.path.join(BIN, "kv"), "--set", "kv.maxMemory=256MiB")[0], re.M)


def diff():
    one = write("scheduler: {ioRatio: 60}\nchannel: {sendHigh: 128KiB}\nlisteners:\n"
                "- {name: a, address: '127.0.0.1:1', channel: {sendHigh: 256KiB, linger: 1s}}\n- {name: b, address: '127.0.0.1:2', channel: {linger: 2s}}\n")
    other = write("system: {threads: 50%}\nlisteners:\n- {name: a, address: '127.0.0.1:1'}\ncluster: {password: x}\n", one + ".b")
    out, err = run("diff", one, other, status=1)
    assert err == "" and [line.split() for line in out.splitlines()] == [
        ["KEY", "BEFORE", "AFTER", "CHANGE"], ["system.threads", "auto", "50%", "restart"],
        ["scheduler.ioRatio", "60", "50", "live"], ["channel.sendHigh", "128KiB", "256KiB", "live"],
        ["cluster.password", '""', "***", "restart"], ["listeners.b.name", "b", "-", "restart"],
        ["listeners.b.address", "127.0.0.1:2", "-", "restart"], ["listeners.b.backlog", "4096", "-", "restart"],
        ["listeners.b.proxyProtocol.from", '""', "-", "restart"],
        *(["listeners.b.tls." + key, value, "-", "restart"] for key, value in (
            ("certFile", '""'), ("keyFile", '""'), ("alpn", '""'), ("clientCaFile", '""'), ("ciphers", '""'),
            ("cipherSuites", '""'), ("minVersion", "1.2"), ("clients", "required"))),
        ["listeners.b.sharesPort", "false", "-", "restart"], ["listeners.b.channel.linger", "2s", "-", "restart"]], out
    assert run("diff", one, write("scheduler: {ioRatio: 60}\nchannel: {sendHigh: 128KiB}\nlisteners:\n- {name: a, address: '127.0.0.1:1', "
                                  "channel: {sendHigh: 1MiB}}\n- {name: b, address: '127.0.0.1:2', channel: {linger: 2s}}\n", one + ".c"),
               status=1)[0].splitlines()[1].split() == ["listeners.a.channel.sendHigh", "256KiB", "1MiB", "live"]
    assert run("diff", one, one) == ("", "") and json.loads(run("diff", "-j", one, one)[0]) == {"differences": []}
    assert run("diff", other, "/dev/null", status=1)[0].splitlines()[1].split() == ["system.threads", "50%", "auto", "restart"]
    assert "listeners.a.name" in run("diff", "/dev/null", other, status=1)[0]
    rows = json.loads(run("diff", "-j", "/dev/null", write("scheduler: {ioRatio: 1%}\n"), status=1)[0])["differences"]
    assert rows == [{"key": "scheduler.ioRatio", "before": "50", "before_origin": "default", "after": "1",
                     "after_origin": f"{one}:1", "change": "live"}], rows
    assert run("diff", one, write("scheduler: {ioRatio: 0}\n", other), status=1)[1].startswith(f"{other}:1:22: ")
    kv, file = ["-x", os.path.join(BIN, "kv")], write("kv: {maxMemory: 1GiB}\n")
    assert run("diff", *kv, "/dev/null", file, status=1)[0].splitlines()[1].split() == ["kv.maxMemory", "0", "1GiB", "restart"]


def computed():
    """What a program has made of a default word, such as auto, is no difference; another word or value is one."""
    rows = json.loads(run("show", "-j", "/dev/null")[0])["keys"]
    limit, = (row for row in rows if row["key"] == "memory.limit")
    assert limit == {"key": "memory.limit", "value": "auto", "origin": "default"}, limit

    class Port(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/config" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": rows}).encode())

        def log_message(self, *_):
            pass

    port = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Port)
    threading.Thread(target=port.serve_forever, daemon=True).start()
    for origin, text, said in (
            ("default", "", []), ("default", "memory: {limit: 1GiB}\n", ["memory.limit", "512MiB", "1GiB", "restart"]),
            ("--set", "", ["memory.limit", "512MiB", "auto", "restart"]),
            ("default", "scheduler: {ioRatio: auto}\n", ["scheduler.ioRatio", "50", "auto", "live"])):
        limit.update(value="512MiB", origin=origin)
        out, err = run("diff", "-s", f"127.0.0.1:{port.server_port}", write(text), status=int(bool(said)))
        found = [line.split() for line in out.splitlines()[1:2]]
        assert found == ([said] if said else []) and err == "" and ("\n" in out.strip()) == bool(said), (said, out, err)
    port.shutdown()


def explain():
    out, _ = run("explain", "scheduler.ioRatio")
    assert re.fullmatch(r"scheduler\.ioRatio\n    Percentage of a busy thread's time .*\n(    .*\n)+"
                        r"    type     a percentage, such as 50 or 50%\n    values   auto or 1\.\.100\n    default  50\n"
                        r"    change   live: .*\n    in C     domus_config\.scheduler\.io_ratio\n"
                        r"    doctor   io-starves-state, state-starves-io\n", out), out
    with open(os.path.join(TREE, "docs/config.md"), encoding="utf-8") as page:
        assert "    $ domus config explain ioRatio\n" + re.sub("(?m)^", "    ", out).rstrip(" ") + "\n" in page.read()
    assert run("explain", "ioRatio")[0] == out and run("explain", "IORATIO")[0] == out
    for word in ("listeners.channel.sendHigh", "listeners[].channel.sendHigh", "listeners[2].channel.sendHigh", "listeners.a.channel.sendHigh"):
        text = run("explain", word)[0]
        assert text.startswith("listeners.NAME.channel.sendHigh\n    A connection is not read while") and "section channel\n" in text, text
    assert run("explain", "sendHigh")[0].startswith("channel.sendHigh\n")
    for key, part in (("system.threads", "values   auto or 1..1024 or 1%..100%\n"), ("io.ringEntries", "16..32768, a power of two\n"),
                      ("scheduler.beltSlots", "0 or 64..65536, a power of two\n"), ("io.backend", "values   auto, uring, epoll\n"),
                      ("cluster.password", "secret   "), ("pools.name", "default  none: it has to be given\n"),
                      ("observe.listen", "default  empty\n"), ("memory.threadMax", "none or 1MiB..1048576GiB\n"),
                      ("channel.socket.receiveBuffer", "The kernel's send and receive buffer"), ("files.keptTime", "0 or 1ms..1h\n")):
        text = run("explain", key)[0]
        assert part in re.sub(r"\n    (?! )(?=[a-z(])", " ", text) or part in text, text
    out, _ = run("explain", "scheduler.steal")
    assert [line.split()[0] for line in out.splitlines()] == [
        "scheduler.steal." + key for key in ("enabled", "floor", "aggression", "minRun", "patience")], out
    rows = json.loads(run("explain", "-j")[0])
    keys = json.loads(subprocess.run([os.path.join(BIN, "domus-keys"), "--tell", "keys"], capture_output=True, check=True).stdout)
    assert len(rows) == sum(len(keys[table]) for table in ("keys", "listeners", "pools")) - 1  # threads has two rows
    numbers = [row for row in rows if "least" in row and "words" not in row]
    assert all(len(row["text"]) > 4 for row in rows), [row for row in rows if len(row["text"]) <= 4]
    told = [row for row in numbers if row["least"] in row["text"] and row["most"] in row["text"]]
    assert len(told) > 0.75 * len(numbers), (len(told), len(numbers))  # each text is that of its key
    assert json.loads(run("explain", "-j", "io.backend")[0])[0]["words"] == ["auto", "uring", "epoll"]
    assert run("explain", "ioRatoi", status=1)[1] == "domus: there is no key 'ioRatoi' (domus config explain names all)\n"
    assert "there is channel.sendHigh, listeners.NAME.channel.sendHigh\n" in run("explain", "x.sendHig", status=1)[1]
    run("explain", "\x1b[2J", status=1)
    out, _ = run("explain", "-x", os.path.join(BIN, "kv"), "kv.shards", "kv.maxMemory")
    assert out.startswith("kv.shards\n    type     a number") and "\n\nkv.maxMemory\n    type     a size" in out, out


def verbs():
    words_of()
    strangers()
    patterns()
    installed()
    check()
    show()
    diff()
    computed()
    explain()


# ---- a program that runs -------------------------------------------------------------------------


def running(pid, port):
    rows = json.loads(run("show", "-j")[0])["keys"]
    assert {"key": "system.threads", "value": "2", "origin": "--set"} in rows, rows
    assert json.loads(run("show", "-j", "-p", "web")[0])["keys"] == rows
    assert json.loads(run("show", "-j", "-s", f"127.0.0.1:{port}")[0])["keys"] == rows
    assert json.loads(run("show", "-j", "-p", str(pid))[0])["keys"] == rows
    path = os.path.join(TREE, "examples/web/web.yaml")
    web = ["-x", os.path.join(BIN, "web")]
    out, _ = run("diff", *web, path, status=1)
    assert re.search(r"^system\.threads +2 +auto +restart$", out, re.M), out
    assert out.endswith("restart\n\nA reload takes none of these values, because some need a restart.\n"), out
    assert re.search(r"^listeners\.web\.address +127\.0\.0\.1:0 +127\.0\.0\.1:7005 +restart$", out, re.M), out
    assert "memory.limit" not in out and "idle.spin" not in out and "scheduler" not in out, out  # these are auto, both
    text = "".join(f"{line}\n" for line in document("keys", (
        (row["key"], json.dumps(row["value"])) for row in rows if not row["key"].startswith(("listeners.", "pools.", "web."))
        and row["value"] != "")))
    out, err = run("diff", *web, write(text), status=1)
    keys = [line.split()[0] for line in out.splitlines()[1:-2]]
    assert keys and all(key.startswith(("listeners.", "web.")) for key in keys), (out, err)
    assert run("diff", path, status=1)[1].startswith(f"{path}:")  # domus-keys does not know the section
    os.unlink(FILE)


parts = {"schema": schema, "verbs": verbs, "running": running}
try:
    parts[PART](*map(int, sys.argv[4:]))
except AssertionError:
    import traceback
    traceback.print_exc()
    sys.exit(1)
