#include "tests/lang/line_generator.h"

#include <fmt/format.h>

#include <algorithm>

namespace probed::lang::testing {
namespace {

// Bytes that mean something to the language, and some that nearly do.
constexpr std::string_view kAlphabet =
    "0123456789abcdefpruxX:/.()[]%$@+-\\\"=#_ \t\r\v\f,*&!~{}<>'ABZ\xa0\xe9\xd7\xf7\xff\x80\x01";

// The first spellings of `paths` are good ones.
constexpr size_t kGoodPaths = 6;

}  // namespace

std::string LineGenerator::Number() {
  if (OneIn(2)) return fmt::format("{}", Below(20));
  if (OneIn(2)) return fmt::format("0x{:x}", random_() >> Below(64));
  return std::string(
      Mix({"0", "00", "010", "0X1F", "4294967296", "9223372036854775807", "0x7fffffffffffffff"},
          {"08", "0x", "0xg", "1_0", "18446744073709551615", "18446744073709551616", "", "x", "1x",
           "99999999999999999999x", "9223372036854775808", "0x8000000000000000", "-1", "+1",
           "0xffffffffffffffff", "0x1ffffffffffffffff", "-0x8000000000000000",
           "-9223372036854775809", "02000000000000000000000"}));
}

std::string LineGenerator::Kind() {
  if (!IsOdd(12)) return std::string(Pick({"p", "p", "r"}));
  return std::string(Pick({"p1", "r100", "px", "rr", "P", "q", "f", "t", "e", "!p", "p-", ":p"}));
}

std::string LineGenerator::Group() {
  if (!IsOdd(10)) return tag_ + std::string(Pick({"", "", "", "2", "-x", "_"}));
  return std::string(Pick({"1g", "g+b", "", "sched", "a:b"})) +
         std::string(OneIn(3) ? 64 - Below(3) : 0, 'g');
}

std::string LineGenerator::Event() {
  if (!IsOdd(8)) return fmt::format("e{}", Below(12));
  if (OneIn(4)) return std::string(62 + Below(3), 'e');
  return std::string(Pick({"", "1a", "a-b", "a.b", "\xe9", "a\xd7", "sched_switch", "_", "a:b"}));
}

std::string LineGenerator::Place() {
  std::string place = paths_[IsOdd(3) ? Below(paths_.size()) : Below(kGoodPaths)];
  if (!IsOdd(40)) place += ':';
  place += OneIn(8) ? Number() : std::string(Pick({"0x10", "0x20", "16", "0x1149"}));
  if (OneIn(10)) place += Mix({"%return"}, {"%ret", "%", "%return%return"});
  if (OneIn(8)) {
    place += Mix({"("}, {"", "(+", "(("});
    place += OneIn(2) ? "0x30" : Number();
    place += Mix({")"}, {"", "))", ")x", ")%return"});
  }
  return place;
}

std::string LineGenerator::Load(unsigned depth) {
  std::string load(Mix({"+", "+", "-", "+u", "-u"}, {"++", "+-", "--", "-+", "+U", "+u-"}));
  load += OneIn(6) ? Number() : fmt::format("{}", Below(200));
  if (!IsOdd(30)) load += '(';
  load += Fetch(depth + 1);
  load += Mix({")"}, {"", "))", ")x", ")(", ")+8"});
  return load;
}

std::string LineGenerator::Constant() {
  if (OneIn(3)) {
    return "\\\"" + std::string(Mix({"", "a", "ab", "%s"}, {"a\"b", "a=b", "a:b"})) +
           std::string(Mix({"\""}, {"", "\"x"}));
  }
  return "\\" + std::string(Mix({"", "+", "-"}, {"+-", "-+", "++", "--"})) + Number();
}

std::string LineGenerator::Fetch(unsigned depth) {
  if (depth < 18 && OneIn(2)) return Load(depth);
  switch (Below(6)) {
    case 0:
    case 1:
      return "%" + std::string(Mix(
                       {"di", "si", "ax", "sp", "r8", "r15", "ip", "cs", "ss", "flags", "orig_ax"},
                       {"rdi", "al", "ds", "DI", "", "%di", "xmm0"}));
    case 2:
      return "$" +
             std::string(Mix({"stack", "stack0", "stack12", "stack010", "comm", "COMM"},
                             {"stackx", "retval", "retvalx", "Comm", "arg1", "arg0", "arg2049",
                              "arg*", "arg", "argx", "foo", "", "current", "stack-1",
                              "stack18446744073709551616", "arg+1", "retval->f", "commx"}));
    case 3:
      return "@" + std::string(OneIn(2) ? "+" : "") + Number();
    case 4:
      return Constant();
    default:
      if (!IsOdd(2)) return "%di";
      return std::string(Pick({"foo", "_x", "file->f", "(x)y", "(%di)", "&1", "*%di", "@sym", "@-1",
                               "@", "[1]", "1", "", "=", "\xe9", "{", "~"}));
  }
}

std::string LineGenerator::Bitfield() {
  if (clean_) return fmt::format("b{}@{}/64", 1 + Below(32), Below(32));
  std::string text = "b" + (OneIn(6) ? Number() : fmt::format("{}", Below(66)));
  text += Mix({"@"}, {"", "@@"});
  text += OneIn(6) ? Number() : fmt::format("{}", Below(12));
  text += Mix({"/"}, {"", "//"});
  text += Mix({"8", "16", "32", "64"}, {"0x10", "+8", "010", "24", "", "8x"});
  return text;
}

std::string LineGenerator::Type() {
  std::string type(Mix({"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32",
                        "x64", "char", "string", "ustring"},
                       {"symbol", "symstr", "int", "U8", "", "f32", "f64", "%pd", "bytes",
                        "u8:", "string", "ustring"}));
  if (OneIn(4)) type = Bitfield();
  if (OneIn(5)) {
    type += Mix({"["}, {"", "[["});
    type += IsOdd(4) ? Number() : fmt::format("{}", 1 + Below(IsOdd(4) ? 70 : 4));
    type += Mix({"]"}, {"", "]]", "]x"});
  }
  return type;
}

std::string LineGenerator::Argument() {
  std::string argument;
  if (OneIn(2)) {
    argument = IsOdd(10) ? std::string(30 + Below(5), 'n')
                         : std::string(Mix({"a", "b", "c", "x", "y"},
                                           {"arg1", "arg2", "1a", "a.b", "", "common_pid",
                                            "__probe_ip", "comm", "\xe9"}));
    argument += Mix({"="}, {"==", " = ", "="});
  }
  argument += Fetch(0);
  if (OneIn(2)) argument += ":" + Type();
  if (IsOdd(40)) argument += std::string(Below(70), '0');
  return argument;
}

std::string LineGenerator::Definition() {
  clean_ = !OneIn(3);
  std::string line(IsOdd(20) ? Pick({" ", "\t", "\xa0"}) : "");
  line += Kind();
  if (!IsOdd(8)) line += ":" + Group() + (OneIn(8) ? "." : "/") + Event();
  if (IsOdd(60)) return line;
  line += OneIn(20) ? Pick({"\t", "  ", "\xa0", "\r", " \v "}) : " ";
  line += Place();
  if (IsOdd(20)) return line + ManyArguments();
  for (size_t count = Below(4); count > 0; --count)
    line += " " + Argument();
  if (OneIn(40)) line += Pick({" ", "#", " # x", "\r", "\t"});
  return line;
}

// Around the limits of 128 arguments and 3072 bytes.
std::string LineGenerator::ManyArguments() {
  std::string text;
  const size_t count = OneIn(2) ? 6 + Below(8) : 120 + Below(20);
  const bool is_wide = count < 20;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format(" a{}=+{}(%di)", i, i);
    if (is_wide) text += OneIn(2) ? ":string[64]" : ":x64[64]";
  }
  return text;
}

