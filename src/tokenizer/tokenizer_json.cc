#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_builder.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/json/tokenizer_document.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

void require_absent(const JsonObject& model, std::string_view key) {
  const Json* value = model.find(key);
  if (value == nullptr || (value->is_string() && value->get_ref<const std::string&>().empty())) return;
  throw Error(ErrorKind::kUnsupported, fmt::format("BPE with {} is not supported", key))
      .in(fmt::format("{}.{}", model.name(), key))
      .expected("null")
      .found(printable(value->dump(-1, ' ', true, Json::error_handler_t::replace)))
      .fix(tokens_instead_of_text());
}

// The error for a vocabulary of the wrong kind, which has already been taken out of `model`.
[[noreturn]] void fail_vocabulary(const JsonObject& model, std::string_view expected,
                                  std::string_view found) {
  throw Error(ErrorKind::kInvalid, "field has a wrong value")
      .in(model.name() + ".vocab")
      .expected(expected)
      .found(found)
      .fix("correct the value");
}

std::unique_ptr<Bpe> read_bpe(TokenizerDocument& document, const JsonObject& model, const StopRequest& stop) {
  if (document.has_scores) fail_vocabulary(model, "an object of token ids", "an array");
  if (!document.has_vocabulary) model.fail("vocab", "an object of token ids");
  if (!document.has_merges) model.fail("merges", "an array of merge rules");
  require_absent(model, "continuing_subword_prefix");
  require_absent(model, "end_of_word_suffix");
  if (model.has("dropout") && model.real("dropout", 0.0, 1.0) != 0.0) {
    throw Error(ErrorKind::kUnsupported, "BPE with dropout is not supported")
        .in(model.name() + ".dropout")
        .expected("null")
        .found(fmt::format("{}", model.real("dropout", 0.0, 1.0)))
        .fix(tokens_instead_of_text());
  }
  BpeOptions options;
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  if (model.has("unk_token")) {
    const std::string unknown = model.string("unk_token");
    options.unknown = document.vocabulary.find(unknown);
    if (!options.unknown) model.fail("unk_token", "a token of the vocabulary");
  }
  return build_bpe(std::move(document.vocabulary), document.merges, options, model.name() + ".merges", stop);
}

std::unique_ptr<Unigram> read_unigram(TokenizerDocument& document, const JsonObject& model) {
  // A trie of the tokens takes 16 bytes for each of their bytes.
  constexpr std::size_t kMaxBytes = 16 << 20;
  constexpr std::string_view kExpected = "an array of pairs: a token and its score";
  if (document.has_vocabulary) fail_vocabulary(model, kExpected, "an object");
  if (document.has_scores && document.scores.empty()) fail_vocabulary(model, kExpected, "an empty array");
  if (!document.has_scores) model.fail("vocab", kExpected);
  if (document.vocabulary.longest_bytes() > Unigram::kMaxTokenBytes)
    model.fail("vocab", fmt::format("tokens of at most {} bytes", Unigram::kMaxTokenBytes));
  if (document.vocabulary.bytes() > kMaxBytes)
    model.fail("vocab", fmt::format("at most {} bytes of tokens", kMaxBytes));
  UnigramOptions options;
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  if (model.has("unk_id"))
    options.unknown =
        static_cast<TokenId>(model.integer("unk_id", 0, document.vocabulary.end_id() - std::int64_t{1}));
  return std::make_unique<Unigram>(std::move(document.vocabulary), std::move(document.scores), options);
}

void read_model(TokenizerDocument& document, const JsonObject& root, TokenizerParts& parts,
                const StopRequest& stop) {
  const JsonObject model = root.object("model");
  const std::string type = model.string_or("type", "BPE");  // files older than 2021 have no type
  if (type == "BPE") {
    parts.bpe = read_bpe(document, model, stop);
  } else if (type == "Unigram") {
    parts.unigram = read_unigram(document, model);
  } else {
    throw_unsupported_type(model, type);
  }
}

void read_added_tokens(const JsonObject& root, const Vocabulary& vocabulary, AddedTokens& added) {
  const Json* tokens = root.find("added_tokens");
  if (tokens == nullptr) return;
  if (!tokens->is_array()) root.fail("added_tokens", "an array");
  const std::string where = root.name() + ": added_tokens";
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const JsonObject object = element_object(*tokens, i, where);
    const auto id = static_cast<TokenId>(object.integer("id", 0, Vocabulary::kMaxId));
    add_token(read_added_token(object), id, vocabulary, added, object.name());
  }
}

// transformers' LlamaTokenizerFast writes its own template over the post-processor.
void add_llama_template(const TokenizerConfig& config, const std::string& name, TokenizerParts& parts) {
  const auto id_of = [&](const std::string& token) {
    if (parts.added.knows(token)) return *parts.added.id_of(token);
    const auto id = parts.vocabulary().find(token);
    if (!id) {
      throw Error(ErrorKind::kInvalid, "tokenizer_config.json names a token that the tokenizer does not have")
          .in(name)
          .found(printable(token))
          .fix("download the tokenizer files again");
    }
    return *id;
  };
  if (config.add_bos.value_or(true) && !config.bos.empty()) parts.around.before = {id_of(config.bos)};
  if (config.add_eos.value_or(false) && !config.eos.empty()) parts.around.after = {id_of(config.eos)};
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view json, const std::string& name,
                                               const TokenizerConfig& config, const StopRequest& stop) {
  TokenizerDocument document = read_tokenizer_document(json, name, stop);
  const JsonObject root(document.rest, name);
  TokenizerParts parts;
  parts.model_vocab = config.model_vocab;
  read_model(document, root, parts, stop);
  document.merges = {};
  Json components = Json::object();
  for (const char* const field : {"normalizer", "pre_tokenizer", "decoder"})
    if (const Json* const component = root.find(field)) components[field] = *component;
  read_components(std::move(components), name, parts);
  parts.around = read_post_processor(root.find("post_processor"), name + ": post_processor");
  const Vocabulary& vocabulary = parts.vocabulary();
  read_added_tokens(root, vocabulary, parts.added);
  for (const AddedToken& token : config.added) {
    add_token(token, token.id, vocabulary, parts.added, "tokenizer_config.json: added_tokens_decoder");
  }
  for (const auto* ids : {&parts.around.before, &parts.around.after}) {
    for (const TokenId id : *ids) {
      if (vocabulary.content(id) || parts.added.knows(id)) continue;
      throw Error(ErrorKind::kInvalid, "template adds a token that the tokenizer does not have")
          .in(name + ": post_processor")
          .found(fmt::format("{}", id))
          .fix("download the tokenizer files again");
    }
  }
  if (config.is_llama() && parts.around.before.empty() && parts.around.after.empty()) {
    add_llama_template(config, name, parts);
  }
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace sluice::tokenizer
