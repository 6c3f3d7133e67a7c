#include "serve/wire/token_fields.h"

#include <charconv>
#include <cstdint>

#include "serve/backend.h"
#include "tokenizer/text/text_check.h"

namespace sluice::serve {

std::vector<tokenizer::TokenId> read_token_ids(const BodyValue& array, const std::string& path,
                                               const Served& served) {
  std::vector<tokenizer::TokenId> ids;
  for (std::size_t i = 0; i < array.array().size(); ++i) {
    const BodyValue& id = array.array()[i];
    if (!id.is_integer() || !tokenizer::is_token_id(id.integer(), served.vocabulary))
      refuse_value(element_path(path, i), "a token id from 0 to " + std::to_string(served.vocabulary - 1),
                   id);
    ids.push_back(static_cast<tokenizer::TokenId>(id.integer()));
  }
  return ids;
}

tokenizer::TokenId read_token_key(const std::string& key, std::string_view name, const Served& served) {
  std::uint32_t id = 0;
  const char* const end = key.data() + key.size();
  const bool is_number = std::from_chars(key.data(), end, id).ptr == end && !key.empty();
  if (!is_number || !tokenizer::is_token_id(id, served.vocabulary))
    throw ApiError(400, "invalid_value",
                   '\'' + std::string(name) + "' has a key that is no token id: " + shown(BodyValue(key)))
        .about(std::string(name));
  return static_cast<tokenizer::TokenId>(id);
}

}  // namespace sluice::serve
