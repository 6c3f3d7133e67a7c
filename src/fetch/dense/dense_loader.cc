#include "fetch/dense/dense_loader.h"

#include <fmt/format.h>

#include "device/space.h"
#include "fetch/dense/layout_reads.h"
#include "fetch/dense/piece_groups.h"

namespace sluice::fetch {
namespace {

// Chunks are decoded in groups of about this many words, so that both threads have work and staging stays
// small.
constexpr std::uint64_t kGroupElements = 4 << 20;

ResidentPiece load_raw(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                       device::Accountant& accountant, device::Account account) {
  const PieceLayout layout = lay_out({&piece, 1});
  ResidentPiece loaded{
      device::HostBuffer(accountant, account, layout.read_bytes), nullptr, 0, piece.elements, {}};
  const DrainAtEnd drain{files};
  start_read(layout, files, loaded.buffer.data());
  finish_read(layout, files, loaded.buffer.data());
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
  PieceGroups(piece, kGroupElements)
      .read(files, accountant,
            [&](const PieceGroup& group, const PieceLayout& layout, const std::byte* read) {
              decoder.decode(layout, read, loaded.buffer.data() + words.bytes({1, group.first_word}));
            });
  return loaded;
}

}  // namespace

Bytes resident_bytes(const store::StoredPiece& piece) {
  return round_up(piece.coded() ? codec::word_format(piece.dtype)->bytes({1, piece.elements})
                                : lay_out({&piece, 1}).read_bytes,
                  kBlockBytes);
}

Bytes load_staging_bytes(const store::StoredPiece& piece) {
  return piece.coded() ? PieceGroups(piece, kGroupElements).staging_bytes() : 0;
}

ResidentPiece load_piece(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account) {
  return piece.coded() ? load_split(piece, files, decoder, accountant, account)
                       : load_raw(piece, files, decoder, accountant, account);
}

Bytes packed_bytes(const store::StoredPiece& piece) {
  return round_up(lay_out({&piece, 1}).read_bytes, kBlockBytes);
}

PiecePlace packed_place(const store::StoredPiece& piece) { return lay_out({&piece, 1}).pieces[0]; }

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
    finish_read(now, files, loaded[i].buffer.data());
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
