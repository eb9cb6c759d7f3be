"""clang-tidy over the project's own C++.

Nearly all of its time goes to headers of libraries, so the files of a target are looked at together,
as one translation unit. A unit that was clean is looked at again when one of its files, a header of
the project, the compile command or the checks have changed.

usage: tidy.py BUILD_DIRECTORY     configured, and with the generated headers in place
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Programs that tests look at are what their sources say, not the house's style.
VICTIMS = ("tests/engine/puppets/", "tests/elf/fixtures/", "tests/targets/", "tests/daemon/victim")


def output_of(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def targets(build):
    """(Name, compile command without the file) -> files, each in the first target that has it."""
    left = {name for name in output_of("git", "ls-files", "*.cc").split()
            if not name.startswith(VICTIMS)}
    files = defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name = os.path.relpath(entry["file"])
        if name in left:
            left.remove(name)
            words = shlex.split(entry["command"])
            target = re.search(r"/CMakeFiles/(.*?)\.dir/", words[words.index("-o") + 1])[1]
            files[target, tuple(words[:words.index("-o")])].append(name)
    return files


class Unit:
    """Files of one target, included by one source file of their own."""

    def __init__(self, folder, target, command, names):
        self.target, self.command, self.names = target, command, sorted(names)
        self.folder = folder / (target if len(names) > 1 else names[0].replace("/", "-"))
        # The analyzer looks into included files if the file that includes them is called this.
        self.source = self.folder / "UnifiedSource.cc"

    def write(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.source.write_text("".join(f'#include "{name}"  // NOLINT\n' for name in self.names))
        entry = {"directory": str(self.folder), "file": str(self.source),
                 "arguments": [*self.command, "-c", str(self.source)]}
        (self.folder / "compile_commands.json").write_text(json.dumps([entry]))

    def state(self, tool):
        """Digest of all that the verdict depends on; the system's libraries are taken as given."""
        rule = output_of(*self.command, "-MM", self.source)
        digest = hashlib.sha256(f"{tool} {self.command}".encode())
        for name in [".clang-tidy", *rule.replace("\\\n", " ").split()[1:]]:
            digest.update(Path(name).read_bytes())
        return digest.hexdigest()

    def findings(self, tool):
        self.write()
        clean, state = self.folder / "clean", self.state(tool)
        if clean.exists() and clean.read_text() == state:
            return ""
        tidy = subprocess.run(["clang-tidy", "--config-file=.clang-tidy", "--quiet", "-p",
                               self.folder, self.source], capture_output=True, text=True)
        found = tidy.stdout + (tidy.stderr if tidy.returncode != 0 and not tidy.stdout else "")
        apart = self.colliding(found)
        if apart:
            rest = [name for name in self.names if name not in apart]
            found = "".join(Unit(self.folder, self.target, self.command, names).findings(tool)
                            for names in [rest, *([name] for name in apart)] if names)
        if not found:
            clean.write_text(state)
        return found

    def colliding(self, found):
        """Files that do not compile together with the others: private names need not be unique."""
        errors = re.findall(r"^(/\S+?):.*clang-diagnostic-error", found, re.MULTILINE)
        apart = {os.path.relpath(name) for name in errors} & set(self.names)
        return sorted(apart) if len(self.names) > 1 else []


def main():
    build = Path(sys.argv[1]).absolute()
    units = [Unit(build / "lint", *target, names) for target, names in targets(build).items()]
    tool = output_of("clang-tidy", "--version")
    failed = 0
    with ThreadPoolExecutor(int(os.environ.get("PROBED_LINT_JOBS", os.cpu_count()))) as pool:
        for unit, found in zip(units, pool.map(lambda each: each.findings(tool), units)):
            failed += bool(found)
            print(found or f"{unit.target}: {len(unit.names)} files clean\n", end="", flush=True)
    sys.exit(1 if failed else 0)


main()
