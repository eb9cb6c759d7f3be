"""The tests that docs/user-needs-coverage.md names are there."""

import ast
import fnmatch
import os
import re
import sys

from source_tree import ROOT

DOCUMENT = os.path.join(ROOT, "docs", "user-needs-coverage.md")


def source_files(ending):
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        yield from (os.path.join(folder, name) for name in names if name.endswith(ending))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tests():
    """Names by "Suite", or by "folder/file:Class"."""
    found = {}
    for path in source_files(".cc"):
        for suite, name in re.findall(r"TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", read(path)):
            found.setdefault(suite, set()).add(name)
    for path in source_files(".py"):
        module = os.path.relpath(path, os.path.join(ROOT, "tests"))[:-3]
        for node in ast.parse(read(path)).body:
            if isinstance(node, ast.ClassDef):
                found[f"{module}:{node.name}"] = {
                    item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


def named(line):
    """Pairs of suite and name (or None). What begins with a dot, and a class without its file, is of
    what was named before it in the line."""
    module = suite = ""
    for span in re.findall(r"`([^`]+)`", line):
        if match := re.fullmatch(r"([\w/]+):(\w+)(?:\.([\w*]+))?", span):
            module, suite = match[1], f"{match[1]}:{match[2]}"
            yield suite, match[3]
        elif match := re.fullmatch(r"(\w+)\.([\w*]+)", span):
            is_method = match[2].startswith("test_")
            suite = f"{module}:{match[1]}" if is_method else match[1]
            yield suite, match[2]
        elif match := re.fullmatch(r"\.([\w*]+)", span):
            if suite.startswith(module + ":") and module and not match[1].startswith("test_"):
                yield f"{module}:{match[1]}", None
            else:
                yield suite, match[1]


def main():
    there, missing = tests(), []
    for line in read(DOCUMENT).splitlines():
        for suite, name in named(line) if line.startswith("| ") else ():
            if suite not in there or (name and not fnmatch.filter(there[suite], name)):
                missing.append(f"{suite}.{name}" if name else suite)
    for one in missing:
        print(f"{DOCUMENT}: there is no {one}")
    print(f"{len(missing)} problems")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
