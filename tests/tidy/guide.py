"""Hold the guide to its word: each listing is a part of a file, and each output is what is printed.

usage: guide.py GUIDE PREFIX [CHAPTER ...]     GUIDE: docs/guide; PREFIX: an installed tree of domus

A chapter is GUIDE/NN-NAME.md, and its files are in GUIDE/code/NN. Its blocks begin with one of these:

    ```c board.c            the lines of the block stand one behind the other in code/NN/board.c
    ```console              commands behind `$ `, each followed by what it prints
    ```console stays NAME   the same, but the last command goes on, under this name
    ```console ends NAME    `^C`, which ends it, followed by what it has printed since
    ```console killed NAME  the same with `Killed`: the reader ends it by kill -9
    ```console told NAME    `$ kill -HUP PID`, followed by what the program prints because of it
    ```sh not run           commands that the test cannot run, as those of root

In outputs `...` in a line stands for any text, and as a line for any lines. The commands of a chapter are
run in a copy of code/NN, by bash, on a terminal. Each `cc` gets warnings as errors. 127.0.0.1 is another
loopback address in each run, so that tests beside this one do not meet it. $GUIDE_DATABASE is the url of another
database than the one of SQLite. A command that ends with a
backslash goes on behind `> `. A block of another kind, a file of code/NN that the
chapter does not name, and a program that is still running at its end are errors.
"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tty

SECONDS = 60  # for a command, and for what a program that stays has to print
BEGIN = r"""
cc() { command cc -Wall -Wextra -Wpedantic -Werror "$@" -Wl,-rpath,"$(pkg-config --variable=libdir domus)"; }
"""
# The words of a program about a machine that refuses io_uring, has few descriptors, or is busy.
OF_THE_MACHINE = re.compile(
    r"^board: warning: (epoll is used|at most \d+ connections|thread \d+ is stuck).*\n", re.M)
PID = "board: pid "
NEEDS = {"nc": "netcat-openbsd", "curl": "curl", "openssl": "openssl", "nats-server": "nats-server",
         "systemd-analyze": "systemd"}  # without them a chapter is left out, and that is told

failures = []


def fail(where, text):
    failures.append(f"{where}: {text}")


def blocks_of(path):
    """The blocks of a chapter: the line that they begin at, their words, their lines."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    found, at = [], 0
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        end = lines.index("```", at + 1)
        found.append((at + 1, lines[at][3:].split(), lines[at + 1:end]))
        at = end + 1
    return found


def check_listing(where, path, lines):
    if not os.path.exists(path):
        return fail(where, f"there is no {path}")
    with open(path, encoding="utf-8") as file:
        held = file.read().split("\n")
    if not any(held[i:i + len(lines)] == lines for i in range(len(held))):
        fail(where, f"these lines are not in {path}, one behind the other")


def matches(expected, got):
    """Whether what was printed is what the text says."""
    # A program logs its number beside what its actors print, on another thread: before or behind it.
    told = [line for line in expected if line.startswith(PID)]
    if len(re.findall(rf"^{PID}.*\n", got, re.M)) < len(told):
        return False
    if told:
        got = re.sub(rf"^{PID}.*\n", "", got, flags=re.M)
    form = ""
    for line in [line for line in expected if line not in told]:
        if line == "...":
            form += r"(?:.*\n)*"
        else:
            form += re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
    if got and not got.endswith("\n"):
        got += "\n"
    return re.fullmatch(form, got) is not None


def in_order(text):
    return "".join(sorted(text.splitlines(keepends=True)))


