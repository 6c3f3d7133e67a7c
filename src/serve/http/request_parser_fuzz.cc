// Any bytes as requests of HTTP, cut at any places.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/http/access_rules.h"
#include "serve/http/request_parser.h"

namespace {

using sluice::serve::http::RequestParser;

// What one parser makes of the text, given in pieces of `size`: the end of what it took, and where it stands.
std::string outcome(std::string_view text, std::size_t size) {
  sluice::serve::http::HttpLimits limits;
  limits.head_bytes = 2048;
  limits.line_bytes = 1024;
  limits.body_bytes = 4096;
  RequestParser parser(limits);
  std::string held;
  std::size_t taken = 0;
  const auto open = [&] {
    return parser.stage() == RequestParser::Stage::kHead || parser.stage() == RequestParser::Stage::kBody;
  };
  const auto put = [&](std::string_view piece) {
    held += piece;
    while (open()) {
      const std::size_t used = parser.put(held);
      held.erase(0, used);
      taken += used;
      if (used == 0) break;
    }
  };
  for (std::size_t at = 0; at < text.size() && open(); at += size) put(text.substr(at, size));
  // A fault in a head without an end is found at once, or when the end is there.
  if (parser.stage() == RequestParser::Stage::kHead) put("\r\n\r\n");
  if (parser.stage() != RequestParser::Stage::kDone) return std::to_string(static_cast<int>(parser.stage()));
  const sluice::serve::http::AccessRules rules({{"key"}, {"box"}, {"https://app"}, true, true});
  (void)rules.judge(parser.request());
  (void)rules.has_key(parser.request());
  return std::to_string(taken) + parser.request().path + '\n' + parser.request().body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = outcome(text, std::max<std::size_t>(size, 1));
  SLUICE_CHECK(whole == outcome(text, 1), "pieces of a request change what it is");
  return 0;
}
