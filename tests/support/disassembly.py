"""Instruction boundaries as objdump sees them."""

import re
import subprocess

from support import elf

JUMP_BYTES = 5
_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(.*)$")


def boundaries(path, wanted):
    """[(file offset, bytes, text)] of each instruction in the functions that `wanted` accepts."""
    file = elf.load(str(path))
    functions = [s for s in file.symbols.values() if s.size and wanted(s.name)]
    listing = subprocess.run(
        ["objdump", "-d", "-w", str(path)], capture_output=True, text=True, check=True,
        timeout=120).stdout
    spans = sorted((f.address, f.address + f.size) for f in functions)
    result = []
    for line in listing.splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        address = int(found[1], 16)
        if any(start <= address < end for start, end in spans):
            result.append((file.offset_of(address), bytes.fromhex(found[2]), found[3]))
    return result


def apart(instructions):
    """Groups of (offset, length) in which none stands on what a jump at another displaces."""
    groups = []  # [what the last jump displaces ends here, offsets]
    for i, (at, _) in enumerate(instructions):
        end = next((start + length for start, length in instructions[i:]
                    if start + length - at >= JUMP_BYTES), at + JUMP_BYTES)
        group = next((group for group in groups if group[0] <= at), None)
        if group is None:
            groups.append(group := [0, []])
        group[0] = end
        group[1].append(at)
    return [offsets for _, offsets in groups]
