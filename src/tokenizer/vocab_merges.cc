#include "tokenizer/vocab_merges.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_builder.h"
#include "tokenizer/json/tokenizer_document.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

// PRETOKENIZE_REGEX of transformers' Qwen2Tokenizer.
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Spelled as a tokenizer.json would spell them.
Json byte_level(const TokenizerConfig& config, bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", config.add_prefix_space}, {"use_regex", use_regex}};
}

Json qwen2_components(const TokenizerConfig& config) {
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kQwen2Pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(config, false)})}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

Json gpt2_components(const TokenizerConfig& config) {
  return {{"pre_tokenizer", byte_level(config, true)}, {"decoder", {{"type", "ByteLevel"}}}};
}

}  // namespace

std::unique_ptr<Tokenizer> load_vocab_merges(const VocabMergesText& text, const TokenizerConfig& config,
                                             const StopRequest& stop) {
  TokenizerParts parts;
  parts.model_vocab = config.model_vocab;
  if (config.tokenizer_class == "Qwen2Tokenizer") {
    read_components(qwen2_components(config), "the stages of Qwen2Tokenizer", parts);
  } else if (config.tokenizer_class == "GPT2Tokenizer" || config.tokenizer_class == "GPTNeoXTokenizer") {
    read_components(gpt2_components(config), "the stages of GPT2Tokenizer", parts);
  } else {
    throw Error(ErrorKind::kUnsupported,
                "vocab.json and merges.txt of a tokenizer class that is not supported")
        .in(text.vocab_name)
        .expected(
            "tokenizer_class Qwen2Tokenizer, GPT2Tokenizer or GPTNeoXTokenizer in tokenizer_config.json")
        .found(config.tokenizer_class.empty() ? "none" : printable(config.tokenizer_class))
        .fix("add the tokenizer.json of the model");
  }
  const MergeList merges = read_merges_text(text.merges, text.merges_name);
  parts.bpe = build_bpe(read_vocabulary_json(text.vocab, text.vocab_name, stop), merges, {},
                        text.merges_name + ": rule ", stop);
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

}  // namespace sluice::tokenizer
