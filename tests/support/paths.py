"""Where the build left things."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PROBED_BUILD_DIR", ROOT / "build")).resolve()
TESTS = ROOT / "tests"
PROBECTL = BUILD / "probectl"
PROBED = BUILD / "probed"
STEP_COUNTER = BUILD / "tests" / "step_counter"
DIES_AT = BUILD / "tests" / "dies_at"


def target(name, variant="gcc-O2-pie-nocf"):
    """A program of tests/targets; a name with a variant in it is taken as it is."""
    folder = BUILD / "tests" / "targets"
    path = folder / f"{name}-{variant}"
    if not path.exists():
        path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{folder}/{name}-{variant} is not built")
    return path.resolve()
