#include "reproduce/zipmoe/exponents.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/stop_request.h"
#include "codec/exponents/entropy.h"
#include "codec/exponents/exponent_codec.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/matrix_format.h"

namespace sluice::reproduce {
namespace {

std::vector<std::byte> exponents_of(const store::Checkpoint& checkpoint, const store::StoredPiece& piece) {
  const auto read = [&](const store::Extent& extent) {
    std::vector<std::byte> bytes(extent.length);
    InputFile::open(checkpoint.weight_files()[extent.file]).read_at(extent.offset, bytes);
    return bytes;
  };
  std::vector<std::byte> exponents(piece.elements);
  if (piece.raw()) {
    const std::vector<std::byte> words = read(piece.first());
    for (std::size_t i = 0; i < exponents.size(); ++i)
      exponents[i] = (words[2 * i + 1] & std::byte{0x7f}) << 1 | words[2 * i] >> 7;
    return exponents;
  }
  const codec::PlaneDecoder decoder(checkpoint.codec(), best_isa());
  for (const store::ExponentChunk& chunk : piece.exponents) {
    codec::TileRows rows;
    std::span<std::byte> part = exponents;
    if (piece.tiled()) {
      rows = codec::tile_rows(piece.tiles(), chunk.first_element, chunk.elements);
      part = part.subspan(rows.first_row * rows.shape.columns, rows.shape.rows * rows.shape.columns);
    } else {
      part = part.subspan(chunk.first_element, chunk.elements);
    }
    decoder.exponents(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, read(chunk.extent),
                      rows.shape, part);
  }
  return exponents;
}

}  // namespace

ExponentFacts exponent_facts(const store::Checkpoint& checkpoint, const model::Model& model,
                             std::size_t experts, unsigned chunks, const std::function<bool()>& interrupted) {
  const std::size_t count = std::min(experts, model.experts.size());
  std::vector<std::unique_ptr<const codec::ExponentCodec>> codecs;
  for (const codec::ExponentCodecEntry& entry : codec::exponent_codecs())
    if (entry.name != "none") codecs.push_back(codec::make_exponent_codec(entry.name));
  std::vector<std::uint64_t> coded(codecs.size());
  codec::ExponentHistogram histogram;
  for (std::size_t i = 0; i < count; ++i) {
    stop_if(interrupted);
    const model::ExpertPieces& pieces = model.experts[i * model.experts.size() / count];
    for (const store::Piece* one : {&pieces.gate, &pieces.up, &pieces.down}) {
      if (one->elements == 0) continue;  // architectures without a gate
      const store::StoredPiece piece = checkpoint.locate(*one);
      if (piece.dtype != DType::kBF16) continue;
      const std::vector<std::byte> exponents = exponents_of(checkpoint, piece);
      histogram.add_exponents(exponents);
      for (unsigned x = 0; x < chunks; ++x) {
        const std::size_t begin = x * exponents.size() / chunks, end = (x + 1) * exponents.size() / chunks;
        for (std::size_t c = 0; c < codecs.size(); ++c)
          coded[c] += codecs[c]->encode(std::span(exponents).subspan(begin, end - begin)).bytes.size();
      }
    }
  }
  ExponentFacts facts;
  facts.words = histogram.total();
  if (facts.words == 0)
    throw Error(ErrorKind::kUnsupported, "no expert is stored as BF16").in(checkpoint.path());
  facts.entropy_bits = histogram.entropy_bits();
  for (unsigned e = 0; e < 256; ++e) facts.symbols += histogram.count(static_cast<std::uint8_t>(e)) > 0;
  facts.bound = (8 + facts.entropy_bits) / 16;
  for (std::size_t c = 0; c < codecs.size(); ++c)
    facts.codecs.push_back({std::string(codecs[c]->name()),
                            static_cast<double>(facts.words + coded[c]) /
                                static_cast<double>(codec::kFormatBf16.bytes({1, facts.words}))});
  return facts;
}

}  // namespace sluice::reproduce
