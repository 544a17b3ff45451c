"""Section 3: a page for each comment of a header, under each of the names that it is about."""
import os
import re

import mdoc
from comments import (Part, first_sentence, sentences_of, split_leads, split_returns, texts_of,
                      title_of)
from headers import NAME

ERRNO = re.compile(r"-(E[A-Z0-9]{2,})\b")
# A comment that is understood with the one before it: "The same for ...", "Read such a value".
LIKE_BEFORE = re.compile(r"^(?:The same|Likewise)\b|^(?:\w+ ){1,2}(?:these|them|those|it|such)\b")
COMMON = {"domus_stack", "domus_address", "domus_type"}  # they are in every other signature
# The words of an error that a comment names without a cause.
STANDARD = {name: os.strerror(number) for number, name in __import__("errno").errorcode.items()}


class Functions:
    def __init__(self, pages, headers, libraries, examples, concepts):
        self.pages, self.libraries, self.examples = pages, libraries, examples
        self.concepts = concepts  # {header: pages of section 7 that tell of it}
        self.headers = {header.name: header for header in headers}
        self.libraries_of_header = libraries.of_headers(headers)
        self.page_of = {}         # name: the name of its page
        for header in headers:
            for block in header.blocks:
                for name in block.names + block.constants:
                    self.page_of.setdefault(name, block.names[0])
        self.errors = {}          # page: its errors, for pages that return the same
        for header in headers:
            for block in header.blocks:
                others, returned = split_returns(split_leads(block.parts)[0])
                self.errors[block.names[0]] = errors_of(returned, others)

    def make(self):
        for header in self.headers.values():
            for block in header.blocks:
                self.add(block, header)

    def add(self, block, header):
        others, leads = split_leads(block.parts)
        others, returned = split_returns(others)
        name = block.names[0]
        summary = self.summary_of(block)
        own = self.libraries_of(block)
        flags = " ".join(f"Fl l{library} ," for library in own)
        parts = [".Sh NAME", " ,\n".join(f".Nm {each}" for each in block.names),
                 mdoc.description_line(summary),
                 ".Sh LIBRARY", f"{', '.join(own)}\n.Pq {flags} No pkg-config {' '.join(own)}",
                 ".Sh SYNOPSIS", f".In domus/{block.header}", synopsis(block),
                 ".Sh DESCRIPTION", self.description(block, others)]
        if any(each.kind == "function" for each in block.declarations) \
                and not any(lead.startswith("Thread-safety") for lead in leads):
            leads += [lead for lead in split_leads(header.parts)[1] if lead.startswith("Thread-safety")]
        for lead in leads:
            word, _, rest = lead.partition(": ")
            title = "THREAD SAFETY" if word.startswith("Thread-safety") else "OWNERSHIP"
            about = re.sub(r"^(?:Thread-safety|Ownership) ?(?:of all functions here$)?", "", word)
            rest = mdoc.sentence(f"{about}: {rest}" if about else rest)
            parts += [f".Sh {title}", mdoc.fill(rest)]
        example = self.examples.of(block.names)
        parts += returns_section(returned)
        if example:
            parts += [".Sh EXAMPLES", f"From\n.Pa {example[0]} :", mdoc.literal(example[1])]
        parts += self.errors_section(name, returned)
        parts += [".Sh SEE ALSO", mdoc.references(self.related(block))]
        self.pages.add(name, 3, summary, merge_sections(parts))
        for each in block.names[1:] + block.constants:
            self.pages.link(each, 3, name)
        self.note(block, name, summary)

    def note(self, block, page, summary):
        """Put the names into the index, each with the words that are nearest to it."""
        self.pages.of_header.setdefault(block.header, []).append(page)
        for each in block.declarations:
            kind = {"opaque": "type", "struct": "structure", "enum": "enumeration"}.get(each.kind, each.kind)
            own = each.members if each.kind not in ("struct", "enum") else []
            line = first_sentence(own[0].parts) if own and own[0].parts else summary
            self.pages.entries.append((each.name, kind, page, 3, line))
            if each.kind == "enum":
                for member in each.members:
                    self.pages.entries += [(name, "constant", page, 3, first_sentence(member.parts) or summary)
                                           for name in member.names if name != each.name]

    def summary_of(self, block):
        """The line of the names; that of a header for the structure that it is about."""
        header = self.headers[block.header]
        if not block.parts and block.names[0] == page_of_header(block.header):
            return title_of(header.parts)
        return summary_of(block)

    def libraries_of(self, block):
        for name in block.names:
            if name in self.libraries.of_name:
                return [self.libraries.of_name[name]]
        return self.libraries_of_header[block.header]

    def description(self, block, others):
        out = []
        if others:
            out.append(mdoc.paragraphs(others))
            if block.before and LIKE_BEFORE.search(first_sentence(block.parts)):
                out += [".Pp", mdoc.fill(f"(The words go on from {block.before}, which stands before it.)")]
        elif not block.parts:
            out.append(mdoc.fill(f"The page domus_{block.header[:-2]}(7) tells of it."))
        for each in block.declarations:
            if not each.members:
                continue
            title = {"enum": "Constants", "struct": "Fields"}.get(each.kind)
            if title:
                out.append(f".Ss {title} of {each.name}" if each.name.startswith("domus_") else f".Ss {title}")
                out.append(member_list(each.members, "Dv" if each.kind == "enum" else "Va"))
        constants = [member for each in block.declarations if each.kind not in ("enum", "struct")
                     for member in each.members]
        if constants:
            out += [".Bl -tag -width Ds", *(item(member, "Dv", member.names) for member in constants), ".El"]
        return "\n".join(out) or mdoc.fill(first_sentence(block.parts) + ".")

    def errors_section(self, name, returned):
        found = self.errors[name]
        like = [each for each in re.findall(r"\bas (?:a |those of )?(domus_\w+)\(\)", texts_of(returned))
                if each in self.page_of and self.page_of[each] != name and self.errors[self.page_of[each]]]
        if not found and not like:
            return []
        out = [".Sh ERRORS"]
        if found:
            out.append(".Bl -tag -width Er")
            for errno, when in found.items():
                out += [f".It Bq Er {errno}", mdoc.fill(when or f"{STANDARD.get(errno, errno)}.")]
            out.append(".El")
        if like:
            rows = " ,\n".join(f".Xr {self.page_of[each]} 3" for each in dict.fromkeys(like))
            if found:
                out.append(".Pp")
            out += ["The errors of these may come, too:", rows + " ."]
        return out

    def related(self, block):
        """Names that the comments and the declarations have, and the pages of section 7."""
        text = texts_of(block.parts)
        text += " ".join(texts_of(member.parts) for each in block.declarations for member in each.members)
        code = " ".join(each.code for each in block.declarations)
        names = set(NAME.findall(text)) | (set(NAME.findall(code)) - COMMON)
        if LIKE_BEFORE.search(first_sentence(block.parts)):
            names.add(block.before)
        names = {self.page_of[each] for each in names if each in self.page_of} - {block.names[0]}
        rows = [(each, 3) for each in names]
        rows += [(page, 7) for page in self.concepts[block.header]]
        rows += [(page_of_header(f"{each}.h"), 7) for each in re.findall(r"domus/(\w+)\.h", text)
                 if f"{each}.h" in self.headers]
        return rows


