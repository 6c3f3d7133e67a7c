#include "tokenizer/bpe/bpe_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {

std::unique_ptr<Bpe> build_bpe(Vocabulary vocabulary, const MergeList& merges, BpeOptions options,
                               const std::string& where, const StopRequest& stop) {
  constexpr std::size_t kRulesBetweenStops = 4096;
  Merges table;
  table.reserve(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    if (rank % kRulesBetweenStops == 0) stop_if(stop);
    const auto [left, right] = merges[rank];
    joined.assign(left).append(right);
    const auto id_of = [&](std::string_view token) {
      const auto id = vocabulary.find(token);
      if (!id) {
        throw Error(ErrorKind::kInvalid, "merge rule names a token that is not in the vocabulary")
            .in(fmt::format("{}[{}]", where, rank))
            .found(printable(token))
            .fix("download the tokenizer files again");
      }
      return *id;
    };
    table.put(id_of(left), id_of(right), {static_cast<std::uint32_t>(rank), id_of(joined)});
  }
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(table), options);
}

void add_token(AddedToken token, TokenId declared, const Vocabulary& vocabulary, AddedTokens& added,
               const std::string& where) {
  if (added.knows(token.content)) return;
  const auto model_size = static_cast<TokenId>(vocabulary.size());
  const TokenId next = std::max(model_size, added.end_id());
  token.id = vocabulary.find(token.content).value_or(next);
  if ((declared >= 0 && declared != token.id) || token.id > Vocabulary::kMaxId) {
    throw Error(ErrorKind::kInvalid, "added token has a wrong id")
        .in(where)
        .expected(fmt::format("{} for {}", token.id, printable(token.content)))
        .found(fmt::format("{}", declared))
        .fix("download the tokenizer files again");
  }
  if (vocabulary.content(token.id).value_or(token.content) != token.content) {
    throw Error(ErrorKind::kInvalid, "added token has the id of another token")
        .in(where)
        .expected(fmt::format("a free id for {}", printable(token.content)))
        .found(fmt::format("{}, the id of {}", token.id, printable(*vocabulary.content(token.id))))
        .fix("download the tokenizer files again");
  }
  added.add(std::move(token));
}

}  // namespace sluice::tokenizer
