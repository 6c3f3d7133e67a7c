#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/json/component_json.h"

namespace sluice::tokenizer {
namespace {

constexpr std::int64_t kMaxStrip = 1024;  // the most characters held back

}  // namespace

std::unique_ptr<Decoder> read_decoder(const Json* value, const std::string& where) {
  if (value == nullptr || value->is_null()) return nullptr;
  const JsonObject object(*value, where);
  const std::string type = object.string("type");
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "Strip") {
    return strip_decoder(read_character(object, "content"),
                         static_cast<std::size_t>(object.integer("start", 0, kMaxStrip)),
                         static_cast<std::size_t>(object.integer("stop", 0, kMaxStrip)));
  }
  if (type == "Metaspace") {
    const char32_t replacement = read_character(object, "replacement");
    return metaspace_decoder(
        replacement, read_prepend_scheme(object) == PrependScheme::kNever ? DropFirst::kNo : DropFirst::kYes);
  }
  if (type == "Replace") {
    std::string content = object.string("content");
    return replace_decoder(read_pattern(object, "pattern"), std::move(content));
  }
  if (type == "Sequence") {
    const Json* parts = object.find("decoders");
    if (parts == nullptr || !parts->is_array()) object.fail("decoders", "an array");
    std::vector<std::unique_ptr<Decoder>> decoders;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      if (auto part = read_decoder(&(*parts)[i], fmt::format("{}.decoders[{}]", where, i))) {
        decoders.push_back(std::move(part));
      }
    }
    return sequence_decoder(std::move(decoders));
  }
  throw_unsupported_type(object, type);
}

}  // namespace sluice::tokenizer
