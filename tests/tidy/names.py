"""Name what the public headers define that does not begin with domus_, DOMUS_ or, for what macros need inside, domi_ or DOMI_.

usage: names.py INCLUDE

All headers of INCLUDE/domus are preprocessed as one program, and what comes from other folders is left out: so names that a header
takes from the system are not ours, and those of its macros are. Looked at are macros, functions and variables, types with their tags,
and constants of enumerations. Members and parameters have any name. A line for each goes to stdout, and then the status is 1.
"""
import os
import re
import subprocess
import sys

OURS = re.compile(r"domus_|DOMUS_|domi_|DOMI_")


def preprocessed(include):
    """The macros and the text of the headers."""
    program = "".join(f"#include <domus/{name}>\n" for name in sorted(os.listdir(f"{include}/domus")) if name.endswith(".h"))
    said = subprocess.run(["gcc", "-std=c17", "-E", "-dD", "-D_GNU_SOURCE", f"-I{include}", "-x", "c", "-"], input=program,
                          text=True, capture_output=True, check=True).stdout
    macros, text, is_own = [], [], False
    for line in said.splitlines():
        if re.match(r'# \d+ "', line):
            is_own = f'"{include}/domus/' in line
        elif is_own and line.startswith("#define "):
            macros.append(re.match(r"#define (\w+)", line).group(1))
        elif is_own and not line.startswith("#"):
            text.append(line)
    return macros, re.sub(r'"(\\.|[^"\\])*"', '""', "\n".join(text))


def declared(text):
    """Names at file scope."""
    names = re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text)
    for body in re.findall(r"\benum\b[^;{}()]*\{([^}]*)\}", text):
        names += re.findall(r"(?:^|,)\s*(\w+)", body)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", " ", text)
    while "{" in text: # from the inner blocks to the outer ones
        text = re.sub(r"\{[^{}]*\}", " @ ", text)
    for statement in re.split(r";|(?<=\)) *\n? *@", text):
        statement = re.sub(r"\[[^\]]*\]", " ", statement.split("=")[0])
        function = re.search(r"(\w+)\s*\(", re.sub(r"\(\s*\*\s*(\w+)\s*\)", r" \1 ", statement))
        words = re.findall(r"\w+", statement)
        if function:
            names.append(function.group(1))
        elif words and len(words) > 1:
            names.append(words[-1])
    return names


def main():
    macros, text = preprocessed(sys.argv[1])
    names = declared(text)
    strangers = sorted({name for name in macros + names if not OURS.match(name)})
    print("\n".join(strangers), end="\n" if strangers else "")
    if len(names) < 500 or len(macros) < 100:
        print(f"only {len(names)} names and {len(macros)} macros were found")
        return 1
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main())
