// Reads any bytes as a compiled tokenizer. First as the file itself; then as its tables with correct
// checksums: the description, a NUL, and tables that consist of one byte for the number of their name, two
// bytes of length and that many bytes. Loading throws Error or gives a tokenizer that encodes and decodes any
// text, and streams it to the same text.
#include "tokenizer/compiled_tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace {

using namespace sluice;             // NOLINT
using namespace sluice::tokenizer;  // NOLINT

constexpr std::string_view kNames[] = {
    "text",  "entries", "slots",         "merges",           "scores",         "tree",
    "roots", "types",   "reserved-text", "reserved-entries", "reserved-slots", "bytes"};

std::string as_tables(std::string_view input) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view description = input.substr(0, end);
  std::vector<store::NamedTable> tables = {store::named_table("description", std::span(description))};
  input.remove_prefix(std::min(end + 1, input.size()));
  while (input.size() >= 3 && tables.size() < 20) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    const std::string_view name = kNames[byte(0) % std::size(kNames)];
    const std::size_t length = std::min<std::size_t>(byte(1) | byte(2) << 8, input.size() - 3);
    const std::string_view bytes = input.substr(3, length);
    tables.push_back(store::named_table(name, std::span(bytes)));
    input.remove_prefix(3 + length);
  }
  return store::write_tables(kTokenizerTables, 0, tables);
}

void use(std::string_view file) {
  try {
    const auto tables = store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "tokenizer.bin");
    tables.check_kind(kTokenizerTables);
    const auto tokenizer = load_compiled_tokenizer(tables);
    const auto ids = tokenizer->encode("Hello 12\n\xE4\xB8\xAD <s> ab", AddSpecial::kYes);
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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  use(input);
  use(as_tables(input));
  return 0;
}
