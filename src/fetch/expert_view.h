// The matrices of an expert in memory, as kernels take them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "codec/matrix_format.h"
#include "device/address.h"
#include "fetch/expert_layout.h"

namespace sluice::fetch {

// Non-owning: the layout and the memory must outlive it.
struct ExpertView {
  // (·, hidden), (·, hidden), (hidden, ·), as many as a piece has elements for; gate is empty without a gate.
  // A matrix whose LSB slice is absent has view kLow.
  codec::MatrixRef gate, up, down;
};

// Where the parts of an expert are; null: absent.
struct ExpertMemory {
  const std::byte* view = nullptr;                   // words, or all planes of an expert that is stored whole
  const std::byte *base = nullptr, *rest = nullptr;  // the regions of other experts
};

// The same in the memory of any unit; the address of nothing: absent.
struct ExpertPlaces {
  device::Address view = {};
  device::Address base = {}, rest = {};
};

// An expert in memory. Non-owning, as a view.
struct PlacedExpert {
  const ExpertLayout* layout = nullptr;
  std::uint32_t hidden = 0;  // the model's
  ExpertMemory memory;

  bool in_regions() const { return memory.view == nullptr; }
  // The bytes that make its view: those of `view`, or of `base` and of `rest` (zero if it is absent).
  Bytes first_bytes() const { return in_regions() ? layout->base.bytes : layout->view_bytes; }
  Bytes rest_bytes() const { return in_regions() && memory.rest != nullptr ? layout->rest.bytes : 0; }
  Bytes bytes() const { return first_bytes() + rest_bytes(); }
  ExpertView view() const;
};

// `hidden`: of the model. With a view, its words; otherwise the planes in `base` and `rest`.
ExpertView expert_view(const ExpertLayout& layout, std::size_t hidden, const ExpertPlaces& places);
ExpertView expert_view(const ExpertLayout& layout, std::size_t hidden, const ExpertMemory& memory);

}  // namespace sluice::fetch
