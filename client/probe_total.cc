#include "client/probe_total.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/print_probe.h"

namespace probed::client {
namespace {

bool IsSameDefinition(const v1::Probe& one, const v1::Probe& other) {
  return one.kind() == other.kind() && one.group() == other.group() && one.event() == other.event();
}

}  // namespace

void AddTo(std::vector<ProbeTotal>& totals, const ProbeTotal& more) {
  auto total = std::find_if(totals.begin(), totals.end(), [&](const ProbeTotal& one) {
    return IsSameDefinition(one.probe, more.probe);
  });
  if (total == totals.end()) return totals.push_back(more);
  total->shown += more.shown;
  total->deleted = total->deleted || more.deleted;
  total->orphan = total->orphan || more.orphan;
  auto& sum = *total->probe.mutable_counters();
  const auto& counters = more.probe.counters();
  sum.set_hits(sum.hits() + counters.hits());
  sum.set_recorded(sum.recorded() + counters.recorded());
  sum.set_filtered(sum.filtered() + counters.filtered());
  sum.set_sampled_out(sum.sampled_out() + counters.sampled_out());
  sum.set_missed(sum.missed() + counters.missed());
  sum.set_unwound(sum.unwound() + counters.unwound());
  sum.set_lost(sum.lost() + counters.lost());
  if (more.probe.state() != v1::Probe::STATE_PENDING) total->probe.set_state(more.probe.state());
}

namespace {

uint64_t UnseenOf(const ProbeTotal& total) {
  const uint64_t recorded = total.probe.counters().recorded();
  return recorded - std::min(total.shown, recorded);
}

}  // namespace

uint64_t LostOf(const ProbeTotal& total) {
  return std::min<uint64_t>(total.probe.counters().lost(), UnseenOf(total));
}

std::string DescribeTotal(const ProbeTotal& total, const std::string& where) {
  const v1::Probe& probe = total.probe;
  const auto& counters = probe.counters();
  const std::string name =
      fmt::format("  {}:{}/{}{}", probe.kind() == v1::PROBE_KIND_RETURN ? 'r' : 'p', probe.group(),
                  probe.event(), where);
  if (total.deleted)
    return fmt::format("{}  shown {}  (deleted meanwhile, with its counters)", name, total.shown);
  if (total.orphan)
    return fmt::format("{}  shown {}  (the daemon has ended, with its counters)", name,
                       total.shown);
  const uint64_t unseen = UnseenOf(total), lost = LostOf(total);
  std::string text =
      fmt::format("{}  hits {}  shown {}  missed {}{}  lost {}", name, counters.hits(), total.shown,
                  counters.missed(), UnwoundOf(counters), lost);
  text += DroppedOnPurpose(probe);
  if (unseen > lost) text += fmt::format("  not shown {}", unseen - lost);
  if (probe.state() == v1::Probe::STATE_PENDING)
    text += fmt::format("  (never armed: {})", probe.reason());
  return text;
}

}  // namespace probed::client
