// Base64 (RFC 4648 §4), strict: padded, no other characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::tokenizer {

std::optional<std::string> decode_base64(std::string_view text);  // empty if `text` is not base64

}  // namespace sluice::tokenizer
