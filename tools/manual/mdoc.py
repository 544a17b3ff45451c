"""Words and code as lines of mdoc(7): escaped, no longer than 80 bytes, each sentence on a line."""
import re

from comments import sentences_of

WIDTH = 76
NAME_LIKE = re.compile(r"\w[_/][\w*]|[a-z][A-Z]|[a-z]\.[a-z]")


def escape(text):
    """Text in which nothing is a request of roff."""
    return text.replace("\\", "\\e")


def line_start(line):
    return "\\&" + line if line[:1] in (".", "'") else line


def quoted(text):
    """An argument of a macro."""
    return '"' + escape(text).replace('"', '""') + '"'


def marked(text):
    """A text with what stands in backquotes or asterisks, and names with (), in their fonts."""
    out = []
    for piece in re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text):
        if piece.startswith("`") and len(piece) > 2:
            out.append("\\fI" + escape(piece[1:-1]).replace(" ", "\\~") + "\\fP")
        elif piece.startswith("**") and len(piece) > 4:
            words = escape(piece[2:-2]).split(" ")
            out.append(" ".join(f"\\fB{word}\\fP" for word in words))
        else:
            out.append(re.sub(r"\b([A-Za-z_]\w+)\((\d?)\)", r"\\fB\1\\fP(\2)", escape(piece)))
    # A line may break at a hyphen, and not at a minus.
    return re.sub(r"-(?=E[A-Z0-9]|>)", r"\\-", "".join(out))


def fill(text, width=WIDTH, mark=marked):
    """Lines of a paragraph."""
    lines = []
    for sentence in sentences_of(text):
        line = ""
        for word in mark(sentence).split():
            if mark is marked:  # a name that a hyphen divides is not found by a search
                word = "\\~".join("\\%" + each if NAME_LIKE.search(each) else each for each in word.split("\\~"))
            word = word.replace("\\~", "\\ ")
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return "\n".join(line_start(line) for line in lines if line)


def sentence(text):
    """A text that begins with a capital letter, and ends as a sentence does."""
    word = re.match(r"[a-z]+(?=[ ,;:]|\.(?!\w)|$)", text)  # not a key, such as io.backend
    text = text[:1].upper() + text[1:] if word else text
    return text if text.endswith((".", ":", "!", "?", ".)")) else text + "."


def literal(code, indent="indent"):
    lines = [line_start(escape(line.rstrip())) for line in code.expandtabs(4).split("\n")]
    offset = f" -offset {indent}" if indent else ""
    return f".Bd -literal{offset}\n" + "\n".join(lines) + "\n.Ed"


def paragraphs(parts):
    """The parts of a comment, one under the other."""
    out, before = [], None
    for part in parts:
        if before == "item" and part.kind != "item":
            out.append(".El")
        if part.kind == "code":
            out.append(literal(part.text))
        elif part.kind == "item":
            if before != "item":
                out.append(".Bl -bullet")
            out += [".It", fill(part.text)]
        else:
            if before:
                out.append(".Pp")
            out.append(fill(part.text))
        before = part.kind
    if before == "item":
        out.append(".El")
    return "\n".join(out)


def description_line(text):
    """The line behind the name of a page, broken where it is too long."""
    text = re.sub(r"\*\*|`", "", text)
    if text[1:2].islower() or text[1:2] == " ":
        text = text[:1].lower() + text[1:]
    lines = fill(text, 70, escape).split("\n")  # lexgrog loses a space before a font
    words = lines[0].removeprefix("\\&").replace('"', "\\(dq").split(" ")
    words = ["\\&" + word if re.fullmatch(r"[A-Z][a-z]", word) else word for word in words]
    lines[0] = ".Nd " + " ".join(words)
    return "\n".join(lines) + ("\\&" if lines[-1][-1:] in ".,:;?!)" else "")


def tags(lines, macro):
    """The heads of items of a list: several stand above one text."""
    return "\n".join(f".It {macro} {quoted(line)}" for line in lines)


def references(rows):
    """SEE ALSO, in the order that mandoc wants: by section, then by name."""
    rows = sorted(set(rows), key=lambda row: (row[1], row[0].lower(), row[0]))
    return " ,\n".join(f".Xr {name} {section}" for name, section in rows)


class Pages:
    """What all pages have in common, and the pages that were made."""

    def __init__(self, version, date):
        self.version, self.date = version, date
        self.texts = {}    # (name, section): text
        self.links = {}    # (name, section): the name of the page that it is
        self.summaries = {}  # (name, section): one line
        self.entries = []    # of the index: (name, kind, page, section, one line)
        self.of_header = {}  # header: its pages of section 3

    def head(self, name, section):
        return (f".\\\" Made by tools/manual of domus.\n.Dd {self.date}\n"
                f".Dt {name.upper()} {section}\n.Os domus {self.version}")

    def add(self, name, section, summary, parts):
        text = "\n".join(part for part in [self.head(name, section), *parts] if part)
        self.texts[name, section] = text + "\n"
        self.summaries[name, section] = re.sub(r"\*\*|`", "", summary)

    def link(self, name, section, page):
        if (name, section) not in self.texts:
            self.links[name, section] = page
