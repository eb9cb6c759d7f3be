"""What newer kernels have: tracepoint probes, function probes, arguments by their names and types
(BTF), names of directory entries and of symbols."""

import unittest

from kernel_side import NO_SUCH_FILE, Case, Opens, define, definitions, only, readme

OPENAT = 257  # its number
LARGEFILE = 0o100000  # which the kernel adds to flags

ENTRY = "dfd filename:ustring flags=how->flags mode=how->mode:x32"
TYPES = {  # what opening a file runs, with what there is to fetch
    "f:my/in": f"do_sys_openat2 {ENTRY} c=$comm f0=+0(filename):ustring ip=$arg1:s32",
    "f:my/out": "do_sys_openat2%return fd=$retval:s32 filename:ustring dfd how",
    "f:my/all": "do_sys_openat2 $arg*",
    "f:my/back": "vfs_open%return $arg* ret=$retval",
    "p:my/kin": f"do_sys_openat2 {ENTRY} %ip:symstr $stack0:symstr sym=%ip:symbol",
    "p:my/kall": "vfs_open $arg*",
    "p:my/path": "vfs_open name=path->dentry->d_name.name:string len=path->dentry->d_name.len "
                 "d=path->dentry:%pd mode=path->dentry->d_inode->i_mode:x16",
    "p:my/file": "security_file_open f=file:%pD op=file->f_op:symbol ops=file->f_op:symstr "
                 "flags=file->f_flags:x32 reg=%di:%pD",
    "r:my/kout": "do_sys_openat2 $retval filename:ustring dfd",
    "r:my/opened": "vfs_open ret=$retval path->dentry->d_name.name:string",
    "t:my/sys": "sys_enter id nr=regs->orig_ax a=$arg2 path=+0(+104($arg1)):ustring",
    "t:my/every": "sys_exit $arg*",
}


@unittest.skipUnless("t[:" in readme(), "no tracepoint probes and function probes in this kernel")
class Newer(Case):
    def test_texts_are_the_kernels(self):
        with Opens() as opens:
            lines = [f"{head} {body}" for head, body in TYPES.items()]
            ours, theirs = self.both_texts(lines, opens, 20)

            def shown(records):
                return [(r.event, r.comm, r.pid, r.text) for r in records]
            self.assert_same(shown(ours), shown(theirs))
            counts = {event: len([r for r in ours if r.event == event])
                      for event in (head.split("/")[1] for head in TYPES)}
            self.assertGreater(counts.pop("sys"), 20)  # every system call
            self.assertGreater(counts.pop("every"), 20)
            self.assertEqual(counts, {
                "in": 20, "out": 20, "all": 20, "kin": 20, "kout": 20,
                "back": 10, "kall": 10, "path": 10, "file": 10, "opened": 10})  # of what is there
        self.assert_nothing_left()

    def test_values(self):
        """By the program's own account, in order, with types."""
        with Opens() as opens:
            session = self.start_tracing(
                [f"f:my/in do_sys_openat2 {ENTRY}",
                 "f:my/out do_sys_openat2%return fd=$retval:s32 filename:ustring",
                 "t:my/sys sys_enter id",
                 "p:my/open vfs_open name=path->dentry->d_name.name:string d=path->dentry:%pd",
                 "p:my/file security_file_open f=file:%pD op=file->f_op:symstr"],
                *only(opens.pid))
            fd = opens.open(200)
            self.end_tracing(session)
            hits = [(hit["event"], hit["args"]) for hit in session.objects if hit["type"] == "hit"
                    and (hit["event"] != "sys" or hit["args"]["id"] == OPENAT)]
            operations = next(args["op"] for event, args in hits if event == "file")
            self.assertRegex(operations, "^[a-z]+_file_operations(_.*)?[+]0x0/0x")
            expected = []
            for i in range(200):
                path = opens.missing if i % 2 else opens.there
                got = NO_SUCH_FILE if i % 2 else fd
                expected += [("sys", {"id": OPENAT}),
                             ("in", {"dfd": -100, "filename": path, "flags": LARGEFILE,
                              "mode": 0})]
                if not i % 2:
                    expected += [("open", {"name": "there", "d": "there"}),
                                 ("file", {"f": "there", "op": operations})]
                expected.append(("out", {"fd": got, "filename": path}))
            self.assert_same(hits, expected)
        self.assert_nothing_left()

    def test_are_shown_as_the_kernel_lists_them(self):
        """With what the kernel has made of names, and with the names that it has made up."""
        lines = ["f:my/in do_sys_openat2 $arg*", "f:my/out vfs_open%return $retval",
                 "f9:my/nine vfs_open%return", "t:my/t sched_switch $arg*", "t sched_wakeup",
                 "f vfs_write", "f vfs_write%return", "r:my/r vfs_open path->mnt $retval",
                 "p:my/d vfs_open path->dentry:%pd", "t:my/later of_no_module_yet"]
        probes = self.define(*lines, options=("--disabled",))
        prefix = f"probed_{self.pid}_"
        kernel = [line[:line.index(prefix)] + line[line.index(prefix):].split("_", 3)[3]
                  for line in definitions(self.pid)]
        self.assertEqual(sorted(probe["definition"] for probe in probes), sorted(kernel))
        self.assertEqual({probe["mechanism"] for probe in probes}, {"kernel"})
        names = {f"{probe['group']}/{probe['event']}" for probe in probes}
        self.assertLessEqual({"tracepoints/sched_wakeup", "fprobes/vfs_write__entry",
                              "fprobes/vfs_write__exit"}, names)
        self.run_ok("delete", "my/", "sched_wakeup", "fprobes/")
        self.assert_nothing_left()

    def test_counts(self):
        """Of function probes and tracepoint probes there is no profile: hits are what was read."""
        with Opens() as opens:
            self.define("f:my/in do_sys_openat2", "f:my/out do_sys_openat2%return",
                        "t:my/sys sys_enter id", options=only(opens.pid))
            opens.open(100)
            profile = self.profile()
            for event in ("in", "out"):
                self.assertEqual((profile[event]["hits"], profile[event]["recorded"],
                                  profile[event]["lost"]), (100, 100, 0))
            self.assertGreater(profile["sys"]["recorded"], 100)
            self.run_ok("filter", "my/sys", f"id == {OPENAT} && common_pid == {opens.pid}")
            before = self.profile()["sys"]["recorded"]
            opens.open(100)
            self.assertEqual(self.profile()["sys"]["recorded"] - before, 100)
            self.run_ok("trigger", "my/sys", f"hist:keys=id if common_pid == {opens.pid}")
            opens.open(100)
            self.assertRegex(self.run_ok("trigger", "my/sys", "--hist").out,
                             rf"id: +{OPENAT} \}} hitcount: +100\b")

    def test_in_vain(self):
        """One refused line, and nothing is there: not of the kinds that the kernel has either."""
        for line, reason in (("f:my/bad no_such_function", "FAIL_REG_PROBE"),
                             ("t:my/bad sched-switch", "BAD_TP_NAME"),
                             ("p:my/bad vfs_read file->nope", "NO_BTF_FIELD")):
            refused = self.daemon.run("define", "-e", "f:my/a vfs_read $arg*", "-e",
                                      "t:my/b sched_switch", "-e", line)
            self.assertNotEqual(refused.code, 0)
            self.assertIn(reason, refused.err)
            self.assert_nothing_left()
        self.assertTrue(define("f:others/f vfs_read"))  # and they hold nothing of it
        self.assertTrue(define("-:others/f"))


if __name__ == "__main__":
    unittest.main()
