#!/usr/bin/python3
"""Runs a shell script in the test machine and prints what it says: for looking at its kernel.

    echo 'cat /sys/kernel/tracing/README' | tests/kernel/run_script.py VERSION [KERNEL PARAMETER...]

$BUILD in the script is the build directory, of PROBED_BUILD_DIR or ./build.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bed_image  # noqa: E402
import debian_kernel  # noqa: E402
import machine  # noqa: E402


def main():
    script = f"export BUILD={bed_image.BUILD}\n{sys.stdin.read()}"
    with tempfile.TemporaryDirectory(prefix="probed-bed-") as folder:
        folder = Path(folder)
        kernel = debian_kernel.find(sys.argv[1])
        image = bed_image.contents(kernel)
        image.text("/etc/bed-script", script)
        image.write(folder / "initramfs")
        console, output = machine.run(kernel, folder / "initramfs", folder,
                                      append=" ".join(sys.argv[2:]))
        print(console.read_text("utf-8", "replace"), file=sys.stderr)
        print(output.read_text("utf-8", "replace"), end="")


main()
