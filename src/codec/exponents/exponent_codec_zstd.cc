// A chunk is one Zstandard frame (RFC 8878) with its content size in the header and no checksum: the store
// has its own.
// For ZSTD_estimateCCtxSize, ZSTD_estimateDCtxSize and ZSTD_c_literalCompressionMode.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/error.h"
#include "codec/exponents/exponent_codec_impl.h"

namespace sluice::codec {
namespace {

struct MakeCompressor {
  ZSTD_CCtx* operator()() const {
    ZSTD_CCtx* context = ZSTD_createCCtx();
    if (context == nullptr) throw std::bad_alloc();
    return context;
  }
};
struct MakeDecompressor {
  ZSTD_DCtx* operator()() const {
    ZSTD_DCtx* context = ZSTD_createDCtx();
    if (context == nullptr) throw std::bad_alloc();
    return context;
  }
};
void free_compressor(ZSTD_CCtx* context) { ZSTD_freeCCtx(context); }
void free_decompressor(ZSTD_DCtx* context) { ZSTD_freeDCtx(context); }

// Level 0 is ours: hardly any search for matches, Huffman codes for all bytes that are left. Exponents of
// weights are almost independent of each other, so a match is chance and costs more than the codes that it
// replaces: without matches, chunks are smaller and both directions are faster.
constexpr ZSTD_compressionParameters kNoMatches = {.windowLog = 17,  // one block
                                                   .chainLog = 6,
                                                   .hashLog = 6,
                                                   .searchLog = 1,
                                                   .minMatch = 7,
                                                   .targetLength = 4096,  // positions skipped after no match
                                                   .strategy = ZSTD_fast};

std::size_t checked(std::size_t result) {
  SLUICE_CHECK(ZSTD_isError(result) == 0, ZSTD_getErrorName(result));
  return result;
}

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  checked(ZSTD_CCtx_setParameter(context, parameter, value));
}

void set_level(ZSTD_CCtx* context, int level) {
  if (level > 0) {
    set(context, ZSTD_c_compressionLevel, level);
    return;
  }
  set(context, ZSTD_c_windowLog, static_cast<int>(kNoMatches.windowLog));
  set(context, ZSTD_c_chainLog, static_cast<int>(kNoMatches.chainLog));
  set(context, ZSTD_c_hashLog, static_cast<int>(kNoMatches.hashLog));
  set(context, ZSTD_c_searchLog, static_cast<int>(kNoMatches.searchLog));
  set(context, ZSTD_c_minMatch, static_cast<int>(kNoMatches.minMatch));
  set(context, ZSTD_c_targetLength, static_cast<int>(kNoMatches.targetLength));
  set(context, ZSTD_c_strategy, kNoMatches.strategy);
  set(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
}

// From this level on a block of Zstandard's own size takes up to half a second (version 1.5.4, two cores at 2
// GHz, 2026), within which nothing can stop it. Blocks of a quarter of that take at most 0.12 s there, and
// 0.3 % more bytes; below, a block takes at most 0.05 s.
constexpr int kFirstSlowLevel = 13;
constexpr std::size_t kSlowBlockBytes = 32 * kKiB;
static_assert(kSlowBlockBytes <= kBytesPerStopRequest);

class ZstdCodec final : public ExponentCodec {
 public:
  explicit ZstdCodec(int level) : level_(level) {}
  std::string_view name() const override { return "zstd"; }
  int level() const override { return level_; }
  Bytes encode_context_bytes() const override {
    return level_ > 0 ? ZSTD_estimateCStreamSize(level_) : ZSTD_estimateCStreamSize_usingCParams(kNoMatches);
  }
  Bytes decode_context_bytes() const override { return ZSTD_estimateDCtxSize(); }

 protected:
  std::optional<std::vector<std::byte>> compress(std::span<const std::byte> raw,
                                                 const StopRequest& stop) const override {
    std::vector<std::byte> bytes(raw.size());  // more are of no use
    const auto context = compressors_.take();
    checked(
        ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_only));  // the frame before may have been given up
    set_level(context.get(), level_);
    checked(ZSTD_CCtx_setPledgedSrcSize(context.get(), raw.size()));
    const bool slow = level_ >= kFirstSlowLevel;
    const std::size_t step = slow ? kSlowBlockBytes : kBytesPerStopRequest;
    ZSTD_outBuffer out = {bytes.data(), bytes.size(), 0};
    for (std::size_t at = 0; at < raw.size(); at += step) {
      stop_if(stop);
      const std::size_t size = std::min(step, raw.size() - at);
      const ZSTD_EndDirective end = at + size == raw.size() ? ZSTD_e_end
                                    : slow                  ? ZSTD_e_flush
                                                            : ZSTD_e_continue;
      ZSTD_inBuffer in = {raw.data() + at, size, 0};
      std::size_t left = 1;
      while (in.pos < in.size || (end != ZSTD_e_continue && left > 0)) {
        left = checked(ZSTD_compressStream2(context.get(), &out, &in, end));
        if (out.pos == out.size) return std::nullopt;
      }
    }
    bytes.resize(out.pos);
    bytes.shrink_to_fit();
    return bytes;
  }

  void decompress(std::span<const std::byte> bytes, std::span<std::byte> raw) const override {
    // ZSTD_decompressDCtx alone would also accept several frames in a row, and skippable frames (whose
    // content is 0 bytes).
    const unsigned long long content = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (content == ZSTD_CONTENTSIZE_ERROR) fail_decode(raw.size(), "no Zstandard frame");
    if (content == ZSTD_CONTENTSIZE_UNKNOWN) fail_decode(raw.size(), "a frame without its size");
    if (content != raw.size()) fail_decode(raw.size(), "a frame of " + std::to_string(content) + " bytes");
    const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    if (ZSTD_isError(frame) != 0) fail_decode(raw.size(), ZSTD_getErrorName(frame));
    if (frame != bytes.size()) {
      fail_decode(raw.size(), std::to_string(bytes.size() - frame) + " bytes after the frame");
    }
    const auto context = decompressors_.take();
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) fail_decode(raw.size(), ZSTD_getErrorName(size));
    if (size != raw.size()) fail_decode(raw.size(), std::to_string(size) + " bytes");
  }

 private:
  const int level_;
  mutable ContextPool<ZSTD_CCtx, MakeCompressor, free_compressor> compressors_;
  mutable ContextPool<ZSTD_DCtx, MakeDecompressor, free_decompressor> decompressors_;
};

}  // namespace

int zstd_min_level() { return 0; }
// Above level 19 one context takes hundreds of MiB and gains nothing on exponents.
int zstd_max_level() { return 19; }

std::unique_ptr<const ExponentCodec> make_zstd_codec(int level) { return std::make_unique<ZstdCodec>(level); }

}  // namespace sluice::codec
