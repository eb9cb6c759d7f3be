#include "daemon/config.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <variant>

#include <fmt/format.h>

#include <toml++/toml.h>

#include "base/file.h"
#include "daemon/logging.h"
#include "daemon/net/address.h"

namespace probed::daemon {
namespace {

constexpr size_t kMaxConfigFile = 1u << 20;

// Where the value of a key goes; the alternative is the type that the key must have.
using Slot = std::variant<std::string*, int64_t*, std::vector<std::string>*, bool*>;

std::map<std::string, Slot> Slots(Config& config) {
  return {
      {"listen", &config.listen},
      {"access.socket_group", &config.socket_group},
      {"access.admin_group", &config.admin_group},
      {"log.level", &config.log_level},
      {"log.format", &config.log_format},
      {"tls.cert", &config.tls.cert},
      {"tls.key", &config.tls.key},
      {"tls.client_ca", &config.tls.client_ca},
      {"limits.max_targets", &config.limits.max_targets},
      {"limits.max_probes", &config.limits.max_probes},
      {"limits.max_connections", &config.limits.max_connections},
      {"limits.max_streams", &config.limits.max_streams},
      {"limits.max_threads", &config.limits.max_threads},
      {"limits.max_message_bytes", &config.limits.max_message_bytes},
      {"limits.max_queue_bytes", &config.limits.max_queue_bytes},
      {"limits.max_silence_seconds", &config.limits.max_silence_seconds},
      {"optimization.enabled", &config.optimization.enabled},
      {"optimization.ring_bytes", &config.optimization.ring_bytes},
      {"definitions.directory", &config.definitions.directory},
      {"definitions.probe_events", &config.definitions.probe_events},
  };
}

Error ConfigError(std::string reason, const std::string& source, const toml::source_region& where,
                  std::string_view message, std::string hint) {
  const auto& at = where.begin;
  return Error{ErrorCode::kInvalidArgument,
               std::move(reason),
               fmt::format("{}:{}:{}: {}", source, at.line, at.column, message),
               std::move(hint),
               {{"line", std::to_string(at.line)}, {"column", std::to_string(at.column)}}};
}

// Puts one TOML value where a Slot points; false when the type does not fit.
struct Store {
  const toml::node& node;

  bool operator()(std::string* out) const {
    auto value = node.value_exact<std::string>();
    if (value) *out = *value;
    return value.has_value();
  }
  bool operator()(int64_t* out) const {
    auto value = node.value_exact<int64_t>();
    if (value) *out = *value;
    return value.has_value();
  }
  bool operator()(bool* out) const {
    auto value = node.value_exact<bool>();
    if (value) *out = *value;
    return value.has_value();
  }
  bool operator()(std::vector<std::string>* out) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return false;
    // An empty one is of no type.
    if (!array->empty() && !array->is_homogeneous(toml::node_type::string)) return false;
    out->clear();
    for (const toml::node& element : *array)
      out->push_back(*element.value<std::string>());
    return true;
  }
};

constexpr std::string_view kTypeNames[] = {"a string", "an integer", "a list of strings",
                                           "true or false"};

class Reader {
 public:
  Reader(const std::string& source, Config& config) : source_(source), slots_(Slots(config)) {}

  Status Read(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table()) {
        PROBED_RETURN_IF_ERROR(Read(*inner, name + "."));
      } else {
        PROBED_RETURN_IF_ERROR(Set(name, key.source(), node));
      }
    }
    return {};
  }

 private:
  Status Set(const std::string& name, const toml::source_region& where, const toml::node& node) {
    auto slot = slots_.find(name);
    if (slot == slots_.end())
      return ConfigError("CONFIG_UNKNOWN_KEY", source_, where,
                         fmt::format("unknown key \"{}\"", name),
                         "`probed --print-config` shows every key");
    if (!std::visit(Store{node}, slot->second))
      return ConfigError("CONFIG_TYPE", source_, node.source(),
                         fmt::format("\"{}\" must be {}", name, kTypeNames[slot->second.index()]),
                         "");
    const int64_t* const* number = std::get_if<int64_t*>(&slot->second);
    if (number != nullptr && (**number < 1 || **number > INT32_MAX))
      return ConfigError("CONFIG_RANGE", source_, node.source(),
                         fmt::format("\"{}\" must be from 1 to {}", name, INT32_MAX), "");
    return {};
  }

  const std::string& source_;
  std::map<std::string, Slot> slots_;
};

