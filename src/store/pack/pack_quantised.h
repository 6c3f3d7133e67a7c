// Codes strips of matrices for family `sliced`: experts in two slices of codes, large dense matrices in
// codes of 8 bits (docs/store-format.md, section 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"
#include "codec/matrix_format.h"
#include "codec/slices/slice_cells.h"
#include "store/pack/unit_writer.h"

namespace sluice::store {

class QuantisedStrips {
 public:
  QuantisedStrips() = default;  // no strips
  // Codes `words`: the rows of `matrix` as elements of `dtype`, starting at row `first_row` of the tensor.
  // REQUIRES: a format of slices, or codec::kFormatInt8. Error(kInvalid) naming row and column of a weight
  // that is infinite or NaN.
  QuantisedStrips(const codec::MatrixFormat& format, const codec::CellShape& matrix, DType dtype,
                  std::span<const std::byte> words, std::uint64_t first_row);

  // The coded strips in the writer's form; views into this object.
  UnitWriter::QuantisedStrips parts() const;

 private:
  struct Part {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;

    std::byte* make(std::uint64_t size);
    std::span<const std::byte> span() const { return {data.get(), bytes}; }
  };
  Part codes_, scales_, zeros_, lsb_;  // with 8 bits there are no zero points and no LSB slices
};

}  // namespace sluice::store
