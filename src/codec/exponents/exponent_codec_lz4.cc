// A chunk is one LZ4 block (lz4_Block_format.md), without a frame: the store keeps sizes and checksums.
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "codec/exponents/exponent_codec_impl.h"

namespace sluice::codec {
namespace {

struct MakeState {
  std::byte* operator()() const {
    void* state =
        std::malloc(static_cast<std::size_t>(LZ4_sizeofStateHC()));  // malloc aligns the block for a pointer
    if (state == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(state);
  }
};
void free_state(std::byte* state) { std::free(state); }

// Makes one block of several: LZ4 cannot stop within a block, and a chunk is to be one. A block is a row of
// sequences, each some literals and a match, and ends with literals alone (lz4_Block_format.md); these become
// the first literals of the block behind it.
class BlockJoiner {
 public:
  // Writes to `out`.
  explicit BlockJoiner(std::vector<std::byte>& out) : out_(out) {}
  // Adds a whole block of `raw` bytes, which lie behind those of the blocks before.
  void append(std::span<const std::byte> block, std::span<const std::byte> raw) {
    const Sequence first = sequence_at(block, 0);
    const std::byte* const literals = raw.data() - literals_;
    literals_ += first.literals;
    if (first.is_last(block)) return;
    put(literals, block[0]);
    Sequence last = first;
    while (!last.is_last(block)) last = sequence_at(block, last.end);
    out_.insert(out_.end(), &block[first.match], block.data() + last.begin);
    literals_ = last.literals;
  }
  // REQUIRES: `end` is the end of the raw bytes of the last block.
  void finish(const std::byte* end) { put(end - literals_, std::byte{0}); }

 private:
  struct Sequence {
    std::size_t begin = 0, match = 0, end = 0, literals = 0;  // places in the block; how many literals
    bool is_last(std::span<const std::byte> block) const { return match == block.size(); }
  };

  static constexpr unsigned kMore = 15, kMoreByte = 255;

  static std::size_t long_length(std::span<const std::byte> block, std::size_t& at, std::size_t length) {
    if (length < kMore) return length;
    for (;;) {
      const auto more = std::to_integer<std::size_t>(block[at++]);
      length += more;
      if (more != kMoreByte) return length;
    }
  }

  static Sequence sequence_at(std::span<const std::byte> block, std::size_t at) {
    Sequence sequence{.begin = at};
    const auto token = std::to_integer<std::size_t>(block[at++]);
    sequence.literals = long_length(block, at, token >> 4);
    sequence.match = at += sequence.literals;
    if (sequence.is_last(block)) return sequence;
    at += 2;  // the offset
    long_length(block, at, token & kMore);
    sequence.end = at;
    return sequence;
  }

  // The literals that have been kept, with the match length of `token`.
  void put(const std::byte* literals, std::byte token) {
    const bool is_long = literals_ >= kMore;
    const auto nibble = static_cast<unsigned>(is_long ? kMore : literals_);
    out_.push_back(static_cast<std::byte>(nibble << 4 | (std::to_integer<unsigned>(token) & kMore)));
    if (is_long) {
      std::size_t rest = literals_ - kMore;
      for (; rest >= kMoreByte; rest -= kMoreByte) out_.push_back(std::byte{kMoreByte});
      out_.push_back(static_cast<std::byte>(rest));
    }
    out_.insert(out_.end(), literals, literals + literals_);
  }

  std::vector<std::byte>& out_;
  std::size_t literals_ = 0;  // that end the blocks so far, and are not written yet
};

class Lz4Codec final : public ExponentCodec {
 public:
  explicit Lz4Codec(int level) : level_(level) {}
  std::string_view name() const override { return "lz4"; }
  int level() const override { return level_; }
  Bytes encode_context_bytes() const override { return static_cast<Bytes>(LZ4_sizeofStateHC()); }
  Bytes decode_context_bytes() const override { return 0; }

 protected:
  std::optional<std::vector<std::byte>> compress(std::span<const std::byte> raw,
                                                 const StopRequest& stop) const override {
    if (raw.size() > LZ4_MAX_INPUT_SIZE) {
      throw Error(ErrorKind::kUnsupported, "exponent chunk is too large for lz4")
          .expected("at most " + std::to_string(LZ4_MAX_INPUT_SIZE) + " bytes")
          .found(std::to_string(raw.size()))
          .fix("use more " + Setting::kChunks);
    }
    std::vector<std::byte> bytes;
    bytes.reserve(raw.size());
    BlockJoiner joiner(bytes);
    std::vector<std::byte> block(static_cast<std::size_t>(LZ4_compressBound(kBytesPerStopRequest)));
    const auto state = states_.take();
    LZ4_streamHC_t* const stream =
        LZ4_initStreamHC(state.get(), static_cast<std::size_t>(LZ4_sizeofStateHC()));
    SLUICE_CHECK(stream != nullptr);
    LZ4_resetStreamHC_fast(stream, level_);
    for (std::size_t at = 0; at < raw.size(); at += kBytesPerStopRequest) {
      stop_if(stop);
      const std::span<const std::byte> piece =
          raw.subspan(at, std::min(kBytesPerStopRequest, raw.size() - at));
      const int size = LZ4_compress_HC_continue(
          stream, reinterpret_cast<const char*>(piece.data()), reinterpret_cast<char*>(block.data()),
          static_cast<int>(piece.size()), static_cast<int>(block.size()));
      SLUICE_CHECK(size > 0);
      joiner.append(std::span(block).first(static_cast<std::size_t>(size)), piece);
      if (bytes.size() >= raw.size()) return std::nullopt;
    }
    joiner.finish(raw.data() + raw.size());
    if (bytes.size() >= raw.size()) return std::nullopt;
    bytes.shrink_to_fit();
    return bytes;
  }

  void decompress(std::span<const std::byte> bytes, std::span<std::byte> raw) const override {
    if (raw.size() > LZ4_MAX_INPUT_SIZE) fail_decode(raw.size(), "a chunk larger than lz4 can make");
    const int size =
        LZ4_decompress_safe(reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(raw.data()),
                            static_cast<int>(bytes.size()), static_cast<int>(raw.size()));
    if (size < 0)
      fail_decode(raw.size(), "damage near byte " + std::to_string(-(size + 1)) + " of the chunk");
    if (static_cast<std::size_t>(size) != raw.size())
      fail_decode(raw.size(), std::to_string(size) + " bytes");
  }

 private:
  const int level_;
  mutable ContextPool<std::byte, MakeState, free_state> states_;
};

}  // namespace

int lz4_min_level() { return LZ4HC_CLEVEL_MIN; }
int lz4_max_level() { return LZ4HC_CLEVEL_MAX; }

std::unique_ptr<const ExponentCodec> make_lz4_codec(int level) { return std::make_unique<Lz4Codec>(level); }

}  // namespace sluice::codec
