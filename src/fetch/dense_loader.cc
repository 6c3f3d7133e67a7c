#include "fetch/dense_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "device/space.h"
#include "fetch/checked_hash.h"

namespace sluice::fetch {
namespace {

// Chunks are decoded in groups of about this many words, so that both threads have work and staging stays
// small.
constexpr std::uint64_t kGroupElements = 4 << 20;

// The part of a split piece that consists of chunks [begin, end): a piece of its own, whose sm has no
// checksum.
store::StoredPiece sub_piece(const store::StoredPiece& piece, std::size_t begin, std::size_t end) {
  store::StoredPiece part;
  part.dtype = piece.dtype;
  part.format = piece.format;
  const std::uint64_t first = piece.exponents[begin].first_element;
  const std::uint64_t plane =
      piece.exponents[end - 1].first_element + piece.exponents[end - 1].elements - first;
  part.shape = {1, plane};
  if (piece.tiled()) {
    const codec::TileShape tiles = codec::tile_rows(piece.tiles(), first, plane).shape;
    part.shape = {tiles.rows, tiles.columns};
  }
  part.elements = part.shape.elements();
  part.planes[0].extent = {piece.first().file, piece.first().offset + first, plane};
  part.exponents.assign(piece.exponents.begin() + static_cast<std::ptrdiff_t>(begin),
                        piece.exponents.begin() + static_cast<std::ptrdiff_t>(end));
  for (store::ExponentChunk& chunk : part.exponents) chunk.first_element -= first;
  return part;
}

std::size_t group_end(const store::StoredPiece& piece, std::size_t begin) {
  std::uint64_t elements = 0;
  std::size_t end = begin;
  while (end < piece.exponents.size() &&
         (end == begin || elements + piece.exponents[end].elements <= kGroupElements))
    elements += piece.exponents[end++].elements;
  return end;
}

struct DrainAtEnd {
  WeightFiles& files;
  ~DrainAtEnd() { files.drain(); }
};

void start_read(const PieceLayout& layout, WeightFiles& files, std::byte* buffer) {
  for (std::size_t i = 0; i < layout.runs.size(); ++i) files.submit(layout.runs[i], buffer, i);
}

// Waits for all runs of the layout; nothing else may be in flight.
void finish_read(const PieceLayout& layout, WeightFiles& files) {
  std::vector<DiskCompletion> done;
  files.reader().wait(layout.runs.size(), done);
  SLUICE_CHECK(done.size() == layout.runs.size());
  for (const DiskCompletion& completion : done) files.check(layout.runs[completion.tag], completion);
}

ResidentPiece load_raw(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                       device::Accountant& accountant, device::Account account) {
  const PieceLayout layout = lay_out({&piece, 1});
  ResidentPiece loaded{
      device::HostBuffer(accountant, account, layout.read_bytes), nullptr, 0, piece.elements, {}};
  const DrainAtEnd drain{files};
  start_read(layout, files, loaded.buffer.data());
  finish_read(layout, files);
  decoder.decode(layout, loaded.buffer.data(), loaded.buffer.data());
  const PiecePlace& place = layout.pieces[0];
  loaded.data = loaded.buffer.data() + place.planes[0].place;
  loaded.bytes = place.planes[0].bytes;
  loaded.matrix = {place.format, place.shape};
  for (std::size_t plane = 0; plane < place.base_planes; ++plane)
    loaded.matrix.planes[plane] =
        device::host_space().address(loaded.buffer.data() + place.planes[plane].place);
  return loaded;
}

// Chunks of a split piece that are read together, and the place they are read to.
struct Group {
  std::size_t begin = 0, end = 0;
  PieceLayout layout;
};

Group group_at(const store::StoredPiece& piece, std::size_t begin) {
  Group group{begin, group_end(piece, begin), {}};
  if (begin < group.end) group.layout = lay_out(std::vector{sub_piece(piece, begin, group.end)});
  return group;
}

ResidentPiece load_split(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account) {
  const codec::MatrixFormat& words = *codec::word_format(piece.dtype);
  const codec::MatrixShape one_row{1, piece.elements};
  ResidentPiece loaded{device::HostBuffer(accountant, account, words.bytes(one_row)),
                       nullptr,
                       words.bytes(one_row),
                       piece.elements,
                       {}};
  loaded.data = loaded.buffer.data();
  loaded.matrix = {&words, one_row, {device::host_space().address(loaded.data)}};
  // Two halves: one group is read while the group before it is decoded.
  device::HostBuffer staging(accountant, device::Account::kStaging, load_staging_bytes(piece));
  const DrainAtEnd drain{files};  // before the buffers go, even if decoding throws
  const auto half = [&](std::size_t number) { return staging.data() + number % 2 * (staging.size() / 2); };
  Xxh3Stream plane_hash;
  std::uint64_t done = 0;  // elements
  Group now = group_at(piece, 0);
  if (now.begin < now.end) start_read(now.layout, files, half(0));
  for (std::size_t number = 0; now.begin < now.end; ++number) {
    finish_read(now.layout, files);
    Group next = group_at(piece, now.end);
    if (next.begin < next.end) start_read(next.layout, files, half(number + 1));
    const PiecePlace& place = now.layout.pieces[0];
    plane_hash.update({half(number) + place.planes[0].place, place.planes[0].bytes});
    decoder.decode(now.layout, half(number), loaded.buffer.data() + words.bytes({1, done}));
    done += place.elements;
    now = std::move(next);
  }
  const store::StoredPlane& plane = piece.planes[0];
  if (plane.xxh3 && plane_hash.digest() != *plane.xxh3)
    throw_hash_mismatch(plane.extent.length, *plane.xxh3, plane_hash.digest(), files.path(plane.extent.file),
                        plane.extent.offset);
  return loaded;
}

}  // namespace

Bytes resident_bytes(const store::StoredPiece& piece) {
  return round_up(piece.coded() ? codec::word_format(piece.dtype)->bytes({1, piece.elements})
                                : lay_out({&piece, 1}).read_bytes,
                  kBlockBytes);
}

Bytes load_staging_bytes(const store::StoredPiece& piece) {
  Bytes most = 0;
  for (std::size_t begin = 0, end = 0; begin < piece.exponents.size(); begin = end) {
    end = group_end(piece, begin);
    most = std::max(most, lay_out(std::vector{sub_piece(piece, begin, end)}).read_bytes);
  }
  return 2 * round_up(most, kBlockBytes);
}

ResidentPiece load_piece(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account) {
  return piece.coded() ? load_split(piece, files, decoder, accountant, account)
                       : load_raw(piece, files, decoder, accountant, account);
}

Bytes packed_bytes(const store::StoredPiece& piece) {
  return round_up(lay_out({&piece, 1}).read_bytes, kBlockBytes);
}

Error& in_tensor(Error& error, std::string_view tensor) {
  const std::string where = fmt::format("{}, tensor \"{}\"", error.where(), tensor);
  return error.offset() ? error.in(where, *error.offset()) : error.in(where);
}

std::vector<PackedPiece> load_packed(std::span<const NamedPiece> pieces, WeightFiles& files,
                                     PieceDecoder& decoder, device::Accountant& accountant,
                                     device::Account account) {
  std::vector<PackedPiece> loaded;
  loaded.reserve(pieces.size());
  const DrainAtEnd drain{files};  // before the buffers go
  const auto start = [&](const NamedPiece& piece) {
    SLUICE_CHECK(piece.stored.own_columns);
    PieceLayout layout = lay_out({&piece.stored, 1});
    loaded.push_back(
        {piece.tensor, device::HostBuffer(accountant, account, layout.read_bytes), layout.pieces[0]});
    start_read(layout, files, loaded.back().buffer.data());
    return layout;
  };
  PieceLayout now;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i == 0) now = start(pieces[0]);
    finish_read(now, files);
    PieceLayout next;
    if (i + 1 < pieces.size()) next = start(pieces[i + 1]);
    try {
      decoder.check(now, loaded[i].buffer.data());
    } catch (Error& error) {
      throw in_tensor(error, loaded[i].tensor);
    }
    now = std::move(next);
  }
  return loaded;
}

void check_codes(const PackedPiece& piece, const PieceDecoder& decoder) {
  try {
    decoder.check_codes(piece.place, piece.buffer.data());
  } catch (Error& error) {
    throw in_tensor(error, piece.tensor);
  }
}

}  // namespace sluice::fetch
