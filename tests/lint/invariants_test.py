"""The invariants of ARCHITECTURE.md that can be read off the source."""

import re

from source_tree import code, report, sources

RULES = [
    # (what it forbids, pattern, folders looked at, files where it is allowed)
    ("ptrace outside engine/sys", r"(?<!\w)(::)?ptrace\(", ("base", "elf", "engine", "daemon", "client"),
     r"engine/sys/"),
    ("waiting for stops in a second place", r"(?<!\w)(::)?(waitpid|wait4|waitid)\(",
     ("base", "elf", "engine", "daemon"), r"engine/sys/|daemon/guard\.cc"),  # it reaps its child
    ("reading another process's memory outside engine/sys", r"process_vm_(readv|writev)\(",
     ("base", "elf", "engine", "daemon", "client"), r"engine/sys/"),
    ("logging below the edge", r"spdlog::|std::cerr|fprintf\(\s*stderr|std::cout",
     ("base", "elf", "engine"), r"$^"),
    ("exceptions thrown by our code", r"(?<!\w)throw(?!\w)", ("base", "elf", "engine"), r"$^"),
    ("a sleep", r"sleep_for|usleep\(|(?<!\w)sleep\(", ("base", "elf", "engine", "daemon"),
     r"engine/kernel/(control|sweep)\.cc"),  # nobody tells when the kernel has let go of an event
]


def main():
    problems = []
    files = 0
    for rule, pattern, folders, allowed in RULES:
        for path in sources(folders):
            files += 1
            if re.match(allowed, path):
                continue
            for number, line in enumerate(code(path).splitlines(), 1):
                if re.search(pattern, line):
                    problems.append(f"{path}:{number}: {rule}: {line.strip()}")
    if files < 20:
        problems.append("the test looks at the wrong place")
    report(problems)


main()
