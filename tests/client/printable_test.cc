#include "client/printable.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

std::string Printable(std::string text, Newlines newlines = Newlines::kEscape) {
  MakePrintable(text, 0, newlines);
  return text;
}

TEST(Printable, ATerminalIsToldNothing) {
  EXPECT_EQ(Printable("a\tb \"c\" \\x41 \xc3\xa9 \xe2\x82\xac"),
            "a\tb \"c\" \\x41 \xc3\xa9 \xe2\x82\xac");
  EXPECT_EQ(Printable("\033[2J\033]0;title\007"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(Printable("a\r\nb\x7f"), "a\\x0d\\x0ab\\x7f");
  EXPECT_EQ(Printable("a\nb", Newlines::kKeep), "a\nb");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "the CSI of C1, in UTF-8";
  EXPECT_EQ(Printable("\x9b"
                      "31m \xff \xc3"),
            "\\x9b31m \\xff \\xc3");
  std::string text = "\033kept\033";
  MakePrintable(text, 5);
  EXPECT_EQ(text, "\033kept\\x1b");
}

}  // namespace
}  // namespace probed::client
