#include "engine/kernel/control.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "engine/kernel/event_names.h"
#include "engine/lang/line.h"

namespace probed::kernel {
namespace {

constexpr size_t kMostViews = 16;
// For what is busy a moment longer than what stood on it (sweep.cc).
constexpr int kLastPauses = 50;
constexpr std::chrono::milliseconds kLastPause{10};

Refusal Refuse(Error error) {
  return Refusal{.line = 0, .error = std::move(error), .verdict = {}};
}

Error TooManyViews(const KernelName& name) {
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "EVENT_IN_USE",
               .message = fmt::format("{}:{} is traced {} times already", name.group, name.event,
                                      kMostViews),
               .hint = "probectl watch shows the events of probes that are there",
               .metadata = {}};
}

Error NoHistograms() {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "NO_HISTOGRAMS",
               .message = "this kernel has no hist triggers",
               .hint = "a kernel with CONFIG_HIST_TRIGGERS",
               .metadata = {}};
}

// What the kernel says of `text`, which is `written` with our events' names as it knows them.
void ShowAsWritten(const std::string& text, const std::string& written, const Owner& owner,
                   lang::Verdict& verdict) {
  if (verdict.command != text) return;
  verdict.command = written;
  if (!verdict.caret || *verdict.caret < 0) return;
  const auto column = std::min(static_cast<size_t>(*verdict.caret), text.size());
  const std::string before = ToWritten(text.substr(0, column), owner);
  verdict.caret = static_cast<int>(before.size());
}

// Of everybody's definitions, which are events that can be named, too.
std::map<std::pair<std::string, std::string>, EventOrigin> OriginsOfDefined(
    const Tracefs& tracefs) {
  std::map<std::pair<std::string, std::string>, EventOrigin> origins;
  for (const DynamicEvent& defined : ListDynamicEvents(tracefs))
    origins.insert_or_assign({defined.group, defined.event}, OriginOf(defined.kind, defined.body));
  return origins;
}

std::string PlaceOf(const std::string& body) {
  return body.substr(0, body.find_first_of(" \t"));
}

}  // namespace

Control::Control(Owner owner, event::Drainer& drainer, TracefsPlaces places)
    : owner_(owner), drainer_(drainer), places_(std::move(places)) {}

Control::~Control() {
  std::lock_guard lock(mutex_);
  Made all;
  for (auto& [id, probe] : probes_)
    all.push_back(std::move(probe));
  probes_.clear();
  Remove(std::move(all));
  for (int i = 0; i < kLastPauses && !leftovers_.empty(); ++i) {
    std::this_thread::sleep_for(kLastPause);
    RemoveLeftovers();
  }
}

// Looked for anew where nothing is open: it may have been mounted meanwhile.
Status Control::Open() {
  if (!views_.empty()) return {};
  PROBED_TRY(tracefs_, Tracefs::Find(places_));
  features_ = ReadFeatures(*tracefs_);
  PROBED_RETURN_IF_ERROR(OpenView());
  return {};
}

Result<View*> Control::OpenView() {
  Owner owner = owner_;
  if (!views_.empty()) owner.serial = views_.back()->instance.owner().serial + 1;
  PROBED_TRY(Instance instance, Instance::Create(*tracefs_, owner));
  const std::string path = tracefs_->Path(instance.directory());
  PROBED_TRY(auto stream, Stream::Open(path, drainer_));
  views_.push_back(
      std::make_unique<View>(View{.instance = std::move(instance), .stream = std::move(stream)}));
  return views_.back().get();
}

bool Control::IsTaken(const View* view, const KernelName& name, const Made& made) const {
  const auto has = [&](const Probe& probe) {
    return &probe.view() == view && probe.event().name() == name;
  };
  return std::any_of(probes_.begin(), probes_.end(),
                     [&](const auto& entry) { return has(*entry.second); }) ||
         std::any_of(made.begin(), made.end(), [&](const auto& probe) { return has(*probe); });
}

Result<View*> Control::ViewFor(const KernelName& name, const Made& made) {
  for (const auto& view : views_)
    if (!IsTaken(view.get(), name, made)) return view.get();
  if (views_.size() >= kMostViews) return TooManyViews(name);
  return OpenView();
}

OwnNames Control::Names(const Made& made) const {
  OwnNames names;
  const auto add = [&](const Probe& probe) {
    if (probe.event().defined())
      names.Add({probe.shown().group, probe.shown().event}, probe.event().name());
  };
  for (const auto& [id, probe] : probes_)
    add(*probe);
  for (const auto& probe : made)
    add(*probe);
  return names;
}

