#include "tokenizer/stages/pre_tokenizer.h"

#include <utility>

#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/regex.h"
#include "tokenizer/text/text_check.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// Joins matches and the text between them as `behavior` says, from left to right with one range held back,
// and passes on non-empty ranges. The rules are those of NormalizedString::split in tokenizers.
class Splitter {
 public:
  Splitter(const Piece& piece, SplitBehavior behavior, PreTokenizer::Emit emit)
      : piece_(piece), behavior_(behavior), emit_(emit) {}

  void add(const Match& match) {
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!match.matched) give(match);
        return;
      case SplitBehavior::kIsolated:
        give(match);
        return;
      case SplitBehavior::kContiguous:
        // The first match is never joined: the missing range before it counts as text.
        return add_joining(match, held_ && held_->matched == match.matched);
      case SplitBehavior::kMergedWithPrevious:
        return add_joining(match, held_ && match.matched && !held_->matched);
      case SplitBehavior::kMergedWithNext:
        return add_joining(match, held_ && held_->matched && !match.matched);
    }
  }
  void finish() {
    if (held_) give(*held_);
  }

 private:
  void add_joining(const Match& match, bool join) {
    if (join) {
      held_->end = match.end;
      held_->matched = match.matched;
      return;
    }
    if (held_) give(*held_);
    held_ = match;
  }
  void give(const Match& range) {
    if (range.begin == range.end) return;
    emit_({piece_.text.substr(range.begin, range.end - range.begin), piece_.at_start && range.begin == 0});
  }

  const Piece& piece_;
  SplitBehavior behavior_;
  PreTokenizer::Emit emit_;
  std::optional<Match> held_;
};

class Split final : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, Invert invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert == Invert::kYes) {}

  void split(const Piece& piece, Emit emit) const override {
    Splitter splitter(piece, behavior_, emit);
    pattern_->find(piece.text, [&](const Match& match) {
      splitter.add({match.begin, match.end, match.matched != invert_});
    });
    splitter.finish();
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const ByteLevelOptions& options) : add_prefix_space_(options.add_prefix_space) {
    if (options.use_regex) pattern_ = regex_pattern(kGpt2Pattern, "the GPT-2 pattern");
  }

  void split(const Piece& piece, Emit emit) const override {
    std::string prefixed;
    std::string_view text = piece.text;
    if (add_prefix_space_ && !text.starts_with(' ')) {
      prefixed = " ";
      prefixed += text;
      text = prefixed;
    }
    std::string mapped;
    const auto give = [&](std::string_view part, bool at_start) {
      mapped.clear();
      append_byte_level(mapped, part);
      check_grown(mapped.size());
      emit({mapped, at_start});
    };
    if (!pattern_) return give(text, piece.at_start);
    pattern_->find(text, [&](const Match& match) {
      if (match.begin != match.end) {
        give(text.substr(match.begin, match.end - match.begin), piece.at_start && match.begin == 0);
      }
    });
  }

 private:
  bool add_prefix_space_;
  std::unique_ptr<Pattern> pattern_;  // null: keeps the piece whole
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const MetaspaceOptions& options) : prepend_(options.prepend), split_(options.split) {
    append_utf8(replacement_, options.replacement);
    pattern_ = literal_pattern(replacement_);
  }

  void split(const Piece& piece, Emit emit) const override {
    std::string text;
    text.reserve(piece.text.size() + replacement_.size());
    for (const char c : piece.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    check_grown(text.size());
    const bool prepend =
        prepend_ == PrependScheme::kAlways || (prepend_ == PrependScheme::kFirst && piece.at_start);
    if (prepend && !text.starts_with(replacement_)) text.insert(0, replacement_);
    const Piece whole{text, piece.at_start};
    if (!split_) return emit(whole);
    Splitter splitter(whole, SplitBehavior::kMergedWithNext, emit);
    pattern_->find(text, [&](const Match& match) { splitter.add(match); });
    splitter.finish();
  }

 private:
  std::string replacement_;
  PrependScheme prepend_;
  bool split_;
  std::unique_ptr<Pattern> pattern_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}
  void split(const Piece& piece, Emit emit) const override { split_from(0, piece, emit); }

 private:
  void split_from(std::size_t part, const Piece& piece, Emit emit) const {
    if (part == parts_.size()) return emit(piece);
    parts_[part]->split(piece, [&](const Piece& smaller) { split_from(part + 1, smaller, emit); });
  }
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

std::unique_ptr<PreTokenizer> split_pre_tokenizer(std::unique_ptr<Pattern> pattern, SplitBehavior behavior,
                                                  Invert invert) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}
std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer(const ByteLevelOptions& options) {
  return std::make_unique<ByteLevel>(options);
}
std::unique_ptr<PreTokenizer> metaspace_pre_tokenizer(const MetaspaceOptions& options) {
  return std::make_unique<Metaspace>(options);
}
std::unique_ptr<PreTokenizer> sequence_pre_tokenizer(
    std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizers) {
  return std::make_unique<PreTokenizerSequence>(std::move(pre_tokenizers));
}

}  // namespace sluice::tokenizer
