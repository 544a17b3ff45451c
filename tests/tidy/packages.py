"""Name each program that scripts and tests start, and that is in no package of the lists in `dev`.

usage: packages.py ROOT [TEXT]     with TEXT, look at this shell text instead of the tree

A fresh machine has the essential packages; `dev` installs those of its lists, and apt what these depend
on. Programs are found where a shell would take a word for a command, in scripts and in the shell texts
of tests, and where a test calls exec. Words in quotes, functions and builtins are left out, and so is a
program behind a path, which is one that was built or made here. It prints a line for each program that
is in none of these packages, and the status is 1 if there is one.
"""
import functools
import os
import re
import shutil
import subprocess
import sys

BUILTINS = set(
    """. : [ alias bg break case cd command continue do done elif else esac eval exec exit export false fi
    fg for function getopts hash if in jobs kill local printf pwd read readonly return set shift test then
    time times trap true type ulimit umask unalias unset until wait while ! { } [[ echo""".split())
# What stands before the command that it runs, with the options that take a word of their own.
BEFORE = {"env", "exec", "command", "nice", "setsid", "nohup", "timeout", "xargs", "if", "then", "else", "elif",
          "while", "until", "do", "!", "{", "(", "time", "ionice", "quietly", "watched"}
# Found by `command -v`, and done without where they are not there.
OPTIONAL = {"sudo", "cc", "git", "ccache"}
# Words between two substitutions in quotes, which are taken for commands.
PROSE = {"of", "or"}


def packages_of_dev(root):
    with open(os.path.join(root, "dev"), encoding="utf-8") as file:
        text = file.read()
    return set(" ".join(re.findall(r"^packages_\w+='([^']*)'", text, re.M)).split())


def closure(names):
    """The essential packages and `names`, with all that they depend on, of those that are installed."""
    form = "${Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}, ${Recommends}\n"
    rows = subprocess.run(["dpkg-query", "-W", "-f", form], check=True, text=True, capture_output=True).stdout
    needs, provided, found = {}, {}, set(names) | {"apt"}
    for row in rows.splitlines():
        name, essential, priority, provides, depends = row.split("\t")
        needs[name] = re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", depends)
        for virtual in re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9+.-]*)", provides):
            provided.setdefault(virtual, []).append(name)
        if essential == "yes" or priority == "required":
            found.add(name)
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        for other in [*needs.get(name, []), *provided.get(name, [])]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


@functools.lru_cache(maxsize=None)
def owners():
    """The package of each installed file in a folder of programs."""
    said = subprocess.run(["dpkg-query", "-S", "*bin/*"], text=True, capture_output=True, check=False).stdout
    return {path: packages.split(":")[0].split(",")[0]
            for packages, path in (line.rsplit(": ", 1) for line in said.splitlines())
            if not packages.startswith("diversion by")}


def owner(program):
    """The package of a program; None: there is no such program here."""
    path = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if path is None:
        return None
    for at in (path, os.path.realpath(path)):
        for place in (at, at.removeprefix("/usr")):
            if place in owners():
                return owners()[place]
    return path


def commands(text):
    """The words of a shell text that stand where a command does."""
    text = re.sub(r"<<-?\s*'?(\w+)'?.*?^\s*\1$", "", text, flags=re.M | re.S)
    text = re.sub(r"'[^']*'", " Q ", text)
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text)
    text = text.replace("\\\n", " ")
    text = re.sub(r"\$\(\(.*?\)\)", " 0 ", text)
    text = re.sub(r"\$\(", " \n ", text)
    text = re.sub(r'"[^"\n]*"', " Q ", text)
    for part in re.split(r"\n|;|&&|\|\||\||&|`|\(|\)", text):
        words = part.split()
        while words:
            word = words.pop(0)
            if re.fullmatch(r"\w+=.*", word) or word in BEFORE or word.startswith("-") or word.isdigit():
                continue
            if re.fullmatch(r"[a-z][\w.+-]*", word):
                yield word
            break


def functions(text):
    return set(re.findall(r"^\s*(\w+)\(\)", text, re.M))


def arms(text):
    """The words before `)` in an arm of a case, which are no commands."""
    return set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\s*([\w| -]+)\)", text, re.M))))


def shell_texts_of(source):
    """The shell texts of a C source: the literals in calls that take one."""
    for call in re.finditer(r"\b(?:domt_run_shell|popen)\(", source):
        depth, at = 1, call.end()
        while depth != 0 and at < len(source):
            if source[at] == '"':
                at += len(re.match(r'"(?:\\.|[^"\\])*"', source[at:]).group(0))
                continue
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        literals = re.findall(r'"((?:\\.|[^"\\])*)"', source[call.end():at])
        if literals and literals[-1] in {"r", "w", "re", "we"}: # the mode of popen
            literals.pop()
        yield "".join(literals).replace("\\n", "\n").replace('\\"', '"').replace("%%", "%")


def started(root):
    names = subprocess.run(["find", "dev", ".ci", "tools", "tests", "models", "bench", "examples", "-type", "f"],
                           cwd=root, check=True, text=True, capture_output=True).stdout.split()
    known = set()
    texts = []
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        if re.match(r"#!.*\bsh\b", text) or name == "tools/progress":
            known |= functions(text) | arms(text)
            texts.append((name, text))
        elif name.endswith(".c"):
            for shell in shell_texts_of(text):
                known |= functions(shell)
                texts.append((name, shell))
            for program in re.findall(r'exec[lv]p?e?\("([^"/]+)"', text):
                yield name, program
    for name, text in texts:
        for word in commands(text):
            if word not in known:
                yield name, word


def main():
    root = sys.argv[1]
    found = [("the text", word) for word in commands(sys.argv[2])] if len(sys.argv) > 2 else started(root)
    listed = packages_of_dev(root)
    allowed = closure(listed)
    wrong = {}
    for name, word in found:
        if word in BUILTINS | OPTIONAL | PROSE:
            continue
        package = owner(word)
        if package is None and word in listed:  # its package has its name, and is not installed here
            continue
        if package not in allowed:
            wrong.setdefault((word, package), name)
    for (word, package), name in sorted(wrong.items(), key=str):
        print(f"{name} starts {word}, " + (f"of {package}, which is in no list" if package else "which is not here"))
    return 1 if wrong else 0


sys.exit(main())
