#include "engine/kernel/stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "engine/kernel/event_format.h"
#include "engine/kernel/page_reader.h"
#include "engine/kernel/pipe_reader.h"
#include "engine/kernel/place_names.h"
#include "engine/kernel/source.h"
#include "engine/ring/clock.h"

namespace probed::kernel {
namespace {

// Of each CPU. What comes while the reader sleeps (event/drainer.cc: 64 ms) must fit in.
constexpr std::string_view kRingKilobytes = "4096";
constexpr std::string_view kClock = "x86-tsc";

Status WriteFile(const std::string& path, std::string_view text) {
  PROBED_TRY(const UniqueFd file, OpenFile(path, O_WRONLY));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return ErrnoError(errno, "write " + path);
  return {};
}

// "NAME SIZE USERS USED_BY STATE ADDRESS": without the users, who come and go.
std::string ReadModules() {
  const auto text = ReadFile("/proc/modules");
  std::istringstream lines(text.ok() ? *text : "");
  std::string modules, name, size, users, used_by, state, address, rest;
  while (lines >> name >> size >> users >> used_by >> state >> address && std::getline(lines, rest))
    modules += name + state + address;
  return modules;
}

// The instance's top directory is above it: instances/NAME.
std::string TracefsOf(const std::string& instance_directory) {
  return instance_directory + "/../..";
}

struct Opened {
  std::unique_ptr<EventReader> reader;
  std::string text_only;
};

Result<Opened> OpenReader(const std::string& instance_directory) {
  auto pages = PageReader::Open(instance_directory);
  if (pages.ok()) return Opened{*std::move(pages), ""};
  auto pipes = PipeReader::Open(instance_directory);
  if (!pipes.ok()) return pages.error();
  return Opened{*std::move(pipes), "text only, without values: " + pages.error().message};
}

}  // namespace

Stream::Stream(event::Drainer& drainer, std::shared_ptr<Source> source, std::string tracefs,
               std::string text_only)
    : drainer_(drainer),
      source_(std::move(source)),
      tracefs_(std::move(tracefs)),
      text_only_(std::move(text_only)),
      id_(drainer_.Add(source_)),
      places_(std::make_shared<PlaceNames>([path = tracefs_] { return Symbols::Load(path); },
                                           ReadModules)) {}

Stream::~Stream() {
  drainer_.Remove(id_);
}

Result<std::unique_ptr<Stream>> Stream::Open(const std::string& instance_directory,
                                             event::Drainer& drainer) {
  PROBED_RETURN_IF_ERROR(ring::CheckTsc());
  PROBED_RETURN_IF_ERROR(WriteFile(instance_directory + "/buffer_size_kb", kRingKilobytes));
  // Empties the rings, whose stamps would be of another clock.
  PROBED_RETURN_IF_ERROR(WriteFile(instance_directory + "/trace_clock", kClock));
  PROBED_TRY(auto opened, OpenReader(instance_directory));
  const std::string tracefs = TracefsOf(instance_directory);
  return std::unique_ptr<Stream>(
      new Stream(drainer, std::make_shared<Source>(std::move(opened.reader), tracefs), tracefs,
                 std::move(opened.text_only)));
}

// Modules come and go, but it is read for what needs it only, and once in a while.
std::shared_ptr<const Symbols> Stream::SymbolsFor(const std::string& format) {
  if (format.find("%p") == format.npos && format.find("%s") == format.npos)
    return std::make_shared<const Symbols>();
  std::lock_guard lock(symbols_lock_);
  if (!symbols_) symbols_ = Symbols::Load(tracefs_);
  return symbols_;
}

Result<event::SchemaPtr> Stream::Add(const std::string& group, const std::string& format,
                                     event::ProbeId probe, const EventOrigin& origin,
                                     const std::string& shown) {
  const std::string name = NameIn(format);
  PROBED_TRY(EventDecoder decoder,
             DecoderOf(group, WithName(format, shown.empty() ? name : shown), origin));
  event::SchemaPtr schema = decoder.schema();
  PROBED_RETURN_IF_ERROR(source_->Add(std::move(decoder), name, probe));
  return schema;
}

Result<EventDecoder> Stream::DecoderOf(const std::string& group, const std::string& format,
                                       const EventOrigin& origin) {
  if (!text_only_.empty()) return EventDecoder::OfText(group, format);
  if (origin.kind == EventOrigin::Kind::kOther)
    return EventDecoder::Create(group, format, SymbolsFor(format));
  return EventDecoder::Create(group, format, origin, places_);
}

void Stream::Remove(event::ProbeId probe) {
  drainer_.Flush();
  source_->Remove(probe);
}

Stream::Counts Stream::CountsOf(event::ProbeId probe) const {
  return {.recorded = source_->RecordedBy(probe), .lost = source_->lost()};
}

Status Stream::status() const {
  return source_->status();
}

void Stream::Flush() {
  drainer_.Flush();
}

}  // namespace probed::kernel
