// Reads any bytes as tokenizer.json, then a NUL, then text: loading throws Error or gives a tokenizer that
// encodes and decodes any text, and streams it to the same text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  using namespace sluice::tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  std::string text;
  Utf8Lossy utf8;
  utf8.append(input.substr(std::min(end + 1, input.size())), text);
  utf8.finish(text);
  try {
    const auto tokenizer = load_tokenizer_json(input.substr(0, end), "tokenizer.json");
    const auto ids = tokenizer->encode(text.empty() ? "Hello 12\n\xE4\xB8\xAD <s>" : text, AddSpecial::kNo);
    const std::string whole = tokenizer->decode(ids, ShowSpecial::kYes);
    SLUICE_CHECK(!find_invalid_utf8(whole), whole);
    StreamDecoder decoder(*tokenizer, ShowSpecial::kYes);
    std::string streamed;
    for (const TokenId id : ids) {
      streamed += decoder.append(id);
      SLUICE_CHECK(!find_invalid_utf8(streamed), streamed);
    }
    SLUICE_CHECK(streamed + decoder.finish() == whole, whole);
  } catch (const Error&) {
  }
  return 0;
}
