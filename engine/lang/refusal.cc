#include "engine/lang/refusal.h"

#include <array>

namespace probed::lang {
namespace {

// Messages are interface: scripts and trace-cmd match them. One row per code, in the enum's order.
constexpr std::array kTexts = {
    RefusalText{
        "FILE_NOT_FOUND", "Failed to find the given file",
        "The path before the last ':' cannot be opened; check the spelling and permissions. "
        "A relative path begins at your working directory. There is no quoting; the "
        "extended dialect takes \\040 for a blank."},
    RefusalText{"NO_REGULAR_FILE", "Not a regular file",
                "Probes go into regular files only; name the program or library itself."},
    RefusalText{"REFCNT_OPEN_BRACE", "Reference counter brace is not closed",
                "Write the reference counter as path:0xOFFSET(0xREFCTR), without spaces."},
    RefusalText{"BAD_REFCNT_SUFFIX", "Reference counter has wrong suffix",
                "Nothing may follow the ')' of the reference counter; %return goes before it."},
    RefusalText{"BAD_REFCNT", "Invalid reference counter offset",
                "The reference counter is a file offset: a number such as 0x3098."},
    RefusalText{"BAD_ADDR_SUFFIX", "Invalid probed address suffix",
                "The only suffix of a place is %return."},
    RefusalText{"BAD_UPROBE_OFFS", "Invalid uprobe offset",
                "The offset is one number, decimal, 0x hex or 0 octal, without arithmetic."},
    RefusalText{"BAD_MAXACT_TYPE", "Maxactive is only for function exit",
                "A number after the kind letter is maxactive, which only r takes."},
    RefusalText{"BAD_MAXACT", "Invalid maxactive number", "Write maxactive as r1: to r4096:."},
    RefusalText{"MAXACT_TOO_BIG", "Maxactive is too big", "Maxactive may be at most 4096."},
    RefusalText{"NO_GROUP_NAME", "Group name is not specified",
                "Put a group before the '/' or '.', or leave the separator out."},
    RefusalText{"GROUP_TOO_LONG", "Group name is too long", "Group names have at most 63 bytes."},
    RefusalText{"BAD_GROUP_NAME", "Group name must follow the same rules as C identifiers",
                "Use letters, digits, '_' and '-' in a group name and do not start with a digit."},
    RefusalText{"NO_EVENT_NAME", "Event name is not specified",
                "Write an event name after the ':', or leave the ':' out to have one generated."},
    RefusalText{"EVENT_TOO_LONG", "Event name is too long", "Event names have at most 63 bytes."},
    RefusalText{"BAD_EVENT_NAME", "Event name must follow the same rules as C identifiers",
                "Use letters, digits and '_' in an event name and do not start with a digit."},
    RefusalText{"EVENT_EXIST", "Given group/event name is already used by another event",
                "Another kind of event has this name; choose another group or event name."},
    RefusalText{"TOO_MANY_ARGS", "Too many arguments are specified",
                "A probe has at most 128 arguments."},
    RefusalText{"ARG_NAME_TOO_LONG", "Argument name is too long",
                "Argument names have at most 32 bytes."},
    RefusalText{"NO_ARG_NAME", "Argument name is not specified",
                "Put a name before the '=', or leave the '=' out."},
    RefusalText{
        "BAD_ARG_NAME", "Argument name must follow the same rules as C identifiers",
        "Everything before the first '=' is the name: letters, digits and '_', not starting "
        "with a digit."},
    RefusalText{
        "USED_ARG_NAME", "This argument name is already used",
        "Names must differ from each other, from generated names such as arg2, and from the "
        "record's own fields (common_*, __probe_*)."},
    RefusalText{
        "ARG_TOO_LONG", "Argument expression is too long",
        "An expression with its type has at most 63 bytes; the extended dialect allows 255."},
    RefusalText{"NO_ARG_BODY", "No argument expression",
                "Write what to fetch right after the '=', without a space."},
    RefusalText{"ARRAY_NO_CLOSE", "Array is not closed", "Close the array count with ']'."},
    RefusalText{"BAD_ARRAY_SUFFIX", "Array has wrong suffix",
                "Nothing may follow the ']' of an array type."},
    RefusalText{"BAD_ARRAY_NUM", "Invalid array size", "The array count is a number from 1 to 64."},
    RefusalText{"ARRAY_TOO_BIG", "Array number is too big", "An array has at most 64 elements."},
    RefusalText{"NEED_STRING_TYPE", "$comm and immediate-string only accepts string type",
                "$comm and \\\"text\" are strings: leave the type out or write :string. A ':' "
                "inside the text starts the type too."},
    RefusalText{"BAD_TYPE", "Unknown type is specified",
                "Types are u8-u64, s8-s64, x8-x64, char, string, ustring and b<width>@<offset>/"
                "<container>, optionally with [count]; the extended dialect adds f32, f64 and "
                "bytes(LENGTH)."},
    RefusalText{"RETVAL_ON_PROBE", "$retval is not available on probe",
                "$retval exists at return only: define the probe with r instead of p."},
    RefusalText{"BAD_ARG_NUM", "Invalid argument number",
                "Arguments count from $arg1 to $arg2048."},
    RefusalText{"NOFENTRY_ARGS", "$arg* can be used only on function entry or exit",
                "The kernel has no $argN on uprobes: use %di %si %dx %cx %r8 %r9, or the extended "
                "dialect, which has $argN at entry and at return."},
    RefusalText{"BAD_VAR", "Invalid $-variable specified",
                "Variables are $stack, $stackN, $retval (on r), $comm and $argN."},
    RefusalText{
        "BAD_REG_NAME", "Invalid register name",
        "Registers are %ax %bx %cx %dx %si %di %bp %sp %r8-%r15 %ip %cs %ss %flags %orig_ax: "
        "no r or e prefix, lower case; a type narrows the value. The extended dialect has "
        "%xmm0-%xmm15."},
    RefusalText{"BAD_MEM_ADDR", "Invalid memory address",
                "@ takes a number: decimal, 0x hex or 0 octal."},
    RefusalText{"BAD_FILE_OFFS", "Invalid file offset value", "@+ takes a signed 64-bit number."},
    RefusalText{"SYM_ON_UPROBE", "Symbol is not available with uprobe",
                "@symbol is for kernel probes; use @ADDRESS or @+FILEOFFSET."},
    RefusalText{"DEREF_NEED_BRACE", "Dereference needs a brace",
                "Write a load as +OFFSET(what) or -OFFSET(what)."},
    RefusalText{"BAD_DEREF_OFFS", "Invalid dereference offset",
                "The offset before the '(' is one number; + or - comes first and is needed."},
    RefusalText{"DEREF_OPEN_BRACE", "Dereference brace is not closed",
                "A ')' is missing; arguments cannot contain spaces."},
    RefusalText{"COMM_CANT_DEREF", "$comm can not be dereferenced",
                "$comm and \\\"text\" are not addresses; use them without +0(...)."},
    RefusalText{"TOO_MANY_OPS", "Dereference is too much nested",
                "At most 14 loads fit, one less for arrays and bitfields."},
    RefusalText{"BAD_IMM", "Invalid immediate value",
                "A constant is \\ and a number, or \\\" and text closed by \"."},
    RefusalText{"IMMSTR_NO_CLOSE", "String is not closed with '\"'",
                "End the text with \"; it cannot contain spaces, ':' or '#'."},
    RefusalText{"BAD_FETCH_ARG", "Invalid fetch argument",
                "An argument starts with % (register), $ (variable), @ (memory), + or - (load) or "
                "\\ (constant)."},
    RefusalText{"NOSUP_BTFARG", "BTF is not available or not supported",
                "Bare names and casts need kernel type information, which user programs do not "
                "have; name a register, $variable or memory instead. White space around '=' splits "
                "an argument too."},
    RefusalText{
        "EVENT_TOO_BIG", "Event too big (too many fields?)",
        "The fixed parts of all arguments may take at most 3072 bytes (a string counts 4)."},
    RefusalText{
        "BAD_STRING", "String accepts only memory argument",
        "Strings and arrays are read from memory: write +0(%di):string, not %di:string, and "
        "arrays of numbers without u."},
    RefusalText{"BAD_BITFIELD", "Invalid bitfield",
                "A bitfield is b<width>@<offset>/<container> with width at least 1 and width plus "
                "offset within the container."},
    RefusalText{"DIFF_PROBE_TYPE", "Probe type is different from existing probe",
                "The event exists with the other kind; p and r cannot share one event."},
    RefusalText{"DIFF_ARG_TYPE", "Argument type or name is different from existing probe",
                "Probes of one event need the same argument names, types and counts in order."},
    RefusalText{"SAME_PROBE", "There is already the exact same probe event",
                "The same place and arguments are already defined under this event."},
    RefusalText{"BAD_LINE", "",
                "The line has a NUL or newline byte inside or more than 4094 bytes."},
    RefusalText{"UNKNOWN_KIND", "",
                "A definition starts with p or r, a deletion with -: in the very first column."},
    RefusalText{"MISSING_PLACE", "", "After the name comes the place: PATH:0xOFFSET."},
    RefusalText{"PLACE_WITHOUT_PATH", "",
                "The place has no '/': write the path of a file, as in /usr/bin/bash:0x1234 or "
                "./prog:0x1234. The extended dialect also takes bash:readline."},
    RefusalText{"PLACE_WITHOUT_OFFSET", "",
                "After the last ':' of the place comes a file offset that starts with a digit; the "
                "extended dialect also takes a symbol there."},
    RefusalText{"REFCTR_CONFLICT", "",
                "Another event has this place with another reference counter; it must be the same "
                "in all of them."},
    RefusalText{"BAD_DELETION", "", "Delete with -:EVENT, -:GROUP/EVENT or -:GROUP/."},
    RefusalText{"NO_SUCH_EVENT", "",
                "Nothing matches; place and arguments must be spelled as they are read back."},
    RefusalText{"EVENT_BUSY", "", "The event is enabled; disable it before deleting it."},
    RefusalText{"OWN_WORDS", "", ""},
};
static_assert(kTexts.size() == static_cast<size_t>(RefusalCode::kOwnWords) + 1);

}  // namespace

const RefusalText& TextOf(RefusalCode code) {
  return kTexts[static_cast<size_t>(code)];
}

}  // namespace probed::lang
