#!/usr/bin/env python3
"""The manual, made from the public headers, config/domus.yaml and the tables of the metrics.

    python3 tools/manual OUTPUT [--version V]

The comments there are the only text, so nothing has to be kept true twice. OUTPUT gets

    man/man3/NAME.3          a page for each comment, under each name that it is about (functions.py)
    man/man7/domus_HEADER.7  a page for each header, and for each concept (concepts.py); domus_limits.7
                             and domus_counters.7
    man/man5/domus.yaml.5    the keys (keys.py)
    html/                    the same, with those of packaging/man, and a search (web.py)

An example of a page is a function of examples/ that uses what the page is about, or else of a bench or
a test, so each build compiles it. Two runs give the same bytes: no time and no path of the machine is
in them, and the date is that of the page domus(1).
"""
import argparse
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True  # the tree of the sources stays as it is

import counters  # noqa: E402
import keys  # noqa: E402
import mdoc  # noqa: E402
import web  # noqa: E402
from concepts import Concepts, concepts_of  # noqa: E402
from functions import Functions  # noqa: E402
from headers import read_headers  # noqa: E402
from sources import Examples, Libraries, read, words_of  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make_pages(version):
    date = re.search(r"^\.Dd (.*)$", read(f"{ROOT}/packaging/man/domus.1"), re.M).group(1)
    pages = mdoc.Pages(version, date)
    headers = read_headers(f"{ROOT}/include/domus")
    head, rows = keys.read_keys(f"{ROOT}/config/domus.yaml")
    keys.put_yaml(pages, head, rows)
    keys.put_limits(pages, rows, headers)
    counters.put_counters(pages, ROOT, headers)
    Concepts(pages, headers).make(words_of(ROOT))
    Functions(pages, headers, Libraries(ROOT), Examples(ROOT),
              {header.name: concepts_of(header.name) for header in headers}).make()
    return pages


def write(pages, output):
    shutil.rmtree(output, ignore_errors=True)
    for (name, section), text in pages.texts.items():
        os.makedirs(f"{output}/man{section}", exist_ok=True)
        with open(f"{output}/man{section}/{name}.{section}", "w", encoding="utf-8") as file:
            file.write(text)
    for (name, section), page in pages.links.items():
        os.symlink(f"{page}.{section}", f"{output}/man{section}/{name}.{section}")


def main():
    parser = argparse.ArgumentParser(prog="tools/manual")
    parser.add_argument("output")
    parser.add_argument("--version", default=re.search(
        r"project\(domus VERSION (\S+)", read(f"{ROOT}/CMakeLists.txt")).group(1))
    options = parser.parse_args()
    pages = make_pages(options.version)
    write(pages, f"{options.output}/man")
    shown = web.put_site(pages, f"{ROOT}/packaging/man", f"{options.output}/man", f"{options.output}/html")
    print(f"{len(pages.texts)} pages, {len(pages.links)} more names, {shown} pages of HTML")


if __name__ == "__main__":
    main()
