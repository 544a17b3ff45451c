"""The keys of the configuration, as config/domus.yaml explains them: domus.yaml(5), and the part of
domus_limits(7) that a file may change."""
import re
from dataclasses import dataclass

import mdoc
from comments import Part, first_sentence
from sources import read

KEY = re.compile(r"( *)(- )?([A-Za-z][A-Za-z0-9]*):(?: +(.*?))?(?: *# ?(live|restart))?$")
# A key of a list that is empty by default stands in a comment: "# - name: work   # text".
SHOWN = re.compile(r"# ( *)(?:- )?([A-Za-z][A-Za-z0-9]*): *([^#]*?) *(?:# (.*))?$")
KEYS_FOLLOW = "may have these keys:"
# Keys that bound something have such names, or are one of those below.
LIMIT = re.compile(r"(?:^|[a-z])(?:[mM]ax|Timeout|Expiry)(?=$|[A-Z])")
LIMITS = set("""limit high critical queued linger minRate bodyRate sendHigh halfCloseKept resetAfter backlog
    size count records downAfter spares runners throughput beltSlots ringEntries
    completionEntries""".split())
WHEN = {"live": "It may change while the program runs.", "restart": "It counts at a start."}


@dataclass
class Key:
    rows: list                 # (path, default or "") of each of the keys that share the words
    when: str
    text: str
    is_section: bool = False

    @property
    def path(self):
        return self.rows[0][0]


def read_keys(path):
    """(words at the head of the file, its keys)."""
    head, keys, text, above, shares, in_comment = "", [], [], [], False, False
    for line in read(path).split("\n"):
        shown = SHOWN.fullmatch(line)
        match = KEY.fullmatch(line)
        if shown and in_comment:
            place(above, 1 + len(line[1:]) - len(line[1:].lstrip(" -")), shown.group(2))
            keys.append(Key([(join(above), shown.group(3))], "", shown.group(4) or "", not shown.group(3)))
        elif line.endswith(KEYS_FOLLOW):
            in_comment = True
        elif line.lstrip().startswith("#"):
            text.append(line.strip().lstrip("#").strip())
            shares = False
        elif match:
            place(above, len(match.group(1)) + len(match.group(2) or ""), match.group(3))
            preset = match.group(4)
            row = (join(above), preset or "")
            if shares and not text and keys and preset is not None:
                keys[-1].rows.append(row)
            else:
                keys.append(Key([row], match.group(5) or "", " ".join(text), preset is None))
            shares = preset is not None and (bool(text) or shares)
            text = []
        elif not line.strip():
            if text and not keys:
                head = " ".join(text)
            text, shares = [], False
    return head, keys


def place(above, indent, name):
    """Put a key below those that stand less indented."""
    depth = indent // 2
    above[depth:] = [""] * (depth - len(above)) + [name]


def join(above):
    """The path of a key: an entry of a list is [] behind the name of the list."""
    return ".".join(above).replace("..", "[].")


def is_limit(key):
    names = [path.split(".")[-1] for path, _ in key.rows]
    return not key.is_section and any(LIMIT.search(name) or name in LIMITS for name in names)


def items(keys):
    out = [".Bl -tag -width Ds"]
    for key in keys:
        for path, preset in key.rows:
            out.append(f".It Cm {mdoc.quoted(path)}" + (f" = Li {mdoc.quoted(preset)}" if preset else ""))
        if key.text:
            out.append(mdoc.fill(key.text))
        if key.when:
            out.append(mdoc.fill(WHEN[key.when]))
    return "\n".join(out + [".El"])


def put_yaml(pages, head, keys):
    """domus.yaml(5): the keys by their sections."""
    parts = [".Sh NAME", ".Nm domus.yaml", ".Nd the configuration of a program with domus",
             ".Sh DESCRIPTION", mdoc.fill(head), ".Pp",
             "Behind the equals sign stands the default.",
             ".Xr domus-config 1", "checks a file, and says where each value comes from."]
    section = None
    for key in keys:
        if not key.is_section:
            pages.entries += [(path, "key", "domus.yaml", 5, first_sentence([Part("text", key.text)]))
                              for path, _ in key.rows]
        top = key.path.split(".")[0].removesuffix("[]")
        if top != section:
            if section is not None:
                parts.append(items(open_keys))
            section, open_keys = top, []
            parts.append(f".Ss {top}")
            if "." not in key.path:
                parts.append(mdoc.fill(key.text) if key.text else "")
                continue
        if key.is_section and not key.text:
            continue
        open_keys.append(key)
    parts += [items(open_keys), ".Sh SEE ALSO",
              mdoc.references([("domus-config", 1), ("domus_config", 7), ("domus_limits", 7),
                               ("domus_main", 7), ("domus", 7)])]
    pages.entries.append(("domus.yaml", "file", "domus.yaml", 5, "the configuration of a program with domus"))
    pages.add("domus.yaml", 5, "the configuration of a program with domus", parts)


def limits_of(headers):
    """The limits that are constants of headers: [(header, member)]."""
    rows = []
    for header in headers:
        for block in header.blocks:
            for each in block.declarations:
                if each.kind == "macro" and re.search(r"_(?:MAX|LIMIT|MOST|SIZE)$", each.name) \
                        and "(" not in each.name:
                    parts = each.members[0].parts if each.members else block.parts
                    rows.append((header.name, each, parts))
    return rows


def put_limits(pages, keys, headers):
    """domus_limits(7): keys and constants that bound something, in the words of each."""
    summary = "what is bounded, by which key or constant, and what happens there"
    parts = [".Sh NAME", ".Nm domus_limits", f".Nd {summary}", ".Sh DESCRIPTION",
             ".Ss Keys of the configuration",
             "Behind the equals sign stands the default.", items([key for key in keys if is_limit(key)]),
             ".Ss Constants of the headers", ".Bl -tag -width Ds"]
    for header, each, text in limits_of(headers):
        value = each.code.removeprefix(f"#define {each.name}").strip()
        parts.append(f".It Dv {each.name}" + (f" = Li {mdoc.quoted(value)}" if value else "")
                     + f" Pq domus/{header}")
        first = next((part for part in text if part.kind == "text"), None)
        if first:
            parts.append(mdoc.fill(mdoc.sentence(first.text)))
    parts += [".El", ".Sh SEE ALSO",
              mdoc.references([("domus.yaml", 5), ("domus_config", 7), ("domus_counters", 7), ("domus", 7)])]
    pages.entries.append(("domus_limits", "concept", "domus_limits", 7, summary))
    pages.add("domus_limits", 7, summary, parts)
