#include "elf/file.h"

#include <algorithm>
#include <mutex>

#include "elf/frame_index.h"
#include "elf/function_bounds.h"
#include "elf/glob.h"
#include "elf/go_functions.h"
#include "elf/headers.h"
#include "elf/image.h"
#include "elf/lookup.h"
#include "elf/notes.h"
#include "elf/relocations.h"
#include "elf/symbol_index.h"
#include "elf/symbol_loader.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxInterpreter = 4096;

std::string ReadInterpreter(const Image& image, const Headers& headers) {
  const Elf64_Phdr* entry = headers.FindProgramHeader(PT_INTERP);
  if (entry == nullptr) return "";
  std::vector<uint8_t> bytes =
      image.Read(entry->p_offset, std::min(entry->p_filesz, kMaxInterpreter));
  std::string text(bytes.begin(), bytes.end());
  return text.substr(0, text.find('\0'));
}

}  // namespace

struct File::State {
  explicit State(Image opened) : image(std::move(opened)) {}

  const SymbolIndex& Symbols() const {
    std::call_once(symbols_once, [this] { symbols.emplace(LoadAll()); });
    return *symbols;
  }
  LookupContext Lookup() const { return {Symbols(), segments, name}; }

  const FrameIndex& Frames() const {
    std::call_once(frames_once, [this] { frames = FrameIndex::Read(image, headers, segments); });
    return frames;
  }

  // By address; of no other program than Go's.
  const std::vector<Symbol>& GoFunctions() const {
    std::call_once(go_functions_once, [this] {
      if (is_go) go_functions = ReadGoFunctions(image, headers);
    });
    return go_functions;
  }

  std::vector<Symbol> LoadAll() const {
    return LoadSymbols({path, root, identity.build_id, image, headers}, segments);
  }

  Image image;
  std::string path, root, name;
  Headers headers;
  std::vector<Segment> segments;
  FileIdentity identity;
  std::string interpreter;
  bool is_go = false;

  mutable std::once_flag symbols_once;
  mutable std::optional<SymbolIndex> symbols;
  mutable std::once_flag frames_once;
  mutable FrameIndex frames;
  mutable std::once_flag go_functions_once;
  mutable std::vector<Symbol> go_functions;
};

Result<std::shared_ptr<const File>> File::Open(const std::string& path, const std::string& root,
                                               const std::string& name) {
  PROBED_TRY(Image image, Image::Open(path, root, name));
  auto state = std::make_unique<State>(std::move(image));
  state->path = path;
  state->root = root;
  state->name = name.empty() ? path : name;
  PROBED_TRY(state->headers, ReadHeaders(state->image, state->name));
  PROBED_TRY(state->segments, ReadSegments(state->headers, state->image.size(), state->name));
  Notes notes = ReadNotes(state->image, state->headers);
  state->identity = {
      .device = state->image.device(), .inode = state->image.inode(), .build_id = notes.build_id};
  state->is_go = LooksLikeGo(notes, state->headers);
  state->interpreter = ReadInterpreter(state->image, state->headers);
  return std::shared_ptr<const File>(new File(std::move(state)));
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::~File() = default;

const std::string& File::name() const {
  return state_->name;
}
const FileIdentity& File::identity() const {
  return state_->identity;
}
bool File::position_independent() const {
  return state_->headers.header.e_type == ET_DYN;
}
LinkAddr File::entry() const {
  return {state_->headers.header.e_entry};
}
std::string File::interpreter() const {
  return state_->interpreter;
}
bool File::is_go() const {
  return state_->is_go;
}
const std::vector<Segment>& File::segments() const {
  return state_->segments;
}

std::optional<FileOffset> File::ToOffset(LinkAddr address) const {
  return elf::ToOffset(state_->segments, address);
}

std::optional<LinkAddr> File::ToLinkAddr(FileOffset offset) const {
  const Segment* found = nullptr;
  for (const Segment& segment : state_->segments) {
    if (!segment.HoldsInFile(offset)) continue;
    if (found == nullptr || (segment.executable && !found->executable)) found = &segment;
  }
  if (found == nullptr) return std::nullopt;
  return found->address + (offset - found->offset);
}

bool File::IsExecutable(FileOffset offset) const {
  return std::any_of(state_->segments.begin(), state_->segments.end(), [&](const Segment& segment) {
    return segment.executable && segment.HoldsInFile(offset);
  });
}

std::vector<uint8_t> File::Bytes(FileOffset offset, size_t size) const {
  return state_->image.Read(offset.value, size);
}

const std::vector<Symbol>& File::functions() const {
  return state_->Symbols().functions();
}
const std::vector<Symbol>& File::imports() const {
  return state_->Symbols().imports();
}

Result<Symbol> File::FindFunction(const std::string& name) const {
  return LookUpFunction(state_->Lookup(), name);
}

Result<Symbol> File::FindObject(const std::string& name) const {
  return LookUpObject(state_->Lookup(), name);
}

std::vector<Symbol> File::SearchFunctions(const std::string& pattern, size_t limit) const {
  std::vector<Symbol> found;
  for (const Symbol& symbol : functions()) {
    if (found.size() >= limit) break;
    bool matches = GlobMatches(pattern, symbol.name) ||
                   (LooksMangled(symbol.name) && GlobMatches(pattern, Demangle(symbol.name)));
    if (matches) found.push_back(symbol);
  }
  return found;
}

std::vector<Symbol> File::AliasesAt(LinkAddr address) const {
  return state_->Symbols().At(address);
}

std::optional<FunctionBounds> File::FunctionAt(LinkAddr address) const {
  return FindFunctionBounds(
      {state_->Symbols(), state_->Frames(), state_->headers, state_->segments}, address);
}

std::vector<SizeClaim> File::SizesAt(LinkAddr start) const {
  std::vector<SizeClaim> claims;
  auto add = [&](SizeClaim claim) {
    bool is_new = std::find(claims.begin(), claims.end(), claim) == claims.end();
    if (claim.size != 0 && is_new) claims.push_back(claim);
  };
  for (const Symbol& symbol : AliasesAt(start))
    add({SymbolSourceName(symbol.source), symbol.size});
  auto frame = state_->Frames().Around(start);
  if (frame && frame->start == start) add({".eh_frame", frame->size});
  const auto& in_go = state_->GoFunctions();
  auto entry = std::lower_bound(in_go.begin(), in_go.end(), start,
                                [](const Symbol& a, LinkAddr b) { return a.address < b; });
  if (entry != in_go.end() && entry->address == start)
    add({SymbolSourceName(entry->source), entry->size});
  return claims;
}

const std::vector<Frame>& File::frames() const {
  return state_->Frames().frames();
}

ReturnAddress File::ReturnAddressAt(LinkAddr address) const {
  auto frame = state_->Frames().Around(address);
  if (!frame) return ReturnAddress::kUnknown;
  return FindReturnAddress(state_->image, state_->segments, *frame, address);
}

std::vector<LinkAddr> File::RelocatedAddresses() const {
  return ReadRelocatedAddresses(state_->image, state_->headers, state_->segments);
}

}  // namespace probed::elf
