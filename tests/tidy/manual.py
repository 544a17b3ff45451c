"""Judge the manual that a build has made, by other readers than the generator's.

usage: manual.py ROOT BUILD JUDGE...     some of those below; they print what they find, and the status is 1

    names      functions by nm of the shared libraries; types, constants and macros by the compiler, with
               the debugging information and the preprocessor: each has a page of section 3
    fields     members of structures, by the same: each stands on the page of its structure
    libraries  the library of a function, by nm, is the one that its page names
    keys       keys of the schema of `domus config schema` are in domus.yaml(5); those that bound something
               by their names are in domus_limits(7)
    counters   fields of the profile, and names of metrics in the libraries, are in domus_counters(7)
    links      each cross reference leads to a page, also `man 3 domus_ask` in README and docs/, and each
               link of the HTML to a file and an anchor
    lint       mandoc finds nothing
    texts      lines of names are whole, keys are written as they are, an error that a function returns is
               among its errors, and a name is not divided by a hyphen at the end of a line
    same       a second run of the generator writes the same bytes, and no path of the machine
"""
import filecmp
import functools
import glob
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

findings = []


def find(text):
    findings.append(text)


def said(*command, **options):
    return subprocess.run(command, check=True, text=True, errors="replace", capture_output=True, **options).stdout


class Tree:
    def __init__(self, root, build):
        self.root, self.build = root, build
        self.man = f"{build}/manual/man"

    def page(self, name, section=3):
        path = f"{self.man}/man{section}/{name}.{section}"
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return file.read()

    def libraries(self):
        return sorted(glob.glob(f"{self.build}/lib/libdomus*.so"))

    def functions(self):
        """{symbol: library}"""
        found = {}
        for library in self.libraries():
            for line in said("nm", "-D", "--defined-only", library).splitlines():
                name = line.split()[-1]
                if name.startswith("domus_"):
                    found[name] = os.path.basename(library)[3:-3]
        return found

    @functools.lru_cache(maxsize=None)
    def compiled(self):
        """All public headers as one object without optimization, and the names of its macros."""
        text = "".join(f"#include <domus/{os.path.basename(path)}>\n"
                       for path in sorted(glob.glob(f"{self.root}/include/domus/*.h")))
        with tempfile.TemporaryDirectory() as scratch:
            source, target = f"{scratch}/all.c", f"{scratch}/all.o"
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            options = ["-std=gnu17", "-w", "-I", f"{self.root}/include", source]
            said("cc", "-g", "-fno-eliminate-unused-debug-types", "-fkeep-inline-functions", "-c", "-o", target,
                 *options)
            defined = said("cc", "-E", "-dM", *options)
            macros = set(re.findall(r"^#define (DOMUS_\w*[A-Z0-9])\b(?!_)", defined, re.M))
            inline = {line.split()[-1] for line in said("nm", target).splitlines() if " t domus_" in line}
            entries = list(entries_of(said("readelf", "-W", "--debug-dump=info", target)))
        guards = {name for name in macros if name.endswith("_H")}
        return macros - guards - {"DOMUS_API"}, inline, entries


def entries_of(dump):
    """(tag, name, depth) of the debugging information, in its order."""
    entry = None
    for line in dump.splitlines():
        match = re.match(r" *<(\d+)><[0-9a-f]+>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)", line)
        if match:
            if entry:
                yield tuple(entry)
            entry = [match.group(2), "", int(match.group(1))]
        else:
            match = re.match(r" *<[0-9a-f]+> +DW_AT_name .*?(\w+)\s*$", line)
            if match and entry:
                entry[1] = match.group(1)
    if entry:
        yield tuple(entry)


def judge_names(tree):
    macros, inline, entries = tree.compiled()
    kinds = {"function": set(tree.functions()), "macro": macros, "inline function": inline, "type": set(),
             "constant": set()}
    for tag, name, _ in entries:
        if tag in ("typedef", "structure_type", "enumeration_type", "union_type") and name.startswith("domus_"):
            kinds["type"].add(name)
        elif tag == "enumerator" and name.startswith("DOMUS_") and not name.endswith("_"):
            kinds["constant"].add(name)
    for kind, names in kinds.items():
        if not names:
            find(f"no {kind} was read")
        for name in sorted(names):
            text = tree.page(name)
            if text is None:
                find(f"{name}, a {kind}, has no page")
            elif not re.search(rf"\b{name}\b", text):
                find(f"the page of {name} does not have its name")
        print(f"{kind}: {len(names)}")


