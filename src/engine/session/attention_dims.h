// The sizes of an attention layer, under the same names for GQA and for MLA in absorbed form.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"
#include "model/config.h"

namespace sluice::engine {

struct AttentionDims {
  explicit AttentionDims(const model::AttentionConfig& config);

  std::size_t heads = 0;
  std::size_t kv_heads = 0;         // in the cache: MLA has one
  std::size_t query_dim = 0;        // per head, as projected
  std::size_t key_dim = 0;          // per kv head, as cached; MLA: kv_lora + rope
  std::size_t cache_value_dim = 0;  // per kv head, as cached; MLA: kv_lora, the first part of the key row
  std::size_t value_dim = 0;        // per head, as the output projection takes it
  std::size_t key_row = 0;          // elements that a token and layer adds to the key cache
  std::size_t value_row = 0;        // … to the value cache; MLA: 0
  float scale = 1.0f;               // the scale of the scores, including YaRN's factor

  kernels::AttentionShape kernel_shape(std::size_t window) const {
    return {heads, kv_heads, key_dim, cache_value_dim, scale, window};
  }
};

}  // namespace sluice::engine
