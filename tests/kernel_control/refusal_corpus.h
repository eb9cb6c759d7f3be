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
    RefusedLine{"BAD_ARG_NUM", "p vfs_read $arg10000"},
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
};

inline constexpr std::array kRefusedEventProbes{
    RefusedLine{"NO_EVENT_INFO", "e:g/e sched"},
    RefusedLine{"BAD_ATTACH_EVENT", "e:g/e sched.nope a=$b"},
    RefusedLine{"BAD_ATTACH_ARG", "e:g/e sched.sched_switch a=$nope"},
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
