"""Section 7: a page for each header, and pages that tell of one thing by the heads of the headers that
it is made of. The words are those of the headers and of docs/contract.md; only the lists below are
written here. Where a header has the name of such a page (pools, cluster), that one page is both."""
import re

import mdoc
from comments import title_of
from functions import page_of_header, summary_of

# name of the page: (its line, headers in the order in which one reads of them)
CONCEPTS = {
    "actors": ("actors: what they are, how they begin, fail and end",
               ["actor", "spawn", "supervise", "message", "name", "timer", "letters", "group", "router",
                "process", "detached", "outsider", "entry", "blocking"]),
    "conversations": ("conversations: asking, answering and waiting",
                      ["conversation", "await", "receive", "waiters"]),
    "channels": ("channels: connections, from their opening to their end",
                 ["channel", "listen", "connect", "endpoint", "channel_options", "slice", "datagram",
                  "descriptor", "pool"]),
    "pipelines": ("pipelines: stages that turn bytes into messages and back",
                  ["pipeline", "stage", "stream", "inner", "lend", "front", "stage_kit", "inner_kit"]),
    "pools": ("pools of runners: threads that share actors which compute",
              ["pools", "policy", "pool_config"]),
    "cluster": ("clusters: systems whose actors send to each other",
                ["cluster", "remote", "grain", "pickle", "pickle_code", "cluster_config"]),
}


def concepts_of(header):
    """The pages that tell of a header, its own first."""
    name = header[:-2]
    return [page_of_header(header)] + [f"domus_{concept}" for concept, (_, headers) in CONCEPTS.items()
                                       if name in headers and concept != name] + ["domus"]


class Concepts:
    def __init__(self, pages, headers):
        self.pages = pages
        self.headers = {header.name[:-2]: header for header in headers}

    def make(self, words):
        for name, header in self.headers.items():
            if name not in CONCEPTS and name != "domus":
                self.add_header(header)
        for name, (line, names) in CONCEPTS.items():
            self.add_concept(name, line, [self.headers[each] for each in names])
        self.add_words(words)
        self.add_introduction()

    def contents(self, header):
        """What a header has, with the line of each."""
        if not header.blocks:
            return []
        out = [f".Ss Declarations of domus/{header.name}", ".Bl -tag -width Ds"]
        for block in header.blocks:
            out += [f".It Xr {block.names[0]} 3", mdoc.fill(summary_of(block))]
        return out + [".El"]

    def others(self, header):
        names = re.findall(r"domus/(\w+)\.h", " ".join(part.text for part in header.parts))
        return [(page_of_header(f"{name}.h"), 7) for name in names
                if name in self.headers and f"{name}.h" != header.name]

    def add_header(self, header):
        name = page_of_header(header.name)
        summary = title_of(header.parts)
        rows = self.others(header) + [(each, 7) for each in concepts_of(header.name)[1:]]
        self.pages.entries.append((f"domus/{header.name}", "header", name, 7, summary))
        self.pages.add(name, 7, summary, [
            ".Sh NAME", f".Nm {name}", mdoc.description_line(summary), ".Sh SYNOPSIS",
            f".In domus/{header.name}", ".Sh DESCRIPTION", mdoc.paragraphs(header.parts),
            *self.contents(header), ".Sh SEE ALSO", mdoc.references(rows)])

    def add_concept(self, concept, line, headers):
        name = f"domus_{concept}"
        parts = [".Sh NAME", f".Nm {name}", mdoc.description_line(line), ".Sh SYNOPSIS"]
        parts += [f".In domus/{header.name}" for header in headers]
        parts.append(".Sh DESCRIPTION")
        rows = [("domus", 7), ("domus_words", 7)]
        for header in headers:
            own = page_of_header(header.name)
            parts += [f".Ss domus/{header.name}", mdoc.paragraphs(header.parts)]
            if own != name:
                rows.append((own, 7))
            rows += self.others(header)
        if concept in self.headers:
            parts += self.contents(self.headers[concept])
        rows = [row for row in rows if row[0] != name]
        self.pages.entries.append((name, "concept", name, 7, line))
        if concept in self.headers:
            self.pages.entries.append((f"domus/{concept}.h", "header", name, 7, line))
        self.pages.add(name, 7, line, parts + [".Sh SEE ALSO", mdoc.references(rows)])

    def add_words(self, tables):
        summary = "the words that domus uses, each with one meaning"
        parts = [".Sh NAME", ".Nm domus_words", f".Nd {summary}", ".Sh DESCRIPTION"]
        for title, rows in tables:
            parts += [f".Ss {title}", ".Bl -tag -width Ds"]
            for word, meaning in rows:
                meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", meaning)
                text = meaning[:1].upper() + meaning[1:]
                parts += [f".It Sy {mdoc.quoted(word.replace('`', ''))}", mdoc.fill(text.rstrip(".") + ".")]
            parts.append(".El")
        parts += [".Sh SEE ALSO", mdoc.references([("domus", 7), ("domus_actors", 7)])]
        self.pages.entries.append(("domus_words", "concept", "domus_words", 7, summary))
        self.pages.add("domus_words", 7, summary, parts)

    def add_introduction(self):
        """domus(7): where to read on."""
        summary = "a library for network services made of actors"
        parts = [".Sh NAME", ".Nm domus", f".Nd {summary}", ".Sh SYNOPSIS", ".In domus/domus.h",
                 ".Sh DESCRIPTION", mdoc.paragraphs(self.headers["domus"].parts),
                 ".Ss What to read first", ".Bl -tag -width Ds"]
        first = [f"domus_{concept}" for concept in CONCEPTS] + ["domus_limits", "domus_counters", "domus_words"]
        for name in first:
            parts += [f".It Xr {name} 7", mdoc.fill(self.pages.summaries[name, 7])]
        parts += [".It Xr domus.yaml 5", mdoc.fill(self.pages.summaries["domus.yaml", 5]),
                  ".El", ".Ss Headers", ".Bl -tag -width Ds"]
        for header in sorted(self.headers.values(), key=lambda each: each.name):
            name = page_of_header(header.name)
            if name not in first and name != "domus":
                parts += [f".It Xr {name} 7", mdoc.fill(title_of(header.parts))]
        rows = [("domus", 1), ("domus.yaml", 5), *((name, 7) for name in first)]
        parts += [".El", ".Sh SEE ALSO", mdoc.references(rows)]
        self.pages.entries.append(("domus/domus.h", "header", "domus", 7, summary))
        self.pages.add("domus", 7, summary, parts)