std::vector<const Probe*> Control::OthersOf(const DefinitionLine& line, const Made& made) const {
  std::vector<const Probe*> others;
  const auto add = [&](const Probe& probe) {
    const Probe::Shown& shown = probe.shown();
    if (probe.event().defined() && shown.group == line.group && shown.event == line.event)
      others.push_back(&probe);
  };
  for (const auto& [id, probe] : probes_)
    add(*probe);
  for (const auto& probe : made)
    add(*probe);
  return others;
}

// Asked with copies of the others that are never on: a probe cannot be taken back from an event
// that is (kernel/trace/trace_uprobe.c, unregister_trace_uprobe).
std::optional<Refusal> Control::JudgeAppended(DefinitionLine line,
                                              const std::vector<const Probe*>& others) {
  const Owner& owner = views_.front()->instance.owner();
  line.ending = "__trial";
  const KernelName name = NameOf(line, owner);
  const auto events = ListDynamicEvents(*tracefs_);
  std::optional<Refusal> refusal;
  for (const Probe* other : others) {
    const KernelName& wanted = other->event().name();
    const auto found = std::find_if(events.begin(), events.end(), [&](const DynamicEvent& event) {
      return event.group == wanted.group && event.event == wanted.event;
    });
    if (found == events.end()) continue;
    (void)tracefs_->Write("dynamic_events", fmt::format("{}:{}/{} {}\n", found->kind, name.group,
                                                        name.event, found->body));
  }
  const Status written = tracefs_->Write("dynamic_events", KernelLine(line, owner) + "\n");
  if (!written.ok()) refusal = RefusedDefinition(*tracefs_, line, owner, written.error());
  (void)RemoveDynamicEvent(*tracefs_, name.group, name.event);
  return refusal;
}

// In the kernel several probes of one event have one switch, filter and number of hits. Here each
// is an event of its own, as probes on programs are, which to the outside has the same name.
std::optional<Refusal> Control::ChooseName(DefinitionLine& line, const Made& made) {
  const std::string first = line.event;
  for (int i = 1; line.event_generated && !OthersOf(line, made).empty(); ++i)
    line.event = fmt::format("{}_{}", first, i);
  const auto others = OthersOf(line, made);
  if (!others.empty())
    if (auto refusal = JudgeAppended(line, others)) return refusal;
  const View* const view = views_.front().get();
  const auto is_taken = [&](const KernelName& name) {
    return IsTaken(view, name, made) ||
           std::any_of(leftovers_.begin(), leftovers_.end(),
                       [&](const Event& event) { return event.name() == name; });
  };
  for (int i = 2; is_taken(NameOf(line, view->instance.owner())); ++i)
    line.ending = fmt::format("__{}", i);
  return std::nullopt;
}

// Definitions are all made in the first instance: their names are no others'.
std::optional<Refusal> Control::Define(const std::vector<std::string>& tokens,
                                       const ProbeOptions& options, event::ProbeId id, Made& made) {
  auto parsed = ParseDefinition(tokens);
  if (!parsed.ok()) return RefusedName(parsed.error(), tokens);
  DefinitionLine& line = *parsed;
  if (!features_.Has(line.kind)) return Refuse(NotInThisKernel(line.kind));
  if (options.max_active > 0 && line.letter == "r" && line.kind == LineKind::kKprobe)
    line.letter = fmt::format("r{}", options.max_active);
  View& view = *views_.front();
  const Owner& owner = view.instance.owner();
  if (line.kind == LineKind::kEprobe) line.kernel_body = Names(made).ToKernel(line.body);
  if (auto refusal = ChooseName(line, made)) {
    if (!features_.btf_arguments) ExplainWithoutBtf(*refusal);
    return refusal;
  }
  const Status written = tracefs_->Write("dynamic_events", KernelLine(line, owner) + "\n");
  if (!written.ok()) {
    Refusal refusal = RefusedDefinition(*tracefs_, line, owner, written.error());
    if (!features_.btf_arguments) ExplainWithoutBtf(refusal);
    return refusal;
  }
  Event event(*tracefs_, view.instance.directory(), NameOf(line, owner), true);
  Probe::Shown shown{.group = line.group,
                     .event = line.event,
                     .definition = line.command(),
                     .place = PlaceOf(line.body),
                     .origin = OriginOf(line.letter, line.body)};
  auto probe = Probe::Create(id, view, std::move(event), std::move(shown));
  if (!probe.ok()) return Refuse(std::move(probe).error());
  made.push_back(*std::move(probe));
  return std::nullopt;
}

