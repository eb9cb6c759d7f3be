"""Hit counts by single-stepping the program: the truth that the sweeps compare with."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from support import elf
from support.paths import STEP_COUNTER
from support.process import run


@dataclass
class Truth:
    visits: dict  # file offset -> times the instruction began
    rounds: dict  # the same, each iteration of a rep string instruction counted
    out: str
    code: int


def count(path, places, arguments=(), start="sw_main", seconds=120):
    """Steps from the first arrival at `start` to the end of the program."""
    with tempfile.TemporaryDirectory(prefix="probed-step-") as folder:
        out = Path(folder) / "counts"
        program = run([STEP_COUNTER, f"{elf.offset(path, start):x}", f"{min(places):x}",
                       f"{max(places) + 1:x}", out, path, *arguments], seconds)
        assert program.code == 0, f"step_counter: {program.code} {program.err}"
        rows = [[int(word, 16 if i == 0 else 10) for i, word in enumerate(line.split())]
                for line in out.read_text().splitlines()]
    return Truth({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows},
                 program.out, program.code)
