// Dense weights: read once at load and kept, as the checkpoint's words or in their stored form.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "device/accountant.h"
#include "device/host_buffer.h"
#include "fetch/piece_decoder.h"
#include "fetch/weight_files.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// One dense tensor in memory. Owns its buffer.
struct ResidentPiece {
  device::HostBuffer buffer;
  const std::byte* data = nullptr;  // its first word or plane, inside `buffer`
  Bytes bytes = 0;                  // the size of that
  std::uint64_t elements = 0;
  // The piece as it is in `buffer`: decoded words are one row, everything else has the shape of its planes.
  codec::MatrixRef matrix;
};

// Bytes that load_piece charges to `dense` for this piece, and the most that it charges to `staging`
// meanwhile.
Bytes resident_bytes(const store::StoredPiece& piece);
Bytes load_staging_bytes(const store::StoredPiece& piece);

// Reads, checks and decodes a piece. Raw pieces are read in place; split ones a few chunks at a time through
// staging. No read may be in flight in files.reader(). Error(kIo), (kCorrupt), (kBudget).
ResidentPiece load_piece(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account);

struct NamedPiece {
  std::string tensor;
  store::StoredPiece stored;
};

// Adds the tensor's name to an error about bytes of a file.
Error& in_tensor(Error& error, std::string_view tensor);

// A matrix in tiles in its stored form: its planes are at their places in `buffer`.
struct PackedPiece {
  std::string tensor;
  device::HostBuffer buffer;
  PiecePlace place;
};

// Bytes that load_packed charges for this piece, which must have its own columns; and its places in there.
Bytes packed_bytes(const store::StoredPiece& piece);
PiecePlace packed_place(const store::StoredPiece& piece);

// Reads pieces in place, each while the one before it is checked, except the codes of their exponents, which
// nobody decodes before they are used. Otherwise as load_piece; Error(kCorrupt) also names the tensor.
std::vector<PackedPiece> load_packed(std::span<const NamedPiece> pieces, WeightFiles& files,
                                     PieceDecoder& decoder, device::Accountant& accountant,
                                     device::Account account);
// Checks the codes. Error(kCorrupt) likewise.
void check_codes(const PackedPiece& piece, const PieceDecoder& decoder);

}  // namespace sluice::fetch
