#include "tests/lang/filter_generator.h"

#include <fmt/format.h>

namespace probed::lang::testing {
namespace {

constexpr size_t kLongest = 900;

// "a || b &&": nothing of the kernel's binds the exit of a, and it reads before its own array.
bool LeavesExitUnbound(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\n\v\f\r\xa0!");
  return last != std::string_view::npos && text[last] == '&' &&
         text.find("||") != std::string_view::npos;
}

}  // namespace

std::string FilterGenerator::NextGood() {
  good_ = true;
  return Expression(0);
}

std::string FilterGenerator::Next() {
  while (true) {
    good_ = OneIn(4);
    std::string text = Expression(0);
    for (size_t n = OneIn(2) ? Below(4) : 0; n > 0; --n)
      text = Mutate(std::move(text));
    if (text.size() < kLongest && !LeavesExitUnbound(text)) return text;
  }
}

std::string FilterGenerator::Expression(unsigned depth) {
  std::string text = Term(depth);
  while (OneIn(2))
    text += Space() + Pick({"&&", "||"}) + Space() + Term(depth);
  return text;
}

std::string FilterGenerator::Term(unsigned depth) {
  std::string text = Space();
  while (OneIn(4))
    text += "!" + Space();
  if (depth < 4 && OneIn(3)) {
    return text + "(" + Space() + Expression(depth + 1) + Space() + ")";
  }
  return text + (!good_ && OneIn(6) ? OddPredicate() : Predicate());
}

std::string FilterGenerator::Predicate() {
  const FilterSubject& subject = subjects_[Below(subjects_.size())];
  std::string op = subject.is_text ? Pick({"==", "!=", "~", "~"})
                                   : Pick({"==", "!=", "<", "<=", ">", ">=", "&"});
  if (!good_ && OneIn(16)) op = Pick({"~", "&", "=", "==", "!~", "=<", "<>", "", "!"});
  const std::string value = Value(subject, op);
  const std::string suffix = OneIn(16) ? ".ustring" : "";
  return subject.name + suffix + Space() + op + Space() + value;
}

std::string FilterGenerator::Value(const FilterSubject& subject, const std::string& op) {
  const bool set_op = op == "==" || op == "!=" || op == "&";
  if (!subject.is_text && set_op && OneIn(5)) return "CPUS{" + CpuList() + "}";
  if (!good_ && OneIn(16)) return "CPUS{" + CpuList() + Pick({"}", "}", "", " "});
  std::string operand = subject.operands[Below(subject.operands.size())];
  if (!subject.is_text) return operand;
  const size_t length = operand.size();
  if (op == "~" && length > 0) {
    switch (Below(8)) {
      case 0:
        operand = operand.substr(0, Below(length + 1)) + "*";
        break;
      case 1:
        operand = "*" + operand.substr(Below(length + 1));
        break;
      case 2:
        operand = "*" + operand.substr(Below(length), 2) + "*";
        break;
      case 3:
        operand[Below(length)] = '?';
        break;
      case 4:
        operand.replace(Below(length), 1,
                        Pick({"[a-m]", "[!a-m]", "[]o]", "[x-]", "[", "*", "\\*"}));
        break;
      case 5:
        operand.insert(Below(length + 1), Pick({"*", "?", "\\", "**", "[!", "]"}));
        break;
      case 6:
        operand.insert(0, "!");
        break;
      default:
        break;
    }
  }
  const std::string quote = Pick({"\"", "\"", "'"});
  return quote + operand + quote;
}

std::string FilterGenerator::CpuList() {
  if (good_) return Pick({"0", "1", "0-1", "0,1", "all", "N", "0-1:1/2", "1-N", " 1 "});
  return Pick({"0",       "1",    "0-1",   "0,1", "all",     "ALL",   "N",     "0-N",
               "0-1:1/2", "",     " ",     "1-0", "2",       "99999", "0x1",   "0-1:2/1",
               "0-1:1/0", "none", "0-",    "-1",  ",",       "0 1",   "1:1/1", "4294967296",
               "0-1:0/1", "01",   "0-1:1", "N-0", "all:1/2", "0;1"});
}

std::string FilterGenerator::OddPredicate() {
  switch (Below(7)) {
    case 0:
      return subjects_[Below(subjects_.size())].name;
    case 1:
      return Pick({"nosuch==1", "Comm=='a'", "1==1", "==2", "()", "", "'a'=='a'", "_==1",
                   "STACKTRACE==1", "stacktrace!=0", "common_tgid==1", "__probe_ip.x==1",
                   "__probe_func==1", "\xe9==1", "CPUS{0}"});
    case 2:
      return subjects_[Below(subjects_.size())].name + Pick({"==", "<", "~", "&", "!="}) +
             Pick({"01",
                   "08",
                   "0x",
                   "0xg",
                   "-",
                   "--1",
                   "+1",
                   "0b1",
                   "1e3",
                   "99999999999999999999",
                   "18446744073709551615",
                   "9223372036854775808",
                   "-9223372036854775808",
                   "-9223372036854775809",
                   "000000000000000000000001",
                   "00000000000000000000001",
                   "0xffffffffffffffffffff",
                   "abc",
                   "1.5",
                   "1 2",
                   "\"a'b\"",
                   "'a\"b'",
                   "\"",
                   "'x"});
    case 3:
      return subjects_[Below(subjects_.size())].name + ".function" +
             Pick({"==", "!=", "<", "~", ""}) +
             Pick({"no_such_function", "0x401000", "0xzz", "99999999999999999999", "12",
                   "111111111111111111111111", "", "\"no_such\""});
    case 4:
      return subjects_[Below(subjects_.size())].name + "==\"" + std::string(250 + Below(10), 'a') +
             "\"";
    case 5:
      return Predicate() + Pick({" & ", " | ", " , ", " ", "&&&", "|||", ";", "=="}) + Predicate();
    default:
      return Predicate() + Pick({")", "(", "))", "((", "'", "\"", "!", "\\", "}"});
  }
}

std::string FilterGenerator::Mutate(std::string text) {
  static constexpr std::string_view kBytes = "()!&|=<>~'\" 0i_.{}*-\xa0\xe9\n\v";
  if (text.empty()) return text;
  const size_t at = Below(text.size());
  const char byte = kBytes[Below(kBytes.size())];
  switch (Below(5)) {
    case 0:
      return text.erase(at, 1);
    case 1:
      return text.insert(at, 1, byte);
    case 2:
      text[at] = byte;
      return text;
    case 3:
      return text.substr(0, at);
    default:
      return text.insert(at, text.substr(Below(text.size()), 1 + Below(6)));
  }
}

}  // namespace probed::lang::testing
