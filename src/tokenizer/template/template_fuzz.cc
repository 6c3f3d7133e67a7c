// Reads any bytes as a template, then a NUL, then JSON of its variables: parsing and rendering throw Error or
// give well-formed text whose marks lie within it, and rendering again gives the same.
#include "tokenizer/template/template.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/template/value_json.h"
#include "tokenizer/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  using namespace sluice::tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  jinja::Value variables(std::make_shared<jinja::Dict>(nullptr));
  if (end < input.size()) {
    try {
      const jinja::Value read = jinja::read_json(input.substr(end + 1), Origin::kRequest);
      if (read.is_mapping()) variables = read;
    } catch (const jinja::Fault&) {
    }
  }
  TemplateLimits limits;
  limits.steps = 20'000;
  limits.value_bytes = limits.output_bytes = kMiB;
  limits.memory_bytes = 8 * kMiB;
  try {
    const Template parsed = Template::parse(input.substr(0, end), "template", limits);
    const RenderOptions options{.now = std::tm{}};
    const MarkedText text = parsed.render(variables.dict(), options);
    SLUICE_CHECK(!find_invalid_utf8(text.bytes()), text.bytes());
    std::size_t done = 0;
    for (const ByteRange& range : text.request()) {
      SLUICE_CHECK(range.begin >= done && range.begin < range.end && range.end <= text.size());
      done = range.end + 1;
    }
    SLUICE_CHECK(parsed.render(variables.dict(), options).bytes() == text.bytes());
  } catch (const Error&) {
  }
  return 0;
}
