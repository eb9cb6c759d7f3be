#include "engine/kernel/source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace probed::kernel {

Source::Source(std::unique_ptr<EventReader> reader, const std::string& tracefs_directory)
    : reader_(std::move(reader)), threads_(tracefs_directory) {}

Source::Event* Source::Find(uint32_t id) {
  return id < events_.size() ? events_[id].get() : nullptr;
}

Status Source::Add(EventDecoder decoder, const std::string& event, event::ProbeId probe) {
  std::lock_guard lock(mutex_);
  const uint16_t id = decoder.id();
  if (const Event* const taken = Find(id)) {
    const lang::EventSchema& schema = *taken->decoder.schema();
    return Error{
        .code = ErrorCode::kAlreadyExists,
        .reason = "EVENT_TAKEN",
        .message = fmt::format("{}/{} is read for another probe", schema.group, schema.event),
        .hint = "delete that probe first",
        .metadata = {}};
  }
  PROBED_RETURN_IF_ERROR(reader_->Learn(id, event));
  if (id >= events_.size()) events_.resize(size_t{id} + 1);
  events_[id] = std::make_unique<Event>(Event{std::move(decoder), probe});
  ids_[probe] = id;
  return {};
}

void Source::Remove(event::ProbeId probe) {
  std::lock_guard lock(mutex_);
  const auto found = ids_.find(probe);
  if (found == ids_.end()) return;
  reader_->Forget(found->second);
  events_[found->second].reset();
  ids_.erase(found);
}

uint64_t Source::RecordedBy(event::ProbeId probe) const {
  std::lock_guard lock(mutex_);
  const auto found = ids_.find(probe);
  return found == ids_.end() ? 0 : events_[found->second]->recorded;
}

uint64_t Source::lost() const {
  std::lock_guard lock(mutex_);
  return reader_->lost() + undecoded_;
}

Status Source::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

std::vector<event::ProbeId> Source::probes() const {
  std::lock_guard lock(mutex_);
  std::vector<event::ProbeId> probes;
  for (const auto& [probe, id] : ids_)
    probes.push_back(probe);
  return probes;
}

void Source::Count(uint32_t id) {
  std::lock_guard lock(mutex_);
  if (Event* const event = Find(id)) ++event->recorded;
}

bool Source::Decode(const ring::RawRecord& record, event::RingHit& hit) {
  std::lock_guard lock(mutex_);
  Event* const event = Find(record.probe);
  if (event == nullptr) return false;
  const uint32_t cpu = reader_->cpu_number(record.cpu);
  if (!event->decoder.Decode(record.payload, cpu, hit)) {
    ++undecoded_;
    return false;
  }
  const auto tid = static_cast<int32_t>(record.thread);
  const ThreadOwner& owner = threads_.Of(tid, MonotonicNow());
  hit.header.probe = event->probe;
  hit.header.pid = owner.pid;
  hit.header.tid = tid;
  hit.header.cpu = static_cast<uint16_t>(cpu);
  std::copy(owner.comm.begin(), owner.comm.end(), hit.header.comm);
  return true;
}

void Source::OnCorrupt(const Error& error) {
  std::lock_guard lock(mutex_);
  status_ = error;
}

}  // namespace probed::kernel
