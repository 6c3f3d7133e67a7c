// Names of tensors in GGUF files, by what they are for. docs/formats.md has the table.
#pragma once

#include <string>
#include <string_view>

#include "model/architecture.h"
#include "model/gguf_config.h"

namespace sluice::model {

// "blk.3.attn_q.weight". Experts of a layer share a tensor. Empty: no GGUF file has tensors of this role.
std::string gguf_name(const GgufArchitecture& architecture, Role role, std::int32_t layer);
// Tensors that files hold beside those of a text model, and that nobody computes with.
bool gguf_carries(const ModelConfig& config, std::string_view name);

}  // namespace sluice::model
