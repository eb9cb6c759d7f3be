#include "tests/lang/real_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace probed::lang::testing {

FileLookup RealNamespace::Lookup(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {errno, false, 0, 0};
  return {0, S_ISREG(info.st_mode), info.st_dev, info.st_ino};
}

Result<uint64_t> RealNamespace::ResolveSymbol(const std::string&, const std::string&, uint64_t) {
  Error error;
  error.reason = "NO_SYMBOLS";
  return error;
}

ScratchFiles::ScratchFiles(const std::string& tag) : directory_("/tmp/" + tag + "dir") {
  std::filesystem::create_directory(directory_);
  const auto add = [&](const std::string& name) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << std::string(20000, 'x');
    paths_.push_back(path);
  };
  add(tag + "bin");
  add(tag + ".so.6");
  add(tag + "-x_y");
  add(tag + ":colon");
  add(tag + "(1)%");
  add(tag + std::string(70, 'l'));
  const std::string link = directory_ + "/" + tag + "link";
  std::filesystem::create_symlink(directory_ + "/" + tag + "bin", link);
  for (const std::string& path :
       {link, directory_, directory_ + "/", directory_ + "/nope", directory_ + "//./" + tag + "bin",
        directory_ + "/" + tag + "bin/x", directory_ + "/" + std::string(300, 'n'),
        directory_ + "/.." + directory_ + "/" + tag + "bin", fmt::format("../{}/none", tag),
        std::string("/"), tag + "bin", std::string("/proc"), std::string()}) {
    paths_.push_back(path);
  }
}

ScratchFiles::~ScratchFiles() {
  std::filesystem::remove_all(directory_);
}

}  // namespace probed::lang::testing
