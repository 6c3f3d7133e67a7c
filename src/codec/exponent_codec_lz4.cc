// A chunk is one LZ4 block (lz4_Block_format.md), without a frame: the store keeps sizes and checksums.
#include <lz4.h>
#include <lz4hc.h>

#include <cstdlib>
#include <new>
#include <string>

#include "base/error.h"
#include "codec/exponent_codec_impl.h"

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

class Lz4Codec final : public ExponentCodec {
 public:
  explicit Lz4Codec(int level) : level_(level) {}
  std::string_view name() const override { return "lz4"; }
  int level() const override { return level_; }
  Bytes encode_context_bytes() const override { return static_cast<Bytes>(LZ4_sizeofStateHC()); }
  Bytes decode_context_bytes() const override { return 0; }

 protected:
  std::optional<std::vector<std::byte>> compress(std::span<const std::byte> raw) const override {
    if (raw.size() > LZ4_MAX_INPUT_SIZE) {
      throw Error(ErrorKind::kUnsupported, "exponent chunk is too large for lz4")
          .expected("at most " + std::to_string(LZ4_MAX_INPUT_SIZE) + " bytes")
          .found(std::to_string(raw.size()))
          .fix("use more --chunks");
    }
    std::vector<std::byte> bytes(raw.size() - 1);
    if (bytes.empty()) return std::nullopt;
    const auto state = states_.take();
    const int size = LZ4_compress_HC_extStateHC(
        state.get(), reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(bytes.data()),
        static_cast<int>(raw.size()), static_cast<int>(bytes.size()), level_);
    if (size <= 0) return std::nullopt;  // the encoding does not fit
    bytes.resize(static_cast<std::size_t>(size));
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
