"""The manual as HTML: the pages as mandoc writes them, with links wherever a name stands, an index with
a search, and nothing that comes from elsewhere. It works from file:// as from a server: the list of
names is a script (names.js), because a page from a file may not fetch one."""
import html
import json
import os
import re
import shutil
import subprocess

from concepts import CONCEPTS
from functions import page_of_header

TOKEN = re.compile(r"\b(?:domus_\w+|DOMUS_\w+|[a-z]\w*(?:\.[a-z]\w*)+|domus/\w+\.h)")
UNBROKEN = re.compile(r"-E[A-Z0-9]{2,}|\w+-&gt;\w+")  # a browser would break them behind the minus


def put_site(pages, by_hand, man, output):
    """Write all pages; `by_hand` has those of section 1. Returns how many there are."""
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ("style.css", "search.js"):
        shutil.copyfile(f"{here}/site/{name}", f"{output}/{name}")
    files = [(name, section, f"{man}/man{section}/{name}.{section}") for name, section in sorted(pages.texts)]
    for file in sorted(os.listdir(by_hand)):
        name = file.removesuffix(".1")
        files.append((name, 1, f"{by_hand}/{file}"))
        line = re.search(r"^\.Nd (.*)$", open(f"{by_hand}/{file}", encoding="utf-8").read(), re.M).group(1)
        pages.summaries[name, 1] = line
        pages.entries.append((name, "tool", name, 1, line))
    targets = targets_of(pages)
    said = subprocess.run([os.environ.get("MANDOC", "mandoc"), "-Thtml", "-Ofragment,man=%N.%S.html", *(path for _, _, path in files)],
                          check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                          env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout
    bodies = said.split('<table class="head">')[1:]
    assert len(bodies) == len(files), (len(bodies), len(files))
    for (name, section, _), body in zip(files, bodies):
        body = body[body.index('<div class="manual-text">'):body.index('<table class="foot">')]
        own = f"{name}.{section}.html"
        text = framed(f"{name}({section})", pages.summaries[name, section],
                      f"<h2 class=\"title\">{name}<span>({section})</span></h2>" + contents_of(body)
                      + linked(body, targets, own), pages.version)
        with open(f"{output}/{own}", "w", encoding="utf-8") as file:
            file.write(text)
    put_index(pages, output)
    return len(files)


def targets_of(pages):
    """What each word leads to."""
    targets = {}
    for name, kind, page, section, _ in pages.entries:
        if kind == "header":
            targets[name] = f"{page}.{section}.html"
        elif kind in ("key", "metric"):
            targets.setdefault(name, f"{page}.{section}.html#{anchor_of(name)}")
        else:
            targets[name] = f"{page}.{section}.html"
    return targets


def anchor_of(name):
    """The anchor that mandoc makes of the head of an item."""
    return re.sub(r"[^\w.-]", "_", name)


def linked(body, targets, own):
    """Make links of names that stand in the text, also in code. The page itself is not linked."""
    out, inside = [], 0
    body = re.sub(r'<a class="In">(.*?)</a>', r"\1", body, flags=re.S)  # it would be around a link
    for piece in re.split(r"(<[^>]+>)", body):
        if piece.startswith("<"):
            if re.match(r"<(a|h1|h2)\b", piece):
                inside += 1
            elif re.match(r"</(a|h1|h2)>", piece):
                inside -= 1
            out.append(piece)
        elif inside:
            out.append(piece)
        else:
            piece = UNBROKEN.sub(r"<span class='whole'>\g<0></span>", piece)
            out.append("".join(
                each if each.startswith("<") else TOKEN.sub(lambda match: link(match.group(0), targets, own), each)
                for each in re.split(r"(<[^>]+>)", piece)))
    return "".join(out)


def link(word, targets, own):
    target = targets.get(word)
    if target is None or target == own or target.split("#")[0] == own:
        return word
    return f'<a href="{html.escape(target)}">{word}</a>'


def contents_of(body):
    """Links to the parts of a long page."""
    rows = re.findall(r'<h2 class="Ss" id="([^"]*)"><a[^>]*>(.*?)</a></h2>', body, re.S)
    if len(rows) < 4:
        return ""
    items = "".join(f'<li><a href="#{anchor}">{text}</a></li>' for anchor, text in rows)
    return f'<details class="contents"><summary>On this page</summary><ul>{items}</ul></details>'


def framed(title, line, body, version):
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{html.escape(line)}">
<title>{html.escape(title)} - domus</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<header><a class="home" href="index.html">domus</a>
<form action="index.html"><input type="search" name="q" placeholder="Search" aria-label="Search the manual"
 autocomplete="off" spellcheck="false"></form></header>
<main>
{body}
</main>
<footer>domus {version}</footer>
</body>
</html>
"""


def put_index(pages, output):
    entries = sorted(pages.entries, key=lambda row: (row[0].lower(), row[0], row[3]))
    rows = [[name, kind, f"{page}.{section}.html" + (f"#{anchor_of(name)}" if kind in ("key", "metric") else ""),
             line]
            for name, kind, page, section, line in entries]
    with open(f"{output}/names.js", "w", encoding="utf-8") as file:
        file.write("const names = [\n" + ",\n".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "];\n")
    body = ['<p class="lead">The manual of domus, a library for network services made of actors.</p>',
            '<ol id="found" hidden></ol><p id="none" hidden>Nothing has that name, or these words.</p>',
            '<div id="shelf">', "<h2>Begin here</h2><ul class=\"cards\">"]
    first = [("domus", 7)] + [(f"domus_{name}", 7) for name in CONCEPTS]
    first += [("domus.yaml", 5), ("domus_limits", 7), ("domus_counters", 7), ("domus_words", 7), ("domus", 1)]
    for key in first:
        body.append(f'<li><a href="{key[0]}.{key[1]}.html">{key[0]}({key[1]})</a>'
                    f"<span>{html.escape(pages.summaries[key])}</span></li>")
    body.append("</ul><h2>Tools</h2><dl>")
    for (name, section), line in sorted(pages.summaries.items()):
        if section == 1:
            body.append(row_of(name, section, line))
    body.append("</dl><h2>Headers</h2>")
    for header, names in pages.of_header.items():
        page = page_of_header(header)
        body.append(f'<details><summary><a href="{page}.7.html">domus/{header}</a> '
                    f"{html.escape(pages.summaries.get((page, 7), ''))}</summary><dl>")
        body += [row_of(name, 3, pages.summaries[name, 3]) for name in names]
        body.append("</dl></details>")
    body.append('</div><script src="names.js"></script><script src="search.js"></script>')
    with open(f"{output}/index.html", "w", encoding="utf-8") as file:
        file.write(framed("Manual", "The manual of domus", "\n".join(body), pages.version))


def row_of(name, section, line):
    return (f'<dt><a href="{name}.{section}.html">{name}</a></dt><dd>{html.escape(line)}</dd>')
