#include "store/piece_encoding.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "store/piece_check.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

using codec::MatrixFormat;
using Member = PieceMember;

const MatrixFormat* format_of_words(const Manifest& manifest, const PieceEntry& piece) {
  return codec::word_format(manifest.tensors[piece.tensor].dtype);
}
const MatrixFormat* format_of_split(const Manifest&, const PieceEntry& piece) {
  return piece.tiled() ? &codec::kFormatPacked : &codec::kFormatSplit;
}
const MatrixFormat* format_of_slices(const Manifest& manifest, const PieceEntry&) {
  return &codec::slices_format(*manifest.slices);
}
const MatrixFormat* format_of_int8(const Manifest&, const PieceEntry&) { return &codec::kFormatInt8; }
const MatrixFormat* format_by_name(const Manifest&, const PieceEntry& piece) { return piece.format; }

constexpr Member kRawMembers[] = {Member::kRaw};
constexpr Member kSplitMembers[] = {Member::kTiles, Member::kSm, Member::kChunks};
constexpr Member kSlicedMembers[] = {Member::kMatrix, Member::kMsb, Member::kLsb};
constexpr Member kInt8Members[] = {Member::kMatrix, Member::kInt8};
constexpr Member kFormatMembers[] = {Member::kFormat, Member::kMatrix, Member::kPlanes};

// By Encoding.
constexpr std::array kEncodings = {
    PieceEncoding{.members = kRawMembers, .format = format_of_words},
    PieceEncoding{.members = kSplitMembers,
                  .runs = Runs::kExponents,
                  .region = &ExpertEntry::sm,
                  .runs_region = &ExpertEntry::exp,
                  .format = format_of_split,
                  .check = check_split},
    PieceEncoding{.members = kSlicedMembers,
                  .runs = Runs::kOtherPlanes,
                  .region = &ExpertEntry::msb,
                  .runs_region = &ExpertEntry::lsb,
                  .rounded = true,
                  .in_dense = false,
                  .format = format_of_slices,
                  .check = check_rounded},
    PieceEncoding{.members = kInt8Members,
                  .rounded = true,
                  .in_experts = false,
                  .format = format_of_int8,
                  .check = check_rounded},
    PieceEncoding{.members = kFormatMembers,
                  .runs = Runs::kPlanes,
                  .runs_region = &ExpertEntry::full,
                  .format = format_by_name,
                  .check = check_planes},
};
static_assert(kEncodings.size() == static_cast<std::size_t>(Encoding::kFormat) + 1);

constexpr std::uint32_t member_bit(Member member) {
  return std::uint32_t{1} << static_cast<unsigned>(member);
}

}  // namespace

const PieceEncoding& encoding_of(Encoding encoding) {
  const auto index = static_cast<std::size_t>(encoding);
  SLUICE_CHECK(index < kEncodings.size(), std::to_string(index));
  return kEncodings[index];
}

std::optional<Encoding> encoding_with(std::uint32_t members) {
  for (std::size_t i = 0; i < kEncodings.size(); ++i) {
    std::uint32_t all = member_bit(Member::kTensor) | member_bit(Member::kElements);
    for (const Member member : kEncodings[i].members) all |= member_bit(member);
    if (members == all || members == (all & ~member_bit(Member::kTiles))) return static_cast<Encoding>(i);
  }
  return std::nullopt;
}

std::span<const StoredChunk> runs_of(const Manifest& manifest, const PieceEntry& piece) {
  return std::span(manifest.chunks).subspan(piece.first_chunk, piece.chunk_count);
}

StoredMatrix matrix_of(const Manifest& manifest, const PieceEntry& piece) {
  const MatrixFormat* const format = encoding_of(piece).format(manifest, piece);
  if (piece.tiles.rows > 0) return {format, {piece.tiles.rows, piece.tiles.columns}};
  return {format, matrix_shape(manifest.tensors[piece.tensor].shape, piece.first, piece.count)};
}

Bytes plane_bytes(const Manifest& manifest, const PieceEntry& piece, std::size_t plane) {
  const StoredMatrix matrix = matrix_of(manifest, piece);
  // Without a format there is one plane, of the tensor's own elements.
  return matrix.format == nullptr ? manifest.tensors[piece.tensor].bytes_of(piece.count)
                                  : matrix.format->plane_bytes(matrix.shape, plane);
}

}  // namespace sluice::store
