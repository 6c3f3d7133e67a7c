#include "store/piece_check.h"

#include <fmt/format.h>

#include "codec/exponents/plane_decoder.h"
#include "codec/slices/sliced_matrix.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

// With no more elements than these, no size of a padded plane overflows.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;

// The piece is all rows and columns of this matrix. Products overflow only where the count cannot be right.
bool is_whole(const PieceEntry& piece, std::uint64_t rows, std::uint64_t columns) {
  return piece.count % columns == 0 && piece.count / columns == rows && piece.count <= kMostElements;
}

std::string matrix_text(const PieceCheck& at) {
  return fmt::format("{} by {}, {}", at.piece.tiles.rows, at.piece.tiles.columns, at.text());
}

void check_range(const PieceCheck& at) {
  const std::uint64_t elements = at.tensor().elements();
  if (at.piece.first > elements || at.piece.count > elements - at.piece.first)
    throw at.error("a piece is larger than its tensor").found(at.text());
  if (!at.in_file(at.piece.bytes)) throw at.error("a piece lies outside of its file").found(at.text());
}

void check_length(const PieceCheck& at, Bytes wanted, Bytes found, std::string_view message) {
  if (found == wanted) return;
  throw at.error(message)
      .expected(fmt::format("{} bytes for {}", wanted, at.text()))
      .found(fmt::format("{}", found));
}

void check_chunks(const PieceCheck& at) {
  const PieceEntry& piece = at.piece;
  const std::uint64_t unit = piece.tiled() ? piece.tiles.group_places() : 1, all = piece.bytes.length;
  std::uint64_t covered = 0;
  Bytes end = 0;
  for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
    const StoredChunk& chunk = runs_of(at.manifest, piece)[i];
    const auto fail = [&](std::string_view message) {
      throw at.error(fmt::format("chunk {} {}", i, message)).found(at.text());
    };
    if (!at.in_file(chunk.bytes)) fail("lies outside of its file");
    if (i > 0 && chunk.bytes.offset != end) fail("does not follow the one before");
    if (chunk.first != covered || chunk.count == 0 || chunk.count > all - covered || chunk.count % unit != 0)
      fail("has the wrong elements");
    if (chunk.coded ? chunk.bytes.length == 0 || chunk.bytes.length >= chunk.count
                    : chunk.bytes.length != chunk.count)
      fail("has a wrong size");
    if (piece.tiled() && chunk.bytes.length % codec::kTileColumns != 0) fail("has a wrong size");
    covered += chunk.count;
    end = chunk.bytes.end();
  }
  if (covered != all) throw at.error("chunks do not cover their piece").found(at.text());
}

}  // namespace

bool PieceCheck::in_file(const Region& region) const {
  const Bytes size = manifest.data_files[piece.file].size;
  return region.offset <= size && region.length <= size - region.offset;
}

std::string PieceCheck::text() const {
  return fmt::format("elements [{}, {}] of tensor \"{}\"", piece.first, piece.count, tensor().name);
}

Error PieceCheck::error(std::string_view message) const {
  return Error(ErrorKind::kInvalid, message).in(name).fix("pack the model again");
}

void check_piece(const PieceCheck& at) {
  const PieceEntry& piece = at.piece;
  if (piece.tensor >= at.manifest.tensors.size())
    throw at.error("a piece is of no tensor").found(fmt::format("{}", piece.tensor));
  if (piece.file >= at.manifest.data_files.size())
    throw at.error("a piece lies in no file").found(fmt::format("{}", piece.file));
  const PieceEncoding& encoding = encoding_of(piece);
  if (encoding.has_bytes()) check_range(at);
  if (encoding.check != nullptr) encoding.check(at);
  if (encoding.has_bytes())
    check_length(at, plane_bytes(at.manifest, piece, 0), piece.bytes.length, "a piece has a wrong size");
  if (encoding.runs == Runs::kExponents) check_chunks(at);
}

