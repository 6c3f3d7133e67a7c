#include "tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/gguf/gguf_bpe.h"
#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_model.h"
#include "tokenizer/gguf/gguf_patterns.h"
#include "tokenizer/gguf/gguf_pieces.h"
#include "tokenizer/gguf/gguf_tokens.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kWholeJson = "tokenizer.huggingface.json";

// The stages, spelled as a tokenizer.json would spell them.
Json split(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

Json byte_level_stages(const GgufPatterns& patterns) {
  Json steps = Json::array();
  for (const std::string_view pattern : patterns.patterns) steps.push_back(split(pattern));
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  Json stages = {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
                 {"decoder", {{"type", "ByteLevel"}}}};
  if (patterns.nfc) stages["normalizer"] = {{"type", "NFC"}};
  return stages;
}

Json replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json raw_text_stages() {
  return {{"normalizer", replace(" ", kWordBegin)},
          {"pre_tokenizer", split("\\n+")},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             Json::array({replace(kWordBegin, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}})}}}};
}

struct Source {
  const GgufKeys& keys;
  const GgufModel& model;
  const GgufTokens& tokens;
  const SentencePieceFrame& frame;
  const std::string& name;
  const StopRequest& stop;
};

std::unique_ptr<Tokenizer> load_bpe(const Source& source) {
  TokenizerParts parts;
  BpeOptions options;
  bool ids_are_ranks = false;
  Json stages;
  if (source.model.merging == GgufMerging::kRawText) {
    options.unknown = source.tokens.id_at("tokenizer.ggml.unknown_token_id", source.model.unknown);
    options.fuse_unknown = options.byte_fallback = true;
    stages = raw_text_stages();
  } else {
    const GgufPatterns& patterns = gguf_patterns_of(source.keys, source.model);
    options.ignore_merges = patterns.ignore_merges;
    ids_are_ranks = patterns.ids_are_ranks;
    stages = byte_level_stages(patterns);
  }
  read_components(std::move(stages), source.name, parts);
  parts.added = source.tokens.added();
  parts.bpe = read_gguf_bpe(source.keys, source.tokens, options, ids_are_ranks, source.stop);
  if (source.frame.bos >= 0) parts.around.before = {source.frame.bos};
  if (source.frame.eos >= 0) parts.around.after = {source.frame.eos};
  parts.model_vocab = source.frame.model_vocab;
  return make_pipeline_tokenizer(std::move(parts));
}

std::unique_ptr<Tokenizer> load_pieces(const Source& source) {
  return make_sentencepiece(read_gguf_pieces(source.keys, source.model, source.tokens), source.tokens.added(),
                            source.frame);
}

// An id that encode() adds, or -1.
TokenId added_id(const GgufKeys& keys, bool adds, const std::optional<TokenId>& id, std::string_view key) {
  if (adds && !id)
    keys.fail("tokenizer adds a token that the file does not name", keys.place(key), "its id", "no such key");
  return adds ? *id : -1;
}

}  // namespace

std::unique_ptr<Tokenizer> load_gguf_tokenizer(const store::GgufHeader& header, const std::string& name,
                                               TokenId model_vocab, const StopRequest& stop) {
  const GgufKeys keys(header, name);
  if (const std::string* const json = keys.string(kWholeJson)) {
    TokenizerConfig config;
    config.model_vocab = model_vocab;
    return load_tokenizer_json(*json, keys.place(kWholeJson), config, stop);
  }
  const GgufModel* const model = gguf_model_of(keys);
  if (model == nullptr) return nullptr;
  const GgufTokens tokens(keys);
  const GgufSpecials specials = read_gguf_specials(header, name);
  const SentencePieceFrame frame{
      .bos = added_id(keys, specials.add_bos, specials.bos, "tokenizer.ggml.bos_token_id"),
      .eos = added_id(keys, specials.add_eos, specials.eos, "tokenizer.ggml.eos_token_id"),
      .model_vocab = std::max(model_vocab, tokens.size())};
  const Source source{keys, *model, tokens, frame, name, stop};
  return model->merging == GgufMerging::kScores ? load_pieces(source) : load_bpe(source);
}

}  // namespace sluice::tokenizer
