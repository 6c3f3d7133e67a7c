#include "serve/wire/openai/completion_logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serve/json/json_writer.h"
#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

// Descending; the chosen token is always there; if several have the same text, the likeliest.
void write_top(JsonWriter& out, const ScoredToken& token, const Served& served) {
  std::vector<RankedToken> ranked = token.top;
  const auto same = [&](const RankedToken& other) { return other.id == token.id; };
  if (std::ranges::none_of(ranked, same)) ranked.push_back({token.id, token.logprob});
  std::ranges::stable_sort(ranked,
                           [](const RankedToken& a, const RankedToken& b) { return a.logprob > b.logprob; });
  out.begin_object();
  std::vector<std::string> seen;
  for (const RankedToken& one : ranked) {
    std::string text = token_text(one.id, served);
    if (std::ranges::find(seen, text) != seen.end()) continue;
    out.member(text, one.logprob);
    seen.push_back(std::move(text));
  }
  out.end_object();
}

}  // namespace

std::string token_text(tokenizer::TokenId id, const Served& served) {
  if (served.tokenizer == nullptr) return fmt::format("token_id:{}", id);
  std::string bytes = served.bytes_of(id);
  if (invalid_utf8(bytes) == std::string::npos) return bytes;
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void CompletionLogprobs::add_row(Row row, bool shown) {
  row.offset = offset_;
  if (shown) offset_ += code_points(served_.bytes_of(row.id));
  tokens_.push_back(std::move(row));
}

void CompletionLogprobs::add_first(tokenizer::TokenId id, bool shown) { add_row({id, 0, false, {}}, shown); }
void CompletionLogprobs::add(const ScoredToken& token, bool shown) {
  add_row({token.id, 0, true, token}, shown);
}

std::string CompletionLogprobs::take() {
  JsonWriter out;
  out.begin_object().key("tokens").begin_array();
  for (const Row& row : tokens_) out.string(token_text(row.id, served_));
  out.end_array().key("token_logprobs").begin_array();
  for (const Row& row : tokens_) {
    if (row.has_logprob) {
      out.real(row.scored.logprob);
    } else {
      out.null();
    }
  }
  out.end_array().key("top_logprobs").begin_array();
  for (const Row& row : tokens_) {
    if (row.has_logprob) {
      write_top(out, row.scored, served_);
    } else {
      out.null();
    }
  }
  out.end_array().key("text_offset").begin_array();
  for (const Row& row : tokens_) out.natural(row.offset);
  out.end_array().end_object();
  tokens_.clear();
  return out.take();
}

}  // namespace sluice::serve
