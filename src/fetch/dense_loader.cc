#include "fetch/dense_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

// Chunks are decoded in groups of about this many words, so that both threads have work and staging stays small.
constexpr std::uint64_t kGroupElements = 4 << 20;

// The part of a split piece made of chunks [begin, end): a piece of its own, whose sm has no checksum.
store::StoredPiece sub_piece(const store::StoredPiece& piece, std::size_t begin, std::size_t end) {
  store::StoredPiece part;
  part.dtype = piece.dtype;
  part.encoding = piece.encoding;
  const std::uint64_t first = piece.exponents[begin].first_element;
  part.elements = piece.exponents[end - 1].first_element + piece.exponents[end - 1].elements - first;
  part.sm = {piece.sm.file, piece.sm.offset + first, part.elements};
  part.exponents.assign(piece.exponents.begin() + static_cast<std::ptrdiff_t>(begin),
                        piece.exponents.begin() + static_cast<std::ptrdiff_t>(end));
  for (store::ExponentChunk& chunk : part.exponents) chunk.first_element -= first;
  return part;
}

std::size_t group_end(const store::StoredPiece& piece, std::size_t begin) {
  std::uint64_t elements = 0;
  std::size_t end = begin;
  while (end < piece.exponents.size() && (end == begin || elements + piece.exponents[end].elements <= kGroupElements))
    elements += piece.exponents[end++].elements;
  return end;
}

void read_layout(const PieceLayout& layout, WeightFiles& files, std::byte* buffer) {
  std::vector<WeightFiles::Range> ranges;
  for (const FileRun& run : layout.runs) ranges.push_back({run.file, run.offset, run.length, buffer + run.place});
  files.read_now(ranges);
}

ResidentPiece load_raw(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                       device::Accountant& accountant, device::Account account) {
  const PieceLayout layout = lay_out({&piece, 1});
  ResidentPiece loaded{device::HostBuffer(accountant, account, layout.read_bytes), nullptr, piece.dtype, piece.elements};
  read_layout(layout, files, loaded.buffer.data());
  decoder.decode(layout, loaded.buffer.data(), loaded.buffer.data());
  loaded.data = loaded.buffer.data() + layout.pieces[0].view_place;
  return loaded;
}

ResidentPiece load_split(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account) {
  ResidentPiece loaded{device::HostBuffer(accountant, account, 2 * piece.elements), nullptr, piece.dtype, piece.elements};
  loaded.data = loaded.buffer.data();
  device::HostBuffer staging(accountant, device::Account::kStaging, load_staging_bytes(piece));
  Xxh3Stream plane_hash;
  for (std::size_t begin = 0, end = 0; begin < piece.exponents.size(); begin = end) {
    end = group_end(piece, begin);
    const PieceLayout layout = lay_out(std::vector{sub_piece(piece, begin, end)});
    SLUICE_CHECK(layout.read_bytes <= staging.size());
    read_layout(layout, files, staging.data());
    plane_hash.update({staging.data() + layout.pieces[0].place, layout.pieces[0].elements});
    decoder.decode(layout, staging.data(), loaded.buffer.data() + 2 * piece.exponents[begin].first_element);
  }
  if (piece.xxh3 && plane_hash.digest() != *piece.xxh3)
    throw Error(ErrorKind::kCorrupt, fmt::format("checksum of {} bytes of weights does not match", piece.elements))
        .in(files.path(piece.sm.file), piece.sm.offset)
        .expected(hex64(*piece.xxh3))
        .found(hex64(plane_hash.digest()))
        .fix("run `sluice verify`, then pack the model again");
  return loaded;
}

}  // namespace

Bytes resident_bytes(const store::StoredPiece& piece) {
  return round_up(piece.encoding == store::Encoding::kSplit ? 2 * piece.elements : lay_out({&piece, 1}).read_bytes,
                  kBlockBytes);
}

Bytes load_staging_bytes(const store::StoredPiece& piece) {
  Bytes most = 0;
  for (std::size_t begin = 0, end = 0; begin < piece.exponents.size(); begin = end) {
    end = group_end(piece, begin);
    most = std::max(most, lay_out(std::vector{sub_piece(piece, begin, end)}).read_bytes);
  }
  return most;
}

ResidentPiece load_piece(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account) {
  const bool split = piece.encoding == store::Encoding::kSplit;
  return split ? load_split(piece, files, decoder, accountant, account)
               : load_raw(piece, files, decoder, accountant, account);
}

}  // namespace sluice::fetch
