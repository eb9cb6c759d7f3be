"""Where Debian's cloud kernels are: as `./dev test` unpacked them, or installed."""

import re
from dataclasses import dataclass
from pathlib import Path

from support.paths import BUILD

_LIST = Path(__file__).with_name("kernels")
# From the oldest: without BTF arguments, function and tracepoint probes; and with all of them.
OLDER, NEWER = (line.split()[0] for line in _LIST.read_text().splitlines()
                if not line.startswith("#"))


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path  # lib/modules/RELEASE

    @property
    def release(self):
        return self.modules.name


def _number(image):
    return [int(number) for number in re.findall(r"\d+", image.name)]


def find(version):
    """The newest of that version, or None."""
    for root in (BUILD / "kernel" / version, Path("/")):
        images = sorted((root / "boot").glob(f"vmlinuz-{version}.*-cloud-amd64"), key=_number)
        for image in reversed(images):
            modules = root / "lib/modules" / image.name.removeprefix("vmlinuz-")
            if modules.is_dir():
                return Kernel(image, modules)
    return None
