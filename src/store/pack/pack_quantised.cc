#include "store/pack/pack_quantised.h"

#include "base/error.h"
#include "base/setting.h"
#include "codec/slices/int8_matrix.h"
#include "codec/slices/sliced_matrix.h"

namespace sluice::store {

std::byte* QuantisedStrips::Part::make(std::uint64_t size) {
  bytes = static_cast<std::size_t>(size);
  data = std::make_unique_for_overwrite<std::byte[]>(bytes);
  return data.get();
}

QuantisedStrips::QuantisedStrips(const codec::MatrixFormat& format, const codec::CellShape& matrix,
                                 DType dtype, std::span<const std::byte> words, std::uint64_t first_row) {
  try {
    if (format.slices) {
      const codec::SlicedShape shape{matrix, *format.slices};
      codec::quantise_sliced(words, dtype, shape,
                             {codes_.make(shape.scales_offset()), scales_.make(shape.scale_bytes()),
                              zeros_.make(shape.zero_bytes()), lsb_.make(shape.lsb_bytes())},
                             first_row);
    } else {
      SLUICE_CHECK(&format == &codec::kFormatInt8, std::string(format.name));
      const codec::Int8Shape shape{matrix};
      codec::quantise_int8(words, dtype, shape, codes_.make(shape.scales_offset()),
                           scales_.make(shape.scale_bytes()), first_row);
    }
  } catch (Error& error) {
    throw error.fix("download the file again, or pack the model without " + Setting::kSlices);
  }
}

UnitWriter::QuantisedStrips QuantisedStrips::parts() const {
  return {.codes = codes_.span(), .scales = scales_.span(), .zeros = zeros_.span(), .lsb = lsb_.span()};
}

}  // namespace sluice::store