// Drop-ins of `path`, by name.
std::vector<std::string> DropIns(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path + ".d", error))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

Status ReadInto(const std::string& path, Config& config) {
  PROBED_TRY(const std::string text, ReadFile(path, kMaxConfigFile));
  return ParseConfig(text, path, config);
}

}  // namespace

Status ParseConfig(std::string_view text, const std::string& source, Config& config) try {
  return Reader(source, config).Read(toml::parse(text), "");
} catch (const toml::parse_error& error) {  // the only way Debian's build of toml++ reports one
  return ConfigError("CONFIG_SYNTAX", source, error.source(), error.description(),
                     "the file must be TOML");
}

Result<Config> LoadConfig(const std::string& path, bool required) {
  Config config;
  if (required || std::filesystem::exists(path)) {
    PROBED_RETURN_IF_ERROR(ReadInto(path, config));
  }
  for (const std::string& file : DropIns(path))
    PROBED_RETURN_IF_ERROR(ReadInto(file, config));
  return config;
}

Status CheckConfig(const Config& config) {
  PROBED_RETURN_IF_ERROR(ParseLogLevel(config.log_level));
  PROBED_RETURN_IF_ERROR(ParseLogFormat(config.log_format));
  const TlsConfig& tls = config.tls;
  for (const std::string& text : config.listen) {
    PROBED_TRY(const ListenAddress address, ParseListenAddress(text));
    if (address.kind == ListenAddress::Kind::kUnix) continue;
    if (!tls.cert.empty() && !tls.key.empty() && !tls.client_ca.empty()) continue;
    return Error{ErrorCode::kFailedPrecondition,
                 "TLS_REQUIRED",
                 fmt::format("{} needs TLS with client certificates: whoever can trace a process "
                             "owns it",
                             text),
                 "set tls.cert, tls.key and tls.client_ca in the configuration",
                 {{"address", text}}};
  }
  return {};
}

static toml::array ToArray(const std::vector<std::string>& texts) {
  toml::array array;
  for (const std::string& text : texts)
    array.push_back(text);
  return array;
}

std::string PrintConfig(const Config& config) {
  const toml::array listen = ToArray(config.listen);
  const Limits& limits = config.limits;
  const toml::table table{
      {"listen", listen},
      {"access",
       toml::table{{"socket_group", config.socket_group}, {"admin_group", config.admin_group}}},
      {"log", toml::table{{"level", config.log_level}, {"format", config.log_format}}},
      {"tls", toml::table{{"cert", config.tls.cert},
                          {"key", config.tls.key},
                          {"client_ca", config.tls.client_ca}}},
      {"limits", toml::table{{"max_targets", limits.max_targets},
                             {"max_probes", limits.max_probes},
                             {"max_connections", limits.max_connections},
                             {"max_streams", limits.max_streams},
                             {"max_threads", limits.max_threads},
                             {"max_message_bytes", limits.max_message_bytes},
                             {"max_queue_bytes", limits.max_queue_bytes},
                             {"max_silence_seconds", limits.max_silence_seconds}}},
      {"optimization", toml::table{{"enabled", config.optimization.enabled},
                                   {"ring_bytes", config.optimization.ring_bytes}}},
      {"definitions", toml::table{{"directory", config.definitions.directory},
                                  {"probe_events", ToArray(config.definitions.probe_events)}}}};
  std::ostringstream out;
  out << toml::default_formatter{table} << '\n';
  return out.str();
}

}  // namespace probed::daemon
