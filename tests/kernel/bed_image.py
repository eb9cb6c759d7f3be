"""What is in the test machine: probed, its tests, the programs they run, all under the paths that
they have here."""

import lzma
import os
import subprocess
from pathlib import Path

from initramfs import Initramfs
from support.paths import BUILD, PROBECTL, PROBED, ROOT, TESTS

FOLDER = BUILD / "tests" / "kernel"
_PYTHON = Path("/usr/lib/python3.11")
_UNUSED_PYTHON = {"test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "distutils",
                  "pydoc_data", "asyncio", "sqlite3", "xml", "wsgiref", "xmlrpc", "dist-packages"}
_TEST_FOLDERS = ("", "e2e", "client", "kernel_differential")
_PROGRAMS = [BUILD / "tests" / "lang_kernel_differential_test",
             BUILD / "tests" / "kernel_control_test"]
_MODULES = ["drivers/net/dummy.ko"]  # of newer kernels compressed, but never in the image
_TARGETS = ["values-gcc-O1-pie-nocf", "values-gcc-O1-nopie-nocf", "counter-gcc-O2-pie-nocf",
            "hammer-gcc-O2-pie-nocf", "opens-gcc-O2-pie-nocf", "plugin-gcc-O2-pie-nocf"]


def _stripped(program):
    """Without debug information, which nobody reads there and which would be most of the image."""
    copy = FOLDER / "stripped" / program.name
    if not copy.exists() or copy.stat().st_mtime < program.stat().st_mtime:
        copy.parent.mkdir(parents=True, exist_ok=True)
        made = copy.with_name(f"{copy.name}.{os.getpid()}")  # another one may be at it, too
        subprocess.run(["strip", "-g", "-o", made, program], check=True, timeout=60)
        made.replace(copy)
    return copy


def _module(kernel, path):
    packed = path.with_name(path.name + ".xz")
    if not packed.exists():
        return path
    copy = FOLDER / "unpacked" / kernel.release / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(lzma.decompress(packed.read_bytes()))
    return copy


def _environment():
    names = {"BED_ROOT": ROOT, "PROBED_BUILD_DIR": BUILD, "PROBED_PATIENCE": 10, "LANG": "C.UTF-8",
             "PYTHONPATH": ":".join(str(TESTS / folder) for folder in _TEST_FOLDERS),
             "PYTHONDONTWRITEBYTECODE": 1}
    return "".join(f"export {name}='{value}'\n" for name, value in names.items())


def _add_python(image):
    image.file("/usr/bin/python3", Path("/usr/bin/python3").resolve())
    image.tree(_PYTHON, "*.py", _UNUSED_PYTHON)
    image.tree(_PYTHON, "*.cpython-311.pyc", _UNUSED_PYTHON)
    image.tree(_PYTHON / "lib-dynload", "*.so")


def _add_tests(image):
    image.tree(TESTS, "*.py")
    image.tree(TESTS / "data")
    for program in (PROBED, PROBECTL, *_PROGRAMS):
        image.file(program, _stripped(program))
    for name in _TARGETS:
        image.file(BUILD / "tests" / "targets" / name)


def contents(kernel):
    image = Initramfs()
    for folder in ("/proc", "/sys", "/dev", "/tmp", "/sbin", "/run", "/root"):
        image.folder(folder)
    image.file("/bin/busybox")
    image.link("/bin/sh", "busybox")
    image.file("/init", TESTS / "kernel" / "guest" / "init")
    image.text("/etc/bed", _environment())
    image.text("/etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    image.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
    for program in ("/usr/bin/objdump", "/usr/bin/readelf"):
        image.file(program)
    _add_python(image)
    _add_tests(image)
    for name in _MODULES:
        image.file(Path("/lib/modules") / kernel.release / "kernel" / name,
                   _module(kernel, kernel.modules / "kernel" / name))
    return image
