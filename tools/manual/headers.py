"""The public headers, read: which declarations there are, and which comment is about which.

A comment is about the declarations that follow it without an empty line between. A function or a
constant without a comment of its own goes with the comment before it; anything else without one has a
page that says where it stands. What is private (domi_, DOMI_, and names that end in "_") has no page.
"""
import os
import re
from dataclasses import dataclass, field

from comments import parts_of

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SECTION = re.compile(r"/\* -{2,} *(.*?) *-{2,}[- ]*\*/", re.S)
NAME = re.compile(r"\b(?:domus_\w+|DOMUS_\w+)\b")


@dataclass
class Member:
    """A field of a structure, or a constant of an enumeration; several that share a comment are one."""
    lines: list                # its declarations
    names: list
    parts: list = field(default_factory=list)


@dataclass
class Declaration:
    kind: str                  # function, macro, struct, enum, opaque, type or variable
    name: str
    code: str                  # without comments, and without the body of a function
    members: list = field(default_factory=list)


@dataclass
class Block:
    """A comment and what it is about: one page."""
    header: str
    parts: list
    declarations: list
    section: str = ""
    before: str = ""           # the page that stands before it in the header

    @property
    def names(self):
        return list(dict.fromkeys(each.name for each in self.declarations))

    @property
    def constants(self):
        return [name for each in self.declarations if each.kind == "enum"
                for member in each.members for name in member.names]


@dataclass
class Header:
    name: str
    parts: list                # of the comment at its head
    blocks: list
    includes: list             # the public headers that it includes


def read_headers(directory):
    headers = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".h"):
            with open(f"{directory}/{name}", encoding="utf-8") as file:
                headers.append(read_header(name, file.read()))
    defined = {each.name for header in headers for block in header.blocks
               for each in block.declarations if each.kind == "struct"}
    for header in headers:
        for block in header.blocks:  # `typedef struct x x;` beside `struct x {...};` says nothing
            block.declarations = [each for each in block.declarations
                                  if each.kind != "opaque" or each.name not in defined]
        header.blocks = [block for block in header.blocks if block.declarations]
    return headers


def read_header(name, text):
    head = text.index("*/") + 2
    body = re.sub(r"#ifdef __cplusplus\nextern \"C\" \{\n#endif\n|#ifdef __cplusplus\n\}\n#endif\n", "\n",
                  text[head:])
    # Of two forms of a macro, that of C has the page.
    body = re.sub(r"#ifdef __cplusplus\n(?:[^#]|#(?!else|endif))*?\n#else\n(.*?)#endif\n", r"\1", body,
                  flags=re.S)
    body = re.sub(r"#if defined\(__clang__\)\n.*?\n#endif\n", "", body, flags=re.S)
    return Header(name, parts_of(text[:head]), group(name, list(tokens_of(body))),
                  re.findall(r"^#include <domus/(\w+\.h)>", text, re.M))


def tokens_of(text):
    """Give ("blank" | "comment" | "directive" | "code", text) in the order of the text. A comment that
    ends a line belongs to what the line has."""
    at = 0
    while at < len(text):
        match = re.compile(r"[ \t]*\n(?:[ \t]*\n)*").match(text, at)
        if match:
            if match.group(0).count("\n") > 1 or at == 0:
                yield "blank", ""
            at = match.end()
            continue
        match = re.compile(r"[ \t]*(/\*.*?\*/)", re.S).match(text, at)
        if match:
            yield "comment", match.group(1)
            at = match.end()
            continue
        if text[at:].lstrip(" ").startswith("#"):
            match = re.compile(r"(?:[^\n\\]|\\\n|\\.|/\*.*?\*/)*", re.S).match(text, at)
            yield "directive", match.group(0).strip()
            at = match.end()
            continue
        end = end_of_code(text, at)
        rest = re.compile(r"[ \t]*/\*.*?\*/(?=[ \t]*\n)", re.S).match(text, end)
        if rest:
            end = rest.end()
        yield "code", text[at:end].strip()
        at = end


def end_of_code(text, at, ends=";"):
    """Find the end of a declaration: its semicolon, or the brace that closes the body of a function."""
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        char = text[at]
        if char in "'\"":
            at = re.compile(r"(['\"])(?:\\.|(?!\1).)*\1").match(text, at).end()
            continue
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
            if depth == 0 and char == "}" and re.match(r"\s*\n\s*\n|\s*$", text[at + 1:]):
                return at + 1
        elif depth == 0 and char in ends:
            return at + 1
        at += 1
    return at


def group(header, tokens):
    """Put the tokens of a header together as blocks."""
    blocks, section = [], ""
    waiting, block = None, None  # the last comment, if nothing stands between; the block that is open
    for kind, text in tokens:
        if kind == "blank":
            waiting, block = None, None
        elif kind == "comment":
            match = SECTION.fullmatch(text)
            if match:
                section = match.group(1)
            waiting, block = (None if match else parts_of(text)), None
        else:
            declaration, own = declaration_of(kind, text)
            if declaration is None:
                continue
            if block is None and waiting is None and declaration.kind in ("function", "variable") and blocks:
                block = blocks[-1]
            if block is None:
                block = Block(header, waiting or [], [], section, blocks[-1].names[0] if blocks else "")
                blocks.append(block)
            if own:
                declaration.members = [Member([declaration.code], [declaration.name], own)]
            block.declarations.append(declaration)
            waiting = None
    return blocks