def judge_fields(tree):
    count, owners = 0, []
    for tag, name, depth in tree.compiled()[2]:
        del owners[depth:]
        owners += [""] * (depth - len(owners)) + [name if tag.endswith("_type") else ""]
        if tag != "member" or not name:
            continue
        owner = next((each for each in reversed(owners[:depth]) if each.startswith("domus_")), None)
        text = owner and tree.page(owner)
        if not text:
            continue
        count += 1
        if not re.search(rf"^\.It Va .*\b{name}\b", text, re.M):
            find(f"the page of {owner} has no field {name}")
    print(f"field: {count}")
    if count < 500:
        find(f"only {count} fields were read")


def judge_libraries(tree):
    for name, library in sorted(tree.functions().items()):
        if not re.search(rf"^\.Pq Fl l{library} ,", tree.page(name) or "", re.M):
            find(f"the page of {name} does not say -l{library}")


def keys_of(schema, path=""):
    for name, below in schema.get("properties", {}).items():
        own = f"{path}.{name}" if path else name
        forms = [below, *below.get("anyOf", []), *below.get("oneOf", [])]
        inner = [each for form in forms for each in keys_of(form, own)]
        inner += [each for form in forms if isinstance(form.get("items"), dict)
                  for each in keys_of(form["items"], f"{own}[]")]
        yield from inner if inner else [own]


def judge_keys(tree):
    schema = json.loads(said(f"{tree.build}/bin/domus", "config", "schema"))
    names = set(keys_of(schema))
    text, limits = tree.page("domus.yaml", 5), tree.page("domus_limits", 7)
    for name in sorted(names):
        if name.startswith("listeners[].channel."):
            name = "listeners[].channel"  # its keys are those of `channel`, and said to be
        if not re.search(rf'^\.(?:It Cm|Ss) "?{re.escape(name)}"?(?: |$)', text, re.M):
            find(f"the key {name} is not in domus.yaml(5)")
        elif re.search(r"(Max|\.max|Timeout|\.max[A-Z]\w*)$", name) and f'.It Cm "{name}"' not in limits:
            find(f"the key {name} is not in domus_limits(7)")
    print(f"key: {len(names)}")
    if len(names) < 150:
        find(f"only {len(names)} keys were read")


def judge_counters(tree):
    text = tree.page("domus_counters", 7)
    owners, fields = [], set()
    for tag, name, depth in tree.compiled()[2]:
        del owners[depth:]
        owners += [""] * (depth - len(owners)) + [name if tag == "structure_type" else ""]
        if tag == "member" and owners[depth - 1] in ("domus_profile", "domus_runner_profile", "domus_usage",
                                                     "domus_behaviour_profile", "domus_listener_profile"):
            fields.add(name)
    metrics = set()
    for library in tree.libraries():
        if os.path.basename(library) in ("libdomus-observe.so", "libdomus-cluster.so"):
            dump = said("readelf", "-W", "-p", ".rodata", library)
            metrics |= set(re.findall(r"\] +(domus_[a-z0-9_]+)$", dump, re.M))
    for name in sorted(fields):
        if not re.search(rf'^\.It Va ".*\b{name}\b', text, re.M):
            find(f"the counter {name} is not in domus_counters(7)")
    for name in sorted(metrics):
        if not re.search(rf"^\.It Li {name}$", text, re.M):
            find(f"the metric {name} is not in domus_counters(7)")
    print(f"counter: {len(fields)}\nmetric: {len(metrics)}")
    if len(fields) < 90 or len(metrics) < 120:
        find(f"only {len(fields)} counters and {len(metrics)} metrics were read")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.anchors = set(), set()
        self.is_link, self.is_nested = False, False

    def handle_endtag(self, tag):
        self.is_link = self.is_link and tag != "a"

    def handle_starttag(self, tag, attributes):
        self.is_nested = self.is_nested or (tag == "a" and self.is_link)
        self.is_link = self.is_link or tag == "a"
        attributes = dict(attributes)
        if attributes.get("id"):
            self.anchors.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.targets.add(attributes[name])


