// Lines and files as ftrace writes them; the expected texts were taken from a real kernel.

#include <gtest/gtest.h>

#include "tests/lang/recorded.h"

namespace probed::lang::testing {
namespace {

TEST(FormatTraceLine, Entry) {
  FakeContext context;
  context.regs[Reg::kSi] = 0x5599cfc28040;
  context.regs[Reg::kDx] = 0x1000;
  context.regs[Reg::kCx] = 0x1234567890abcdef;
  context.MapString(0x1000, "world");
  Recorded recorded(Dialect::kKernel, "p", "%di %si s=+0(%dx):string d=%cx:u64");
  TraceLine line;
  line.comm = "kgrbin";
  line.tid = 23819;
  line.monotonic_ns = 755'541'021'600;
  line.flags = "DBZff";
  line.event = "a";
  line.ip = 0x5599cfc25149;
  EXPECT_EQ(FormatTraceLine(line, recorded.definition().schema, recorded.Values(context)),
            "          kgrbin-23819   [000] DBZff   755.541022: a: (0x5599cfc25149) arg1=0x0 "
            "arg2=0x5599cfc28040 s=\"world\" d=1311768467294899695");
}

TEST(FormatTraceLine, WidthsAreLeastWidthsAndCountBytes) {
  TraceLine line;
  line.comm = "caf\xc3\xa9";
  line.tid = 123456789;
  line.cpu = 1234;
  line.monotonic_ns = 1'234'567'000'000'499;
  line.event = "e";
  EXPECT_EQ(FormatTraceLine(line, EventSchema{}, {}),
            "           caf\xc3\xa9-123456789 [1234] ..... 1234567.000000: e: (0x0)");
}

TEST(FormatTraceLine, Return) {
  FakeContext context;
  context.regs[Reg::kAx] = 0x1234567890abcf64;
  Recorded recorded(Dialect::kKernel, "r", "$retval");
  TraceLine line;
  line.comm = "kgrbin";
  line.tid = 23819;
  line.cpu = 12;
  line.monotonic_ns = 123'456'000'055'000;
  line.event = "b";
  line.kind = ProbeKind::kReturn;
  line.ip = 0x5599cfc25203;
  line.function = 0x5599cfc25149;
  EXPECT_EQ(FormatTraceLine(line, recorded.definition().schema, recorded.Values(context)),
            "          kgrbin-23819   [012] ..... 123456.000055: b: (0x5599cfc25203 <- "
            "0x5599cfc25149) arg1=0x1234567890abcf64");
}

TEST(FormatFile, Entry) {
  Recorded recorded(Dialect::kKernel, "p", "%di %si s=+0(%dx):string d=%cx:u64");
  EXPECT_EQ(FormatFile(recorded.definition().schema, 2328),
            R"(name: a
ID: 2328
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	field:u64 arg1;	offset:16;	size:8;	signed:0;
	field:u64 arg2;	offset:24;	size:8;	signed:0;
	field:__data_loc char[] s;	offset:32;	size:4;	signed:1;
	field:u64 d;	offset:36;	size:8;	signed:0;

print fmt: "(%lx) arg1=0x%Lx arg2=0x%Lx s=\"%s\" d=%Lu", REC->__probe_ip, REC->arg1, REC->arg2, __get_str(s), REC->d
)");
}

TEST(FormatFile, Return) {
  Recorded recorded(Dialect::kKernel, "r", "ret=$retval:s64 s=+0($retval):string");
  const std::string format = FormatFile(recorded.definition().schema, 1);
  EXPECT_EQ(format.substr(format.find("\n\n") + 2),
            R"(	field:unsigned long __probe_func;	offset:8;	size:8;	signed:0;
	field:unsigned long __probe_ret_ip;	offset:16;	size:8;	signed:0;
	field:s64 ret;	offset:24;	size:8;	signed:1;
	field:__data_loc char[] s;	offset:32;	size:4;	signed:1;

print fmt: "(%lx <- %lx) ret=%Ld s=\"%s\"", REC->__probe_func, REC->__probe_ret_ip, REC->ret, __get_str(s)
)");
}

TEST(AppendArguments, LeavesStringsRaw) {
  FakeContext context;
  context.MapString(0x1000, "a\"b\n\x80");
  EXPECT_EQ(Recorded(Dialect::kKernel, "p", "s=@0x1000:string").Text(context), "s=\"a\"b\n\x80\"");
}

TEST(FormatProfileLine, HasTwoColumns) {
  EXPECT_EQ(FormatProfileLine("/bin/x", "a", 42),
            "  /bin/x a" + std::string(43, ' ') + " " + std::string(13, ' ') + "42");
}

}  // namespace
}  // namespace probed::lang::testing
