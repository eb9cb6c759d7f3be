#pragma once
// Says of return probes on ret instructions what they do not see. Once of each, few one by one.

#include <set>
#include <string>

#include "client/talk.h"
#include "probed/v1/probes.pb.h"

namespace probed::client {

class UnseenReturns {
 public:
  explicit UnseenReturns(Talk& talk) : talk_(talk) {}
  void WarnOf(const v1::CreateProbesResponse& created);

 private:
  void WarnOf(const v1::Probe& probe);

  Talk& talk_;
  std::set<std::string> told_;  // definitions: every target has a probe of each
};

}  // namespace probed::client