void LineGenerator::Remember(const std::string& listed) {
  listed_.push_back(listed);
  if (listed_.size() > 16) listed_.erase(listed_.begin());
}

// `-:` and a group of ours, so that nobody else's probes can match.
std::string LineGenerator::Deletion() {
  clean_ = !OneIn(4);
  std::string plain = "-:" + tag_ + std::string(Pick({"", "", "2", "-x", "_"})) + "/";
  if (OneIn(6)) return plain;
  if (listed_.empty() || OneIn(3)) return plain + Event();
  // A listed form, cut somewhere or spoilt.
  std::string line = listed_[Below(listed_.size())];
  line[0] = '-';
  if (OneIn(3)) line.resize(line.find(' ') + Below(line.size() - line.find(' ')));
  if (OneIn(4)) line = Mutate(line);
  return line.starts_with("-:" + tag_) ? line : plain + Event();
}

std::string LineGenerator::Mutate(std::string line) {
  const size_t mutations = 1 + Below(3);
  for (size_t i = 0; i < mutations && !line.empty(); ++i) {
    const size_t at = Below(line.size());
    const char byte = kAlphabet[Below(kAlphabet.size())];
    switch (Below(5)) {
      case 0:
        line.insert(at, 1, byte);
        break;
      case 1:
        line.erase(at, 1);
        break;
      case 2:
        line[at] = byte;
        break;
      case 3:
        line.insert(at, line.substr(at, Below(12)));
        break;
      default:
        std::swap(line[at], line[Below(line.size())]);
    }
  }
  return line;
}

std::string LineGenerator::Next() {
  if (OneIn(12)) return Deletion();
  std::string line;
  if (!recent_.empty() && OneIn(3)) {
    line = recent_[Below(recent_.size())];
    if (OneIn(2)) line[0] = line[0] == 'p' ? 'r' : 'p';
    if (OneIn(3)) line += " " + Argument();
    if (OneIn(3)) line = Mutate(line);
  } else {
    line = Definition();
    recent_.push_back(line);
    if (recent_.size() > 16) recent_.erase(recent_.begin());
    if (OneIn(4)) line = Mutate(line);
  }
  const bool could_delete_others = !line.empty() && line[0] == '-';
  return could_delete_others ? Deletion() : line;
}

}  // namespace probed::lang::testing