def judge_links(tree):
    for path in [f"{tree.root}/README.md", *sorted(glob.glob(f"{tree.root}/docs/**/*.md", recursive=True))]:
        with open(path, encoding="utf-8") as file:
            for section, name in re.findall(r"`man (?:(\d) )?([\w.-]+)`", file.read()):
                if not (os.path.exists(f"{tree.root}/packaging/man/{name}.1") if section in ("", "1")
                        else tree.page(name, section)):
                    find(f"{os.path.relpath(path, tree.root)}: man {section} {name} shows nothing")
    for path in sorted(glob.glob(f"{tree.man}/man*/*")):
        if os.path.islink(path) and not os.path.exists(path):
            find(f"{path} leads nowhere")
        with open(path, encoding="utf-8") as file:
            for name, section in re.findall(r"\bXr ([^ ]+) (\d)", file.read()):
                here = f"{tree.root}/packaging/man/{name}.1" if section == "1" else \
                    f"{tree.man}/man{section}/{name}.{section}"
                if not os.path.exists(here):
                    find(f"{os.path.basename(path)}: {name}({section}) is nowhere")
    pages = {}
    for path in glob.glob(f"{tree.build}/manual/html/*.html"):
        reader = Links()
        with open(path, encoding="utf-8") as file:
            reader.feed(file.read())
        pages[os.path.basename(path)] = reader
        if reader.is_nested:
            find(f"{os.path.basename(path)} has a link in a link")
    with open(f"{tree.build}/manual/html/names.js", encoding="utf-8") as file:
        names = json.loads(file.read().removeprefix("const names = ").rstrip().removesuffix(";"))
    pages["index.html"].targets |= {row[2] for row in names}
    for page, reader in sorted(pages.items()):
        for target in sorted(reader.targets):
            file, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            file = file or page
            if file not in pages:
                if not os.path.exists(f"{tree.build}/manual/html/{file}"):
                    find(f"{page}: there is no {file}")
            elif anchor and anchor not in pages[file].anchors:
                find(f"{page}: {file} has no {anchor}")
    print(f"page of HTML: {len(pages)}\nname in the search: {len(names)}")


def judge_lint(tree):
    pages = [path for path in sorted(glob.glob(f"{tree.man}/man*/*")) if not os.path.islink(path)]
    # Without a place of other manuals mandoc does not look for each reference in all of them.
    lint = subprocess.run(["mandoc", "-Tlint", "-Wstyle", *pages], text=True, capture_output=True, check=False,
                          env={**os.environ, "MANPATH": "/nonexistent"})
    for line in (lint.stdout + lint.stderr).splitlines():
        # Pages name each other before they are installed, which mandoc cannot know.
        if "referenced manual not found" not in line:
            find(line.replace(f"{tree.man}/", ""))
    print(f"page: {len(pages)}")


def judge_texts(tree):
    keys = set(keys_of(json.loads(said(f"{tree.build}/bin/domus", "config", "schema"))))
    keys |= {key.partition(".")[2] for key in keys}  # as a structure of one section names them
    wrong = {key[:1].upper() + key[1:] for key in keys if "." in key}
    for path in sorted(glob.glob(f"{tree.man}/man*/*")):
        if os.path.islink(path):
            continue
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^\.Bd .*?^\.Ed", "", file.read(), flags=re.M | re.S)
        line = re.search(r"^\.Nd (.*(?:\n[^.].*)*)", text, re.M).group(1).replace("\\(dq", '"')
        if line.count('"') % 2 or line.count("(") != line.count(")") \
                or re.search(r" and$|, (?:so|of)$", line):
            find(f"{name}: its line is cut: {line}")
        plain = [each for each in text.split("\n") if each[:1] not in (".", "")]
        plain = plain[line.count("\n"):]  # whatis(1) wants that line without marks
        for each in plain:
            words = [word for word in re.split(r"\s|\\ ", each) if "domus_" in word and "\\%" not in word]
            if words:
                find(f"{name}: a hyphen may divide {words[0]}")
            for word in re.findall(r"[A-Z][a-z]+(?:\.\w+)+", each):
                if word in wrong:
                    find(f"{name}: there is no key {word}")
        returned = re.search(r"^\.Sh RETURN VALUES\n(.*?)^\.Sh ", text, re.M | re.S)
        for error in sorted(set(re.findall(r"\\-(E[A-Z0-9]+)", returned.group(1) if returned else ""))):
            if f".It Bq Er {error}\n" not in text:
                find(f"{name}: {error} is returned, and not among the errors")


def judge_same(tree):
    version = re.search(r"^\.Os domus (\S+)", tree.page("domus", 7), re.M).group(1)
    with tempfile.TemporaryDirectory() as scratch:
        said("python3", "-B", "tools/manual", scratch, "--version", version, cwd=tree.root)
        for folder, _, files in os.walk(scratch):
            other = folder.replace(scratch, f"{tree.build}/manual", 1)
            if set(files) - set(os.listdir(other)):
                find(f"{other} has not {sorted(set(files) - set(os.listdir(other)))[:3]}")
                continue
            _, different, strange = filecmp.cmpfiles(folder, other, files, shallow=False)
            for name in sorted(different + strange)[:5]:
                find(f"{name} differs from run to run")
            for name in files:
                with open(f"{folder}/{name}", encoding="utf-8") as file:
                    text = file.read()
                if scratch in text or tree.root in text:
                    find(f"{name} names a path of the machine")


def main():
    root, build, *judges = sys.argv[1:]
    tree = Tree(os.path.realpath(root), os.path.realpath(build))
    for judge in judges:
        globals()[f"judge_{judge}"](tree)
    for text in findings[:20]:
        print(text)
    if len(findings) > 20:
        print(f"and {len(findings) - 20} more")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
