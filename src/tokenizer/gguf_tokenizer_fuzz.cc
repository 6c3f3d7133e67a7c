// Reads any bytes as a GGUF file: loading its tokenizer throws Error, gives none, or one that encodes and
// decodes any text, and streams it to the same text.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;             // NOLINT
  using namespace sluice::tokenizer;  // NOLINT
  static const int memory = ::memfd_create("input", 0);
  SLUICE_CHECK(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
               ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  try {
    const store::GgufHeader header =
        store::read_gguf(InputFile::open("/proc/self/fd/" + std::to_string(memory)));
    read_gguf_specials(header, "model.gguf");
    const auto tokenizer = load_gguf_tokenizer(header, "model.gguf");
    if (tokenizer == nullptr) return 0;
    const auto ids = tokenizer->encode("Hello 12\n\xE4\xB8\xAD <s> the fox", AddSpecial::kYes);
    const std::string whole = tokenizer->decode(ids, ShowSpecial::kYes);
    SLUICE_CHECK(!find_invalid_utf8(whole), whole);
    StreamDecoder decoder(*tokenizer, ShowSpecial::kYes);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.append(id);
    SLUICE_CHECK(streamed + decoder.finish() == whole, whole);
  } catch (const Error&) {
  }
  return 0;
}
