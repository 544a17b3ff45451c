"""The text of a comment, taken apart: paragraphs, items of a list, and code that stands indented."""
import re
from dataclasses import dataclass

SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))(?<!e\.g\.)(?<!i\.e\.)(?<!\.\.\.)\s+(?=[A-Z0-9\"`(*'~/.-])")
RETURNS = re.compile(r"(?:^|(?<=[.!?:)] ))(?=(?:(?:It|Both|All|Each|This) (?:also )?)?[Rr]eturns? )")
LEADS = re.compile(r"(?:^|(?<=[.!?:)] ))(?=(?:Thread-safety|Ownership)[^:.]{0,60}: )")


@dataclass(frozen=True)
class Part:
    """A piece of a comment. `kind` is "text", "item" (of a list) or "code"."""
    kind: str
    text: str


def parts_of(comment):
    """Take a comment of C, with its marks, apart."""
    body = comment.strip()[2:-2]
    lines = []
    for number, line in enumerate(body.split("\n")):
        starred = re.match(r"\s*\*(?: |$)", line)
        lines.append(line[starred.end():].rstrip() if starred else
                     line.strip() if number else line.strip(" "))
    found, words, code = [], [], []
    kind = "text"

    def end_words():
        if words:
            found.append(Part(kind, " ".join(words)))
            words.clear()

    def end_code():
        while code and not code[-1]:
            code.pop()
        if code:
            found.append(Part("code", dedent(code)))
            code.clear()

    for line in lines:
        if not line:
            end_words()
            kind = "text"
            if code:
                code.append("")
        elif line.startswith("- ") and not code:
            end_words()
            kind = "item"
            words.append(line[2:].strip())
        elif line.startswith("  ") and kind == "item" and words:
            words.append(line.strip())
        elif line.startswith("  "):
            end_words()
            code.append(line)
        else:
            end_code()
            if kind == "item" and words:
                end_words()
                kind = "text"
            words.append(line.strip())
    end_words()
    end_code()
    return found


def dedent(lines):
    """Take the indentation away that all lines have."""
    least = min(len(line) - len(line.lstrip()) for line in lines if line)
    return "\n".join(line[least:] for line in lines)


def sentences_of(text):
    return [each for each in SENTENCE_END.split(text) if each]


def texts_of(parts):
    """All words of a comment, as one text."""
    return " ".join(part.text for part in parts if part.kind != "code")


def split_leads(parts):
    """Take out what is said under "Thread-safety:" and "Ownership:": (others, leads)."""
    others, leads = [], []
    for part in parts:
        if part.kind != "text":
            others.append(part)
            continue
        for piece in LEADS.split(part.text):
            piece = piece.strip()
            if not re.match(r"(?:Thread-safety|Ownership)[^:.]{0,60}: ", piece):
                if piece:
                    others.append(Part("text", piece))
                continue
            # Behind the sentence of such a lead the text may go on to what is returned.
            back = RETURNS.search(piece)
            if back and back.start() > 0:
                leads.append(piece[:back.start()].strip())
                others.append(Part("text", piece[back.start():].strip()))
            else:
                leads.append(piece)
    return others, leads


def split_returns(parts):
    """Take out the sentences that say what is returned: (others, returned). An own sentence such as
    "Returns 0; -ENOMEM." opens it, and the rest of its paragraph belongs to it."""
    others, returned = [], []
    for part in parts:
        match = RETURNS.search(part.text) if part.kind == "text" else None
        if match is None:
            others.append(part)
            continue
        before, after = part.text[:match.start()].strip(), part.text[match.start():].strip()
        if before:
            others.append(Part("text", before))
        returned.append(Part("text", after))
    return others, returned


def is_open(text):
    """Whether a quotation or a parenthesis that begins in the text does not end in it."""
    return text.count('"') % 2 == 1 or text.count("(") > text.count(")")


def title_of(parts):
    """The line of a header: its whole first sentence, as "Actors: messages, behaviours, ..."."""
    return first_sentence(parts, r"(?<=[.!?])\s")


def first_sentence(parts, ends=r"(?<=[.!?])\s|: |; |:$"):
    """The line behind a name: what stands before the first full stop, colon or semicolon."""
    text = next((part.text for part in parts if part.kind == "text"), "")
    text = re.sub(r"\*\*|`", "", text)
    places = [match.start() for match in re.finditer(ends, text) if not is_open(text[:match.start()])]
    sentence = text[:places[0] if places else None].rstrip(".:; ")
    if len(sentence) > 100:
        cut = sentence[:100]
        place = max(cut.rfind(", "), cut.rfind(" ("), cut.rfind(" that "), cut.rfind(" which "),
                    cut.rfind(" and "), cut.rfind(" so "))
        end = "" if place > 30 else " ..."
        # Words before the cut that lead to what is behind it go, too: "the order in", "memory, and to".
        sentence = re.sub(r"(?:,? (?:and|or|so|of|to|in|at|by|for|with))+$", "",
                          cut[:place] if place > 30 else cut.rsplit(" ", 1)[0])
        if sentence.count("(") > sentence.count(")"):
            sentence = sentence[:sentence.rindex("(")].rstrip()
        return sentence.rstrip(" ,.;:") + end
    if sentence.count("(") > sentence.count(")"):
        sentence = sentence[:sentence.rindex("(")]
    return sentence.rstrip(" ,.;:")
