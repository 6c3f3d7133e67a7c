// A dense tensor on its way to another memory: read, checked and decoded in parts, so that the host never has
// the whole of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/bytes.h"
#include "device/accountant.h"
#include "fetch/piece_decoder.h"
#include "fetch/weight_files.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

enum class PartForm : std::uint8_t {
  kWords,   // as load_piece() gives the tensor
  kStored,  // as load_packed() does
};

// Some bytes of one plane of the tensor in that form.
struct TensorPart {
  std::size_t plane = 0;
  Bytes at = 0;  // in the plane; a chunk of exponents (kStored) has its place in the whole tensor's buffer
  std::span<const std::byte> bytes;
};

// Whether the tensor may come in parts: unless its format has its content checked as a whole.
bool has_parts(const store::StoredPiece& piece);
// The most that load_in_parts() charges, to `staging`.
Bytes parts_staging_bytes(const store::StoredPiece& piece, PartForm form);
// Calls take() with parts that together are the tensor; their bytes are valid during the call. Codes of
// chunks are checked before they are given out; the checksum of a plane is known at its end alone, so an
// error may come behind parts that were taken. No read may be in flight in files.reader(). Error(kIo),
// (kCorrupt), (kBudget), and what take() throws. REQUIRES: has_parts(); for kStored, own columns.
void load_in_parts(const store::StoredPiece& piece, PartForm form, WeightFiles& files, PieceDecoder& decoder,
                   device::Accountant& accountant, const std::function<void(const TensorPart&)>& take);

}  // namespace sluice::fetch