std::optional<Refusal> Control::Join(const std::string& pattern, const NextId& next_id,
                                     Made& made) {
  const auto names = FindEvents(*tracefs_, pattern);
  if (!names.ok()) return Refuse(names.error());
  const auto origins = OriginsOfDefined(*tracefs_);
  for (const KernelName& name : *names) {
    const auto origin = origins.find({name.group, name.event});
    auto view = ViewFor(name, made);
    if (!view.ok()) return Refuse(std::move(view).error());
    const std::string shown = name.group + ":" + name.event;
    auto probe = Probe::Create(
        next_id(), **view, Event(*tracefs_, (*view)->instance.directory(), name, false),
        {.group = name.group,
         .event = name.event,
         .definition = shown,
         .place = shown,
         .origin = origin == origins.end() ? EventOrigin{} : origin->second});
    if (!probe.ok()) return Refuse(std::move(probe).error());
    made.push_back(*std::move(probe));
  }
  return std::nullopt;
}

std::optional<Refusal> Control::Start(const ProbeOptions& options, Probe& probe) {
  if (!options.filter.empty() && options.filter != "0") {
    const Status set = probe.event().SetFilter(options.filter);
    if (!set.ok())
      return RefusedFilter(*tracefs_, probe.view().instance.directory(), options.filter,
                           set.error());
  }
  if (!options.enable) return std::nullopt;
  const Status enabled = probe.SetEnabled(true);
  if (enabled.ok()) return std::nullopt;
  return Refuse(RefusedEnable(probe.shown().definition, enabled.error()));
}

std::optional<Refusal> Control::Make(const ProbeRequest& request, const ProbeOptions& options,
                                     const NextId& next_id, Made& made) {
  const size_t before = made.size();
  auto refusal = lang::NamesEvents(request.text)
                     ? Join(lang::Tokenize(request.text).front(), next_id, made)
                     : Define(lang::Tokenize(request.text), options, next_id(), made);
  for (size_t i = before; i < made.size() && !refusal; ++i)
    refusal = Start(options, *made[i]);
  if (refusal) refusal->line = request.line;
  return refusal;
}

// As the kernel lists them, which for a thousand takes as long as for one.
void Control::ReadBackDefinitions(const Made& made) {
  const auto is_defined = [](const auto& probe) { return probe->event().defined(); };
  if (std::none_of(made.begin(), made.end(), is_defined)) return;
  std::map<std::pair<std::string, std::string>, DynamicEvent> listed;
  for (DynamicEvent& defined : ListDynamicEvents(*tracefs_))
    listed.insert_or_assign({defined.group, defined.event}, std::move(defined));
  for (const auto& probe : made) {
    const KernelName& name = probe->event().name();
    const auto found = listed.find({name.group, name.event});
    if (found == listed.end() || !is_defined(probe)) continue;
    found->second.event = probe->shown().event;
    probe->SetDefinition(ToWritten(ReadBack(found->second), probe->view().instance.owner()));
  }
}

Control::Outcome Control::Create(const std::vector<ProbeRequest>& requests,
                                 const ProbeOptions& options, const NextId& next_id) {
  std::lock_guard lock(mutex_);
  Outcome outcome;
  if (requests.empty()) return outcome;
  Made made;
  const Status opened = Open();
  if (!opened.ok()) outcome.refusal = Refuse(opened.error());
  if (!opened.ok()) outcome.refusal->line = requests.front().line;
  for (auto request = requests.begin(); request != requests.end() && !outcome.refusal; ++request)
    outcome.refusal = Make(*request, options, next_id, made);
  if (outcome.refusal) {
    Remove(std::move(made));
    return outcome;
  }
  ReadBackDefinitions(made);
  for (auto& probe : made) {
    outcome.probes.push_back(Describe(*probe, {}));
    probes_.emplace(probe->id(), std::move(probe));
  }
  return outcome;
}

void Control::Remove(Made probes) {
  for (auto& probe : probes)
    leftovers_.push_back(Probe::Release(std::move(probe)));
  probes.clear();
  RemoveLeftovers();
  CloseUnused();  // and with instances the triggers that were in them
  RemoveLeftovers();
}

// What is needed by others goes after them, whatever the order here.
void Control::RemoveLeftovers() {
  while (leftovers_.remove_if([](Event& event) { return event.Remove(); }) > 0) {
  }
}

// Of instances as of all else nothing is left when it is not used.
void Control::CloseUnused() {
  std::erase_if(views_, [this](const auto& view) {
    return std::none_of(probes_.begin(), probes_.end(),
                        [&](const auto& entry) { return &entry.second->view() == view.get(); });
  });
}

