#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/text/base64.h"

namespace sluice::tokenizer {

std::unique_ptr<Normalizer> read_normalizer(const Json* value, const std::string& where) {
  if (value == nullptr || value->is_null()) return nullptr;
  const JsonObject object(*value, where);
  const std::string type = object.string("type");
  if (type == "NFC") return unicode_normalizer(NormalForm::kNfc);
  if (type == "NFD") return unicode_normalizer(NormalForm::kNfd);
  if (type == "NFKC") return unicode_normalizer(NormalForm::kNfkc);
  if (type == "NFKD") return unicode_normalizer(NormalForm::kNfkd);
  if (type == "Lowercase") return lowercase_normalizer();
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "ByteLevel") return byte_level_normalizer();
  if (type == "Precompiled") {
    const auto map = decode_base64(object.string("precompiled_charsmap"));
    if (!map) object.fail("precompiled_charsmap", "base64");
    return precompiled_normalizer(CharsMap(*map, where + ".precompiled_charsmap"));
  }
  if (type == "Prepend") return prepend_normalizer(object.string("prepend"));
  if (type == "Strip") {
    const bool left = object.boolean_or("strip_left", true);
    const bool right = object.boolean_or("strip_right", true);
    return strip_normalizer(left ? (right ? StripEnds::kBoth : StripEnds::kLeft)
                                 : (right ? StripEnds::kRight : StripEnds::kNone));
  }
  if (type == "Replace") {
    std::string content = object.string("content");
    return replace_normalizer(read_pattern(object, "pattern"), std::move(content));
  }
  if (type == "Sequence") {
    const Json* parts = object.find("normalizers");
    if (parts == nullptr || !parts->is_array()) object.fail("normalizers", "an array");
    std::vector<std::unique_ptr<Normalizer>> normalizers;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      if (auto part = read_normalizer(&(*parts)[i], fmt::format("{}.normalizers[{}]", where, i))) {
        normalizers.push_back(std::move(part));
      }
    }
    return sequence_normalizer(std::move(normalizers));
  }
  throw_unsupported_type(object, type);
}

}  // namespace sluice::tokenizer
