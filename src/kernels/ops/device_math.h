// How a device computes products.
#pragma once

#include <cstdint>

namespace sluice::kernels {

// kFast: products with BF16 words by the units for matrices of a GPU, those of routers excepted; such a unit
// rounds activations to BF16 and sums in an order of its own. All else, and kSame: with the bits of the
// host.
enum class DeviceMath : std::uint8_t { kSame, kFast };

}  // namespace sluice::kernels
