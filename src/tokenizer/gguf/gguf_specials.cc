#include "tokenizer/gguf/gguf_specials.h"

#include <algorithm>

#include "tokenizer/gguf/gguf_model.h"
#include "tokenizer/gguf/gguf_patterns.h"
#include "tokenizer/gguf/gguf_tokens.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kTemplate = "tokenizer.chat_template";

// Keys of tokens that end an answer. The last ones stand between the files of a repository.
constexpr std::string_view kEndKeys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
                                         "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
                                         "tokenizer.ggml.fim_sep_token_id"};

// A model of gpt-oss ends a message, not its answer, by <|end|>.
bool ends_messages_only(const GgufTokens& tokens, const std::vector<TokenId>& ends) {
  const auto has = [&](std::string_view content) {
    return std::ranges::any_of(ends, [&](TokenId id) { return tokens.content(id) == content; });
  };
  return has("<|return|>") && has("<|call|>");
}

std::vector<TokenId> ends_of(const GgufTokens& tokens, std::optional<TokenId> eos) {
  std::vector<TokenId> ends;
  for (TokenId id = 0; id < tokens.size(); ++id)
    if (ends_an_answer(tokens.content(id))) ends.push_back(id);
  for (const std::string_view key : kEndKeys)
    if (const auto id = tokens.id_at(key)) ends.push_back(*id);
  if (ends_messages_only(tokens, ends))
    std::erase_if(ends, [&](TokenId id) { return tokens.content(id) == "<|end|>"; });
  if (eos) ends.push_back(*eos);
  std::ranges::sort(ends);
  const auto twice = std::ranges::unique(ends);
  ends.erase(twice.begin(), twice.end());
  return ends;
}

void read_templates(const GgufKeys& keys, GgufSpecials& specials) {
  const std::string prefix = std::string(kTemplate) + '.';
  for (const store::GgufKey& key : keys.header().keys) {
    if (key.name == kTemplate) specials.chat_template = *keys.string(key.name);
    if (key.name.starts_with(prefix) && key.name.size() > prefix.size())
      specials.named_templates.emplace_back(key.name.substr(prefix.size()), *keys.string(key.name));
  }
  std::ranges::sort(specials.named_templates);
}

}  // namespace

GgufSpecials read_gguf_specials(const store::GgufHeader& header, const std::string& name) {
  const GgufKeys keys(header, name);
  GgufSpecials specials;
  read_templates(keys, specials);
  const GgufModel* const model = find_gguf_model(keys);
  if (model == nullptr) return specials;
  const GgufTokens tokens(keys);
  specials.bos = tokens.bos(*model);
  specials.eos = tokens.eos(*model);
  specials.ends = ends_of(tokens, specials.eos);
  const GgufPatterns* const patterns = find_gguf_patterns(keys, *model);
  specials.add_bos =
      model->always_bos || keys.boolean("tokenizer.ggml.add_bos_token")
                               .value_or(patterns != nullptr ? patterns->add_bos : model->add_bos);
  specials.add_eos = keys.boolean("tokenizer.ggml.add_eos_token").value_or(false);
  return specials;
}

}  // namespace sluice::tokenizer
