#include "model/token_ids.h"

#include <fmt/format.h>

#include <string>

namespace sluice::model {

void check_token_ids(std::span<const tokenizer::TokenId> tokens, std::size_t vocab, std::string_view where,
                     ErrorKind kind) {
  for (const tokenizer::TokenId token : tokens)
    if (token < 0 || static_cast<std::size_t>(token) >= vocab)
      throw Error(kind, "token id is out of range")
          .in(where)
          .expected(fmt::format("0 to {}", vocab - 1))
          .found(std::to_string(token))
          .fix("give ids of this model's tokenizer");
}

}  // namespace sluice::model
