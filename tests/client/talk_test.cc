#include "client/talk.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

TEST(DescribeError, WhatWhyTry) {
  Error error{.code = ErrorCode::kFailedPrecondition,
              .reason = "TARGET_ALREADY_TRACED",
              .message = "process 5 is traced by strace",
              .hint = "stop strace",
              .metadata = {{"tracer_pid", "7"}}};
  EXPECT_EQ(DescribeError(error),
            "process 5 is traced by strace\n"
            "  why: TARGET_ALREADY_TRACED (tracer_pid=7)\n"
            "  try: stop strace\n");
}

TEST(DescribeError, Suggestions) {
  Error error{.code = ErrorCode::kNotFound,
              .reason = "SYMBOL_NOT_FOUND",
              .message = "no symbol maloc",
              .hint = "",
              .metadata = {{"suggestions", "malloc"}}};
  EXPECT_EQ(DescribeError(error),
            "no symbol maloc\n"
            "  why: SYMBOL_NOT_FOUND\n"
            "  did you mean: malloc\n");
}

TEST(DescribeVerdict, CaretStandsUnderItsColumn) {
  v1::LineVerdict verdict;
  verdict.set_line(2);
  verdict.set_command("p:g/a /x:0x1 %zz");
  verdict.set_error_number(22);
  verdict.set_message("Invalid register name");
  verdict.set_caret(13);
  verdict.set_explanation("no such register");
  verdict.set_reason("BAD_REG_NAME");
  EXPECT_EQ(DescribeVerdict(verdict),
            "definition 3: Invalid register name\n"
            "  Command: p:g/a /x:0x1 %zz\n"
            "                        ^\n"
            "  no such register\n"
            "  why: BAD_REG_NAME (errno=22)\n");
}

TEST(DescribeVerdict, OfAFilter) {
  v1::LineVerdict verdict;
  verdict.set_command("m==1");
  verdict.set_error_number(22);
  verdict.set_message("Field not found");
  verdict.set_caret(2);
  verdict.set_explanation("the fields are n");
  verdict.set_reason("FIELD_NOT_FOUND");
  verdict.set_in_filter(true);
  EXPECT_EQ(DescribeVerdict(verdict),
            "filter: Field not found\n"
            "  Command: m==1\n"
            "             ^\n"
            "  the fields are n\n"
            "  why: FIELD_NOT_FOUND (errno=22)\n");
}

TEST(DescribeVerdict, WhereTheKernelSaysNothing) {
  v1::LineVerdict verdict;
  verdict.set_command("q x");
  verdict.set_error_number(22);
  verdict.set_explanation("no such kind");
  verdict.set_reason("BAD_KIND");
  EXPECT_EQ(DescribeVerdict(verdict),
            "definition 1: no such kind\n"
            "  Command: q x\n"
            "  why: BAD_KIND (errno=22)\n");
}

}  // namespace
}  // namespace probed::client