void check_split(const PieceCheck& at) {
  const std::string& codec = at.manifest.codec.name;
  if (at.tensor().dtype != DType::kBF16 || codec == "none")
    throw at.error("a piece cannot be split").found(at.text());
  if (at.piece.tiled() != (codec == codec::kNativeCodec))
    throw at.error("a piece has tiles, or lacks them, against its codec").found(at.text());
  if (at.piece.tiled() && !is_whole(at.piece, at.piece.tiles.rows, at.piece.tiles.columns)) {
    throw at.error("tiles do not fit their piece")
        .expected("rows and columns of all its elements")
        .found(matrix_text(at));
  }
}

// Whole rows of a tensor. No product overflows: a tensor's elements do not, and padding turns one element
// into at most 512.
void check_rounded(const PieceCheck& at) {
  if (!at.manifest.slices)
    throw at.error("a piece has slices or codes of 8 bits in another family").found(at.text());
  const TensorInfo& tensor = at.tensor();
  if (!codec::can_be_quantised(tensor.dtype))
    throw at.error("a piece cannot be quantised").found(std::string(dtype_name(tensor.dtype)));
  const std::uint64_t columns = at.piece.tiles.columns;
  if (tensor.shape.empty() || tensor.shape.back() != columns || at.piece.first % columns != 0 ||
      !is_whole(at.piece, at.piece.tiles.rows, columns)) {
    throw at.error("a matrix does not fit its piece")
        .expected("rows of the tensor's last dimension, all its elements")
        .found(matrix_text(at));
  }
  std::size_t plane = 1;
  for (const StoredChunk& slice : runs_of(at.manifest, at.piece)) {
    if (!at.in_file(slice.bytes)) throw at.error("a slice lies outside of its file").found(at.text());
    check_length(at, plane_bytes(at.manifest, at.piece, plane++), slice.bytes.length,
                 "a slice has a wrong size");
  }
}

// Whole rows of a matrix, and planes of the sizes that the format says. A matrix may have more elements than
// the tensor of its codes.
void check_planes(const PieceCheck& at) {
  const PieceEntry& piece = at.piece;
  const std::vector<TensorInfo>& tensors = at.manifest.tensors;
  const codec::MatrixShape matrix{piece.tiles.rows, piece.tiles.columns};
  if (!is_whole(piece, matrix.rows, matrix.columns) || !piece.format->fits(matrix)) {
    throw at.error("a matrix does not fit its piece or its format")
        .expected(fmt::format("all elements, in whole blocks of {} by {} if {} has no others",
                              piece.format->block.rows, piece.format->block.columns, piece.format->name))
        .found(matrix_text(at));
  }
  if (at.manifest.family() == Family::kSliced)
    throw at.error("a piece is in a format in a family whose matrices are rounded").found(at.text());
  if (piece.chunk_count != piece.format->plane_count()) {
    throw at.error("a piece has not one extent for each plane")
        .expected(fmt::format("{} of {}", piece.format->plane_count(), piece.format->name))
        .found(fmt::format("{} for {}", piece.chunk_count, at.text()));
  }
  for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
    const StoredChunk& plane = runs_of(at.manifest, piece)[i];
    const std::string which = fmt::format("plane \"{}\" of {}", piece.format->planes[i].name, at.text());
    const std::uint64_t elements = plane.tensor < tensors.size() ? tensors[plane.tensor].elements() : 0;
    if (plane.tensor >= tensors.size() || plane.first > elements || plane.count > elements - plane.first)
      throw at.error("a plane is of no tensor, or larger than its tensor").found(which);
    if (!at.in_file(plane.bytes)) throw at.error("a plane lies outside of its file").found(which);
    const Bytes wanted = plane_bytes(at.manifest, piece, i);
    if (plane.bytes.length != wanted || tensors[plane.tensor].bytes_of(plane.count) != wanted) {
      throw at.error("a plane has a wrong size")
          .expected(fmt::format("{} bytes for {}", wanted, which))
          .found(fmt::format("{} bytes, {} elements", plane.bytes.length, plane.count));
    }
  }
}

}  // namespace sluice::store
