#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kMaxAround = 1024;  // tokens a template may add

// {"single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", …}}],
//  "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
TokenTemplate read_template(const JsonObject& object) {
  const Json* single = object.find("single");
  if (single == nullptr || !single->is_array()) object.fail("single", "an array");
  TokenTemplate around;
  int sequences = 0;
  for (std::size_t i = 0; i < single->size(); ++i) {
    const JsonObject part = element_object(*single, i, object.name() + ".single");
    if (part.has("Sequence")) {
      if (part.object("Sequence").string("id") != "A" || ++sequences > 1) {
        throw Error(ErrorKind::kUnsupported, "template of more than one sequence")
            .in(part.name())
            .expected("the sequence A, once")
            .found(fmt::format("\"{}\"{}", printable(part.object("Sequence").string("id")),
                               sequences > 1 ? " again" : ""))
            .fix(tokens_instead_of_text());
      }
      continue;
    }
    const std::string token = part.object("SpecialToken").string("id");
    const JsonObject known = object.object("special_tokens").object(token);
    std::vector<TokenId>& ids = sequences == 0 ? around.before : around.after;
    for (const std::int64_t id : known.integers_or("ids", {}, 0, Vocabulary::kMaxId)) {
      ids.push_back(static_cast<TokenId>(id));
    }
    if (ids.size() > kMaxAround) object.fail("single", fmt::format("at most {} tokens", kMaxAround));
  }
  if (sequences != 1) {
    throw Error(ErrorKind::kUnsupported, "template without the sequence")
        .in(object.name() + ".single")
        .expected("the sequence A, once")
        .found("special tokens alone")
        .fix(tokens_instead_of_text());
  }
  return around;
}

}  // namespace

TokenTemplate read_post_processor(const Json* value, const std::string& where) {
  if (value == nullptr || value->is_null()) return {};
  const JsonObject object(*value, where);
  const std::string type = object.string("type");
  if (type == "ByteLevel") return {};  // trims offsets, which we do not keep
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "Sequence") {
    const Json* parts = object.find("processors");
    if (parts == nullptr || !parts->is_array()) object.fail("processors", "an array");
    TokenTemplate around;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      const TokenTemplate outer =
          read_post_processor(&(*parts)[i], fmt::format("{}.processors[{}]", where, i));
      around.before.insert(around.before.begin(), outer.before.begin(), outer.before.end());
      around.after.insert(around.after.end(), outer.after.begin(), outer.after.end());
    }
    return around;
  }
  throw_unsupported_type(object, type);
}

}  // namespace sluice::tokenizer
