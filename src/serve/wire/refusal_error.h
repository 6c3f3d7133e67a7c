// What a client gets for a request that is not taken, or that fails on its way.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/backend.h"
#include "serve/wire/api_error.h"

namespace sluice::serve {

// `field`: where the prompt stands, "messages" or "prompt".
ApiError refusal_error(const Refusal& refusal, const std::string& field);
ApiError failure_error(const Failure& failure);
ApiError too_long_error(std::size_t prompt_tokens, std::size_t asked_tokens, std::size_t context,
                        const std::string& field, bool at_least = false);
ApiError loading_error(const LoadState& state);
ApiError draining_error();
// An Error from below as 400 where a client can help it, else as 500. Paths of this machine are left out.
ApiError error_from_below(const Error& error);
// The text without absolute paths: of each its last part.
std::string without_paths(std::string_view text);

}  // namespace sluice::serve
