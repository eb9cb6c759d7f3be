"""The project's own sources, for the lint tests."""

import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
FOLDERS = ("base", "elf", "engine", "daemon", "client")


def sources(folders=FOLDERS, endings=(".h", ".cc")):
    """Paths relative to the root."""
    for folder in folders:
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(where, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def code(path):
    """The text with comments and string literals blanked, line numbers kept."""
    text = read(path)
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda found: "\n" * found.group().count("\n"), text, flags=re.S)


def report(problems):
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(1 if problems else 0)