def declaration_of(kind, text):
    """(declaration, parts of the comment at its line), or (None, None) for what has no page."""
    if kind == "directive":
        return macro_of(text)
    code = re.sub(r"[ \t]+\n", "\n", COMMENT.sub("", text)).strip()
    if re.match(r"(typedef )?(struct|enum|union)\b[^;(]*\{", code):
        return structure_of(text, code)
    own = COMMENT.search(text[text.rfind(";"):])
    own = parts_of(own.group(0)) if own else []
    if re.match(r"typedef (struct|union|enum) \w+ \w+;", code):
        return Declaration("opaque", code[:-1].split()[-1], code), own
    if code.startswith("typedef"):
        match = re.search(r"\(?\*?\b(domus_\w+)\)?\(", code) or re.search(r"\b(domus_\w+)(?:\[.*?\])?;", code)
        return Declaration("type", match.group(1), code), own
    match = re.match(r"(?:DOMUS_API extern |static const )[^(]*?\b(domus_\w+)(?:\[.*?\])?(?:;| =)", code)
    if match:
        code = re.sub(r" = .*", ";", code, flags=re.S).replace("DOMUS_API ", "")
        return Declaration("variable", match.group(1), code), own
    match = re.match(r"(?:DOMUS_API |static inline )[^;{]*?\b(domus_\w+)\s*\(", code, re.S)
    if match is None:
        return None, None
    inner = code.find("{")
    code = (code[:inner].rstrip() + ";" if inner >= 0 else code).replace("DOMUS_API ", "")
    return Declaration("function", match.group(1), code), own


def macro_of(text):
    match = re.match(r"#\s*define\s+(DOMUS_\w+)(\([^)]*\))?(.*)", text, re.S)
    if match is None or match.group(1).endswith(("_", "_H")) or match.group(1) == "DOMUS_API":
        return None, None
    own = COMMENT.search(match.group(3))
    value = re.sub(r"\s*\\\n\s*", " ", COMMENT.sub("", match.group(3))).strip()
    value = re.sub(r"\s+", " ", value)
    code = f"#define {match.group(1)}{match.group(2) or ''}"
    if value and not match.group(2) and len(value) < 60:
        code += f" {value}"
    own_text = re.sub(r"\\\n", "\n", own.group(0)) if own else ""
    return Declaration("macro", match.group(1), code), parts_of(own_text) if own else []


def structure_of(text, code):
    match = re.match(r"(?:typedef )?(struct|enum|union)(?: (\w+))?", code)
    last = re.search(r"\}\s*(\w*)\s*;$", code)
    name = last.group(1) if last and last.group(1) else match.group(2)
    kind = "enum" if match.group(1) == "enum" else "struct"
    members = members_of(text[text.index("{") + 1:text.rindex("}")], kind, "")
    if not name and kind == "enum":
        name = members[0].names[0]  # constants without a type; the first one names the page
    if not name or not name.lower().startswith("domus_"):
        return None, None
    code = re.sub(r"\n\s*\n+", "\n", "\n".join(line.rstrip() for line in code.split("\n")))
    code = re.sub(r"(?<![;{},])\n\s*(?!\})", " ", code)  # the formatter breaks lines for comments
    code = re.sub(r"\* (?=\w+;)", "*", code)
    return Declaration(kind, name, code, members), []


def members_of(text, kind, path):
    """The fields or constants of a body. Those that follow a commented one without a comment of their
    own, and without an empty line, are under that comment, too."""
    found, waiting, at, shares = [], [], 0, False
    while at < len(text):
        blank = re.compile(r"\s*").match(text, at)
        if blank.group(0).count("\n") > 1:
            waiting, shares = [], False
        at = blank.end()
        if at >= len(text):
            break
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            waiting, shares = parts_of(text[at:end]), False
            at = end
            continue
        if text[at] == "#":
            at = text.index("\n", at)
            continue
        end = end_of_code(text, at, "," if kind == "enum" else ";")
        member = text[at:end]
        trailing = re.compile(r"[ \t]*(/\*.*?\*/)(?=[ \t]*(?:\n|$))", re.S).match(text, end)
        at = trailing.end() if trailing else end
        nested = re.match(r"\s*(?:struct|union)(?: \w+)? \{(.*)\}\s*(\w*)(\[[^]]*\])?;$", member, re.S)
        if nested:
            inner = f"{path}{nested.group(2)}." if nested.group(2) else path
            if waiting:
                found.append(Member([], [path + nested.group(2)], waiting))
            found += members_of(nested.group(1), kind, inner)
            waiting, shares = [], False
            continue
        code = re.sub(r"\s+", " ", COMMENT.sub("", member)).strip().rstrip(",;").strip()
        if not code:
            continue
        name = name_of_member(code, kind)
        if path:
            code = re.sub(rf"\b{re.escape(name)}\b", path + name, code, count=1)
        own = waiting + (parts_of(trailing.group(1)) if trailing else [])
        if not own and shares and found:
            found[-1].lines.append(code)
            found[-1].names.append(path + name)
        else:
            found.append(Member([code], [path + name], own))
        shares = bool(waiting) and not trailing or (shares and not own)
        waiting = []
    return found


def name_of_member(code, kind):
    if kind == "enum":
        return code.split("=")[0].strip()
    match = re.search(r"\(\*(?:const )?(\w+)(?:\[[^]]*\])?\)", code)
    if match:
        return match.group(1)
    return re.findall(r"\w+", re.sub(r"\[[^]]*\]|\s*:\s*\d+$", "", code.split(",")[0]))[-1]
