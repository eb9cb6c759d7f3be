#include "engine/kernel/cpu_pipes.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace probed::kernel {
namespace {

std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::vector<uint32_t> ListCpus(const std::string& directory) {
  std::vector<uint32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  if (!entries) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("cpu")) continue;
    if (const auto number = ToNumber(name.substr(3)))
      numbers.push_back(static_cast<uint32_t>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Error Refused(const std::string& path, const Error& cause) {
  Error error = cause;
  error.reason = "KERNEL_RING_REFUSED";
  error.message = "cannot read the kernel's ring " + path + ": " + cause.message;
  return error;
}

}  // namespace

Result<std::vector<CpuPipe>> OpenCpuPipes(const std::string& instance_directory,
                                          const std::string& file) {
  const std::string directory = instance_directory + "/per_cpu";
  std::vector<CpuPipe> pipes;
  for (const uint32_t number : ListCpus(directory)) {
    const std::string path = directory + "/cpu" + std::to_string(number);
    auto fd = OpenFile(path + "/" + file, O_RDONLY | O_NONBLOCK);
    if (!fd.ok()) return Refused(path, fd.error());
    pipes.push_back({.number = number, .fd = *std::move(fd), .statistics = path + "/stats"});
  }
  if (pipes.empty()) return Refused(directory, ErrnoError(ENOENT, "list CPUs"));
  return pipes;
}

std::optional<uint64_t> ReadOverrun(const std::string& statistics) {
  const auto text = ReadFile(statistics);
  if (!text.ok()) return std::nullopt;
  constexpr std::string_view kKey = "\noverrun: ";
  const size_t at = text->find(kKey);
  if (at == text->npos) return std::nullopt;
  return ToNumber(std::string_view(*text).substr(at + kKey.size()));
}

}  // namespace probed::kernel
