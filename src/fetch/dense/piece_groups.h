// A coded piece as groups of its chunks, each a piece of its own: it is read and decoded group by group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "device/accountant.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// One group, and what stands before it in the whole piece.
struct PieceGroup {
  std::size_t first_chunk = 0;
  std::uint64_t first_place = 0;  // in its sign+mantissa plane
  std::uint64_t first_word = 0;   // among its words
  store::StoredPiece piece;       // without a checksum of the plane
};

// Groups of about `most` elements, at least a chunk each. REQUIRES: a coded piece.
class PieceGroups {
 public:
  PieceGroups(const store::StoredPiece& piece, std::uint64_t most);

  std::size_t count() const { return begins_.size(); }
  Bytes staging_bytes() const;       // that read() charges
  std::uint64_t most_words() const;  // words of a group, at most

  // Calls handle(group, its layout, what was read) for each, while the next one is read; then compares the
  // whole plane with its checksum. Error(kIo), (kCorrupt), (kBudget), and what handle() throws.
  void read(WeightFiles& files, device::Accountant& accountant,
            const std::function<void(const PieceGroup&, const PieceLayout&, const std::byte*)>& handle) const;

 private:
  PieceGroup group(std::size_t number) const;

  const store::StoredPiece& piece_;
  std::vector<std::size_t> begins_;  // the first chunk of each
};

}  // namespace sluice::fetch
