// Stores every chunk uncompressed.
#include "codec/exponents/exponent_codec_impl.h"

namespace sluice::codec {
namespace {

class NoneCodec final : public ExponentCodec {
 public:
  std::string_view name() const override { return "none"; }
  int level() const override { return 0; }
  Bytes encode_context_bytes() const override { return 0; }
  Bytes decode_context_bytes() const override { return 0; }

 protected:
  std::optional<std::vector<std::byte>> compress(std::span<const std::byte>,
                                                 const StopRequest&) const override {
    return std::nullopt;
  }
  void decompress(std::span<const std::byte>, std::span<std::byte> raw) const override {
    fail_decode(raw.size(), "a compressed chunk in a store without compression");
  }
};

}  // namespace

std::unique_ptr<const ExponentCodec> make_none_codec(int) { return std::make_unique<NoneCodec>(); }

}  // namespace sluice::codec
