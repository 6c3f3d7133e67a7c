#include "kernels_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace sluice::bench {

using kernels::Context;

void AttentionBench::add(const std::string& name, const kernels::AttentionShape& shape, std::size_t context,
                         bool latent) {
  // Takes layers one after the other, as in decode, so that the cache of a layer is no longer in L2.
  const std::size_t key_row = shape.kv_heads * shape.key_dim;
  const std::size_t value_row = latent ? key_row : shape.kv_heads * shape.value_dim;
  const std::size_t layer_bytes = context * (latent ? key_row : key_row + value_row) * 2;
  const std::size_t layers =
      std::max<std::size_t>(1, std::min<std::size_t>(64, suite_.weights().size() / layer_bytes));
  for (std::size_t p = 0; p < suite_.pools(); ++p) {
    for (const Isa isa : suite_.isas()) {
      const Context ctx{suite_.pool(p), isa};
      const auto attend = [this, shape, context, latent, key_row, value_row, layer_bytes](const Context& c,
                                                                                          std::size_t layer) {
        const std::byte* data = suite_.weights().data() + layer * layer_bytes;
        const kernels::CacheView keys{data, DType::kBF16, key_row, shape.key_dim};
        const std::byte* value_data = latent ? data : data + context * key_row * 2;
        const kernels::CacheView values{value_data, DType::kBF16, value_row, shape.value_dim};
        scratch_.resize(c.pool->threads() * kernels::attention_scratch_floats(shape, context));
        y_.resize(shape.heads * shape.value_dim);
        kernels::attention(c, shape, suite_.x(), 1, context - 1, keys, values, y_.data(), scratch_.data());
      };
      attend({ctx.pool, Isa::kScalar}, 0);
      const std::vector<float> expected(y_.data(), y_.data() + shape.heads * shape.value_dim);
      attend(ctx, 0);
      SLUICE_CHECK(std::memcmp(expected.data(), y_.data(), expected.size() * 4) == 0, name);
      const double flop =
          2.0 * static_cast<double>(shape.heads * context * (shape.key_dim + shape.value_dim));
      suite_.add({fmt::format("attention {} {}, {}T", name, isa_name(isa), ctx.pool->threads()),
                  [attend, ctx, layers](std::size_t) {
                    for (std::size_t layer = 0; layer < layers; ++layer) attend(ctx, layer);
                  }},
                 static_cast<double>(layers * layer_bytes), flop * static_cast<double>(layers), p, isa);
    }
  }
}

}  // namespace sluice::bench
