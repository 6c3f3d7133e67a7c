// Base64 (RFC 4648 §4), strict: padded, nothing else between.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::model {

std::optional<std::string> decode_base64(std::string_view text);  // none if it is not base64

}  // namespace sluice::model