// The profile first: every hit in it has been read then.
Profile Control::ReadCounts() {
  Profile profile;
  if (probes_.empty()) return profile;
  profile = ReadProfile(*tracefs_);
  for (const auto& view : views_)
    view->stream->Flush();
  return profile;
}

ProbeView Control::Describe(const Probe& probe, const Profile& profile) {
  std::vector<std::string> triggers;
  for (std::string& trigger : probe.event().Triggers())
    triggers.push_back(ToWritten(std::move(trigger), probe.view().instance.owner()));
  return ProbeView{.id = probe.id(),
                   .definition = probe.shown().definition,
                   .place = probe.shown().place,
                   .schema = probe.schema(),
                   .enabled = probe.enabled(),
                   .filter = probe.event().filter(),
                   .triggers = std::move(triggers),
                   .reason = probe.view().stream->text_only(),
                   .counters = probe.Count(profile)};
}

std::vector<ProbeView> Control::List() {
  std::lock_guard lock(mutex_);
  const Profile profile = ReadCounts();
  std::vector<ProbeView> views;
  for (const auto& [id, probe] : probes_)
    views.push_back(Describe(*probe, profile));
  return views;
}

std::optional<ProbeView> Control::Find(event::ProbeId id) {
  std::lock_guard lock(mutex_);
  const auto found = probes_.find(id);
  if (found == probes_.end()) return std::nullopt;
  return Describe(*found->second, ReadCounts());
}

bool Control::Has(event::ProbeId id) {
  std::lock_guard lock(mutex_);
  return probes_.contains(id);
}

Status Control::SetEnabled(const std::vector<event::ProbeId>& ids, bool enabled) {
  std::lock_guard lock(mutex_);
  std::vector<Probe*> changed;
  for (event::ProbeId id : ids) {
    const auto found = probes_.find(id);
    if (found == probes_.end() || found->second->enabled() == enabled) continue;
    const Status set = found->second->SetEnabled(enabled);
    if (set.ok()) {
      changed.push_back(found->second.get());
      continue;
    }
    for (Probe* probe : changed)
      (void)probe->SetEnabled(!enabled);
    return RefusedEnable(found->second->shown().definition, set.error());
  }
  return {};
}

Refusal Control::Unknown() {
  return Refuse(Error{.code = ErrorCode::kNotFound,
                      .reason = "PROBE_NOT_FOUND",
                      .message = "a probe in the kernel that was named has just been deleted",
                      .hint = "try again; 'probectl list' shows what there is",
                      .metadata = {}});
}

std::optional<Refusal> Control::SetFilter(event::ProbeId id, const std::string& filter) {
  std::lock_guard lock(mutex_);
  const auto found = probes_.find(id);
  if (found == probes_.end()) return Unknown();
  Event& event = found->second->event();
  const std::string text = filter.empty() ? "0" : filter;
  const Status set = event.SetFilter(text);
  if (set.ok()) return std::nullopt;
  return RefusedFilter(*tracefs_, found->second->view().instance.directory(), text, set.error());
}

std::optional<Refusal> Control::WriteTrigger(event::ProbeId id, const std::string& trigger) {
  std::lock_guard lock(mutex_);
  const auto found = probes_.find(id);
  if (found == probes_.end()) return Unknown();
  const std::string text = Names({}).ToKernel(trigger);
  const Status written = found->second->WriteTrigger(text);
  if (written.ok()) return std::nullopt;
  const Instance& instance = found->second->view().instance;
  Refusal refusal = RefusedTrigger(*tracefs_, instance.directory(), text, written.error());
  ShowAsWritten(text, trigger, instance.owner(), refusal.verdict);
  return refusal;
}

Result<std::string> Control::ReadHistogram(event::ProbeId id) {
  std::lock_guard lock(mutex_);
  const auto found = probes_.find(id);
  if (found == probes_.end()) return Unknown().error;
  if (!features_.histograms) return NoHistograms();
  PROBED_TRY(std::string text, found->second->event().ReadHistogram());
  return ToWritten(std::move(text), found->second->view().instance.owner());
}

Result<std::string> Control::ReadFormat(event::ProbeId id) {
  std::lock_guard lock(mutex_);
  const auto found = probes_.find(id);
  if (found == probes_.end()) return Unknown().error;
  return found->second->ReadFormat();
}

void Control::Delete(const std::vector<event::ProbeId>& ids) {
  std::lock_guard lock(mutex_);
  Made going;
  for (event::ProbeId id : ids) {
    const auto found = probes_.find(id);
    if (found == probes_.end()) continue;
    going.push_back(std::move(found->second));
    probes_.erase(found);
  }
  Remove(std::move(going));
}

}  // namespace probed::kernel
