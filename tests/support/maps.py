"""/proc/PID/maps, and whether a live process's code is what its files say."""

import os
from dataclasses import dataclass

from support import elf


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    flags: str
    offset: int
    path: str


def maps(pid):
    result = []
    with open(f"/proc/{pid}/maps", encoding="latin-1") as file:
        for line in file:
            words = line.rstrip("\n").split(None, 5)
            start, end = (int(word, 16) for word in words[0].split("-"))
            result.append(Mapping(start, end, words[1], int(words[2], 16),
                                  words[5] if len(words) > 5 else ""))
    return result


def load_base(pid, path):
    """What to add to a link address of the file to get the address in the process."""
    real = os.path.realpath(path)
    for mapping in maps(pid):
        if mapping.path == real and "x" in mapping.flags:
            return mapping.start - elf.load(real).address_of(mapping.offset)
    raise AssertionError(f"{path} is not mapped executable in {pid}")


def changed_text(pid):
    """Places where file-backed executable code of the process differs from its file.

    Returns (path, file offset, byte in memory, byte in file); empty means untouched.
    """
    changed = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for mapping in maps(pid):
            if "x" not in mapping.flags or not mapping.path.startswith("/"):
                continue
            if not os.path.exists(mapping.path):
                continue
            changed += _compare(memory, mapping)
    return changed


def _compare(memory, mapping):
    with open(mapping.path, "rb") as file:
        file.seek(mapping.offset)
        expected = file.read(mapping.end - mapping.start)
    memory.seek(mapping.start)
    actual = memory.read(len(expected))
    if actual == expected:
        return []
    return [(mapping.path, mapping.offset + i, actual[i], expected[i])
            for i in range(len(expected)) if actual[i] != expected[i]]


def foreign_mappings(pid, before):
    """Mappings that were not there before, by address range and flags (heap and stack aside)."""
    known = {(m.start, m.end, m.flags) for m in before}
    return [m for m in maps(pid)
            if (m.start, m.end, m.flags) not in known and m.path not in ("[heap]", "[stack]")]
