#pragma once
// Lines that a kernel refuses, one for each word it has for that, and what we call it. Where a
// kernel has what another one refuses, or says it otherwise, there are several codes.

#include <array>
#include <string_view>

namespace probed::kernel::testing {

struct RefusedLine {
  std::string_view codes;  // by '|'
  std::string_view line;
};

// Of kprobes, with every argument error, because the kernel judges arguments of its own code by
// other rules than those of programs.
inline constexpr std::array kRefusedKprobes{
    RefusedLine{"BAD_MAXACT_TYPE", "p100 vfs_read"},
    RefusedLine{"BAD_MAXACT_TYPE", "p100:g/e vfs_read"},
    RefusedLine{"BAD_MAXACT", "r1a111 vfs_read"},
    RefusedLine{"BAD_MAXACT", "r0 vfs_read"},
    RefusedLine{"MAXACT_TOO_BIG", "r100000 vfs_read"},
    RefusedLine{"BAD_PROBE_ADDR", "p no_such_func"},
    RefusedLine{"BAD_PROBE_ADDR", "p a-b"},
    RefusedLine{"BAD_PROBE_ADDR", "p vfs_read-1"},
    RefusedLine{"BAD_PROBE_ADDR", "p:group/event vfs_read+xx"},
    RefusedLine{"BAD_PROBE_ADDR", "p vfs_read @no_such_symbol"},
    RefusedLine{"BAD_RETPROBE", "r vfs_read+10"},
    RefusedLine{"BAD_RETPROBE", "p:g/e vfs_read+10%return"},
    RefusedLine{"BAD_ADDR_SUFFIX", "p vfs_read%hoge"},
    RefusedLine{"BAD_INSN_BNDRY", "p vfs_read+3"},
    RefusedLine{"BAD_INSN_BNDRY", "p:g/e vfs_read+0x100000"},
    RefusedLine{"FAIL_REG_PROBE", "p:g/e do_int3"},
    RefusedLine{"NO_GROUP_NAME", "p:/b vfs_read"},
    RefusedLine{"NO_EVENT_NAME", "p: vfs_read"},
    RefusedLine{"BAD_GROUP_NAME", "p:1g/b vfs_read"},
    RefusedLine{"BAD_EVENT_NAME", "p:g/1b vfs_read"},
    RefusedLine{"BAD_EVENT_NAME", "r5:g/a-b vfs_read"},
    RefusedLine{"GROUP_TOO_LONG",
                "p:gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg/b vfs_read"},
    RefusedLine{"EVENT_TOO_LONG",
                "p:g/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb vfs_read"},
    RefusedLine{"RETVAL_ON_PROBE", "p vfs_read $retval"},
    RefusedLine{"BAD_STACK_NUM", "p vfs_read $stack10000"},
    RefusedLine{"BAD_VAR", "p vfs_read $stackx"},
    RefusedLine{"BAD_VAR", "p:g/event vfs_read $foo"},
    RefusedLine{"BAD_ARG_NUM", "p vfs_read $arg0"},
    RefusedLine{"BAD_ARG_NUM|NO_BTFARG", "p vfs_read $arg10000"},
    RefusedLine{"BAD_VAR|NOFENTRY_ARGS", "p vfs_read+5 $arg1"},
    RefusedLine{"BAD_VAR|BAD_VAR_ARGS", "p vfs_read args=$arg*"},
    RefusedLine{"BAD_VAR|DOUBLE_ARGS", "p vfs_read $arg* $arg*"},
    RefusedLine{"BAD_FETCH_ARG|NO_BTFARG", "p vfs_read hoge"},
    RefusedLine{"BAD_REG_NAME", "p vfs_read %zz"},
    RefusedLine{"BAD_REG_NAME", "r100:group/event  vfs_read   a=$retval  b=%zz # why"},
    RefusedLine{"BAD_MEM_ADDR", "p vfs_read @08"},
    RefusedLine{"FILE_ON_KPROBE", "p vfs_read @+10"},
    RefusedLine{"BAD_IMM", "p vfs_read \\x"},
    RefusedLine{"IMMSTR_NO_CLOSE", "p vfs_read \\\"ab"},
    RefusedLine{"DEREF_NEED_BRACE", "p vfs_read +8"},
    RefusedLine{"BAD_DEREF_OFFS", "p vfs_read +x(%di)"},
    RefusedLine{"DEREF_OPEN_BRACE", "p vfs_read +8(%di"},
    RefusedLine{"COMM_CANT_DEREF", "p vfs_read +0($comm)"},
    RefusedLine{"TOO_MANY_OPS",
                "p vfs_read +0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))))))))))"},
    RefusedLine{"BAD_FETCH_ARG", "p vfs_read &1"},
    RefusedLine{"ARRAY_NO_CLOSE", "p vfs_read +0(%di):u8[1"},
    RefusedLine{"BAD_ARRAY_SUFFIX", "p vfs_read +0(%di):u8[1]x"},
    RefusedLine{"BAD_ARRAY_NUM", "p vfs_read +0(%di):u8[0]"},
    RefusedLine{"ARRAY_TOO_BIG", "p vfs_read +0(%di):u8[65]"},
    RefusedLine{"BAD_TYPE", "p vfs_read %di:int"},
    RefusedLine{"BAD_STRING", "p vfs_read %di:string"},
    RefusedLine{"BAD_SYMSTRING|BAD_TYPE", "p vfs_read +u0(%di):symstr"},
    RefusedLine{"BAD_BITFIELD", "p vfs_read %di:b9@0/8"},
    RefusedLine{"ARG_NAME_TOO_LONG", "p vfs_read aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=%di"},
    RefusedLine{"NO_ARG_NAME", "p vfs_read =%di"},
    RefusedLine{"BAD_ARG_NAME", "p vfs_read 1a=%di"},
    RefusedLine{"USED_ARG_NAME", "p vfs_read a=%di a=%si"},
    RefusedLine{"USED_ARG_NAME", "p vfs_read common_pid=%di"},
    RefusedLine{"NO_ARG_BODY", "p vfs_read a="},
    RefusedLine{"EVENT_TOO_BIG",
                "p vfs_read +0(%di):u64[64] +0(%di):u64[64] +0(%di):u64[64] +0(%di):u64[64] "
                "+0(%di):u64[64] +0(%di):u64[64] +0(%di):u64[64]"},
};

// Of programs' code, as the kernel's own uprobes.
inline constexpr std::array kRefusedUprobes{
    RefusedLine{"FILE_NOT_FOUND", "p /nope:0x10"},
    RefusedLine{"NO_REGULAR_FILE", "p /:0"},
    RefusedLine{"REFCNT_OPEN_BRACE", "p /proc/self/exe:0x1000(10"},
    RefusedLine{"BAD_REFCNT_SUFFIX", "p /proc/self/exe:0x1000(10)a"},
    RefusedLine{"BAD_REFCNT", "p /proc/self/exe:0x1000(1a)"},
    RefusedLine{"BAD_UPROBE_OFFS", "p /proc/self/exe:08"},
    RefusedLine{"BAD_FILE_OFFS", "p /proc/self/exe:0x1000 @+x"},
    RefusedLine{"SYM_ON_UPROBE", "p /proc/self/exe:0x1000 @sym"},
};

// Where functions' arguments have names and types (CONFIG_PROBE_EVENTS_BTF_ARGS), and there are
// function and tracepoint probes (CONFIG_FPROBE_EVENTS).
inline constexpr std::array kRefusedByNewer{
    RefusedLine{"NEED_STRING_TYPE", "p vfs_read $comm:u8"},
    RefusedLine{"BAD_MAXACT_TYPE", "f10:g/e vfs_read"},
    RefusedLine{"BAD_MAXACT_TYPE", "t10:g/e sched_switch"},
    RefusedLine{"FAIL_REG_PROBE|BAD_PROBE_ADDR", "f:g/e no_such_function"},
    RefusedLine{"FAIL_REG_PROBE|BAD_PROBE_ADDR", "f:g/e vfs_read+4"},
    RefusedLine{"BAD_ADDR_SUFFIX", "f:g/e vfs_read%retur"},
    RefusedLine{"BAD_ADDR_SUFFIX", "t:g/e sched_switch%return"},
    RefusedLine{"RETVAL_ON_PROBE", "t:g/e sched_switch $retval"},
    RefusedLine{"BAD_TP_NAME", "t:g/e sched-switch"},
    RefusedLine{"NO_TRACEPOINT|NO_BTF_ENTRY|NOSUP_BTFARG", "t:g/e no_such_tracepoint $arg*"},
    RefusedLine{"BAD_REG_NAME|BAD_FETCH_ARG", "f:g/e vfs_read %zz"},
    RefusedLine{"NO_RETVAL", "r:g/e kfree $retval"},
    RefusedLine{"NO_RETVAL", "f:g/e kfree%return $retval"},
    RefusedLine{"NO_PTR_STRCT", "p:g/e vfs_read count->x"},
    RefusedLine{"NOSUP_DAT_ARG", "p:g/e from_kuid kuid.val"},
    RefusedLine{"BAD_HYPHEN", "p:g/e vfs_read file-x"},
    RefusedLine{"NO_BTF_FIELD", "p:g/e vfs_read file->nope"},
    RefusedLine{"NO_BTF_FIELD", "f:g/e vfs_read%return file->nope"},
    RefusedLine{"NO_BTFARG", "p:g/e vfs_read hoge"},
    RefusedLine{"NO_BTFARG", "f:g/e vfs_read hoge"},
    RefusedLine{"NO_BTFARG", "t:g/e sched_switch hoge"},
    RefusedLine{"NO_BTF_ENTRY", "p:g/e memcpy_orig dst"},
    RefusedLine{"NOSUP_BTFARG", "p:g/e memcpy_orig $arg*"},
    RefusedLine{"NOSUP_BTFARG", "p:g/e vfs_read+8 file"},
    RefusedLine{"NOFENTRY_ARGS", "p:g/e vfs_read+8 $arg1"},
    RefusedLine{"NOFENTRY_ARGS", "p:g/e vfs_read+8 $arg*"},
    RefusedLine{"DOUBLE_ARGS", "f:g/e do_sys_openat2 $arg* $arg*"},
    RefusedLine{"BAD_VAR_ARGS|BAD_VAR", "f:g/e do_sys_openat2 x=$arg*"},
    RefusedLine{"ARGS_2LONG", "p:g/e ZSTD_buildCTable $arg*"},
    RefusedLine{"BAD_TYPE4STR|BAD_STRING|BAD_TYPE", "p:g/e do_sys_openat2 how:%pd:u8"},
    RefusedLine{"ARG_TOO_LONG",
                "p:g/e vfs_read a=file->f_path.dentry->d_parent->d_parent->d_parent->d_parent->"
                "d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->"
                "d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->"
                "d_parent->d_parent->d_parent->d_parent->d_parent->d_parent->d_name.name:string"},
};

// What the kernel shows in other words than ours, having written out what stands for more.
inline constexpr std::array kRefusedWhenWrittenOut{
    RefusedLine{"COMM_CANT_DEREF", "p:g/e vfs_read %cx:%pD $comm:%pd"},
    RefusedLine{"BAD_REG_NAME", "p:g/e vfs_read a=%di:%pD b=%zz"},
    RefusedLine{"BAD_REG_NAME", "p:g/e vfs_read $arg* b=%zz"},
    RefusedLine{"BAD_REG_NAME|BAD_FETCH_ARG", "f:g/e vfs_read%return $arg* b=%zz"},
    RefusedLine{"BAD_REG_NAME|BAD_FETCH_ARG", "f:g/e vfs_read a=file:%pD b=%zz"},
    RefusedLine{"BAD_REG_NAME|BAD_FETCH_ARG", "t:g/e sched_switch $arg* b=%zz"},
};

// Codes of the kernel's (enum of trace_probe.h) that no line here brings about.
struct UnseenCode {
  std::string_view code, why;
};
inline constexpr std::array kUnseenCodes{
    UnseenCode{"BAD_ATTACH_ARG", "kernels that look for fields as variables say BAD_VAR"},
    UnseenCode{"BAD_VAR_ARGS", "with a name in front it is a bad variable (BAD_VAR)"},
    UnseenCode{"BAD_ARG_NUM", "$argN is first looked for among the function's parameters"},
    UnseenCode{"NO_TRACEPOINT", "a tracepoint that is not there is waited for, in a module"},
    UnseenCode{"ARGIDX_2BIG", "named, but nothing in the kernel says it"},
    UnseenCode{"BAD_BTF_TID", "the kernel's own type information would have to be broken"},
    UnseenCode{"BAD_TYPE4STR", "a number as a string is read as an address"},
    UnseenCode{"EVENT_EXIST", "no event of somebody else's has a name with our prefix"},
    UnseenCode{"DIFF_PROBE_TYPE", "by ControlTest.OneMoreProbeOfAnEventIsJudgedAsTheKernelDoes"},
    UnseenCode{"DIFF_ARG_TYPE", "by the same"},
    UnseenCode{"SAME_PROBE", "by the same"},
};

inline constexpr std::array kRefusedEventProbes{
    RefusedLine{"NO_EVENT_INFO", "e:g/e sched"},
    RefusedLine{"BAD_ATTACH_EVENT", "e:g/e sched.nope a=$b"},
    RefusedLine{"BAD_ATTACH_ARG|BAD_VAR", "e:g/e sched.sched_switch a=$nope"},
    RefusedLine{"NO_EP_FILTER", "e:g/e sched.sched_switch a=$prev_pid if"},
    RefusedLine{"BAD_FETCH_ARG", "e:g/e sched.sched_switch %zz"},
};

// In parts of the line that the kernel logs as commands of their own.
inline constexpr std::array kRefusedSynthetic{
    RefusedLine{"INVALID_DYN_CMD", "s:g/synth u64 lat"},
    RefusedLine{"INVALID_TYPE", "s:synth foo lat"},
    RefusedLine{"INVALID_CMD", "s:synth"},
    RefusedLine{"INVALID_CMD", "s:synth u64"},
    RefusedLine{"BAD_NAME", "s:1a u64 lat"},
    RefusedLine{"BAD_NAME", "s:synth u64 1a"},
    RefusedLine{"INVALID_ARRAY_SPEC", "s:synth char a[x]"},
};

}  // namespace probed::kernel::testing
