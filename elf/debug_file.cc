#include "elf/debug_file.h"

#include <limits.h>
#include <lzma.h>
#include <unistd.h>

#include "elf/byte_reader.h"
#include "elf/notes.h"
#include "elf/xz.h"

namespace probed::elf {
namespace {

constexpr char kDebugRoot[] = "/usr/lib/debug";
constexpr size_t kMaxDebugData = 128 << 20;
constexpr uint64_t kMaxChecked = uint64_t{2} << 30;
constexpr uint64_t kCheckedAtOnce = 1 << 20;

struct DebugLink {
  std::string name;
  uint32_t checksum = 0;
};

// A file name, NUL, padding to 4, CRC-32 of the debug file.
std::optional<DebugLink> ReadDebugLink(const Image& image, const Headers& headers) {
  const Section* section = headers.FindSection(".gnu_debuglink");
  if (section == nullptr || section->header.sh_size > PATH_MAX + 8) return std::nullopt;
  std::vector<uint8_t> bytes = ReadSection(image, *section);
  ByteReader reader(bytes);
  DebugLink link{.name = std::string(reader.TakeString())};
  reader.Skip((4 - reader.position() % 4) % 4);
  link.checksum = reader.Take<uint32_t>();
  // Only a name: a path would lead out of the places we look in.
  bool is_name = !link.name.empty() && link.name.find('/') == std::string::npos;
  return reader.ok() && is_name ? std::optional(link) : std::nullopt;
}

std::optional<uint32_t> Checksum(const Image& image) {
  if (image.size() > kMaxChecked) return std::nullopt;
  uint32_t checksum = 0;
  for (uint64_t offset = 0; offset < image.size(); offset += kCheckedAtOnce) {
    std::vector<uint8_t> bytes = image.Read(offset, kCheckedAtOnce);
    checksum = lzma_crc32(bytes.data(), bytes.size(), checksum);
  }
  return checksum;
}

// The file's directory as the target names it; /proc/PID/exe is a link that says where it is.
std::string DirectoryInRoot(const std::string& path, const std::string& root) {
  std::string named = path;
  if (path.starts_with("/proc/") && path.ends_with("/exe")) {
    char target[PATH_MAX];
    ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    if (length > 0) named.assign(target, static_cast<size_t>(length));
  } else if (root.size() > 1 && path.starts_with(root + "/")) {
    named = path.substr(root.size());
  }
  return named.substr(0, named.rfind('/') == std::string::npos ? 0 : named.rfind('/'));
}

std::optional<DebugFile> OpenDebugFile(const std::string& path, const std::string& root) {
  auto image = Image::Open(path, root);
  if (!image.ok()) return std::nullopt;
  auto headers = ReadHeaders(*image, path);
  if (!headers.ok()) return std::nullopt;
  return DebugFile{path, *std::move(image), *std::move(headers)};
}

bool Belongs(const DebugFile& candidate, const DebugFileRequest& request, const DebugLink* link) {
  bool is_itself = candidate.image.device() == request.image.device() &&
                   candidate.image.inode() == request.image.inode();
  if (is_itself) return false;
  std::string build_id = ReadNotes(candidate.image, candidate.headers).build_id;
  if (!build_id.empty() && !request.build_id.empty()) return build_id == request.build_id;
  return link != nullptr && Checksum(candidate.image) == link->checksum;
}

std::optional<DebugFile> FindByBuildId(const DebugFileRequest& request) {
  const std::string& id = request.build_id;
  if (id.size() < 4) return std::nullopt;
  std::string path =
      request.root + kDebugRoot + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
  auto candidate = OpenDebugFile(path, request.root);
  if (!candidate || !Belongs(*candidate, request, nullptr)) return std::nullopt;
  return candidate;
}

std::optional<DebugFile> FindByDebugLink(const DebugFileRequest& request) {
  auto link = ReadDebugLink(request.image, request.headers);
  if (!link) return std::nullopt;
  std::string directory = DirectoryInRoot(request.path, request.root);
  for (const std::string& place :
       {directory + "/", directory + "/.debug/", kDebugRoot + directory + "/"}) {
    auto candidate = OpenDebugFile(request.root + place + link->name, request.root);
    if (candidate && Belongs(*candidate, request, &*link)) return candidate;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DebugFile> FindDebugFile(const DebugFileRequest& request) {
  auto found = FindByBuildId(request);
  return found ? std::move(found) : FindByDebugLink(request);
}

std::optional<DebugFile> ReadDebugData(const Image& image, const Headers& headers) {
  const Section* section = headers.FindSection(".gnu_debugdata");
  if (section == nullptr) return std::nullopt;
  std::vector<uint8_t> bytes = DecompressXz(ReadSection(image, *section), kMaxDebugData);
  if (bytes.empty()) return std::nullopt;
  Image inner(std::move(bytes));
  auto inner_headers = ReadHeaders(inner, ".gnu_debugdata");
  if (!inner_headers.ok()) return std::nullopt;
  return DebugFile{".gnu_debugdata", std::move(inner), *std::move(inner_headers)};
}

}  // namespace probed::elf
