"""Each file that `cmake --install` writes is in one package of Debian, and each row of a package has a file.

The same for domus.spec beside DEBIAN, where each row of %files is looked at.

usage: installed.py BUILD DEBIAN     BUILD is a folder of a build, DEBIAN that of control and of PACKAGE.install

Rows are patterns as dh_install reads them. Debian has the libraries in a folder of the processor, the build in lib. What stands in
`not-installed` is in no package, and folders that debian/rules gives to domus-doc by itself (made in ...) belong there; the pages of the
manual, thousands of files, are not installed here. It prints a line for each offence, and the status is 1 if there is one.
"""
import fnmatch
import os
import re
import subprocess
import sys
import tempfile


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [line.split()[0].replace("usr/lib/*/", "usr/lib/") for line in file if line.strip() and not line.startswith("#")]


def packages(debian):
    """Pairs of a package and a pattern."""
    found = [("not-installed", row) for row in rows(f"{debian}/not-installed")]
    for name in sorted(os.listdir(debian)):
        if name.endswith(".install"):
            found += [(name.removesuffix(".install"), row) for row in rows(f"{debian}/{name}")]
    with open(f"{debian}/rules", encoding="utf-8") as file:
        made = re.search(r"for made in ([^;]*);", file.read())
    return found, [("domus-doc", "usr/share/" + row) for row in made.group(1).split()]


def matches(path, pattern):
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, pattern + "/*")


def packages_of_spec(path, build):
    """The same of domus.spec, and what its list of the manual leaves out."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    macros = {"_bindir": "usr/bin", "_libdir": "usr/lib", "_libexecdir": "usr/libexec", "_includedir": "usr/include",
              "_datadir": "usr/share", "_mandir": "usr/share/man", "_docdir": "usr/share/doc",
              "version": re.search(r"^Version: *(\S+)", text, re.M).group(1), "minor": re.search(r"^%global minor (\S+)", text, re.M).group(1)}
    found = []
    for name, body in re.findall(r"^%files (.*)\n((?:[^\n]+\n)*)", text, re.M):
        found += [(name.removesuffix(" -f manual.list"), re.sub(r"%\{(\w+)\}", lambda match: macros[match.group(1)], row))
                  for row in body.splitlines() if not row.startswith("%license")]
    if not os.path.isdir(f"{build}/manual/man"):
        return found, []
    listed = re.search(r"find \.%\{_mandir\} (.*?) \|", text).group(1)
    seen = subprocess.run(f"find . {listed}", shell=True, cwd=f"{build}/manual/man", check=True, text=True, capture_output=True).stdout
    pages = [f"./{os.path.basename(folder)}/{name}" for folder, _, names in os.walk(f"{build}/manual/man") for name in names]
    return found, [f"domus.spec: {name} is in no package" for name in sorted(set(pages) - set(seen.split()))[:3]]


def compressed(debian):
    """Files of docs/ and examples/ that dh_compress would change: those of more than 4 KiB that no -X names."""
    with open(f"{debian}/rules", encoding="utf-8") as file:
        kept = re.findall(r"-X(\S+)", re.search(r"^\tdh_compress (.*)$", file.read(), re.M).group(1))
    if any(word in "usr/share/man/man5/domus.yaml.5" for word in kept):
        yield "man5/domus.yaml.5: it is not compressed in its package"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for top in ("docs", "examples"):
        for folder, _, names in os.walk(f"{root}/{top}"):
            for path in (f"{folder}/{name}" for name in names):
                place = "usr/share/doc/domus-doc/" + os.path.relpath(path, root)
                if os.path.getsize(path) > 4096 and not any(word in place for word in kept):
                    yield f"{place}: it is compressed in its package"


def main():
    build, debian = sys.argv[1:]
    needed, optional = packages(debian)
    offences = []
    with tempfile.TemporaryDirectory() as to:
        subprocess.run(["cmake", "--install", build, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": to, "DOMUS_INSTALL_MANUAL": "no"})
        files = [os.path.relpath(os.path.join(folder, name), to) for folder, _, names in os.walk(to) for name in names]
    for path in sorted(files):
        owners = sorted({package for package, pattern in needed + optional if matches(path, pattern)})
        if len(owners) != 1:
            offences.append(f"{path}: in {', '.join(owners) or 'no package'}")
    for package, pattern in needed:
        if not any(matches(path, pattern) for path in files):
            offences.append(f"{package}: nothing is installed that is {pattern}")
    of_spec, left = packages_of_spec(f"{debian}/../domus.spec", build)
    offences += [*left, *compressed(debian)]
    for path in sorted(files):
        owners = sorted({package for package, pattern in of_spec if matches(path, pattern)})
        if len(owners) != 1:
            offences.append(f"domus.spec: {path}: in {', '.join(owners) or 'no package'}")
    for package, pattern in of_spec:
        if not any(matches(path, pattern) for path in files):
            offences.append(f"domus.spec: {package}: nothing is installed that is {pattern}")
    print("\n".join(offences), end="\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
