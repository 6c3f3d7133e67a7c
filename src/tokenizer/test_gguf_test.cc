#include "tokenizer/test_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/file.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer::test {

store::GgufHeader small_gguf(const std::string& name) {
  return store::read_gguf(InputFile::open(source_path("tests/fuzz/corpus/gguf_tokenizer/" + name + ".gguf")));
}

void set(store::GgufHeader& header, std::string_view key, store::GgufValue value) {
  for (store::GgufKey& own : header.keys)
    if (own.name == key) return void(own.value = std::move(value));
  header.keys.push_back({std::string(key), std::move(value)});
}

void remove(store::GgufHeader& header, std::string_view key) {
  std::erase_if(header.keys, [&](const store::GgufKey& own) { return own.name == key; });
}

store::GgufHeader gguf_of(const Json& tokenizer, std::string_view pre) {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  const auto put = [&](const std::string& content, std::size_t id, std::int64_t type) {
    for (std::size_t gap = tokens.size(); gap <= id; ++gap) {
      tokens.push_back(fmt::format("[PAD{}]", gap));
      types.push_back(5);
    }
    tokens[id] = content;
    types[id] = type;
  };
  for (const auto& [content, id] : tokenizer["model"]["vocab"].items())
    put(content, id.get<std::size_t>(), 1);
  for (const Json& token : tokenizer["added_tokens"])
    put(token["content"].get<std::string>(), token["id"].get<std::size_t>(),
        token["special"].get<bool>() ? 3 : 4);
  std::vector<std::string> merges;
  for (const Json& rule : tokenizer["model"]["merges"])
    merges.push_back(rule.is_string() ? rule.get<std::string>()
                                      : rule[0].get<std::string>() + ' ' + rule[1].get<std::string>());
  store::GgufHeader header;
  set(header, "tokenizer.ggml.model", std::string("gpt2"));
  set(header, "tokenizer.ggml.pre", std::string(pre));
  set(header, "tokenizer.ggml.tokens", std::move(tokens));
  set(header, "tokenizer.ggml.token_type", std::move(types));
  set(header, "tokenizer.ggml.merges", std::move(merges));
  set(header, "tokenizer.ggml.add_bos_token", false);
  return header;
}

store::GgufHeader gguf_of(const SentencePieceModel& model) {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  for (TokenId id = 0; id < model.size(); ++id) {
    tokens.emplace_back(model.content(id));
    types.push_back(static_cast<std::int64_t>(model.types[static_cast<std::size_t>(id)]));
  }
  store::GgufHeader header;
  set(header, "tokenizer.ggml.model", std::string("llama"));
  set(header, "tokenizer.ggml.pre", std::string("default"));
  set(header, "tokenizer.ggml.tokens", std::move(tokens));
  set(header, "tokenizer.ggml.token_type", std::move(types));
  set(header, "tokenizer.ggml.scores", std::vector<double>(model.scores.begin(), model.scores.end()));
  return header;
}

}  // namespace sluice::tokenizer::test
