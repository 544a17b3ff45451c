"""What the manual takes from the sources besides the headers: which library has a function, examples
of its use, and the words of the contract."""
import os
import re

# An example is a function or a table of so many lines. A shorter one says too little.
LINES_MAX, LINES_MIN = 30, 5
# Code that uses what only this tree has, or uses a function as nobody should.
UNLIKE = re.compile(r"\bdom[it]_|[mM]isuse|[wW]rong|EINVAL|[hH]ostile")
CORE = ("base", "house", "io", "runtime")
NAME = re.compile(r"\b(?:domus_\w+|DOMUS_[A-Z]\w+)\b")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_below(directory, endings):
    for folder, folders, files in os.walk(directory):
        folders.sort()
        for name in sorted(files):
            if name.endswith(endings):
                yield os.path.join(folder, name)


class Libraries:
    """The library of each name, by the folder whose files define it: what `domus_folder()` of
    CMakeLists.txt takes in."""

    def __init__(self, root):
        self.of_name = {}
        folders = [(folder, "domus") for folder in CORE] + [("config", "domus-config")]
        folders += [(f"protocols/{name}", f"domus-{name}") for name in sorted(os.listdir(f"{root}/protocols"))]
        for folder, library in folders:
            for path in files_below(f"{root}/{folder}", (".c", ".cpp")):
                self.read(read(path), library)

    def read(self, text, library):
        defined = r"^(?!static|#|typedef|extern)[a-z][\w *]*?\b(domus_\w+)(?:\(|\[| =|;)"
        for match in re.finditer(defined, text, re.M):
            self.of_name.setdefault(match.group(1), library)
        # A function whose type is on a line of its own, or that a macro of its file defines.
        for match in re.finditer(r"^(?:[A-Z_]+\()?(domus_\w+)\(", text, re.M):
            self.of_name.setdefault(match.group(1), library)

    def of_headers(self, headers):
        """{header: its libraries}: the one that has its functions; for a header that has none, but
        inline ones, those of what it includes; else domus, which has the types of all."""
        own = {header.name: self.of_functions(header) for header in headers}
        result = {}
        for header in headers:
            is_inline = any(each.code.startswith("static inline") for block in header.blocks
                            for each in block.declarations)
            theirs = sorted({own[name] for name in header.includes if own[name]} - {"domus"})
            result[header.name] = [own[header.name]] if own[header.name] else \
                theirs if is_inline and theirs else ["domus"]
        return result

    def of_functions(self, header):
        """The library that most functions of a header are in, or None."""
        counts = {}
        for block in header.blocks:
            for each in block.declarations:
                library = self.of_name.get(each.name)
                if each.kind in ("function", "variable") and library:
                    counts[library] = counts.get(library, 0) + 1
        return max(sorted(counts), key=counts.get) if counts else None


class Examples:
    """Functions and tables by the names that they use: the shortest of examples/; of a name that no
    example uses, the shortest of the benches, and then of the tests with the fewest assertions."""

    def __init__(self, root):
        self.uses = {}  # name: (path, code, how bad: place, assertions, lines)
        for place, folder in enumerate(("examples", "bench", "tests")):
            for path in files_below(f"{root}/{folder}", (".c",)):
                if "/fuzz/" not in path:
                    self.read(os.path.relpath(path, root), read(path), place)

    def read(self, path, text, place):
        for code in self.pieces_of(text):
            lines = code.count("\n") + 1
            if not LINES_MIN <= lines <= LINES_MAX or (place and UNLIKE.search(code)):
                continue
            cost = (place, code.count("ck_assert"), lines)
            for name in set(NAME.findall(re.sub(r"/\*.*?\*/", "", code, flags=re.S))):
                if name not in self.uses or cost < self.uses[name][2]:
                    self.uses[name] = (path, code, cost)

    @staticmethod
    def pieces_of(text):
        comment = r"(?:/\*(?:[^*]|\*(?!/))*\*/\n)?"
        function = r"(?:static |int |void |bool |DOMUS_SEQUENCE)[^;{}]*\)\n\{\n.*?^\}"
        table = r"(?:static )?const [^;{}=()]*= ?\{\n.*?^\};"
        for match in re.finditer(f"^{comment}(?:{function}|{table})", text, re.M | re.S):
            yield match.group(0)

    def of(self, names):
        for name in names:
            if name in self.uses:
                return self.uses[name][:2]
        return None


def words_of(root):
    """The words of the contract: [(title, [(word, meaning)])]."""
    text = read(f"{root}/docs/contract.md")
    text = text[text.index("\n## Words\n"):]
    text = text[:text.index("\n## ", 5)]
    tables = []
    for part in text.split("\n### ")[1:]:
        title, _, rest = part.partition("\n")
        rows = re.findall(r"^\| (.+?) \| (.+) \|$", rest, re.M)
        tables.append((title.strip(), [row for row in rows if row[0] != "word"]))
    return tables
