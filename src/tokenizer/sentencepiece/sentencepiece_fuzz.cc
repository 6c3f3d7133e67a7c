// Reads any bytes as tokenizer.model: loading throws Error or gives a tokenizer that encodes and decodes any
// text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  using namespace sluice::tokenizer;
  try {
    const auto tokenizer = load_sentencepiece({reinterpret_cast<const char*>(data), size}, "tokenizer.model");
    for (const std::string_view text :
         {"", " ", "Hello  world \xE4\xB8\xAD\xF0\x9F\x98\x80\n", "aaaa bbbb \xE2\x96\x81 x"}) {
      const auto ids = tokenizer->encode(text, AddSpecial::kYes);
      SLUICE_CHECK(!find_invalid_utf8(tokenizer->decode(ids, ShowSpecial::kYes)), std::string(text));
    }
  } catch (const Error&) {
  }
  return 0;
}
