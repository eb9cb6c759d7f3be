#include "engine/probe/flow_source.h"

#include <utility>
#include <vector>

#include "elf/exception_table.h"

namespace probed::probe {
namespace {

// The image borrows the bytes.
struct Source {
  std::vector<std::vector<uint8_t>> bytes;
  arch::ModuleImage image;
};

void AddSegments(const elf::File& file, Source& source) {
  for (const elf::Segment& segment : file.segments()) {
    source.bytes.push_back(file.Bytes(segment.offset, segment.file_size));
    source.image.segments.push_back({.address = segment.address.value,
                                     .bytes = source.bytes.back(),
                                     .executable = segment.executable});
  }
}

void AddFunction(uint64_t start, uint64_t size, arch::ModuleImage& image) {
  image.entries.push_back(start);
  if (size != 0 && size <= UINT64_MAX - start) image.functions.push_back({start, start + size});
}

// An unsized symbol, as hand-written assembly has, reaches as far as the file lets it.
void AddFunctions(const elf::File& file, arch::ModuleImage& image) {
  for (const elf::Symbol& symbol : file.functions()) {
    uint64_t size = symbol.size;
    if (size == 0) {
      auto bounds = file.FunctionAt(symbol.address);
      if (bounds && bounds->start == symbol.address) size = bounds->size;
    }
    AddFunction(symbol.address.value, size, image);
  }
  for (const elf::Frame& frame : file.frames())
    AddFunction(frame.start.value, frame.size, image);
}

std::span<const uint8_t> BytesFrom(const arch::ModuleImage& image, uint64_t address) {
  for (const auto& segment : image.segments) {
    uint64_t offset = address - segment.address;
    if (offset < segment.bytes.size()) return segment.bytes.subspan(offset);
  }
  return {};
}

void AddLandingPads(const elf::File& file, arch::ModuleImage& image) {
  for (const elf::Frame& frame : file.frames()) {
    LinkAddr table = frame.exception_table;
    if (table.value == 0) continue;
    for (LinkAddr pad : elf::ReadLandingPads(BytesFrom(image, table.value), table, frame.start)) {
      image.entries.push_back(pad.value);
    }
  }
}

}  // namespace

Result<std::shared_ptr<const arch::FlowMap>> AnalyzeFlow(const elf::File& file) {
  Source source;
  source.image.position_independent = file.position_independent();
  source.image.entries.push_back(file.entry().value);
  AddSegments(file, source);
  AddFunctions(file, source.image);
  AddLandingPads(file, source.image);
  for (LinkAddr address : file.RelocatedAddresses())
    source.image.entries.push_back(address.value);
  return arch::FlowMap::Analyze(source.image);
}

}  // namespace probed::probe
