#include "engine/kernel/profile.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace probed::kernel {
namespace {

constexpr int kAttempts = 5;

bool IsNumber(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

uint64_t ToNumber(const std::string& word) {
  uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

void AddProfile(const Tracefs& tracefs, const std::string& kind, Profile& profile) {
  if (!tracefs.Has(kind + "_profile")) return;
  for (int i = 0; i < kAttempts; ++i) {
    const auto events = tracefs.Read(kind + "_events");
    const auto counts = tracefs.Read(kind + "_profile");
    if (!events.ok() || !counts.ok()) return;
    if (ParseProfile(*counts, ParseDynamicEvents(*events), profile)) return;
  }
}

}  // namespace

// "  EVENT HITS MISSED" of kprobes, "  PATH EVENT HITS" of uprobes; a path may have spaces in it.
bool ParseProfile(std::string_view text, const std::vector<DynamicEvent>& events, Profile& into) {
  Profile parsed;
  std::istringstream lines{std::string(text)};
  size_t index = 0;
  for (std::string line; std::getline(lines, line); ++index) {
    const auto words = Words(line);
    if (index >= events.size() || words.size() < 3) return false;
    const DynamicEvent& event = events[index];
    const size_t last = words.size() - 1;
    const bool kprobe = words.size() == 3 && words[0] == event.event && IsNumber(words[1]);
    if (!kprobe && words[last - 1] != event.event) return false;
    ProbeCounts& counts = parsed[{event.group, event.event}];
    counts.hits += ToNumber(words[kprobe ? 1 : last]);
    if (kprobe) counts.missed += ToNumber(words[2]);
  }
  if (index != events.size()) return false;
  into.merge(parsed);
  return true;
}

Profile ReadProfile(const Tracefs& tracefs) {
  Profile profile;
  AddProfile(tracefs, "kprobe", profile);
  AddProfile(tracefs, "uprobe", profile);
  return profile;
}

}  // namespace probed::kernel
