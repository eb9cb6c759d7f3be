"""Where Debian's cloud kernel is: as `./dev test` unpacked it, or installed."""

import re
from dataclasses import dataclass
from pathlib import Path

from support.paths import BUILD

MAJOR = "6.1"  # Debian 12's; another one may say other things


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path  # lib/modules/RELEASE

    @property
    def release(self):
        return self.modules.name


def _version(image):
    return [int(number) for number in re.findall(r"\d+", image.name)]


def find():
    """The newest, or None."""
    for root in (BUILD / "kernel", Path("/")):
        images = sorted((root / "boot").glob(f"vmlinuz-{MAJOR}.*-cloud-amd64"), key=_version)
        for image in reversed(images):
            modules = root / "lib/modules" / image.name.removeprefix("vmlinuz-")
            if modules.is_dir():
                return Kernel(image, modules)
    return None
