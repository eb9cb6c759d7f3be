"""Checks of tests/kernel/guest, each in a machine with a kernel of Debian's. One boot runs many.

A class whose name ends in Newer is another one on the newer kernel. With PROBED_BED_KERNEL all are
on that one.
"""

import os
import shutil
import unittest

import bed_image
import debian_kernel
import machine


class Bed(unittest.TestCase):
    """Boots the machine; a check that failed there fails here, with the end of the console."""

    version = debian_kernel.OLDER

    def setUp(self):
        if shutil.which(machine.QEMU) is None:
            self.skipTest(f"{machine.QEMU} is not installed; `./dev test` does")
        version = os.environ.get("PROBED_BED_KERNEL", self.version)
        self.kernel = debian_kernel.find(version)
        if self.kernel is None:
            self.skipTest(f"no Debian cloud kernel {version}; `./dev test` unpacks one")

    @property
    def folder(self):
        return bed_image.FOLDER / f"{type(self).__name__}.{self._testMethodName}"

    def boot(self, *checks, **machine_options):
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        initramfs = folder / "initramfs"
        bed_image.contents(self.kernel).write(initramfs)
        checks = os.environ.get("PROBED_BED_CHECKS") or ",".join(checks)
        append = f"bed_checks={checks} {machine_options.pop('append', '')}"
        seconds = machine_options.pop("seconds", 270)
        for _ in range(2):  # an emulated kernel stands still now and then, a soft lockup
            outcome = machine.boot(self.kernel, initramfs, folder, append=append, seconds=seconds,
                                   **machine_options)
            if outcome.done or outcome.failed.keys() - {machine.STOOD_STILL}:
                break  # what failed there is not tried again
        initramfs.unlink()
        self._judge(outcome)

    def _judge(self, outcome):
        print(f"{self.kernel.release}: {len(outcome.passed)} checks passed in {outcome.seconds:.0f} s")
        for name, reason in outcome.skipped.items():
            print(f"not checked: {name}: {reason}")
        if outcome.done and outcome.passed and not outcome.failed:
            return
        failures = "\n".join(f"{name}: {detail}" for name, detail in outcome.failed.items())
        self.fail(f"{failures or 'the machine did not come to the end of its checks'}\n"
                  f"the end of {outcome.console}:\n{outcome.tail()}")


class Main(Bed):
    """By `./dev bed`: on two emulated CPUs this kernel locks up in about one run of three."""

    def test_main(self):
        # No emulated CPU calls its time-stamp counter constant, but it is; jumps need one.
        self.boot("jumps_check", "attach_test.Attach.test_attach_watch_detach",
                  "attach_test.Attach.test_client_killed",
                  "language_check", "kernel_facts_check", "boot_definitions_check",
                  "kernel_trace_test.Events", "kernel_trace_test.Endings",
                  "differential_test.OptimizedPositionIndependent.test_fetch_arguments",
                  "differential_test.OptimizedPositionIndependent.test_return_arguments",
                  append="tsc=reliable")


class Kprobes(Bed):
    """Probes in the kernel's own code, mixed with a program's."""

    def test_kprobes(self):
        self.boot("control_check", "kprobes_check.Open.test_entry_and_return",
                  "kprobes_check.Text.test_arguments",
                  "mixed_check.Mixed.test_each_thread_is_in_order", "modules_check",
                  "housekeeping_check.Housekeeping.test_killed_and_restarted",
                  append="tsc=reliable", cpus=1)


class Newer(Bed):
    """What only the newer kernel has, and what it refuses."""

    version = debian_kernel.NEWER

    def test_newer(self):
        self.boot("newer_check.Newer.test_texts_are_the_kernels", "newer_check.Newer.test_values",
                  "control_check", "oom_check", "yama_check", append="tsc=reliable", cpus=1)


class Lockdown(Bed):
    def test_integrity(self):
        self.boot("lockdown_check.Lockdown.test_integrity_allows_kprobes",
                  append="tsc=reliable lockdown=integrity", cpus=1)

    def test_confidentiality(self):
        self.boot("lockdown_check.Lockdown.test_confidentiality_closes_tracefs",
                  append="tsc=reliable lockdown=confidentiality", cpus=1)


class AllOfKprobes(Bed):
    """By `./dev bed`: what takes longer, and 1,000 definitions, with the time that they take."""

    def test_all(self):
        self.boot("kprobes_check", "mixed_check", "triggers_check", "housekeeping_check",
                  "verbs_check", "tracefs_check", append="tsc=reliable", cpus=1, seconds=600)

    def test_facts(self):
        self.boot("kernel_facts_check", "boot_definitions_check", "modules_check",
                  append="tsc=reliable", cpus=1, seconds=600)

    def test_language(self):
        self.boot("language_check", "kernel_trace_test",
                  "differential_test.PositionIndependent.test_inside_functions",
                  append="tsc=reliable", cpus=1, seconds=600)

    def test_thousand(self):
        self.boot("thousand_check", append="tsc=reliable", cpus=1, seconds=600)
        console = (self.folder / "console.log").read_text()
        print(*(line for line in console.splitlines() if " kprobes: made in " in line))


class AllOfKprobesNewer(AllOfKprobes):
    version = debian_kernel.NEWER

    def test_newer(self):
        self.boot("newer_check", "control_check", append="tsc=reliable", cpus=1, seconds=600)


class LockdownNewer(Lockdown):
    version = debian_kernel.NEWER


class PlainCpu(Bed):
    """What qemu emulates unless told otherwise: traps only, for want of an instruction."""

    def test_plain_cpu(self):
        self.boot("jumps_check", "attach_test.Attach.test_attach_watch_detach",
                  "differential_test.PositionIndependent.test_inside_functions",
                  append="tsc=reliable", cpu="qemu64,+fsgsbase", cpus=1)


if __name__ == "__main__":
    unittest.main()
