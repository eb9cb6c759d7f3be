#include "elf/frame_index.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "elf/pointer_encoding.h"

namespace probed::elf {
namespace {

constexpr uint8_t kOmitted = 0xff;  // DW_EH_PE_omit
constexpr uint32_t kLength64 = 0xffffffff;
constexpr size_t kMaxAugmentation = 16;

// What a CIE says about its FDEs.
struct Encodings {
  uint8_t code = 0;
  uint8_t exception_table = kOmitted;
};

struct FrameSection {
  std::vector<uint8_t> bytes;
  PointerBase base;
};

// .eh_frame_hdr: version, three encodings, then a pointer to .eh_frame.
std::optional<FrameSection> SectionOfHeader(const Image& image, std::span<const Segment> segments,
                                            const Elf64_Phdr& entry) {
  std::vector<uint8_t> bytes = image.Read(entry.p_offset, std::min<uint64_t>(entry.p_filesz, 64));
  PointerBase base{.section = {entry.p_vaddr}, .data = {entry.p_vaddr}};
  ByteReader reader(bytes);
  auto version = reader.Take<uint8_t>();
  auto encoding = reader.Take<uint8_t>();
  reader.Skip(2);
  if (version != 1 || encoding == kOmitted) return std::nullopt;
  auto address = TakePointer(&reader, encoding, base);
  if (!address) return std::nullopt;
  base.section = {*address};
  FileRange range = RangeAt(segments, {*address}, Image::kMaxRead);
  return FrameSection{image.Read(range.offset, range.size), base};
}

FrameSection FindFrameSection(const Image& image, const Headers& headers,
                              std::span<const Segment> segments) {
  const Section* section = headers.FindSection(".eh_frame");
  if (section != nullptr) {
    PointerBase base{.section = {section->header.sh_addr}, .data = {}};
    return {ReadSection(image, *section), base};
  }
  const Elf64_Phdr* entry = headers.FindProgramHeader(PT_GNU_EH_FRAME);
  std::optional<FrameSection> found;
  if (entry != nullptr) found = SectionOfHeader(image, segments, *entry);
  return found ? *std::move(found) : FrameSection{};
}

class FrameParser {
 public:
  explicit FrameParser(const FrameSection& section) : section_(section) {}

  std::vector<Frame> Parse() {
    std::vector<Frame> frames;
    ByteReader reader(section_.bytes);
    while (reader.left() >= sizeof(uint32_t)) {
      auto body = TakeBody(&reader);
      // A zero length ends the table.
      if (!body || body->size == 0) break;
      if (auto frame = ParseEntry(*body)) frames.push_back(*frame);
    }
    return frames;
  }

 private:
  struct Body {
    size_t start = 0;  // in the section
    size_t size = 0;
  };

  std::optional<Body> TakeBody(ByteReader* reader) const {
    uint64_t length = reader->Take<uint32_t>();
    if (length == kLength64) length = reader->Take<uint64_t>();
    Body body{reader->position(), length};
    reader->Skip(length);
    if (!reader->ok()) return std::nullopt;
    return body;
  }

  // A reader that cannot leave the entry, but whose position counts from the section's start.
  ByteReader ReaderOf(const Body& body) const {
    return ByteReader(std::span(section_.bytes).first(body.start + body.size), body.start);
  }

  std::optional<Frame> ParseEntry(const Body& body) {
    ByteReader reader = ReaderOf(body);
    auto distance = reader.Take<uint32_t>();
    // Zero marks a CIE; else it is how far back the entry's CIE starts.
    if (distance == 0 || distance > body.start) return std::nullopt;
    auto encodings = EncodingsOf(body.start - distance);
    if (!encodings) return std::nullopt;
    auto start = TakePointer(&reader, encodings->code, section_.base);
    auto size = TakeEncodedValue(&reader, encodings->code);
    if (!start || !size) return std::nullopt;
    return Frame{.start = {*start},
                 .size = *size,
                 .exception_table = TakeExceptionTable(&reader, encodings->exception_table),
                 .entry = section_.base.section + body.start};
  }

  // First of the augmentation data. A zero value is a null pointer, whatever it is relative to.
  LinkAddr TakeExceptionTable(ByteReader* reader, uint8_t encoding) const {
    if (encoding == kOmitted) return {};
    reader->TakeUleb128();
    ByteReader value = *reader;
    if (TakeEncodedValue(&value, encoding).value_or(0) == 0) return {};
    return {TakePointer(reader, encoding, section_.base).value_or(0)};
  }

  std::optional<Encodings> EncodingsOf(size_t cie) {
    auto [known, is_new] = encodings_.emplace(cie, std::nullopt);
    if (is_new) known->second = ReadEncodings(cie);
    return known->second;
  }

  std::optional<Encodings> ReadEncodings(size_t cie) const {
    ByteReader at(section_.bytes, cie);
    auto body = TakeBody(&at);
    if (!body) return std::nullopt;
    ByteReader reader = ReaderOf(*body);
    if (reader.Take<uint32_t>() != 0) return std::nullopt;
    auto version = reader.Take<uint8_t>();
    std::string_view augmentation = reader.TakeString();
    if (augmentation.size() > kMaxAugmentation) return std::nullopt;
    reader.TakeUleb128();  // code alignment
    reader.TakeUleb128();  // data alignment, signed but as long
    if (version == 1) {
      reader.Skip(1);
    } else {
      reader.TakeUleb128();  // return address register
    }
    return EncodingsIn(augmentation, &reader);
  }

  std::optional<Encodings> EncodingsIn(std::string_view augmentation, ByteReader* reader) const {
    Encodings encodings;
    for (char letter : augmentation) {
      if (letter == 'z') reader->TakeUleb128();
      if (letter == 'R') encodings.code = reader->Take<uint8_t>();
      if (letter == 'L') encodings.exception_table = reader->Take<uint8_t>();
      if (letter == 'P') TakeEncodedValue(reader, reader->Take<uint8_t>());
    }
    return reader->ok() ? std::optional(encodings) : std::nullopt;
  }

  const FrameSection& section_;
  std::unordered_map<size_t, std::optional<Encodings>> encodings_;
};

bool IsCode(const Frame& frame, std::span<const Segment> segments) {
  return std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return segment.executable && segment.HoldsInFile(frame.start) &&
           frame.size <= segment.file_size - (frame.start - segment.address);
  });
}

bool StartsAfter(LinkAddr address, const Frame& frame) {
  return address < frame.start;
}

}  // namespace

FrameIndex FrameIndex::Read(const Image& image, const Headers& headers,
                            std::span<const Segment> segments) {
  FrameSection section = FindFrameSection(image, headers, segments);
  FrameIndex index;
  index.frames_ = FrameParser(section).Parse();
  std::erase_if(index.frames_,
                [&](const Frame& frame) { return frame.size == 0 || !IsCode(frame, segments); });
  std::sort(index.frames_.begin(), index.frames_.end(),
            [](const Frame& a, const Frame& b) { return a.start < b.start; });
  return index;
}

std::optional<Frame> FrameIndex::Around(LinkAddr address) const {
  auto next = std::upper_bound(frames_.begin(), frames_.end(), address, StartsAfter);
  if (next == frames_.begin()) return std::nullopt;
  const Frame& frame = *std::prev(next);
  if (address - frame.start >= frame.size) return std::nullopt;
  return frame;
}

std::optional<Frame> FrameIndex::After(LinkAddr address) const {
  auto next = std::upper_bound(frames_.begin(), frames_.end(), address, StartsAfter);
  if (next == frames_.end()) return std::nullopt;
  return *next;
}

}  // namespace probed::elf