class Chapter:
    def __init__(self, guide, prefix, number):
        self.folder = tempfile.mkdtemp(prefix="domus-guide-")
        pid = os.getpid()
        self.address = f"127.{pid >> 16 & 63 | 64}.{pid >> 8 & 255}.{pid & 255 | 1}"
        self.staying = {}
        pc = os.path.dirname(next(os.path.join(at, "domus.pc") for at, _, names in os.walk(prefix)
                                  if "domus.pc" in names))
        self.environment = {
            "PATH": f"{prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.folder, "LC_ALL": "C.UTF-8",
            "PKG_CONFIG_PATH": pc, "LD_LIBRARY_PATH": os.path.dirname(pc), "TERM": "dumb"}
        code = os.path.join(guide, "code", number)
        for name in os.listdir(code):
            with open(os.path.join(code, name), encoding="utf-8") as file:
                text = file.read().replace("127.0.0.1", self.address)
                text = text.replace("sqlite:board.db", os.environ.get("GUIDE_DATABASE", "sqlite:board.db"))
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def begin(self, command):
        """Start a command on a terminal of its own. Returns it, and the other end of the terminal."""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        program = subprocess.Popen(
            ["bash", "-c", BEGIN + command.replace("127.0.0.1", self.address)], cwd=self.folder, stdin=theirs,
            stdout=theirs, stderr=theirs, env=self.environment, start_new_session=True)
        os.close(theirs)
        return program, ours

    def read(self, terminal, enough):
        """Read until `enough` says so, or the end."""
        text, until = b"", time.monotonic() + SECONDS
        while not enough(self.plain(text)) and time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:  # no program has the terminal any more
                    break
                if not piece:
                    break
                text += piece
        return self.plain(text)

    def plain(self, text):
        shown = re.sub(r"\x1b\[[0-9;]*m|\r", "", text.decode("utf-8", "replace"))  # no bold
        return OF_THE_MACHINE.sub("", shown.replace(self.address, "127.0.0.1"))

    def run(self, where, command, expected):
        program, terminal = self.begin(command)
        got = self.read(terminal, lambda text: False)
        os.close(terminal)
        self.end(program, signal.SIGKILL)
        if not matches(expected, got):
            fail(where, f"$ {command}\n--- printed\n{got}--- and not\n" + "\n".join(expected))

    def stay(self, where, name, command, expected):
        program, terminal = self.begin(command)
        self.staying[name] = program, terminal
        got = self.read(terminal, lambda text: matches(expected, text))
        if not matches(expected, got):
            fail(where, f"$ {command}\n--- printed\n{got}--- and not\n" + "\n".join(expected))

    def tell(self, where, name, expected):
        program, terminal = self.staying[name]
        os.killpg(program.pid, signal.SIGHUP)
        # What two threads log has no order.
        got = self.read(terminal, lambda text: matches(sorted(expected), in_order(text)))
        if not matches(sorted(expected), in_order(got)):
            fail(where, f"SIGHUP of {name}\n--- printed\n{got}--- and not\n" + "\n".join(expected))

    def stop(self, where, name, number, expected):
        program, terminal = self.staying.pop(name)
        os.killpg(program.pid, number)
        got = self.read(terminal, lambda text: False)
        self.end(program, signal.SIGKILL)
        os.close(terminal)
        if not matches(expected, got):
            fail(where, f"the end of {name}\n--- printed\n{got}--- and not\n" + "\n".join(expected))

    def end(self, program, number):
        try:
            program.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, number)
            program.wait()

    def clear(self, where):
        for name, (program, _) in self.staying.items():
            fail(where, f"{name} is still running at the end of the chapter")
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        shutil.rmtree(self.folder)


def commands_of(where, lines):
    """The commands of a block, each with what it prints."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        elif found:
            found[-1][1].append(line)
        else:
            fail(where, "a block of the console begins with a command")
    return found


def check_block(chapter, where, words, lines):
    ends = {"ends": ("^C", signal.SIGINT), "killed": ("Killed", signal.SIGKILL)}
    if words[1:] and words[1] in ends:
        mark, number = ends[words[1]]
        if mark not in lines:
            fail(where, f"it has a line {mark}")
        return chapter.stop(where, words[2], number, [line for line in lines if line != mark])
    if words[1:2] == ["told"]:
        if lines[0] != "$ kill -HUP PID":
            fail(where, "its first line is $ kill -HUP PID")
        return chapter.tell(where, words[2], lines[1:])
    found = commands_of(where, lines)
    last = found.pop() if words[1:2] == ["stays"] else None
    for command, expected in found:
        chapter.run(where, command, expected)
    if last is not None:
        chapter.stay(where, words[2], *last)


def check_names(guide, path, number):
    """Each file of a chapter is named by its text."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    code = os.path.join(guide, "code", number)
    for name in os.listdir(code) if os.path.isdir(code) else []:
        if name not in text:
            fail(os.path.basename(path), f"it does not name code/{number}/{name}")


def check(guide, prefix, path):
    name = os.path.basename(path)
    number = name[:2]
    blocks = blocks_of(path)
    check_names(guide, path, number)
    runs = []
    for at, words, lines in blocks:
        where = f"{name}:{at}"
        if len(words) == 2 and words[0] in ("c", "yaml", "ini", "h", "sql"):
            check_listing(where, os.path.join(guide, "code", number, words[1]), lines)
        elif words[:1] == ["console"]:
            runs.append((where, words, lines))
        elif words != ["sh", "not", "run"]:
            fail(where, f"a block of no kind: {' '.join(words)}")
    if not runs:
        return
    text = "\n".join(line for _, _, lines in runs for line in lines if line.startswith(("$ ", "> ")))
    missing = [package for program, package in NEEDS.items()
               if re.search(rf"\b{program}\b", text) and shutil.which(program) is None]
    if missing:
        print(f"{name} is not run: {', '.join(missing)} is not here")
        return
    chapter = Chapter(guide, prefix, number)
    try:
        for where, words, lines in runs:
            check_block(chapter, where, words, lines)
    finally:
        chapter.clear(name)


def main(guide, prefix, *chosen):
    prefix = os.path.abspath(prefix)
    for name in sorted(os.listdir(guide)):
        if re.fullmatch(r"\d\d-[a-z-]+\.md", name) and (not chosen or name[:2] in chosen):
            check(guide, prefix, os.path.join(guide, name))
    print("\n".join(failures), end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
