// Dense weights: read once at load and kept, as the checkpoint's words or as they are stored.
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
  const std::byte* data = nullptr;  // first word; inside `buffer`
  DType dtype = DType::kBF16;
  std::uint64_t elements = 0;
};

// Bytes that load_piece charges to `dense` for this piece, and the most that it charges to `staging`
// meanwhile.
Bytes resident_bytes(const store::StoredPiece& piece);
Bytes load_staging_bytes(const store::StoredPiece& piece);

// Reads, checks and decodes. Raw pieces are read in place; split ones a few chunks at a time through staging.
// Nothing may be in flight in files.reader(). Error(kIo), (kCorrupt), (kBudget).
ResidentPiece load_piece(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                         device::Accountant& accountant, device::Account account);

struct NamedPiece {
  std::string tensor;
  store::StoredPiece stored;
};

// Adds the tensor to what an error says of bytes of a file.
Error& in_tensor(Error& error, std::string_view tensor);

// A matrix in tiles, kept as it is stored: its planes lie at their places in `buffer`.
struct PackedPiece {
  std::string tensor;
  device::HostBuffer buffer;
  PiecePlace place;
};

// Bytes that load_packed charges for this piece, which has its own columns.
Bytes packed_bytes(const store::StoredPiece& piece);

// Reads pieces in place, one while the one before it is checked: all but the codes of their exponents, which
// nobody decodes before they are computed with. Otherwise as load_piece; Error(kCorrupt) names the tensor,
// too.
std::vector<PackedPiece> load_packed(std::span<const NamedPiece> pieces, WeightFiles& files,
                                     PieceDecoder& decoder, device::Accountant& accountant,
                                     device::Account account);
// The codes. Error(kCorrupt) likewise.
void check_codes(const PackedPiece& piece, const PieceDecoder& decoder);

}  // namespace sluice::fetch
