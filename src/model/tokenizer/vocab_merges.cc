#include "model/tokenizer/vocab_merges.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "model/tokenizer/bpe_builder.h"
#include "model/tokenizer/pipeline_tokenizer.h"
#include "model/tokenizer/printable.h"
#include "model/tokenizer/regex.h"
#include "model/tokenizer/tokenizer_document.h"

namespace sluice::model {
namespace {

// PRETOKENIZE_REGEX of transformers' Qwen2Tokenizer.
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

void add_qwen2_stages(const TokenizerConfig& config, TokenizerParts& parts) {
  parts.normalizer = unicode_normalizer(NormalForm::kNfc);
  std::vector<std::unique_ptr<PreTokenizer>> stages;
  stages.push_back(split_pre_tokenizer(regex_pattern(kQwen2Pattern, "the Qwen2 pattern"),
                                       SplitBehavior::kIsolated, Invert::kNo));
  stages.push_back(
      byte_level_pre_tokenizer({.add_prefix_space = config.add_prefix_space, .use_regex = false}));
  parts.pre_tokenizer = sequence_pre_tokenizer(std::move(stages));
}

void add_gpt2_stages(const TokenizerConfig& config, TokenizerParts& parts) {
  parts.pre_tokenizer =
      byte_level_pre_tokenizer({.add_prefix_space = config.add_prefix_space, .use_regex = true});
}

}  // namespace

std::unique_ptr<Tokenizer> load_vocab_merges(const VocabMergesText& text, const TokenizerConfig& config) {
  TokenizerParts parts;
  parts.model_vocab = config.model_vocab;
  if (config.tokenizer_class == "Qwen2Tokenizer") {
    add_qwen2_stages(config, parts);
  } else if (config.tokenizer_class == "GPT2Tokenizer" || config.tokenizer_class == "GPTNeoXTokenizer") {
    add_gpt2_stages(config, parts);
  } else {
    throw Error(ErrorKind::kUnsupported,
                "vocab.json and merges.txt of a tokenizer class that is not supported")
        .in(text.vocab_name)
        .expected(
            "tokenizer_class Qwen2Tokenizer, GPT2Tokenizer or GPTNeoXTokenizer in tokenizer_config.json")
        .found(config.tokenizer_class.empty() ? "none" : printable(config.tokenizer_class))
        .fix("add the tokenizer.json of the model");
  }
  parts.decoder = byte_level_decoder();
  const MergeList merges = read_merges_text(text.merges, text.merges_name);
  parts.bpe =
      build_bpe(read_vocabulary_json(text.vocab, text.vocab_name), merges, {}, text.merges_name + ": rule ");
  const Vocabulary& vocabulary = parts.bpe->vocabulary();
  for (const AddedToken& token : config.added) {
    add_token(token, token.id, vocabulary, parts.added, "tokenizer_config.json: added_tokens_decoder");
  }
  for (const std::string& content : config.named) {
    AddedToken token;
    token.content = content;
    token.special = true;
    add_token(std::move(token), -1, vocabulary, parts.added, "tokenizer_config.json: special tokens");
  }
  if (config.add_bos.value_or(false) && parts.added.knows(config.bos)) {
    parts.around.before = {*parts.added.id_of(config.bos)};
  }
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace sluice::model
