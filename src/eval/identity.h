// Everything that the results of an evaluation depend on.
#pragma once

#include <span>
#include <string>

#include "base/json/json.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// The weights and the arithmetic. A packed store is identified by its manifest, a directory by the names,
// sizes and times of its weight files and the content of config.json.
Json identity_of(const engine::Engine& engine);

// A text, as its SHA-256 in hexadecimal digits: of each token four bytes, the lowest first.
std::string sha256_of(std::span<const tokenizer::TokenId> tokens);

}  // namespace sluice::eval
