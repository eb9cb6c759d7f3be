#pragma once
// Probes, sites and schemas between the engine and the API. Pure.

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "probed/v1/events.pb.h"
#include "probed/v1/probes.pb.h"

namespace probed::daemon {

v1::Mechanism ToProto(engine::Mechanism mechanism);
v1::ProbeKind ToProto(lang::ProbeKind kind);
v1::FieldType ToProto(const lang::ArgType& type);
v1::Probe ToProto(const engine::ProbeInfo& probe);
v1::Site ToProto(const engine::SiteInfo& site, event::TargetId root);
v1::EventSchema ToSchema(event::TargetId target, event::ProbeId probe,
                         const lang::EventSchema& schema);

Result<engine::CreateOptions> ToOptions(const v1::CreateProbesRequest& request);

// What UpdateProbe is to change.
struct ProbeChanges {
  std::optional<bool> enabled;
  std::optional<std::string> filter;
};
Result<ProbeChanges> ToChanges(const v1::UpdateProbeRequest& request);

}  // namespace probed::daemon
