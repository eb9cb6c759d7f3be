"""Builds an initramfs: files of this machine under their own paths, and what they need to run.

The format is cpio's "newc" (Documentation/driver-api/early-userspace/buffer-format.rst of the
kernel). It is written uncompressed: an emulated CPU takes longer to inflate than to copy.
"""

import re
import stat
import subprocess
from pathlib import Path

_ELF = b"\x7fELF"


class Initramfs:
    def __init__(self):
        self._files = {}  # path in the guest: path here
        self._texts = {}  # path in the guest: (contents, mode)
        self._links = {}  # path in the guest: what it points to
        self._folders = {Path("/")}

    def folder(self, path):
        path = Path(path)
        self._folders.update([path, *path.parents])

    def link(self, path, to):
        self._links[Path(path)] = to
        self.folder(Path(path).parent)

    def text(self, path, contents, mode=0o644):
        self._texts[Path(path)] = (contents.encode(), mode)
        self.folder(Path(path).parent)

    def file(self, path, source=None):
        """`source` (default: the same path) with every library that it is linked with."""
        path, source = Path(path), Path(source or path)
        if path in self._files:
            return
        self._files[path] = source
        self.folder(path.parent)
        with open(source, "rb") as file:
            is_elf = file.read(4) == _ELF
        if is_elf:
            for library in _libraries(source):
                self.file(library)

    def tree(self, root, pattern="*", without=()):
        """The files below `root` that match, but for folders named in `without`."""
        root = Path(root)
        for path in sorted(root.rglob(pattern)):
            if path.is_file() and not set(without) & set(path.relative_to(root).parts[:-1]):
                self.file(path)

    def write(self, output):
        with open(output, "wb") as out:
            archive = _Archive(out)
            for folder in sorted(self._folders):
                archive.add(folder, stat.S_IFDIR | 0o755, b"")
            for path, to in self._links.items():
                archive.add(path, stat.S_IFLNK | 0o777, str(to).encode())
            for path, (contents, mode) in self._texts.items():
                archive.add(path, stat.S_IFREG | mode, contents)
            for path, source in self._files.items():
                archive.add(path, stat.S_IFREG | (source.stat().st_mode & 0o777),
                            source.read_bytes())
            archive.end()


class _Archive:
    def __init__(self, out):
        self._out = out
        self._inode = 0

    def add(self, path, mode, contents):
        self._inode += 1
        name = str(path).lstrip("/").encode() or b"."
        numbers = [self._inode, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name) + 1, 0]
        self._put(b"070701" + b"".join(b"%08x" % number for number in numbers) + name + b"\0")
        self._put(contents)

    def end(self):
        self.add("TRAILER!!!", 0, b"")

    def _put(self, part):
        self._out.write(part)
        self._out.write(b"\0" * (-self._out.tell() % 4))


def _libraries(program):
    """The loader and the libraries, as ldd names them; none for a static program."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=30,
                             check=False).stdout
    if missing := re.findall(r"(\S+) => not found", listing):
        raise FileNotFoundError(f"{program} needs {missing}")
    return [Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listing, re.M)]