def page_of_header(header):
    return "domus" if header == "domus.h" else f"domus_{header[:-2]}"


def summary_of(block):
    line = first_sentence(block.parts)
    if not line:
        for each in block.declarations:
            if len(block.declarations) == 1 and each.kind not in ("enum", "struct"):
                for member in each.members:
                    line = line or first_sentence(member.parts)
    if line:
        return re.sub(r"^The same (?=for|with|but|of|in|on|to|at|behind)", f"The same as {block.before}, ", line) \
            if block.before else line
    kinds = {each.kind for each in block.declarations}
    kind = {"macro": "constants", "enum": "an enumeration", "struct": "a structure", "opaque": "a type"}.get(
        block.declarations[0].kind if len(kinds) == 1 else "", "names")
    if len(block.names) == 1 and kind == "constants":
        kind = "a constant"
    section = f", {block.section}" if block.section else ""
    return f"{kind} of domus/{block.header}{section}"


def synopsis(block):
    out = []
    for each in block.declarations:
        if each.kind == "function" or (each.kind == "type" and "(" in each.code):
            out.append(prototype(each))
        elif each.kind == "macro" and "\n" not in each.code:
            match = re.match(r"#define (\w+)\(([^)]*)\)", each.code)
            if match:
                words = [quoted_word(word) for word in match.group(2).split(",") if word.strip()]
                out.append(mdoc_call("", match.group(1), words))
            else:
                out.append(f".Fd {mdoc.quoted(each.code)}")
        elif each.kind in ("struct", "enum") and "{" in each.code:
            out.append(mdoc.literal(each.code, None))
        else:
            out.append(f".Vt {mdoc.quoted(re.sub(r'[ ]*;$', ';', ' '.join(each.code.split())))}")
    return "\n".join(out)


