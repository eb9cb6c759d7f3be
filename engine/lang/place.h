#pragma once
// The place of a uprobe, `PATH:OFFSET[%return][(REFCTR)]` or, in the extended dialect,
// `PID:0xADDRESS`, and the names derived from it. Pure; what is named is looked up through
// FileNamespace.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/lang/definition_set.h"
#include "engine/lang/refusal.h"

namespace probed::lang {

struct Place {
  std::string path;  // as typed
  uint64_t offset = 0;
  int process = 0;     // of `PID:0xADDRESS`, of which path and offset are the halves
  std::string symbol;  // extended: "name[+off]" as typed
  uint64_t ref_ctr_offset = 0;
  bool is_return = false;  // %return
  uint64_t device = 0;
  uint64_t inode = 0;
};

// The ':' behind PATH, npos without one. In the extended dialect a symbol may hold "::", which
// separates scopes.
size_t PathEnd(std::string_view token, Dialect dialect);

// The process of a token that is `PID:NUMBER...` in the extended dialect, else 0. A file whose name
// is a number is written ./NUMBER:OFFSET.
int ProcessOf(std::string_view token);

// The '+' of SYMBOL+OFFSET, npos without one: operator+ has one of its own.
size_t AddendStart(std::string_view symbol);

Judged<Place> ParsePlace(std::string_view token, Dialect dialect, FileNamespace& files);

// "0x" and 16 digits, then the reference counter if there is one: the read-back form.
std::string FormatOffset(uint64_t offset, uint64_t ref_ctr_offset);

struct EventName {
  std::string group;  // empty = not given
  std::string event;  // empty = generate one
};

// `text` is what follows the ':' of the kind, at `column` of its token.
Judged<EventName> ParseEventName(std::string_view text, int column);

// p_<base>_0x<offset>, also for return probes; never checked or sanitised (kernel, 1.3).
std::string GenerateEventName(std::string_view path, uint64_t offset);

}  // namespace probed::lang
