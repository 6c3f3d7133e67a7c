#include "tokenizer/sentencepiece/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/text/printable.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the least likely token

[[noreturn]] void fail_for_unknown(std::string_view text) {
  throw Error(ErrorKind::kInvalid, "the tokenizer has no token for a character and none for unknown ones")
      .in("text")
      .expected("characters that the vocabulary has")
      .found(printable(text))
      .fix("leave the character out, or download the tokenizer files again");
}

ByteTrie trie_of(const Vocabulary& vocabulary) {
  ByteTrie trie;
  for (TokenId id = 0; id < vocabulary.end_id(); ++id)
    if (const auto content = vocabulary.content(id)) trie.add(*content, static_cast<std::uint32_t>(id));
  return trie;
}

bool is_refused(const Unigram::Scratch& scratch, TokenId id) {
  return scratch.refused != nullptr && (*scratch.refused)[static_cast<std::size_t>(id)];
}

}  // namespace

Unigram::Unigram(Vocabulary vocabulary, std::vector<double> scores, const UnigramOptions& options)
    : Unigram(std::move(vocabulary), std::move(scores), options, {}) {
  trie_ = trie_of(vocabulary_);
}

Unigram::Unigram(Vocabulary vocabulary, std::vector<double> scores, const UnigramOptions& options,
                 ByteTrie trie)
    : vocabulary_(std::move(vocabulary)),
      scores_(std::move(scores)),
      options_(options),
      trie_(std::move(trie)) {
  SLUICE_CHECK(scores_.size() == static_cast<std::size_t>(vocabulary_.end_id()));
  double least = std::numeric_limits<double>::infinity();
  for (TokenId id = 0; id < vocabulary_.end_id(); ++id) {
    const auto content = vocabulary_.content(id);
    if (!content) continue;
    SLUICE_CHECK(content->size() <= kMaxTokenBytes);
    least = std::min(least, scores_[static_cast<std::size_t>(id)]);
  }
  unknown_score_ = least - kUnknownPenalty;
  for (int byte = 0; byte < 256; ++byte)
    id_of_byte_[static_cast<std::size_t>(byte)] =
        vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

void Unigram::find_best(std::string_view piece, Scratch& scratch) const {
  std::vector<Scratch::Node>& best = scratch.best_;
  best.assign(piece.size() + 1, {});
  // Among equally likely paths the first one wins.
  const auto offer = [&](std::size_t begin, std::size_t end, double score, TokenId id) {
    Scratch::Node& node = best[end];
    if (node.id == Scratch::kNone || score > node.score)
      node = {score, static_cast<std::uint32_t>(begin), id};
  };
  for (std::size_t begin = 0; begin < piece.size();) {
    const double before = best[begin].score;
    const std::size_t character = decode_valid_utf8(piece.substr(begin)).length;
    bool known = false;
    trie_.for_each_prefix(piece.substr(begin), [&](const ByteTrie::Found& found) {
      if (is_refused(scratch, static_cast<TokenId>(found.number))) return;
      offer(begin, begin + found.length, scores_[found.number] + before, static_cast<TokenId>(found.number));
      known |= found.length == character;
    });
    if (!known) {
      if (!options_.unknown) fail_for_unknown(piece.substr(begin, character));
      offer(begin, begin + character, unknown_score_ + before, *options_.unknown);
    }
    begin += character;
  }
}

void Unigram::append_ids(std::string_view text, const Scratch& scratch, std::vector<TokenId>& out) const {
  if (const auto id = vocabulary_.find(text); id && !is_refused(scratch, *id)) {
    out.push_back(*id);
    return;
  }
  if (options_.byte_fallback &&
      std::ranges::all_of(text, [&](char c) { return id_of_byte_[static_cast<unsigned char>(c)] >= 0; })) {
    for (const char c : text) out.push_back(id_of_byte_[static_cast<unsigned char>(c)]);
    return;
  }
  // A tree that was passed in may have tokens that the vocabulary lacks.
  if (!options_.unknown) fail_for_unknown(text);
  out.push_back(*options_.unknown);
}

void Unigram::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  find_best(piece, scratch);
  std::vector<Scratch::Part>& parts = scratch.parts_;
  parts.clear();
  for (std::size_t end = piece.size(); end > 0;) {
    const Scratch::Node& node = scratch.best_[end];
    const bool unknown = options_.unknown && node.id == *options_.unknown;
    if (unknown && !parts.empty() && parts.back().unknown) {
      parts.back().begin = node.begin;  // joins a run of unknown text
    } else {
      parts.push_back({node.begin, static_cast<std::uint32_t>(end), unknown});
    }
    end = node.begin;
  }
  // A joined run may be a token after all, so ids are looked up by content.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    append_ids(piece.substr(part->begin, part->end - part->begin), scratch, out);
}

}  // namespace sluice::tokenizer