def quoted_word(word):
    return mdoc.quoted(word.strip())


def prototype(each):
    """A function, or the type of one, as mdoc wants it."""
    code = " ".join(each.code.split()).rstrip(";")
    match = re.search(rf"(\(\*{each.name}\)|\b{each.name}) ?\(", code)
    before = code[:match.start()].strip()
    depth, end = 1, match.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    words, depth, word = [], 0, ""
    for char in code[match.end():end - 1]:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            words.append(word)
            word = ""
        else:
            word += char
    words.append(word)
    after = code[end:].strip()
    text = mdoc_call(before, match.group(1), [quoted_word(word) for word in words])
    return text + (f"\n.Vt {mdoc.quoted(after)}" if after else "")


def mdoc_call(before, name, words):
    out = [f".Ft {mdoc.quoted(before)}"] if before else []
    out.append(f".Fo {mdoc.quoted(name) if '(' in name else name}")
    out += [f".Fa {word}" for word in words]
    return "\n".join(out + [".Fc"])


def member_list(members, macro):
    out = [".Bl -tag -width Ds"]
    for member in members:
        out.append(item(member, macro, member.lines or member.names))
    return "\n".join(out + [".El"])


def item(member, macro, lines):
    text = mdoc.paragraphs(sentences(member.parts))
    return mdoc.tags(lines, macro) + (f"\n{text}" if text else "")


def sentences(parts):
    """The same parts, each as a sentence: the comment beside a field is often none."""
    return [Part("text", mdoc.sentence(part.text)) if part.kind == "text" else part for part in parts]


def returns_section(returned):
    return [".Sh RETURN VALUES", mdoc.paragraphs(returned)] if returned else []


def errors_of(returned, others):
    """{errno: when}: from clauses as "-ENOMEM; -EBADF for ...", and else the sentences that have it. Each
    cause is told of an errno that has several."""
    found = {}
    for part in returned:
        if part.kind == "code":
            continue
        for clause in re.split(r"; |\. (?=[A-Z(\"`-])|: (?=-E)", part.text):
            matches = list(ERRNO.finditer(clause))
            group = []
            for number, match in enumerate(matches):
                group.append(match.group(1))
                end = matches[number + 1].start() if number + 1 < len(matches) else len(clause)
                between = clause[match.end():end]
                if number + 1 < len(matches) and re.fullmatch(r",?\s*(?:and|or)?\s*", between):
                    continue
                when = re.sub(r",?\s*(?:and|or)?\s*$", "", between.strip()).strip(" ,.:;)")
                if when.count("(") > when.count(")"):
                    when += ")"
                when = re.sub(r"^(?:[,:]|\((?!\d+\) ))?\s*(?:and )?", "", when)
                when = re.sub(r"^(?:when|if|because) ", "", when)
                when = mdoc.sentence(when) if when else ""
                if re.match(r"After |A handler may ", clause):
                    when = ""  # it is about an error that was named before
                for name in group:
                    told = found.get(name, "")
                    found[name] = f"{told} {when}".strip() if when not in told else told
                group = []
    for part in others:
        if part.kind == "code":
            continue
        for sentence in sentences_of(part.text):
            for name in ERRNO.findall(sentence):
                found.setdefault(name, sentence)
    return found


def merge_sections(parts):
    """Two leads of the same kind are one section."""
    out, seen = [], set()
    for part in parts:
        if part in (".Sh THREAD SAFETY", ".Sh OWNERSHIP"):
            if part in seen:
                part = ".Pp"
            seen.add(part)
        out.append(part)
    return out
