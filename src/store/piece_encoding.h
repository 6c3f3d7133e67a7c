// How the manifest writes a piece (docs/store-format.md, section 2.3): a table with one row for each way. Who
// writes, reads, sizes, checks, lays out or restores a piece asks its row; pack alone chooses between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "codec/matrix_format.h"
#include "store/manifest.h"

namespace sluice::store {

struct PieceCheck;

// The members of a piece in the manifest; piece_json.cc reads and writes each. All pieces have the first two.
enum class PieceMember : std::uint8_t {
  kTensor,
  kElements,
  kRaw,
  kSm,
  kMsb,
  kInt8,
  kChunks,
  kTiles,
  kMatrix,
  kLsb,
  kFormat,
  kPlanes
};
inline constexpr std::size_t kPieceMembers = 12;

// What the runs of a piece are, which stand in Manifest::chunks.
enum class Runs : std::uint8_t {
  kNone,
  kExponents,    // the exponents, in any number of chunks
  kOtherPlanes,  // the planes of the piece's format behind the first
  kPlanes,       // all planes of the format, each from a tensor of its own; PieceEntry::bytes is empty
};

struct PieceEncoding {
  // Behind the first two, in the order in which they are written. Only `tiles` may be missing.
  std::span<const PieceMember> members;
  Runs runs = Runs::kNone;
  // The regions of an expert that hold the piece's bytes, and its runs.
  Region ExpertEntry::*region = &ExpertEntry::full;
  Region ExpertEntry::*runs_region = nullptr;
  bool rounded = false;                     // the source's words are lost: for family sliced only
  bool in_dense = true, in_experts = true;  // where such pieces may stand
  // The format of the piece's planes; null: elements of a type that nobody computes with.
  const codec::MatrixFormat* (*format)(const Manifest& manifest, const PieceEntry& piece) = nullptr;
  // Checks what only such pieces must fulfil, but for the sizes of their bytes and chunks. Null: nothing.
  void (*check)(const PieceCheck& at) = nullptr;

  // The piece has bytes that are its format's first plane, and belongs to the tensor that it names.
  bool has_bytes() const { return runs != Runs::kPlanes; }
};

const PieceEncoding& encoding_of(Encoding encoding);
inline const PieceEncoding& encoding_of(const PieceEntry& piece) { return encoding_of(piece.encoding); }
// The encoding that has these members and no others, bit i for PieceMember i; empty if there is none.
std::optional<Encoding> encoding_with(std::uint32_t members);

// The runs of a piece, ascending.
std::span<const StoredChunk> runs_of(const Manifest& manifest, const PieceEntry& piece);

// A piece's format (as PieceEncoding::format), and the shape that its planes have.
struct StoredMatrix {
  const codec::MatrixFormat* format = nullptr;
  codec::MatrixShape shape;
};
StoredMatrix matrix_of(const Manifest& manifest, const PieceEntry& piece);
// Bytes of a plane of it, by its format. REQUIRES: the content does not decide.
Bytes plane_bytes(const Manifest& manifest, const PieceEntry& piece, std::size_t plane);

// Elements of one tensor of the source that are stored together, and where the manifest says they are. The
// exponents of a piece that has some stand in its runs.
struct SourceRange {
  std::uint32_t tensor = 0;
  std::uint64_t first = 0, count = 0;
  Region bytes;
  std::uint64_t xxh3 = 0;
};
// Calls visit(range) for each range of a piece: one, or those of its planes.
template <class Visit>
void each_source_range(const Manifest& manifest, const PieceEntry& piece, const Visit& visit) {
  if (encoding_of(piece).has_bytes())
    return visit(SourceRange{piece.tensor, piece.first, piece.count, piece.bytes, piece.xxh3});
  for (const StoredChunk& plane : runs_of(manifest, piece))
    visit(SourceRange{plane.tensor, plane.first, plane.count, plane.bytes, plane.xxh3});
}

}  // namespace sluice::store
