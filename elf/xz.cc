#include "elf/xz.h"

#include <lzma.h>

#include <algorithm>

namespace probed::elf {
namespace {

constexpr uint64_t kMaxDecoderMemory = 128 << 20;
constexpr size_t kFirstBuffer = 1 << 20;

class Decoder {
 public:
  Decoder() : ready_(lzma_stream_decoder(&stream_, kMaxDecoderMemory, 0) == LZMA_OK) {}
  ~Decoder() { lzma_end(&stream_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  std::vector<uint8_t> Decode(std::span<const uint8_t> input, size_t limit) {
    std::vector<uint8_t> output;
    stream_.next_in = input.data();
    stream_.avail_in = input.size();
    lzma_ret result = ready_ ? LZMA_OK : LZMA_PROG_ERROR;
    while (result == LZMA_OK && output.size() < limit) {
      result = DecodeMore(&output, limit);
    }
    if (result != LZMA_STREAM_END) output.clear();
    return output;
  }

 private:
  lzma_ret DecodeMore(std::vector<uint8_t>* output, size_t limit) {
    size_t had = output->size();
    output->resize(std::min(limit, std::max(kFirstBuffer, 2 * had)));
    stream_.next_out = output->data() + had;
    stream_.avail_out = output->size() - had;
    lzma_ret result = lzma_code(&stream_, LZMA_FINISH);
    output->resize(output->size() - stream_.avail_out);
    return result;
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_;
};

}  // namespace

std::vector<uint8_t> DecompressXz(std::span<const uint8_t> compressed, size_t limit) {
  return Decoder().Decode(compressed, limit);
}

}  // namespace probed::elf
