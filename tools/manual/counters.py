"""domus_counters(7): each counter of the profile, and each metric of the observation port.

The fields and their words are those of domus/profile.h. The metrics are read from the tables and calls
of protocols/ and runtime/ that name them: a text that begins with domus_, and behind it its help.
"""
import re

import mdoc
from functions import sentences
from sources import files_below, read

TEXT = r'"((?:[^"\\]|\\.)*)"'
TEXTS = rf"({TEXT}(?:\s*{TEXT})*)"


def joined(texts):
    return "".join(re.findall(TEXT, texts))


def metrics_of(root):
    """[(name, help, field or None)], in the order of the files."""
    found = {}

    def put(name, text, field=None):
        found.setdefault(name, (text, field))

    for path in sorted(files_below(f"{root}/protocols", (".c",))):
        text = read(path)
        if '"domus_' not in text:
            continue
        for name, help_text, field in uses_of_macros(text):
            put(name, help_text, field)
        for match in re.finditer(rf'\bROW\((\w+),\s*"(domus_\w+)",\s*{TEXTS}', text):
            put(match.group(2), joined(match.group(3)), match.group(1))
        for match in re.finditer(rf'\.metric = "(domus_\w+)",\s*\.help = {TEXTS}', text):
            put(match.group(1), joined(match.group(2)))
        for match in re.finditer(rf'\{{"(domus_\w+)",\s*(?:"\w+",\s*)?{TEXTS}', text):
            put(match.group(1), joined(match.group(2)))
        for match in re.finditer(rf'write_\w+\(\w+,\s*"(domus_\w+)",\s*(?:[\w.>-]+,\s*)?{TEXTS}', text):
            put(match.group(1), joined(match.group(2)))
        for match in re.finditer(r'static const char name\[\] = "(domus_\w+)";', text):
            after = re.search(TEXTS, text[match.end():])
            put(match.group(1), joined(after.group(1)) if after else "")
    return [(name, *row) for name, row in sorted(found.items())]


def uses_of_macros(text):
    """What macros such as COUNT(field, text) make, whose bodies put a name together: "domus_" #field."""
    for macro in re.finditer(r'#define (\w+)\(([^)]*)\)((?:[^\n\\]|\\\n)*)', text):
        words = [word.strip() for word in macro.group(2).split(",")]
        name = re.search(r'"(domus_\w*)" ?(#?)(\w+)', macro.group(3))
        if name is None or "text" not in words:
            continue
        for use in re.finditer(rf'(?<!define )\b{macro.group(1)}\(((?:[^()"]|{TEXT})*)\)', text):
            given = dict(zip(words, re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', use.group(1))))
            if "text" in given and '"' in given["text"]:
                own = given[name.group(3)].strip().strip('"')
                yield name.group(1) + own, joined(given["text"]), given[words[0]].strip()


def put_counters(pages, root, headers):
    profile = next(header for header in headers if header.name == "profile.h")
    metrics = metrics_of(root)
    of_field = {field: (name, text) for name, text, field in metrics if field and not name.startswith(
        ("domus_behaviour", "domus_runner", "domus_cluster", "domus_node"))}
    summary = "what is counted, and the metrics that the observation port gives"
    parts = [".Sh NAME", ".Nm domus_counters", f".Nd {summary}", ".Sh DESCRIPTION",
             mdoc.paragraphs(profile.parts)]
    for block in profile.blocks:
        for each in block.declarations:
            if each.kind != "struct" or not each.members:
                continue
            parts += [f".Ss Counters of {each.name}", ".Bl -tag -width Ds"]
            for member in each.members:
                for line, name in zip(member.lines or member.names, member.names):
                    head = f".It Va {mdoc.quoted(line)}"
                    parts.append(head)
                text = mdoc.paragraphs(sentences(member.parts))
                if text:
                    parts.append(text)
                if each.name == "domus_profile":
                    shown = [of_field[name] for name in member.names if name in of_field]
                    parts += [mdoc.fill(f"Metric {name}: {text}") for name, text in shown]
            parts.append(".El")
    parts += [".Ss Metrics",
              "Names as the observation port gives them.",
              "Those that only grow have _total behind them.",
              ".Bl -tag -width Ds"]
    pages.entries.append(("domus_counters", "concept", "domus_counters", 7, summary))
    for name, text, _ in metrics:
        pages.entries.append((name, "metric", "domus_counters", 7, text))
        parts += [f".It Li {name}", mdoc.fill(text)]
    parts += [".El", ".Sh SEE ALSO",
              mdoc.references([("domus_profile", 3), ("domus_profile", 7), ("domus_observe", 7),
                               ("domus_figures", 7), ("domus-top", 1), ("domus-stat", 1), ("domus", 7)])]
    pages.add("domus_counters", 7, summary, parts)
